"""The demo agent: over ACP, in a terminal, and its sessions as the rest of the product reads them."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agents_registry.sessions.demo import DemoStore as Reader
from tests.unit.acp_rig import LIMIT_S, REPO, Driven
from transports.acp import updates
from transports.acp.demo.store import DemoStore
from transports.acp.demo.terminal import Terminal
from transports.acp.errors import AgentGone, AgentRefused


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[Driven]:
    made = driven(tmp_path)
    yield made
    made.close()


def driven(tmp_path: Path, **more: Any) -> Driven:
    made = Driven([sys.executable, "-m", "transports.acp.demo"], {"VIBEAROUND_DEMO_HOME": str(tmp_path / "demo")}, **more)
    made.client.initialize(LIMIT_S)
    return made


@pytest.mark.requires("H3.demo")
def test_it_says_what_it_is_and_streams_word_by_word(demo: Driven, tmp_path: Path) -> None:
    session = demo.client.new(str(tmp_path), [], LIMIT_S).session
    assert demo.prompt(session, "hello").result(LIMIT_S) == {"stopReason": "end_turn"}
    assert "demo agent, not a language model" in "".join(demo.texts())
    assert len(demo.texts()) > 5


@pytest.mark.parametrize("way", ["load", "resume", "fork"])
def test_it_remembers_across_processes(tmp_path: Path, way: str) -> None:
    first = driven(tmp_path)
    session = first.client.new(str(tmp_path), [], LIMIT_S).session
    first.prompt(session, "the word is swordfish").result(LIMIT_S)
    first.close()
    second = driven(tmp_path)
    opened = getattr(second.client, way)(session, str(tmp_path), [], LIMIT_S)
    assert (opened.session == session) is (way != "fork")
    second.prompt(opened.session, "recall").result(LIMIT_S)
    assert "swordfish" in "".join(second.texts())
    second.close()


@pytest.mark.requires("H3.demo")
def test_a_command_runs_after_permission_only(tmp_path: Path) -> None:
    for decide, ran in (("reject_once", False), ("allow_once", True)):
        demo = driven(tmp_path, decide=decide)
        session = demo.client.new(str(tmp_path), [], LIMIT_S).session
        demo.prompt(session, "run: echo made > here.txt").result(LIMIT_S)
        assert (tmp_path / "here.txt").exists() is ran
        demo.close()


def test_a_stopped_command_is_over_at_once(demo: Driven, tmp_path: Path) -> None:
    session = demo.client.new(str(tmp_path), [], LIMIT_S).session
    turn = demo.prompt(session, "run: sleep 300")
    permission = demo.asked.get(timeout=LIMIT_S)
    demo.client.answer(permission, "yes")
    demo.client.cancel(session)
    assert turn.result(LIMIT_S)["stopReason"] == "cancelled"


def test_plan_mode_runs_nothing(demo: Driven, tmp_path: Path) -> None:
    session = demo.client.new(str(tmp_path), [], LIMIT_S).session
    demo.client.set_mode(session, "plan", LIMIT_S)
    demo.prompt(session, "write: x.txt hello").result(LIMIT_S)
    assert demo.asked.empty() and not (tmp_path / "x.txt").exists() and "would do" in "".join(demo.texts())


def test_it_fails_and_crashes_when_told(demo: Driven, tmp_path: Path) -> None:
    session = demo.client.new(str(tmp_path), [], LIMIT_S).session
    failed = demo.prompt(session, "fail because").exception(LIMIT_S)
    assert isinstance(failed, AgentRefused) and failed.rpc_message == "because"
    gone = demo.prompt(session, "crash 5").exception(LIMIT_S)
    assert isinstance(gone, AgentGone) and gone.returncode == 5


def test_an_unknown_session_and_a_missing_directory_are_refused(demo: Driven, tmp_path: Path) -> None:
    with pytest.raises(AgentRefused) as unknown:
        demo.client.load("nope", str(tmp_path), [], LIMIT_S)
    assert unknown.value.rpc_code == -32002
    with pytest.raises(AgentRefused) as missing:
        demo.client.new(str(tmp_path / "gone"), [], LIMIT_S)
    assert missing.value.rpc_code == -32602 and not (tmp_path / "gone").exists()


def test_what_it_writes_is_read_by_the_session_store_with_its_tool_calls(tmp_path: Path) -> None:
    demo = driven(tmp_path, decide="allow_once")
    session = demo.client.new(str(tmp_path), [], LIMIT_S).session
    for text in ("hello", "run: echo hi", "think deep"):
        demo.prompt(session, text).result(LIMIT_S)
    demo.close()
    reader = Reader()
    root = tmp_path / "demo"
    info = reader.resolve(root, session)[0]
    assert info.cwd == str(tmp_path)
    seen = reader.inspect(info.path)
    assert (seen.user_turns, seen.tool_calls, seen.tool_results, seen.malformed) == (3, 1, 1, 0)


def test_a_torn_last_line_costs_that_line_only(tmp_path: Path) -> None:
    store = DemoStore(tmp_path)
    session = store.new("/")
    session.add("user", "first")
    with session.path.open("ab") as file:
        file.write(b'{"type": "user", "te')
    again = store.open(session.id)
    assert again is not None and again.said() == ["first"]
    again.add("user", "second")
    last = store.open(session.id)
    assert last is not None and last.said() == ["first", "second"]


def test_in_a_terminal_it_is_the_same_session(tmp_path: Path) -> None:
    store = DemoStore(tmp_path / "demo")
    session = store.new(str(tmp_path))
    out = io.StringIO()
    Terminal(io.StringIO("hello there\nrun: echo hi\ny\n"), out, session, mcp_command=["false"]).run()
    assert "hi\n" in out.getvalue() and "May I do this? `echo hi`" in out.getvalue()
    demo = driven(tmp_path)
    demo.client.resume(session.id, str(tmp_path), [], LIMIT_S)
    demo.prompt(session.id, "recall").result(LIMIT_S)
    assert "1. hello there\n2. run: echo hi" in "".join(demo.texts())
    demo.close()


def test_hand_over_calls_the_server_that_the_client_gave(demo: Driven, tmp_path: Path) -> None:
    server = tmp_path / "server.py"
    server.write_text(
        "import sys, json\n"
        "for line in sys.stdin:\n"
        "    m = json.loads(line)\n"
        "    if m.get('method') == 'initialize': r = {'protocolVersion': '2025-06-18', 'capabilities': {}}\n"
        "    elif m.get('method') == 'tools/call': r = {'content': [{'type': 'text', 'text': json.dumps(m['params'])}]}\n"
        "    else: continue\n"
        "    print(json.dumps({'jsonrpc': '2.0', 'id': m['id'], 'result': r}), flush=True)\n"
    )
    entry = {"name": "vibearound", "command": sys.executable, "args": [str(server)], "env": []}
    session = demo.client.new(str(tmp_path), [entry], LIMIT_S).session
    demo.prompt(session, "hand over please").result(LIMIT_S)
    said = "".join(demo.texts())
    assert '"name": "prepare_handover"' in said and session in said and '"agent_kind": "demo"' in said


def test_it_loads_nothing_beyond_the_standard_library() -> None:
    code = (
        "import sys; import transports.acp.demo.__main__; "
        "print([m for m in sys.modules if m.split('.')[0] in ('click','zmq','msgpack','pykka','structlog','agents_registry','asyncio')])"
    )
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(REPO)}
    out = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True, timeout=30)
    assert out.stdout.strip() == "[]"


def test_its_plan_and_thoughts_are_shown_as_such(demo: Driven, tmp_path: Path) -> None:
    session = demo.client.new(str(tmp_path), [], LIMIT_S).session
    demo.prompt(session, "plan").result(LIMIT_S)
    demo.prompt(session, "think about it").result(LIMIT_S)
    kinds = {type(e) for _, e in demo.heard}
    assert {updates.Plan, updates.Thought} <= kinds
