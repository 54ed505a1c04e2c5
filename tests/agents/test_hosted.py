"""A host process round the real adapters: what only they can show."""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from actors.children import alive, process_start_time
from actors.host_spec import HostLimits
from tests.agents.rig import CLAUDE_ACP, CODEX_ACP, AgentHome, FakeModel, run_claude, run_codex
from tests.process.host_rig import Host, Supervisor, fake_spec, wait_until
from transports.bus.vocabulary.conversation import Ok
from transports.bus.vocabulary.hosting import HostAnswer, HostCancel, HostEvent, HostReload, HostStop

pytestmark = pytest.mark.agents
MCP_SERVER = Path(__file__).resolve().parents[1] / "fakes" / "mcp_server.py"
LIMITS = HostLimits(initialize_s=60, session_s=60, mode_s=30, cancel_s=20, stop_s=2)
KINDS = {
    "claude": (CLAUDE_ACP, "default", run_claude, {}),
    "codex": (CODEX_ACP, "workspace-write", run_codex, {"INITIAL_AGENT_MODE": "workspace-write"}),
}


class Hosted:
    def __init__(self, data: Path, sockets: Path, home: AgentHome, work: Path, agent: str) -> None:
        self.data, self.home, self.work, self.agent = data, home, work, agent
        data.mkdir(mode=0o700)
        self.supervisor = Supervisor(data, sockets)
        self.hosts: list[Host] = []

    def start(self, session: str = "", start: str = "new", servers: Sequence[object] = ()) -> str:
        """A host; the session that it has."""
        binary, mode, _, env = KINDS[self.agent]
        self.supervisor.acked = 0
        spec = fake_spec(self.data, self.work)._replace(
            argv=[str(binary)],
            env=self.home.env(**env),
            mode=mode,
            limits=LIMITS,
            session=session,
            start=start,
            mcp_servers=list(servers),
            epoch=len(self.hosts) + 1,
            end_commands_on_cancel=self.agent == "codex",
        )
        self.hosts.append(Host(spec))
        return str(self.wait("ready").body["session"])

    def wait(self, kind: str) -> HostEvent:
        """The next event of a kind; a failed start ends the test with its reason."""
        while True:
            event = self.supervisor.events.get(timeout=60)
            if event.kind == "failed":
                raise AssertionError(event.body)
            if event.kind == kind:
                return event

    def turn(self, turn: str, text: str) -> str:
        """All that was said in a turn."""
        self.supervisor.prompt(turn, text)
        self.wait("turn_end")
        return self.said(turn)

    def said(self, turn: str) -> str:
        return "".join(e.body["text"] for e in self.supervisor.seen if e.kind == "text" and e.turn == turn)

    def stop(self) -> None:
        self.supervisor.send(HostStop("test"))
        self.wait("agent_gone")
        assert self.hosts[-1].ended(20) == 0

    def close(self) -> None:
        for host in self.hosts:
            host.kill()
        self.supervisor.close()


@pytest.fixture(params=list(KINDS))
def hosted(request: pytest.FixtureRequest, tmp_path: Path, home: AgentHome, work: Path) -> Iterator[Hosted]:
    with tempfile.TemporaryDirectory(prefix="va-h-") as sockets:
        made = Hosted(tmp_path / "data", Path(sockets), home, work, request.param)
        yield made
        made.close()


@pytest.mark.parametrize("start", ["resume", "fork"])
def test_a_session_of_the_terminal_goes_on_in_a_host(hosted: Hosted, model: FakeModel, start: str) -> None:
    run = KINDS[hosted.agent][2](hosted.home, "remember banana", cwd=hosted.work)
    assert run.session, run.errors
    session = hosted.start(run.session, start)
    assert (session == run.session) is (start == "resume")
    assert "banana" in hosted.turn("t", "RECALL{}")
    assert not any("banana" in e.body.get("text", "") for e in hosted.supervisor.seen if e.turn == "")


@pytest.mark.parametrize("hosted", ["claude"], indirect=True)  # Codex lets no second process write to an open thread
def test_what_somebody_else_wrote_is_known_after_a_reload(hosted: Hosted, model: FakeModel) -> None:
    session = hosted.start()
    hosted.turn("t1", "remember banana")
    run = run_claude(hosted.home, "remember cherry", cwd=hosted.work, resume=session)
    assert run.session == session, run.errors
    hosted.supervisor.send(HostReload(session), corr=1)
    assert hosted.supervisor.replies.get(timeout=60) == Ok({"session": session})
    said = hosted.turn("t2", "RECALL{}")
    assert "banana" in said and "cherry" in said


@pytest.mark.requires("H3.mode-that-asks", "M3.mode-that-asks")
def test_a_permission_is_asked_also_after_a_resume_and_the_tool_call_is_shown_whole(
    hosted: Hosted, model: FakeModel
) -> None:
    session = hosted.start()
    hosted.turn("t1", "hello")
    hosted.stop()
    assert hosted.start(session, "resume") == session
    hosted.supervisor.prompt("t2", "SHELL{echo out-of-$((40+2)) > made.txt; cat made.txt}")
    asked = hosted.wait("permission").body
    assert not (hosted.work / "made.txt").exists()
    option = next(o["id"] for o in asked["options"] if o["kind"] == "allow_once")
    hosted.supervisor.send(HostAnswer(asked["id"], option))
    hosted.wait("turn_end")
    tools = [e.body for e in hosted.supervisor.seen if e.kind == "tool" and e.turn == "t2"]
    assert tools[-1]["status"] == "completed" and "out-of-42" in json.dumps(tools[-1]["content"])


@pytest.mark.requires("M4.command-outlives-stop")
def test_a_stop_leaves_no_command_running(hosted: Hosted, model: FakeModel) -> None:
    hosted.start()
    mark = hosted.work / "pid"
    hosted.supervisor.prompt("t", f"SHELL{{echo $$ > {mark}; exec sleep 300}}")
    asked = hosted.wait("permission").body
    option = next(o["id"] for o in asked["options"] if o["kind"] == "allow_once")
    hosted.supervisor.send(HostAnswer(asked["id"], option))
    wait_until(lambda: mark.exists() and mark.read_text().strip() != "", "the command's start", 30)
    pid = int(mark.read_text())
    started = process_start_time(pid) or 0
    try:
        hosted.supervisor.send(HostCancel("t"))
        assert hosted.wait("turn_end").body["stop_reason"] == "cancelled"
        wait_until(lambda: not alive(pid, started), "the command's end")
    finally:
        if alive(pid, started):
            os.kill(pid, signal.SIGKILL)
    assert "ECHO" in hosted.turn("t2", "are you there")


def test_a_stop_leaves_the_agents_servers_alone(hosted: Hosted, model: FakeModel) -> None:
    server = {"name": "probe", "command": sys.executable, "args": [str(MCP_SERVER)], "env": []}
    hosted.start(servers=[server])
    for number in (1, 2):
        hosted.supervisor.prompt(f"t{number}", "SLOW{300|0.1}")
        wait_until(
            lambda n=number: any(d.turn == f"t{n}" for d in list(hosted.supervisor.deltas)), "the first words", 30
        )  # type: ignore[misc]
        hosted.supervisor.send(HostCancel(f"t{number}"))
        assert hosted.wait("turn_end").body["stop_reason"] == "cancelled"
    hosted.supervisor.prompt("t3", "MCP{whoami|{}}")
    asked = hosted.wait("permission").body
    option = next(o["id"] for o in asked["options"] if o["kind"] == "allow_once")
    hosted.supervisor.send(HostAnswer(asked["id"], option))
    hosted.wait("turn_end")
    tools = [e.body for e in hosted.supervisor.seen if e.kind == "tool" and e.turn == "t3"]
    assert tools[-1]["status"] == "completed", tools[-1]
    assert [e for e in hosted.supervisor.seen if e.kind == "notice"] == []


def test_no_process_of_the_agent_is_left_after_a_stop(hosted: Hosted, model: FakeModel) -> None:
    hosted.start()
    hosted.turn("t", "hello")
    hello = hosted.supervisor.hellos.get(timeout=10)
    hosted.stop()
    left = [
        p.name for p in Path("/proc").glob("[0-9]*") if _carries(p, f"wt_1/host/{hello.epoch}", str(hosted.home.home))
    ]
    assert left == []


def _carries(process: Path, host_id: str, home: str) -> bool:
    try:
        words = (process / "environ").read_bytes().split(b"\0")
    except OSError:
        return False
    return f"VIBEAROUND_HOST_ID={host_id}".encode() in words and f"HOME={home}".encode() in words
