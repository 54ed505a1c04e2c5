"""More than one writer of one session: what the old terminal adds between two chat turns is not lost and not forked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.agents.kinds import CLAUDE_KIND, daemon_for
from tests.agents.rig import AgentHome, FakeModel, Tui
from tests.daemon import VA, needs_va
from tests.waiting import until

pytestmark = [pytest.mark.agents, needs_va]


@pytest.mark.requires("I4")
def test_what_the_old_terminal_adds_between_two_chat_turns_reaches_the_model_and_is_shown(
    model: FakeModel, home: AgentHome, work: Path, tmp_path: Path
) -> None:
    kind = CLAUDE_KIND
    with daemon_for(tmp_path, home, kind) as daemon:
        first = daemon.send("remember banana", chat="a", workspace=work)
        session = first.session["session"]
        home.wait_stored(session, "ECHO#1: remember banana")
        heard = daemon.listen("a")
        # Claude Code has no lock: the same session goes on in a terminal while the chat's host is open.
        assert kind.run(home, "remember cherry", cwd=work, resume=session).code == 0
        home.wait_stored(session, "remember cherry")
        second = daemon.send("what was it", chat="a")
        assert second.session["session"] == session
        asked = model.wait_for(lambda request: request.last_user == "what was it" or request.holds("what was it"))
        assert asked.holds("remember banana", "remember cherry", "what was it")
        until(lambda: "terminal: remember cherry" in json.dumps(heard.events), "word in the chat of what was added")


@pytest.mark.requires("M1.busy-writer")
def test_a_message_waits_for_the_turn_that_the_terminal_runs_and_knows_it_afterwards(
    model: FakeModel, home: AgentHome, work: Path, tmp_path: Path
) -> None:
    kind = CLAUDE_KIND
    with daemon_for(tmp_path, home, kind) as daemon:
        first = daemon.send("remember banana", chat="a", workspace=work)
        session = first.session["session"]
        home.wait_stored(session, "ECHO#1: remember banana")
        with kind.tui(home, work, "--resume", session) as tui:
            tui.type("GATE{door} remember cherry")
            model.wait_text("GATE{door} remember cherry")
            turn = daemon.start_send("what was it", chat="a")
            asked = turn.wait("choice")
            assert [one["id"] for one in asked["options"]] == ["wait", "fork"]
            daemon.answer("a", asked["id"], "wait")
            model.release("door")
            second = turn.finish()
            assert second.session["session"] == session
            assert "terminal: GATE{door} remember cherry" in json.dumps(second.events)
        assert model.wait_text("what was it").holds("remember banana", "remember cherry")


@pytest.mark.requires("M1.fork-named")
def test_a_fork_that_happened_is_named_with_both_ends_and_either_goes_on(
    model: FakeModel, home: AgentHome, work: Path, tmp_path: Path
) -> None:
    kind = CLAUDE_KIND
    with daemon_for(tmp_path, home, kind) as daemon:
        session = daemon.send("remember banana", chat="a", workspace=work).session["session"]
        home.wait_stored(session, "ECHO#1: remember banana")
        heard = daemon.listen("a")
        with kind.tui(home, work, "--resume", session) as tui:
            turn = daemon.start_send("GATE{door} ours", chat="a")
            model.wait_text("GATE{door} ours")
            tui.type("remember cherry")
            tui.wait_for("ECHO#2: remember cherry")
            home.wait_stored(session, "ECHO#2: remember cherry")
            model.release("door")
            turn.finish()
            named = heard.wait("notice", lambda event: event.get("what") == "forked")
        ours, theirs = named["ours"], named["theirs"]
        assert ours in named["text"] and theirs in named["text"] and ours != theirs
        on = daemon.send("what was it", chat="a")
        assert on.session["session"] == ours
        asked = model.wait_text("what was it")
        assert asked.holds("remember banana", "GATE{door} ours") and not asked.holds("remember cherry")
        daemon.send(f"/session {theirs}", chat="a")
        daemon.send("and there", chat="a")
        asked = model.wait_text("and there")
        assert asked.holds("remember banana", "remember cherry") and not asked.holds("GATE{door} ours")


@pytest.mark.requires("M1.launch-away", "M1.code-moves-nothing")
def test_a_launched_terminal_has_the_session_and_the_chat_has_it_again_when_it_ends(
    model: FakeModel, home: AgentHome, work: Path, tmp_path: Path
) -> None:
    kind = CLAUDE_KIND
    home.trust(work)
    with daemon_for(tmp_path, home, kind) as daemon:
        session = daemon.send("remember banana", chat="a", workspace=work).session["session"]
        home.wait_stored(session, "ECHO#1: remember banana")
        daemon.send("/handover", chat="a")
        assert "ECHO#2: still here" in daemon.send("still here", chat="a").text
        home.wait_stored(session, "ECHO#2: still here")
        with Tui([str(VA), "launch", "claude", "--resume", session], cwd=work, env=daemon.env) as tui:
            tui.wait_for(kind.prompt)
            tui.type("remember cherry")
            tui.wait_for("ECHO#3: remember cherry")
            turn = daemon.start_send("what was it", chat="a")
            asked = turn.wait("choice")
            assert str(tui.pid) in asked["title"]
            home.wait_stored(session, "ECHO#3: remember cherry")
            tui.type("/exit")
            tui.wait_end()
            assert turn.finish().session["session"] == session
        assert model.wait_text("what was it").holds("remember banana", "still here", "remember cherry")


@pytest.mark.requires("M1.returning-supervisor")
def test_what_a_terminal_added_while_no_supervisor_ran_is_loaded_and_shown(
    model: FakeModel, home: AgentHome, work: Path, tmp_path: Path
) -> None:
    kind = CLAUDE_KIND
    with daemon_for(tmp_path, home, kind) as daemon:
        session = daemon.send("remember banana", chat="a", workspace=work).session["session"]
        home.wait_stored(session, "ECHO#1: remember banana")
        daemon.kill()
        assert kind.run(home, "remember cherry", cwd=work, resume=session).code == 0
        home.wait_stored(session, "remember cherry")
        daemon.start()
        turn = daemon.send("what was it", chat="a")
        assert turn.session["session"] == session
        assert "terminal: remember cherry" in json.dumps(turn.events)
        assert model.wait_text("what was it").holds("remember banana", "remember cherry")
