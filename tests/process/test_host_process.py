"""A real host process with a real agent process, and a supervisor's end of the bus."""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from actors.children import alive, process_start_time
from actors.host_spool import read_spool, spool_path
from tests.process.host_rig import LIMITS, Host, Supervisor, fake_spec, wait_until
from transports.bus.vocabulary.conversation import Ok
from transports.bus.vocabulary.hosting import HostAnswer, HostCancel, HostReload, HostSetMode, HostStop


class Stage:
    def __init__(self, root: Path, sockets: Path) -> None:
        self.data, self.cwd, self.sockets = root / "data", root / "work", sockets
        self.data.mkdir(mode=0o700)
        self.cwd.mkdir()
        self._open: list[Supervisor] = []
        self._hosts: list[Host] = []

    def supervisor(self, **more: Any) -> Supervisor:
        made = Supervisor(self.data, self.sockets, **more)
        self._open.append(made)
        return made

    def host(self, knobs: dict[str, Any] | None = None, **more: Any) -> Host:
        made = Host(fake_spec(self.data, self.cwd, knobs)._replace(**more))
        self._hosts.append(made)
        return made

    def close(self) -> None:
        for host in self._hosts:
            host.kill()
        for supervisor in self._open:
            supervisor.close()


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with tempfile.TemporaryDirectory(prefix="va-h-") as sockets:  # a socket's path must be short
        made = Stage(tmp_path, Path(sockets))
        yield made
        made.close()


@pytest.mark.requires("H2.host-assembles")
def test_a_turn_comes_back_as_whole_numbered_things_in_order(stage: Stage) -> None:
    supervisor = stage.supervisor()
    stage.host()
    hello = supervisor.hellos.get(timeout=10)
    assert (hello.state, hello.session, hello.epoch) == ("starting", "", 1)
    assert alive(hello.host_pid, hello.host_start) and alive(hello.agent_pid, hello.agent_start)
    ready = supervisor.wait("ready")
    assert ready.body["session"] == "s-new" and ready.body["start"] == "new" and ready.body["mode"] == "ask"
    assert ready.body["commands"] == [{"name": "review", "description": "Look at it"}]
    supervisor.prompt("turn-1", "think hm; say one; say -two; tool; say three; plan; title T; unknown; media; surrogate")
    end = supervisor.wait("turn_end")
    assert end.body == {"stop_reason": "end_turn", "error": None, "usage": {"totalTokens": 7}}
    kinds = [(e.kind, e.body.get("text", "")) for e in supervisor.seen]
    assert [k for k in kinds if k[0] in ("thought", "text")] == [
        ("thought", "hm"), ("text", "one-two"), ("text", "three"), ("text", "a😀b"),
    ]  # fmt: skip
    assert [e.seq for e in supervisor.seen] == list(range(1, len(supervisor.seen) + 1))
    names = [k[0] for k in kinds]
    assert names.index("tool") > names.index("text") and {"plan", "title", "other", "media"} <= set(names)
    media = next(e for e in supervisor.seen if e.kind == "media").body["content"]["data"]["ref"]
    assert Path(media["path"]).read_bytes() == b"hello" and Path(media["path"]).stat().st_mode & 0o777 == 0o600
    assert all(e.turn == "turn-1" for e in supervisor.seen if e.kind not in ("ready", "commands"))
    pieces = [d for d in supervisor.deltas if d.kind == "text" and d.block == 2]
    assert "".join(p.text for p in sorted(pieces, key=lambda p: p.offset)) == "one-two"


def test_a_stop_ends_the_agent_and_the_host_after_its_last_word(stage: Stage) -> None:
    supervisor = stage.supervisor()
    host = stage.host()
    supervisor.wait("ready")
    agent = supervisor.hellos.get(timeout=10)
    supervisor.send(HostStop("idle"))
    gone = supervisor.wait("agent_gone")
    assert (gone.body["exit_code"], gone.body["signal"], gone.body["detached"]) == (0, None, [])
    assert host.ended() == 0
    assert not alive(agent.agent_pid, agent.agent_start)


def test_an_agent_that_ignores_end_of_input_and_term_is_killed_with_its_grandchild(stage: Stage, tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    supervisor = stage.supervisor()
    knobs = {"ignore_eof": True, "ignore_term": True, "grandchild": "group", "pid_file": str(pids)}
    host = stage.host(knobs)
    supervisor.wait("ready")
    grandchild = int(pids.read_text())
    started = process_start_time(grandchild) or 0
    assert alive(grandchild, started)
    supervisor.send(HostStop("idle"))
    assert supervisor.wait("agent_gone").body["signal"] == signal.SIGKILL
    assert host.ended() == 0
    wait_until(lambda: not alive(grandchild, started), "the grandchild's end")


@pytest.mark.parametrize("end_it", [False, True])
@pytest.mark.requires("H2.detached")
def test_what_was_detached_is_named_and_ended_only_when_told(stage: Stage, tmp_path: Path, end_it: bool) -> None:
    pids = tmp_path / "pids"
    supervisor = stage.supervisor()
    host = stage.host({"grandchild": "session", "pid_file": str(pids)}, end_detached=end_it)
    supervisor.wait("ready")
    detached = int(pids.read_text())
    started = process_start_time(detached) or 0
    supervisor.send(HostStop("idle"))
    named = supervisor.wait("agent_gone").body["detached"]
    assert host.ended() == 0
    if end_it:
        assert named == [] and not alive(detached, started)
    else:
        assert named == [f"sleep 600 (pid {detached})"] and alive(detached, started)
        os.kill(detached, signal.SIGKILL)


def test_a_cancel_ends_what_the_turn_left_running_and_nothing_older(stage: Stage, tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    supervisor = stage.supervisor()
    stage.host({"grandchild": "session", "pid_file": str(pids)}, end_commands_on_cancel=True)
    supervisor.wait("ready")
    supervisor.prompt("t", "command; say running; wait")
    supervisor_saw_text(supervisor, "running")
    older, command = map(int, pids.read_text().split())
    supervisor.send(HostCancel("t"))
    notice = supervisor.wait("notice")
    assert str(command) in notice.body["text"] and notice.turn == "t"
    assert supervisor.wait("turn_end").body["stop_reason"] == "cancelled"
    assert not alive(command, 0) and alive(older, 0)
    os.kill(older, signal.SIGKILL)


def supervisor_saw_text(supervisor: Supervisor, text: str) -> None:
    wait_until(lambda: text in "".join(d.text for d in list(supervisor.deltas)), f"the text {text!r}")


def test_three_permissions_of_one_turn_are_asked_one_by_one_and_each_answered_once(stage: Stage, tmp_path: Path) -> None:
    log = tmp_path / "log"
    supervisor = stage.supervisor()
    stage.host({"log": str(log)})
    supervisor.wait("ready")
    supervisor.prompt("t", "askmany 3")
    requests = []
    for option in ("o-yes", "o-no", "o-ever"):
        asked = supervisor.wait("permission").body
        requests.append(asked["id"])
        assert [o["kind"] for o in asked["options"]] == ["allow_once", "allow_always", "reject_once"]
        supervisor.send(HostAnswer(asked["id"], option))
        supervisor.send(HostAnswer(asked["id"], "o-yes"))
    supervisor.wait("turn_end")
    assert len(set(requests)) == 3
    text = "".join(e.body["text"] for e in supervisor.seen if e.kind == "text")
    assert text == "answered o-yes answered o-no answered o-ever "
    answered = [json.loads(line)["id"] for line in log.read_bytes().splitlines() if b'"outcome"' in line]
    assert answered == ["perm-0", "perm-1", "perm-2"]


def test_a_cancel_answers_the_open_permission_and_ends_the_turn(stage: Stage) -> None:
    supervisor = stage.supervisor()
    stage.host()
    supervisor.wait("ready")
    supervisor.prompt("t", "ask; say not reached")
    asked = supervisor.wait("permission").body["id"]
    supervisor.send(HostCancel("t"))
    over = supervisor.wait("permission_done").body
    assert over == {"id": asked, "outcome": "cancelled", "option": "", "by": "cancel"}
    assert supervisor.wait("turn_end").body["stop_reason"] == "cancelled"


def test_an_agent_deaf_to_a_cancel_is_ended_within_the_limit(stage: Stage) -> None:
    supervisor = stage.supervisor()
    host = stage.host(limits=LIMITS._replace(cancel_s=0.3))
    supervisor.wait("ready")
    supervisor.prompt("t", "say hm; deaf")
    supervisor_saw_text(supervisor, "hm")
    supervisor.send(HostCancel("t"))
    assert "did not stop" in supervisor.wait("notice").body["text"]
    assert supervisor.wait("turn_end").body["stop_reason"] == "cancelled"
    supervisor.wait("agent_gone")
    assert host.ended() == 0


def test_an_agent_that_dies_in_mid_turn_is_told_with_its_code_and_last_words(stage: Stage) -> None:
    supervisor = stage.supervisor()
    host = stage.host()
    supervisor.wait("ready")
    supervisor.prompt("t", "say half; exit 3")
    assert supervisor.wait("text").body["text"] == "half"
    error = supervisor.wait("turn_end").body["error"]
    assert error["code"] == "agent_gone" and "exit code 3" in error["message"] and "last words" in error["hint"]
    gone = supervisor.wait("agent_gone").body
    assert gone["exit_code"] == 3 and "the last words" in gone["stderr_tail"]
    assert host.ended() == 0


@pytest.mark.requires("H2.reliable", "M4.snapshot")
def test_a_turn_outlives_its_supervisor_and_the_next_one_gets_all_of_it_once(stage: Stage) -> None:
    first = stage.supervisor()
    stage.host()
    first.wait("ready")
    first.prompt("t", "say before; tool; say during; wait")
    supervisor_saw_text(first, "during")
    acked = first.acked
    first.close()
    second = stage.supervisor(acked=acked)
    hello = second.hellos.get(timeout=10)
    assert (hello.state, hello.turn, hello.turns, hello.session) == ("busy", "t", ["t"], "s-new")
    wait_until(lambda: any(d.text.startswith("during") and d.offset == 0 for d in list(second.deltas)), "the snapshot")
    second.prompt("t", "say twice")  # the same key again
    second.send(HostCancel("t"))
    assert second.wait("turn_end").body["stop_reason"] == "cancelled"
    texts = [e.body["text"] for e in [*first.seen, *second.seen] if e.kind == "text"]
    assert texts == ["before", "during"]
    assert [e.seq for e in [*first.seen, *second.seen]] == list(range(1, second.acked + 1))


def test_without_a_supervisor_the_lease_ends_the_host_and_leaves_a_spool(stage: Stage) -> None:
    first = stage.supervisor(ack=False)
    host = stage.host(limits=LIMITS._replace(lease_s=1.0))
    first.wait("ready")
    hello = first.hellos.get(timeout=10)
    first.prompt("t", "say the end")
    first.wait("turn_end")
    first.close()
    assert host.ended(20) == 0
    spooled = read_spool(spool_path(stage.data, "wt_1", "host", 1))
    assert spooled.turns == ["t"] and spooled.session == "s-new"
    assert [e.kind for e in spooled.events if e.kind in ("ready", "text", "turn_end", "agent_gone")] == [
        "ready", "text", "turn_end", "agent_gone",
    ]  # fmt: skip
    assert not alive(hello.agent_pid, hello.agent_start)
    assert spooled.path.stat().st_mode & 0o777 == 0o600


@pytest.mark.requires("H2.epochs")
def test_a_host_of_an_older_epoch_ends_without_touching_the_session(stage: Stage, tmp_path: Path) -> None:
    log = tmp_path / "log"
    supervisor = stage.supervisor(end_epoch=1)
    host = stage.host({"log": str(log)}, session="s-1", start="resume")
    hello = supervisor.hellos.get(timeout=10)
    assert host.ended() == 0
    assert not alive(hello.agent_pid, hello.agent_start)
    assert not log.exists() or b"session/" not in log.read_bytes()
    assert not spool_path(stage.data, "wt_1", "host", 1).exists()


@pytest.mark.parametrize(
    ("more", "code", "word"),
    [
        ({"cwd": "/nowhere/at/all"}, "cwd_gone", "does not exist"),
        ({"argv": ["/no/such/agent"], "install_hint": "npm install it"}, "agent_missing", "could not be started"),
    ],
)
@pytest.mark.requires("H3.checked-first")
def test_a_host_that_cannot_start_its_agent_says_why_and_creates_nothing(
    stage: Stage, more: dict[str, Any], code: str, word: str
) -> None:
    supervisor = stage.supervisor()
    host = stage.host(**more)
    failed = supervisor.wait("failed").body
    assert (failed["phase"], failed["code"]) == ("spawn", code) and word in failed["message"] and failed["hint"]
    assert supervisor.wait("agent_gone").body["exit_code"] is None
    assert host.ended() == 0
    assert not Path("/nowhere").exists()


@pytest.mark.parametrize("method", ["initialize", "session/new", "session/set_mode"])
def test_an_agent_that_never_answers_a_handshake_call_is_given_up_with_the_phase(stage: Stage, method: str) -> None:
    supervisor = stage.supervisor()
    host = stage.host({"hang": [method]}, limits=LIMITS._replace(initialize_s=0.5, session_s=0.5, mode_s=0.5))
    failed = supervisor.wait("failed").body
    assert failed["code"] == "agent_silent" and method in failed["message"]
    assert failed["phase"] == {"initialize": "initialize", "session/new": "new", "session/set_mode": "mode"}[method]
    assert host.ended() == 0


def test_a_stop_does_not_wait_for_a_handshake_that_hangs(stage: Stage) -> None:
    supervisor = stage.supervisor()
    host = stage.host({"hang": ["session/new"]}, limits=LIMITS._replace(session_s=600.0))
    agent = supervisor.hellos.get(timeout=10)
    supervisor.send(HostStop("closed"))
    assert supervisor.wait("agent_gone").body["exit_code"] == 0
    assert host.ended() == 0 and not alive(agent.agent_pid, agent.agent_start)


def test_an_agent_that_ends_at_once_is_told_with_its_last_words(stage: Stage) -> None:
    supervisor = stage.supervisor()
    host = stage.host({"start": "exit 4", "stderr": "node: cannot find module\n"}, install_hint="npm install it")
    failed = supervisor.wait("failed").body
    assert failed["phase"] == "initialize" and "exit code 4" in failed["message"]
    assert "cannot find module" in failed["hint"] and "npm install it" in failed["hint"]
    assert host.ended() == 0


def test_an_empty_session_given_for_an_unknown_id_is_no_resume(stage: Stage) -> None:
    supervisor = stage.supervisor()
    host = stage.host({"replay": 0, "no_caps": ["resume"]}, session="s-7", start="resume", expect_history=True)
    failed = supervisor.wait("failed").body
    assert (failed["phase"], failed["code"], failed["keep_session"]) == ("load", "resume_empty", True)
    assert host.ended() == 0


def test_a_mode_that_the_agent_does_not_have_is_not_passed_over(stage: Stage, tmp_path: Path) -> None:
    log = tmp_path / "log"
    supervisor = stage.supervisor()
    host = stage.host({"modes": ["yolo"], "log": str(log)})
    failed = supervisor.wait("failed").body
    assert (failed["phase"], failed["code"]) == ("mode", "mode_unknown") and "yolo" in failed["message"]
    assert host.ended() == 0


@pytest.mark.parametrize(("start", "caps"), [("new", []), ("resume", []), ("resume", ["resume"]), ("fork", [])])
@pytest.mark.requires("H3.mode-that-asks", "M3.mode-that-asks")
def test_the_mode_that_asks_is_set_after_every_way_to_open_a_session(
    stage: Stage, tmp_path: Path, start: str, caps: list[str]
) -> None:
    log = tmp_path / "log"
    supervisor = stage.supervisor()
    stage.host({"no_caps": caps, "log": str(log)}, session="" if start == "new" else "s-7", start=start)
    assert supervisor.wait("ready").body["mode"] == "ask"
    sent = [json.loads(line) for line in log.read_bytes().splitlines()]
    assert sent[-1]["method"] == "session/set_mode" and sent[-1]["params"]["modeId"] == "ask"


def test_a_refused_resume_is_told_with_its_reason_and_no_session_is_made_instead(stage: Stage, tmp_path: Path) -> None:
    log = tmp_path / "log"
    supervisor = stage.supervisor()
    host = stage.host(
        {"refuse": {"session/resume": [-32603, "disk on fire"]}, "log": str(log)}, session="s-7", start="resume"
    )
    failed = supervisor.wait("failed").body
    assert (failed["phase"], failed["code"], failed["keep_session"]) == ("resume", "resume_refused", True)
    assert "s-7" in failed["message"] and "disk on fire" in failed["message"]
    assert host.ended() == 0
    methods = [json.loads(line)["method"] for line in log.read_bytes().splitlines()]
    assert "session/new" not in methods and "session/load" not in methods


@pytest.mark.requires("H3.resume-or-load", "H3.replay-hidden")
def test_where_resume_is_only_claimed_the_session_is_loaded_and_its_replay_reaches_nobody(stage: Stage) -> None:
    supervisor = stage.supervisor()
    knobs = {"refuse": {"session/resume": [-32601, "Method not found"]}, "replay": 30, "late": 20}
    stage.host(knobs, session="s-7", start="resume")
    ready = supervisor.wait("ready").body
    assert (ready["session"], ready["start"]) == ("s-7", "resumed")
    supervisor.prompt("t", "say fresh")
    supervisor.wait("turn_end")
    assert [e.body["text"] for e in supervisor.seen if e.kind == "text"] == ["fresh"]
    assert "old" not in "".join(d.text for d in supervisor.deltas)


def test_a_fork_names_both_ends_and_a_new_id_is_told(stage: Stage) -> None:
    supervisor = stage.supervisor()
    stage.host(session="s-7", start="fork")
    ready = supervisor.wait("ready").body
    assert (ready["session"], ready["start"], ready["forked_from"]) == ("s-7-fork", "forked", "s-7")


def test_mode_and_reload_are_answered(stage: Stage) -> None:
    supervisor = stage.supervisor()
    stage.host()
    supervisor.wait("ready")
    supervisor.send(HostSetMode("yolo"), corr=1)
    assert supervisor.replies.get(timeout=10) == Ok({"mode": "yolo"})
    supervisor.send(HostReload(""), corr=2)
    assert supervisor.replies.get(timeout=10) == Ok({"session": "s-new"})
    supervisor.send(HostSetMode("nonsense"), corr=3)
    assert "nonsense" in supervisor.replies.get(timeout=10).error[2]


def test_a_killed_host_takes_its_agent_with_it(stage: Stage) -> None:
    supervisor = stage.supervisor()
    host = stage.host({"ignore_eof": True, "ignore_term": True})
    supervisor.wait("ready")
    agent = supervisor.hellos.get(timeout=10)
    host.kill()
    wait_until(lambda: not alive(agent.agent_pid, agent.agent_start), "the agent's end")


@pytest.mark.requires("H2.by-reference")
def test_a_large_tool_output_travels_as_a_private_file(stage: Stage) -> None:
    supervisor = stage.supervisor()
    stage.host()
    supervisor.wait("ready")
    supervisor.prompt("t", "big 400000")
    text = supervisor.wait("text").body
    assert text["ref"]["size"] == 400000 and len(text["text"]) <= 2000
    assert Path(text["ref"]["path"]).read_text() == "x" * 400000


def test_the_demo_agent_is_hosted_like_any_other(stage: Stage) -> None:
    supervisor = stage.supervisor()
    env = {"PATH": os.environ["PATH"], "VIBEAROUND_DEMO_HOME": str(stage.data / "demo"), "PYTHONPATH": str(Path.cwd())}
    stage.host(argv=[sys.executable, "-m", "transports.acp.demo"], env=env)
    ready = supervisor.wait("ready").body
    assert ready["agent_name"] == "Demo agent"
    supervisor.prompt("t1", "the word is swordfish")
    supervisor.wait("turn_end")
    supervisor.prompt("t2", "run: echo $((6*7))")
    asked = supervisor.wait("permission").body
    supervisor.send(HostAnswer(asked["id"], next(o["id"] for o in asked["options"] if o["kind"] == "allow_once")))
    done = supervisor.wait("turn_end")
    tools = [e.body for e in supervisor.seen if e.kind == "tool" and e.turn == "t2"]
    assert tools[-1]["status"] == "completed" and "42" in json.dumps(tools[-1]["content"])
    assert done.body["stop_reason"] == "end_turn"
    supervisor.prompt("t3", "recall")
    supervisor.wait("turn_end")
    assert "swordfish" in [e for e in supervisor.seen if e.kind == "text"][-1].body["text"]


