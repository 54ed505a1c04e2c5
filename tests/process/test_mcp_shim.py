"""The real shim, as a process, against a real socket: connected, without a supervisor, and over a restart."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.process.mcp_rig import SHIM, WAIT_S, Agent, Peer, Supervisor, call, echo, text_of
from transports.mcp import core
from transports.mcp.server import PendingCall


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Supervisor]]:
    running: list[Supervisor] = []

    def begin(run_tool: Callable[[Peer, PendingCall], None] = echo) -> Supervisor:
        running.append(Supervisor(tmp_path, tmp_path, run_tool))
        return running[-1]

    yield begin
    for supervisor in running:
        if not supervisor._listener._closed:  # type: ignore[attr-defined]
            supervisor.die()


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Callable[..., Agent]]:
    started: list[Agent] = []

    def begin(**options: object) -> Agent:
        started.append(Agent(tmp_path, **options))  # type: ignore[arg-type]
        return started[-1]

    yield begin
    for process in started:
        process.kill()


def silent(peer: Peer, pending: PendingCall) -> None:
    """Answers nothing by itself."""


@pytest.mark.requires("H4.mcp-tools")
def test_a_tool_call_reaches_the_supervisor_and_its_answer_comes_back(start, agent) -> None:
    start()
    shim = agent()
    shim.send(call(7, "prepare_handover", agent_kind="claude", cwd="/srv/x"))
    answer = shim.receive()
    assert answer["id"] == 7
    assert "/pickup ABCD" in text_of(answer).splitlines()
    assert shim.end() == 0


def test_the_hello_tells_pid_parent_directory_and_the_variables_that_identify_a_session(start, agent, tmp_path) -> None:
    supervisor = start()
    here = tmp_path / "a \"quoted\" 目录 \U0001f600"
    here.mkdir()
    env = {
        "CODEX_HOME": "/x/ü",
        "VIBEAROUND_THREAD": "wt_1",
        "ANTHROPIC_API_KEY": "sk-secret",
        "VIBEAROUND_ODD": "line\nbreak\ttab\x7f",
    }
    shim = agent(env=env, cwd=here)
    hello = supervisor.hellos.get(timeout=WAIT_S)
    assert hello.pid == shim.process.pid
    assert hello.parent_pid > 0
    assert hello.cwd == str(here)
    assert hello.environ == {
        "HOME": str(tmp_path),
        "CODEX_HOME": "/x/ü",
        "VIBEAROUND_THREAD": "wt_1",
        "VIBEAROUND_ODD": "line\nbreak\ttab\x7f",
    }


def test_calls_answered_out_of_order_each_reach_their_request(start, agent) -> None:
    supervisor = start(silent)
    shim = agent()
    shim.send(call(1), call("two"), call(3))
    pending = [supervisor.calls.get(timeout=WAIT_S) for _ in range(3)]
    for (peer, one), text in reversed(list(zip(pending, ("a", "b", "c"), strict=True))):
        peer.complete(one, text)
    answers = [shim.receive() for _ in range(3)]
    assert [(answer["id"], text_of(answer)) for answer in answers] == [(3, "c"), ("two", "b"), (1, "a")]


@pytest.mark.requires("H4.mcp-restart")
def test_what_was_open_when_the_supervisor_died_is_answered_and_what_was_answered_is_not(start, agent) -> None:
    supervisor = start(silent)
    shim = agent()
    shim.send(call(1), call(2), {"jsonrpc": "2.0", "id": 3, "method": "tools/list"})
    first, _ = (supervisor.calls.get(timeout=WAIT_S) for _ in range(2))
    assert shim.receive()["id"] == 3
    first[0].complete(first[1], "done")
    assert text_of(shim.receive()) == "done"
    supervisor.die()
    answer = shim.receive()
    assert (answer["id"], answer["result"]["isError"]) == (2, True)
    assert "restarted" in text_of(answer)
    assert "Ask again" in text_of(answer)
    start()
    shim.send(call(4))
    answer = shim.receive()
    assert answer["id"] == 4
    assert text_of(answer).startswith("register_workspace")
    assert shim.end() == 0


@pytest.mark.requires("H4.mcp-restart")
def test_a_call_made_while_the_supervisor_restarts_waits_for_the_new_one(start, agent) -> None:
    supervisor = start()
    shim = agent()
    shim.send(call(1))
    shim.receive()
    supervisor.die()
    shim.send(call(2))
    start()
    answer = shim.receive()
    assert (answer["id"], answer["result"]["isError"]) == (2, False)


def test_a_cancelled_call_gets_no_answer_when_the_supervisor_dies(start, agent) -> None:
    supervisor = start(silent)
    shim = agent()
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
    shim.send(call(1))
    supervisor.calls.get(timeout=WAIT_S)
    shim.send(cancel, call(2))
    assert supervisor.cancelled.get(timeout=WAIT_S) == 1
    supervisor.calls.get(timeout=WAIT_S)
    supervisor.die()
    assert shim.receive()["id"] == 2
    assert shim.end() == 0


@pytest.mark.requires("H4.mcp-no-supervisor")
def test_without_a_supervisor_the_handshake_and_the_list_are_right_and_a_call_says_what_to_do(start, agent) -> None:
    shim = agent()
    hand = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    shim.send({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hand})
    assert shim.receive()["result"]["protocolVersion"] == "2025-06-18"
    shim.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    shim.send(request)
    expected = core.receive(json.dumps(request).encode(), "1")
    assert isinstance(expected, core.Answer)
    assert shim.receive() == expected.message
    shim.send(call(2))
    answer = shim.receive()
    assert answer["result"]["isError"] is True
    assert "`va up`" in text_of(answer)
    start()
    shim.send(call(3))
    assert text_of(shim.receive()).startswith("register_workspace")
    assert shim.end() == 0


@pytest.mark.parametrize("method", ["server/discover", "tools/list", "ping", "tools/call", "no/such"])
def test_answers_without_a_supervisor_have_the_shape_of_the_real_ones(agent, method: str) -> None:
    shim = agent()
    for number, envelope in enumerate([{}, modern_envelope()]):
        params = {"name": "register_workspace", "arguments": {}, **envelope}
        request = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        shim.send(request)
        answer = shim.receive()
        real = core.receive(json.dumps(request).encode(), "0")
        assert isinstance(real, core.Answer)
        assert answer.keys() == real.message.keys()
        if "result" in answer:
            optional = {"instructions"}
            assert answer["result"].keys() == real.message["result"].keys() - optional


def modern_envelope() -> dict[str, object]:
    prefix = "io.modelcontextprotocol/"
    return {"_meta": {f"{prefix}protocolVersion": "2026-07-28", f"{prefix}clientCapabilities": {}}}


@pytest.mark.parametrize("connected", [True, False])
def test_a_line_above_the_limit_is_refused_with_its_id_and_the_next_one_is_served(start, agent, connected: bool) -> None:
    if connected:
        start()
    shim = agent()
    shim.send(call(1, cwd="/" + "x" * (core.LINE_LIMIT * 2)), call(2))
    refusal = shim.receive()
    assert refusal["id"] == 1
    assert "longer than" in refusal["error"]["message"] or "va up" in refusal["error"]["message"]
    assert shim.receive()["id"] == 2
    assert shim.end() == 0


def test_garbage_is_answered_as_the_protocol_says_and_harms_nothing(start, agent) -> None:
    start()
    shim = agent()
    shim.send(b"\xff\xfe{{{\n", b"\n", b"[]\n", b'{"jsonrpc":"2.0","method":"notifications/x"}\n', call(5))
    codes = [shim.receive()["error"]["code"] for _ in range(2)]
    assert codes == [core.PARSE_ERROR, core.INVALID_REQUEST]
    assert shim.receive()["id"] == 5


def test_a_flood_of_notifications_that_carry_an_id_does_not_lose_an_open_call(start, agent) -> None:
    supervisor = start(silent)
    shim = agent()
    note = {"jsonrpc": "2.0", "method": "notifications/x", "params": {"id": 1}}
    shim.send(call(1), *[note] * 200)
    supervisor.calls.get(timeout=WAIT_S)
    shim.send({"jsonrpc": "2.0", "id": 2, "method": "ping"})
    assert shim.receive()["id"] == 2
    supervisor.die()
    assert shim.receive()["id"] == 1


def test_the_shim_ends_with_its_stdin_and_first_waits_for_an_open_answer(start, agent) -> None:
    supervisor = start(silent)
    shim = agent()
    shim.send(call(1))
    peer, pending = supervisor.calls.get(timeout=WAIT_S)
    assert shim.process.stdin is not None
    shim.process.stdin.close()
    peer.complete(pending, "late")
    assert text_of(shim.receive()) == "late"
    assert shim.process.wait(WAIT_S) == 0


def test_the_shim_ends_when_nobody_reads_its_answers(start, agent) -> None:
    start()
    shim = agent()
    assert shim.process.stdout is not None
    shim.process.stdout.close()
    shim.send(call(1))
    assert shim.process.wait(WAIT_S) == 0


def test_a_run_json_of_a_dead_supervisor_counts_as_none(start, agent) -> None:
    start().die()
    shim = agent()
    shim.send(call(1))
    assert "va up" in text_of(shim.receive())


def test_a_damaged_run_json_counts_as_none(agent, tmp_path) -> None:
    (tmp_path / "run.json").write_bytes(b'{"socket_dir": 5')
    shim = agent()
    shim.send(call(1))
    assert "va up" in text_of(shim.receive())


@pytest.mark.requires("H1.shim-loads-little")
def test_a_connected_shim_loads_builtin_modules_and_os_only(start, tmp_path) -> None:
    start()
    code = (
        "import sys\n"
        "before = set(sys.modules)\n"
        "import os\n"
        "def leave(status): sys.stderr.write(repr(sorted(set(sys.modules) - before))); sys.stderr.flush(); end(status)\n"
        "end, os._exit = os._exit, leave\n"
        f"sys.argv = ['shim.py', '--data-dir', {str(tmp_path)!r}]\n"
        f"exec(compile(open({SHIM[-1]!r}).read(), {SHIM[-1]!r}, 'exec'))\n"
    )
    line = json.dumps(call(1)).encode() + b"\n"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], input=line, capture_output=True, timeout=WAIT_S, check=True
    )
    assert json.loads(done.stdout)["id"] == 1
    allowed = {"_socket", "_signal", "select", "time", "os", "os.path", "stat", "_stat", "posixpath", "genericpath", "_collections_abc"}
    loaded = set(done.stderr.decode().strip("[]").replace("'", "").split(", "))
    assert loaded - allowed == set()
