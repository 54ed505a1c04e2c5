"""Turns of a real agent behind the daemon: several chats, permissions, stop, idle stop, crashes, agents that fail."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from tests.agents.kinds import CLAUDE_KIND, CODEX_KIND, Kind, code_in, daemon_for
from tests.agents.rig import AgentHome, FakeModel
from tests.daemon import Daemon, Event, needs_va
from tests.waiting import until

pytestmark = [pytest.mark.agents, needs_va]
both = pytest.mark.parametrize("kind", [CLAUDE_KIND, CODEX_KIND], ids=lambda kind: kind.id)


def option(permission: Event, kind: str) -> str:
    """The id of the option of a kind."""
    return str(next(one["id"] for one in permission["options"] if one["kind"] == kind))


def share(daemon: Daemon, *, chat: str, other: str) -> None:
    """Attach a second chat to the first one's thread, as a person does: hand over, pick up."""
    daemon.send(f"/pickup {code_in(daemon.send('/handover', chat=chat).reply)}", chat=other)


@both
@pytest.mark.requires("H9.two-chats", "B7", "B14", "H5.fan-out", "H5.who-asked", "H4.pickup-joins", "H5.join-leave")
def test_two_chats_on_one_thread_both_get_answers_and_see_who_asked(
    model: FakeModel, home: AgentHome, work: Path, tmp_path: Path, kind: Kind
) -> None:
    with daemon_for(tmp_path, home, kind) as daemon:
        first = daemon.send("remember banana", chat="a", workspace=work)
        a = daemon.listen("a")
        share(daemon, chat="a", other="b")
        until(lambda: "cli:local:b" in json.dumps(a.events), "word in a that b has joined")
        b = daemon.listen("b")
        second = daemon.send("remember cherry", chat="a")
        assert second.session["session"] == first.session["session"]
        b.wait("text", lambda event: event["final"] and "ECHO#2: remember cherry" in event["text"])
        until(
            lambda: "remember cherry" in json.dumps([e for e in b.events if e["event"] != "text"]), "the question in b"
        )
        third = daemon.send("what was it", chat="b")
        assert third.session["session"] == first.session["session"]
        a.wait("text", lambda event: event["final"] and "ECHO#3: what was it" in event["text"])


@both
@pytest.mark.requires("H9.permission-other-chat", "B19", "H3.acp-permission-once", "H7.answer")
def test_a_permission_asked_in_one_chat_is_answered_in_the_other(
    model: FakeModel, home: AgentHome, work: Path, tmp_path: Path, kind: Kind
) -> None:
    with daemon_for(tmp_path, home, kind) as daemon:
        daemon.send("hello", chat="a", workspace=work)
        share(daemon, chat="a", other="b")
        b = daemon.listen("b")
        turn = daemon.start_send("SHELL{touch made}", chat="a")
        turn.wait("permission")
        asked = b.wait("permission")
        assert not (work / "made").exists()
        daemon.answer("b", asked["id"], option(asked, "allow_once"))
        assert turn.finish().code == 0
        late = daemon.answer("a", asked["id"], option(asked, "allow_once"), check=False)
    assert (work / "made").exists()
    assert late.code != 0


@both
@pytest.mark.requires("H9.stop-mid-stream", "B16", "H7.stop", "H6.stop")
def test_stop_in_mid_stream(model: FakeModel, home: AgentHome, work: Path, tmp_path: Path, kind: Kind) -> None:
    with daemon_for(tmp_path, home, kind) as daemon:
        turn = daemon.start_send("SLOW{6|0} GATE{never}", chat="a", workspace=work)
        asked = model.wait_text("GATE{never}")
        turn.wait("text")
        daemon.va("chat", "stop", "--chat", "a")
        done = turn.finish()
        assert done.of("done")[0]["stop_reason"] == "cancelled"
        assert model.wait_ended(asked) == "aborted"
        assert "ECHO#" in daemon.send("and now", chat="a").text


@both
@pytest.mark.requires("H9.stop-with-permission", "B17", "H3.acp-cancel")
def test_stop_with_an_open_permission(
    model: FakeModel, home: AgentHome, work: Path, tmp_path: Path, kind: Kind
) -> None:
    with daemon_for(tmp_path, home, kind) as daemon:
        turn = daemon.start_send("SHELL{touch made}", chat="a", workspace=work)
        asked = turn.wait("permission")
        daemon.va("chat", "stop", "--chat", "a")
        assert turn.finish().of("done")[0]["stop_reason"] == "cancelled"
        late = daemon.answer("a", asked["id"], option(asked, "allow_once"), check=False)
        assert late.code != 0
    assert not (work / "made").exists()


@both
@pytest.mark.requires("H9.idle-return", "B10", "H2.idle-stop", "H2.lazy-return")
def test_after_an_idle_stop_the_next_message_resumes_the_same_session(
    model: FakeModel, home: AgentHome, work: Path, tmp_path: Path, kind: Kind
) -> None:
    with daemon_for(tmp_path, home, kind, threads__idle_shutdown_s=1) as daemon:
        first = daemon.send("remember banana", chat="a", workspace=work)
        until(lambda: not daemon.status()["hosts"], "no host after the idle time", seconds=30)
        assert not [line for line in daemon.processes().values() if kind.adapter in line]
        second = daemon.send("what was it", chat="a")
    assert second.session["session"] == first.session["session"]
    assert (second.session["thread"], second.session["start"]) == (first.session["thread"], "resumed")
    assert model.wait_text("what was it").holds("remember banana")


@both
@pytest.mark.requires("H9.supervisor-killed", "H2.adopted", "B11")
def test_a_turn_ends_complete_though_the_supervisor_is_killed_in_mid_stream(
    model: FakeModel, home: AgentHome, work: Path, tmp_path: Path, kind: Kind
) -> None:
    with daemon_for(tmp_path, home, kind) as daemon:
        first = daemon.send("hello", chat="a", workspace=work)
        turn = daemon.start_send("SLOW{6|0} GATE{half}", chat="a")
        turn.wait("text", lambda event: "slow-0" in event["text"])
        adapters = {pid for pid, line in daemon.processes().items() if kind.adapter in line}
        daemon.kill()
        turn.end()
        model.release("half")
        daemon.start()
        listener = daemon.listen("a")
        final = listener.wait("text", lambda event: event["final"] and "slow-5" in event["text"])
        assert "slow-0 slow-1 slow-2 slow-3 slow-4 slow-5" in final["text"]
        after = daemon.send("and now", chat="a")
        assert after.session["session"] == first.session["session"]
        assert {pid for pid, line in daemon.processes().items() if kind.adapter in line} == adapters
        finals = [e for e in listener.events if e["event"] == "text" and e["final"] and "slow-5" in e["text"]]
        assert len(finals) == 1
    assert len([request for request in model.requests() if "GATE{half}" in request.last_user]) == 1


@both
@pytest.mark.requires("H9.agent-killed", "B20")
def test_an_agent_killed_in_mid_turn_is_an_error_and_the_next_prompt_resumes(
    model: FakeModel, home: AgentHome, work: Path, tmp_path: Path, kind: Kind
) -> None:
    with daemon_for(tmp_path, home, kind) as daemon:
        first = daemon.send("remember banana", chat="a", workspace=work)
        home.wait_stored(first.session["session"], "ECHO#1: remember banana")
        turn = daemon.start_send("SLOW{6|0} GATE{never}", chat="a")
        turn.wait("text")
        for pid, line in daemon.processes().items():
            if kind.adapter in line:
                os.kill(pid, signal.SIGKILL)
        assert turn.finish().code == 7
        second = daemon.send("what was it", chat="a")
    assert (second.session["session"], second.session["start"]) == (first.session["session"], "resumed")
    assert model.wait_text("what was it").holds("remember banana")


@pytest.mark.requires("H9.silent-adapter", "H3.acp-limits")
def test_an_adapter_that_never_answers_is_given_up_with_a_word(home: AgentHome, work: Path, tmp_path: Path) -> None:
    silent = tmp_path / "silent-adapter"
    silent.write_text("#!/bin/sh\nexec tail -f /dev/null\n")
    silent.chmod(0o755)
    daemon = daemon_for(tmp_path, home, CLAUDE_KIND, hosts__handshake_s=1)
    daemon.data.mkdir(parents=True)
    (daemon.data / "agents.toml").write_text(f'[claude.acp]\ncommand = ["{silent}"]\n')
    with daemon:
        turn = daemon.send("hello", chat="a", workspace=work, check=False)
        assert turn.code == 7
        assert turn.of("error")[0]["hint"]
        until(
            lambda: not [line for line in daemon.processes().values() if "silent" in line or "tail -f" in line],
            "its end",
        )


@both
@pytest.mark.requires("H9.missing-binary", "B21")
def test_a_missing_binary_is_an_error_with_the_install_hint(
    home: AgentHome, work: Path, tmp_path: Path, kind: Kind
) -> None:
    daemon = daemon_for(tmp_path, home, kind)
    plain = os.pathsep.join(part for part in daemon.env["PATH"].split(os.pathsep) if ".agents" not in part)
    (home.home / ".bash_profile").write_text(f"export PATH='{plain}'\n")
    daemon.env |= {"PATH": plain, "VIBEAROUND_AGENTS_DIR": str(tmp_path / "nothing")}
    with daemon:
        turn = daemon.send("hello", chat="a", workspace=work, check=False)
    assert turn.code == 7
    assert f"va agents install {kind.id}" in turn.of("error")[0]["hint"]


@both
@pytest.mark.requires("H2.group-end", "I6")
def test_nothing_is_left_after_va_down_though_a_command_of_the_agent_runs(
    model: FakeModel, home: AgentHome, work: Path, tmp_path: Path, kind: Kind
) -> None:
    with daemon_for(tmp_path, home, kind) as daemon:
        turn = daemon.start_send("SHELL{touch started; tail -f /dev/null}", chat="a", workspace=work)
        asked = turn.wait("permission")
        daemon.answer("a", asked["id"], option(asked, "allow_once"))
        until(lambda: (work / "started").exists(), "the command's start")
        # leaving the block says `va down` and fails when a process is left


@both
@pytest.mark.requires("I11", "H2.roles")
def test_an_agent_cannot_answer_its_own_permission(
    model: FakeModel, home: AgentHome, work: Path, tmp_path: Path, kind: Kind
) -> None:
    with daemon_for(tmp_path, home, kind) as daemon:
        command = "va chat send hello --chat a --json > answer.txt 2>&1; echo $? > code.txt"
        turn = daemon.start_send(f"SHELL{{{command}}}", chat="a", workspace=work)
        asked = turn.wait("permission")
        daemon.answer("a", asked["id"], option(asked, "allow_once"))
        turn.finish()
    assert (work / "code.txt").read_text().strip() == "5"
    assert len([request for request in model.requests() if request.last_user == "hello"]) == 0


@pytest.mark.requires("B24", "H6.agent-switch")
def test_another_agent_is_a_new_thread_and_said_so(
    model: FakeModel, home: AgentHome, work: Path, tmp_path: Path
) -> None:
    with daemon_for(tmp_path, home, CLAUDE_KIND) as daemon:
        first = daemon.send("remember banana", chat="a", workspace=work)
        switched = daemon.send("/agent openai-codex", chat="a")
        assert "new" in switched.reply.lower()
        second = daemon.send("what was it", chat="a")
    assert (first.session["agent"], second.session["agent"]) == ("claude", "codex")
    assert second.session["thread"] != first.session["thread"]
    assert second.session["cwd"] == first.session["cwd"]
    assert not model.wait_text("what was it").holds("banana")


@both
@pytest.mark.requires("B22")
def test_a_session_that_cannot_be_resumed_is_said_and_asked_about_and_no_fresh_one_is_begun(
    model: FakeModel, home: AgentHome, work: Path, tmp_path: Path, kind: Kind
) -> None:
    with daemon_for(tmp_path, home, kind, threads__idle_shutdown_s=1) as daemon:
        first = daemon.send("remember banana", chat="a", workspace=work).session["session"]
        stored = home.wait_stored(first, "ECHO#1: remember banana")
        until(lambda: not daemon.status()["hosts"], "the end of the idle host", seconds=30)
        stored.unlink()
        turn = daemon.start_send("what was it", chat="a")
        choice = turn.wait("choice")
        assert first in json.dumps(turn.events)
        assert len(choice["options"]) >= 2
        daemon.va("chat", "stop", "--chat", "a", check=False)
        turn.end()
    assert [request for request in model.requests() if "what was it" in request.last_user] == []
