"""A conversation of a real agent leaves its terminal, goes on in chats, and comes back."""

from __future__ import annotations

import json
import shutil
import time
import uuid
from pathlib import Path

import pytest

from tests.agents.kinds import CLAUDE_KIND, CODEX_KIND, Kind, code_for, code_in, daemon_for, pick_up
from tests.agents.rig import AgentHome, FakeModel, Tui, claude_tui
from tests.daemon import VA, Daemon, needs_va
from tests.waiting import until

pytestmark = [pytest.mark.agents, needs_va]
both = pytest.mark.parametrize("kind", [CLAUDE_KIND, CODEX_KIND], ids=lambda kind: kind.id)


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(CLAUDE_KIND, marks=pytest.mark.requires("H9.claude-round-trip"), id="claude"),
        pytest.param(CODEX_KIND, marks=pytest.mark.requires("H9.codex-round-trip"), id="codex"),
    ],
)
@pytest.mark.requires("B1", "H4.pickup-resumes", "H4.va-pickup", "H4.chat-handover", "H7.handover")
def test_a_conversation_goes_from_the_terminal_to_a_chat_and_back(
    model: FakeModel, home: AgentHome, work: Path, tmp_path: Path, kind: Kind
) -> None:
    session = kind.session(home, work)
    with daemon_for(tmp_path, home, kind) as daemon:
        picked = pick_up(daemon, kind, session, work, chat="phone")
        assert str(work) in picked.reply
        turn = daemon.send("what was it", chat="phone")
        assert "ECHO#2: what was it" in turn.text
        assert (turn.session["session"], turn.session["start"]) == (session, "resumed")
        assert model.wait_text("what was it").holds("remember banana", "ECHO#1: remember banana")
        back = code_in(daemon.send("/handover", chat="phone").reply)
        with Tui([str(VA), "pickup", back], cwd=tmp_path, env=daemon.env) as tui:
            tui.wait_for(kind.prompt)
            tui.type("and in the terminal")
            tui.wait_for("ECHO#3: and in the terminal")
        assert model.wait_text("and in the terminal").holds("remember banana", "what was it")


@both
@pytest.mark.requires("H4.va-pickup")
def test_va_pickup_print_prints_the_agents_own_resume_command(
    home: AgentHome, work: Path, tmp_path: Path, kind: Kind
) -> None:
    session = kind.session(home, work)
    with daemon_for(tmp_path, home, kind) as daemon:
        shown = daemon.va("pickup", code_for(daemon, kind, session, work), "--print").out
    assert session in shown and str(work) in shown


@both
@pytest.mark.requires("H9.unknown-session", "B6")
def test_a_session_that_the_agent_does_not_know_changes_nothing(
    home: AgentHome, work: Path, tmp_path: Path, kind: Kind
) -> None:
    with daemon_for(tmp_path, home, kind) as daemon:
        words = ["handover", "--agent", kind.id, "--session", str(uuid.uuid4()), "--cwd", str(work), "--json"]
        issued = daemon.va(*words, check=False)
        code = 4 if issued.code == 4 else daemon.send(f"/pickup {issued.json()['code']}", chat="a", check=False).code
        assert code == 4
        assert daemon.va("threads", "list", "--json").json() == []


@both
@pytest.mark.requires("H9.deleted-cwd", "B5", "I5", "H4.code-released")
def test_a_directory_removed_since_is_refused_not_created_and_the_code_is_kept(
    model: FakeModel, home: AgentHome, work: Path, tmp_path: Path, kind: Kind
) -> None:
    place = work / "project"
    place.mkdir()
    session = kind.session(home, place)
    with daemon_for(tmp_path, home, kind) as daemon:
        code = code_for(daemon, kind, session, place)
        shutil.rmtree(place)
        refused = daemon.send(f"/pickup {code}", chat="a", check=False)
        assert refused.code == 4
        assert str(place) in json.dumps(refused.events)
        assert not place.exists()
        place.mkdir()
        daemon.send(f"/pickup {code}", chat="a")
        assert daemon.send("what was it", chat="a").session["session"] == session


@both
@pytest.mark.parametrize(
    "name",
    [
        pytest.param("目录 with spaces", marks=pytest.mark.requires("H9.unicode-cwd")),
        pytest.param("link", marks=pytest.mark.requires("H9.symlinked-cwd")),
    ],
)
def test_an_unusual_directory_is_picked_up(
    model: FakeModel, home: AgentHome, work: Path, tmp_path: Path, kind: Kind, name: str
) -> None:
    place = work / name
    if name == "link":
        (work / "real").mkdir()
        place.symlink_to(work / "real")
    else:
        place.mkdir()
    session = kind.session(home, place)
    with daemon_for(tmp_path, home, kind) as daemon:
        pick_up(daemon, kind, session, place, chat="a")
        turn = daemon.send("what was it", chat="a")
    assert (turn.session["session"], turn.session["start"]) == (session, "resumed")
    assert model.wait_text("what was it").holds("remember banana")


@both
@pytest.mark.requires("H9.racing-pickups", "H4.code-one-winner", "B2")
def test_of_racing_pickups_one_wins(home: AgentHome, work: Path, tmp_path: Path, kind: Kind) -> None:
    session = kind.session(home, work)
    with daemon_for(tmp_path, home, kind) as daemon:
        code = code_for(daemon, kind, session, work)
        racers = [daemon.start_send(f"/pickup {code}", chat=f"chat{number}") for number in range(6)]
        codes = [racer.finish().code for racer in racers]
        assert codes.count(0) == 1
        assert set(codes) - {0} <= {6, 8}
        assert len(daemon.va("threads", "list", "--json").json()) == 1


@pytest.mark.requires("H9.expired-code", "B3", "H4.code-ttl")
def test_an_expired_code_is_refused_with_the_way_to_a_new_one(home: AgentHome, work: Path, tmp_path: Path) -> None:
    session = CLAUDE_KIND.session(home, work)
    with daemon_for(tmp_path, home, CLAUDE_KIND, handover__ttl_s=1) as daemon:
        code = code_for(daemon, CLAUDE_KIND, session, work)
        end = time.monotonic() + 1.2
        until(lambda: time.monotonic() > end, "the end of the code's time")
        refused = daemon.send(f"/pickup {code}", chat="a", check=False)
    assert refused.code == 6
    assert "hand" in refused.of("error")[0]["hint"].lower()


@pytest.mark.requires("B4", "H4.forgiving")
@pytest.mark.parametrize("form", ["/pickup {low}", "/pickup  {spaced} ", "/pickup /pickup {code}"])
def test_a_code_is_taken_in_any_reasonable_form(home: AgentHome, work: Path, tmp_path: Path, form: str) -> None:
    session = CLAUDE_KIND.session(home, work)
    with daemon_for(tmp_path, home, CLAUDE_KIND) as daemon:
        code = code_for(daemon, CLAUDE_KIND, session, work)
        typed = form.format(code=code, low=code.lower(), spaced=f"{code[:2]} {code[2:]}")
        assert daemon.send(typed, chat="a").code == 0


def _handover_from_inside(kind: Kind, work: Path) -> str:
    arguments = json.dumps({"agent_kind": kind.id, "cwd": str(work)}, ensure_ascii=False)
    return f"MCP{{prepare_handover|{arguments}}}"


@both
@pytest.mark.requires("H4.mcp-tools", "H4.integrate", "H4.two-terminals", "H4.identity-codex")
def test_the_agent_hands_over_its_own_session_though_another_runs_beside_it(
    model: FakeModel, home: AgentHome, work: Path, tmp_path: Path, kind: Kind
) -> None:
    with daemon_for(tmp_path, home, kind) as daemon:
        home.trust(work)
        daemon.va("integrate", kind.id)
        _allow_one(home, kind)
        with kind.tui(home, work, **_data(daemon)) as tui, kind.tui(home, work, **_data(daemon)) as other:
            tui.type("remember banana")
            tui.wait_for("ECHO#1: remember banana")
            other.type("remember cherry")
            other.wait_for("ECHO#1: remember cherry")
            tui.type(_handover_from_inside(kind, work))
            tui.wait_for("TOOL-RESULT#1")
            asked = model.wait_for(lambda request: "/pickup" in (request.turns[-1][1] if request.turns else ""))
            daemon.send(f"/pickup {code_in(asked.turns[-1][1])}", chat="a", seconds=90)
            turn = daemon.send("what was it", chat="a", seconds=90)
        assert turn.session["start"] == "resumed"
        held = model.wait_text("what was it")
        assert held.holds("remember banana") and not held.holds("remember cherry")


def _allow_one(home: AgentHome, kind: Kind) -> None:
    if kind is CODEX_KIND:
        # `va integrate` enters the server with its three tools approved: codex exec refuses them else
        assert 'default_tools_approval_mode = "approve"' in (home.codex_home / "config.toml").read_text("utf-8")
    else:
        path = home.claude_config / "settings.json"
        settings = json.loads(path.read_text("utf-8"))
        settings["permissions"]["allow"] = ["mcp__vibearound"]
        path.write_text(json.dumps(settings), "utf-8")


def _data(daemon: Daemon) -> dict[str, str]:
    """What a terminal of the person has of the daemon under test: its data directory."""
    return {"VIBEAROUND_DATA_DIR": daemon.env["VIBEAROUND_DATA_DIR"]}


@pytest.mark.requires("H4.identity-claude")
def test_after_a_clear_the_new_session_is_handed_over(
    model: FakeModel, home: AgentHome, work: Path, tmp_path: Path
) -> None:
    with daemon_for(tmp_path, home, CLAUDE_KIND) as daemon:
        daemon.va("integrate", "claude")
        _allow_one(home, CLAUDE_KIND)
        with claude_tui(home, work, **_data(daemon)) as tui:
            tui.type("remember banana")
            tui.wait_for("ECHO#1: remember banana")
            before = json.loads((home.claude_config / "sessions" / f"{tui.pid}.json").read_text())["sessionId"]
            # Claude Code writes late: what it holds back at a /clear lands in the file of the new session.
            home.wait_stored(before, "ECHO#1: remember banana")
            tui.type("/clear")
            tui.wait_until(lambda screen: "banana" not in screen, "a cleared screen")
            tui.type("remember cherry")
            tui.wait_for("ECHO#1: remember cherry")
            tui.type(_handover_from_inside(CLAUDE_KIND, work))
            tui.wait_for("TOOL-RESULT#1")
            asked = model.wait_for(lambda request: "/pickup" in (request.turns[-1][1] if request.turns else ""))
            daemon.send(f"/pickup {code_in(asked.turns[-1][1])}", chat="a")
            turn = daemon.send("what was it", chat="a")
    assert turn.session["session"] != before
    held = model.wait_text("what was it")
    assert held.holds("remember cherry") and not held.holds("remember banana")


@pytest.mark.requires("H4.pickup-waits-for-issuing-turn")
def test_a_pickup_waits_for_the_issuing_turn_to_end_and_asks_nothing(
    model: FakeModel, home: AgentHome, work: Path, tmp_path: Path
) -> None:
    with daemon_for(tmp_path, home, CLAUDE_KIND) as daemon:
        daemon.va("integrate", "claude")
        _allow_one(home, CLAUDE_KIND)
        with claude_tui(home, work, **_data(daemon)) as tui:
            # Claude Code connects to its MCP servers while a first prompt may already run; one turn later they are there
            tui.type("hello")
            tui.wait_for("ECHO#1: hello")
            tui.type(_handover_from_inside(CLAUDE_KIND, work) + " THEN SAY{bye now} GATE{end}")
            asked = model.wait_for(lambda request: "/pickup" in (request.turns[-1][1] if request.turns else ""))
            pickup = daemon.start_send(f"/pickup {code_in(asked.turns[-1][1])}", chat="a")
            assert "aiting for the turn" in pickup.wait("notice")["text"]
            model.release("end")
            picked = pickup.finish()
    assert picked.code == 0
    assert picked.of("choice") == []


@pytest.mark.requires("H4.pickup-asks-when-busy", "H4.code-released", "H7.answer")
@pytest.mark.parametrize(("answer", "code"), [("cancel", 8), ("fork", 0)])
def test_when_the_turn_still_runs_it_is_asked_go_on_fork_or_cancel(
    model: FakeModel, home: AgentHome, work: Path, tmp_path: Path, answer: str, code: int
) -> None:
    session = CLAUDE_KIND.session(home, work)
    with daemon_for(tmp_path, home, CLAUDE_KIND, threads__pickup_wait_s=0.5) as daemon:
        with claude_tui(home, work, "--resume", session) as tui:
            tui.type("SLOW{4|0} GATE{end}")
            model.wait_text("GATE{end}")
            handover = code_for(daemon, CLAUDE_KIND, session, work)
            pickup = daemon.start_send(f"/pickup {handover}", chat="a")
            asked = pickup.wait("choice")
            assert {one["id"] for one in asked["options"]} == {"go_on", "fork", "cancel"}
            daemon.answer("a", asked["id"], answer)
            assert pickup.finish().code == code
            model.release("end")
            tui.wait_for("slow-3")
        if answer == "cancel":
            daemon.send(f"/pickup {handover}", chat="a")
            assert daemon.send("what was it", chat="a").session["session"] == session
        else:
            assert daemon.send("what was it", chat="a").session["session"] != session
    assert model.wait_text("what was it").holds("remember banana")


@pytest.mark.requires("H4.codex-fork")
def test_codex_with_its_window_open_goes_on_as_a_fork_that_is_named(
    model: FakeModel, home: AgentHome, work: Path, tmp_path: Path
) -> None:
    session = CODEX_KIND.session(home, work)
    with daemon_for(tmp_path, home, CODEX_KIND) as daemon:
        with CODEX_KIND.tui(home, work, "resume", session) as tui:
            tui.type("still here")
            tui.wait_for("ECHO#2: still here")
            code = code_for(daemon, CODEX_KIND, session, work)
            pickup = daemon.start_send(f"/pickup {code}", chat="a")
            asked = pickup.wait("choice")
            # The window did not hand it over itself, and alone may write: never "go on" beside it.
            assert [one["id"] for one in asked["options"]] == ["fork", "wait", "cancel"]
            daemon.answer("a", asked["id"], "fork")
            assert "fork" in pickup.finish().reply.lower()
            turn = daemon.send("what was it", chat="a")
            assert turn.session["session"] != session
            told = json.dumps(turn.events)
            assert session in told and turn.session["session"] in told
        assert model.wait_text("what was it").holds("remember banana", "still here")
        back = code_in(daemon.send("/handover", chat="a").reply)
        assert turn.session["session"] in daemon.va("pickup", back, "--print").out
