"""A session that a terminal has open: forked where two would write, joined where Codex's daemon lets both be one writer."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.agents.kinds import CLAUDE_KIND, CODEX_KIND, code_for, code_in, daemon_for
from tests.agents.rig import CODEX, AgentHome, FakeModel, Tui, codex_tui
from tests.daemon import Daemon, Running, needs_va
from tests.waiting import until

pytestmark = [pytest.mark.agents, needs_va]


@pytest.mark.requires("M1.live-elsewhere")
def test_a_claude_session_that_another_window_has_open_goes_on_as_a_real_fork_when_chosen(
    model: FakeModel, home: AgentHome, work: Path, tmp_path: Path
) -> None:
    session = CLAUDE_KIND.session(home, work)
    with daemon_for(tmp_path, home, CLAUDE_KIND) as daemon, CLAUDE_KIND.tui(home, work, "--resume", session) as tui:
        tui.type("still here")
        tui.wait_for("ECHO#2: still here")
        pickup = daemon.start_send(f"/pickup {code_for(daemon, CLAUDE_KIND, session, work)}", chat="a")
        asked = pickup.wait("choice")
        assert [one["id"] for one in asked["options"]] == ["go_on", "fork", "cancel"]
        daemon.answer("a", asked["id"], "fork")
        assert "fork" in pickup.finish().reply
        turn = daemon.send("what was it", chat="a")
        assert turn.session["session"] != session
        assert session in json.dumps(turn.events)
        assert model.wait_text("what was it").holds("remember banana", "still here")
        tui.type("and the window")
        tui.wait_for("ECHO#3: and the window")
        assert not model.wait_text("and the window").holds("what was it")


@contextmanager
def codex_daemon(home: AgentHome, work: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Codex's own server on its control socket, as its daemon is."""
    process = subprocess.Popen(
        [str(CODEX), "app-server", "--listen", "unix://"], cwd=work, env=home.env(),
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        until((home.codex_home / "app-server-control" / "app-server-control.sock").exists, "socket of the daemon")
        yield process
    finally:
        process.terminate()
        process.wait(10)


def said(heard: Running) -> str:
    return json.dumps(heard.events, ensure_ascii=False)


def join(daemon: Daemon, session: str, work: Path) -> None:
    pickup = daemon.start_send(f"/pickup {code_for(daemon, CODEX_KIND, session, work)}", chat="a")
    asked = pickup.wait("choice")
    assert [one["id"] for one in asked["options"]] == ["join", "fork", "wait", "cancel"]
    daemon.answer("a", asked["id"], "join")
    assert "joined" in pickup.finish().reply


def open_thread(home: AgentHome, tui: Tui) -> str:
    tui.type("remember banana")
    tui.wait_for("ECHO#1: remember banana")
    session = home.codex_sessions()[-1].stem[-36:]
    home.wait_stored(session, "ECHO#1: remember banana")
    return session


@pytest.mark.requires("M1.join")
def test_phone_and_terminal_share_one_live_thread_of_codex(model: FakeModel, home: AgentHome, work: Path, tmp_path: Path) -> None:
    home.trust(work)
    with daemon_for(tmp_path, home, CODEX_KIND) as daemon, codex_daemon(home, work) as server:
        with codex_tui(home, work, "--remote", "unix://") as tui:
            session = open_thread(home, tui)
            join(daemon, session, work)
            turn = daemon.send("what was it", chat="a")
            assert turn.session["session"] == session
            assert "ECHO#2: what was it" in turn.text
            screen = tui.wait_for("ECHO#2: what was it")
            assert "› what was it" in screen
            heard = daemon.listen("a")
            tui.type("typed in the terminal")
            tui.wait_for("ECHO#3: typed in the terminal")
            until(lambda: "terminal: typed in the terminal" in said(heard), "the terminal's prompt in the chat")
            until(lambda: "ECHO#3: typed in the terminal" in said(heard), "the terminal's answer in the chat")
            assert "terminal: what was it" not in said(heard)
        until(lambda: "The terminal has left" in said(heard), "word that the terminal has left")
        server.terminate()
        server.wait(10)
        alone = daemon.send("are you there", chat="a")
        assert alone.session["session"] == session
        assert model.wait_text("are you there").holds("remember banana", "what was it", "typed in the terminal")


@pytest.mark.requires("M1.join-busy", "M1.join-approvals")
def test_a_turn_of_the_terminal_holds_the_chat_up_and_its_questions_stay_in_the_terminal(
    model: FakeModel, home: AgentHome, work: Path, tmp_path: Path
) -> None:
    home.trust(work)
    remote = ("--remote", "unix://")
    with daemon_for(tmp_path, home, CODEX_KIND) as daemon, codex_daemon(home, work), codex_tui(home, work, *remote) as tui:
        session = open_thread(home, tui)
        join(daemon, session, work)
        daemon.send("hello", chat="a")
        tui.wait_for("ECHO#2: hello")
        heard = daemon.listen("a")
        tui.type("SHELL{echo mine > made-in-terminal}")
        tui.wait_for(CODEX_KIND.dialog)
        until(lambda: "terminal: SHELL" in said(heard), "the terminal's prompt in the chat")
        waiting = daemon.start_send("after you", chat="a")
        until(lambda: "The terminal is at work" in said(heard), "word that the message waits")
        assert [e for e in heard.events if e["event"] == "permission"] == []
        tui.decide("Enter", dialog=CODEX_KIND.dialog)
        tui.wait_for("TOOL-RESULT")
        assert "after you" in waiting.finish().text
        assert (work / "made-in-terminal").exists()
        mine = daemon.start_send("SHELL{echo phone > made-by-phone}", chat="a")
        asked = mine.wait("permission")
        daemon.answer("a", asked["id"], next(o["id"] for o in asked["options"] if o["kind"] == "allow_once"))
        assert "TOOL-RESULT" in mine.finish().text
        assert (work / "made-by-phone").exists()


@pytest.mark.requires("M1.join")
def test_the_codex_window_that_hands_over_is_joined_without_a_question(
    model: FakeModel, home: AgentHome, work: Path, tmp_path: Path
) -> None:
    home.trust(work)
    with daemon_for(tmp_path, home, CODEX_KIND) as daemon:
        daemon.va("integrate", "codex")
        remote = ("--remote", "unix://")
        with codex_daemon(home, work), codex_tui(home, work, *remote) as tui:
            tui.type("remember banana")
            tui.wait_for("ECHO#1: remember banana")
            tui.type(f"MCP{{prepare_handover|{json.dumps({'agent_kind': 'codex', 'cwd': str(work)})}}}")
            tui.wait_for("TOOL-RESULT#1")
            asked = model.wait_for(lambda request: "/pickup" in (request.turns[-1][1] if request.turns else ""))
            picked = daemon.send(f"/pickup {code_in(asked.turns[-1][1])}", chat="a")
            assert picked.of("choice") == []
            assert "joined" in picked.reply
            turn = daemon.send("from the phone", chat="a")
            tui.wait_for("from the phone")
            assert "from the phone" in turn.text
