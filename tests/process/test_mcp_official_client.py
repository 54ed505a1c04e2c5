"""The official MCP client, in every protocol mode it has, through the real shim process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.process.mcp_rig import SHIM, WAIT_S, Peer, Supervisor, echo
from transports.mcp.server import PendingCall

anyio = pytest.importorskip("anyio")
mcp_client = pytest.importorskip("mcp.client", reason="the official SDK is not installed")

from mcp import Client, MCPError, StdioServerParameters  # noqa: E402 - after the skip

MODES = ("auto", "legacy", "2026-07-28")
VERSIONS = {"auto": "2026-07-28", "legacy": "2025-11-25", "2026-07-28": "2026-07-28"}


@pytest.fixture
def parameters(tmp_path: Path) -> StdioServerParameters:
    return StdioServerParameters(command=SHIM[0], args=[*SHIM[1:], "--data-dir", str(tmp_path)])


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Supervisor]]:
    running: list[Supervisor] = []

    def begin(run_tool: Callable[[Peer, PendingCall], None] = echo) -> Supervisor:
        running.append(Supervisor(tmp_path, tmp_path, run_tool))
        return running[-1]

    yield begin
    for supervisor in running:
        supervisor.die()


def run(scenario: Callable[[], object]) -> None:
    async def limited() -> None:
        with anyio.fail_after(WAIT_S * 3):
            await scenario()  # type: ignore[misc]

    anyio.run(limited)


def text_of(result: object) -> str:
    return str(result.content[0].text)  # type: ignore[attr-defined]


@pytest.mark.requires("H4.mcp-official", "H4.mcp-tools")
@pytest.mark.parametrize("mode", MODES)
def test_it_negotiates_lists_the_three_tools_and_calls_one(start, parameters, mode: str) -> None:
    start()

    async def scenario() -> None:
        async with Client(parameters, mode=mode) as client:
            assert client.session.protocol_version == VERSIONS[mode]
            tools = await client.list_tools()
            assert [tool.name for tool in tools.tools] == ["get_session_id", "prepare_handover", "register_workspace"]
            result = await client.call_tool("prepare_handover", {"agent_kind": "codex", "cwd": "/srv/目录"})
            assert not result.is_error
            assert "/pickup ABCD" in text_of(result).splitlines()

    run(scenario)


@pytest.mark.parametrize("mode", MODES)
def test_wrong_arguments_come_back_as_words_for_the_model(start, parameters, mode: str) -> None:
    start()

    async def scenario() -> None:
        async with Client(parameters, mode=mode) as client:
            result = await client.call_tool("register_workspace", {"cwd": "not/absolute"})
            assert result.is_error
            assert "absolute" in text_of(result)

    run(scenario)


@pytest.mark.parametrize("mode", MODES)
def test_an_unknown_tool_is_a_protocol_error(start, parameters, mode: str) -> None:
    start()

    async def scenario() -> None:
        async with Client(parameters, mode=mode) as client:
            with pytest.raises(MCPError, match="Unknown tool"):
                await client.call_tool("launch_rockets", {})

    run(scenario)


@pytest.mark.parametrize("mode", MODES)
def test_concurrent_calls_each_get_their_own_answer(start, parameters, mode: str) -> None:
    waiting: list[tuple[Peer, PendingCall]] = []

    def answer_when_all_are_there(peer: Peer, call: PendingCall) -> None:
        waiting.append((peer, call))
        if len(waiting) == 5:
            for one, pending in reversed(waiting):
                one.complete(pending, pending.tool.arguments["cwd"])

    start(answer_when_all_are_there)

    async def scenario() -> None:
        async with Client(parameters, mode=mode) as client:

            async def ask(number: int) -> None:
                result = await client.call_tool("register_workspace", {"cwd": f"/{number}"})
                assert text_of(result) == f"/{number}"

            async with anyio.create_task_group() as group:
                for number in range(5):
                    group.start_soon(ask, number)

    run(scenario)


@pytest.mark.requires("H4.mcp-restart")
@pytest.mark.parametrize("mode", MODES)
def test_a_client_goes_on_over_a_restart_in_the_middle_of_a_call(start, parameters, mode: str) -> None:
    first = start(lambda peer, call: None)

    async def scenario() -> None:
        async with Client(parameters, mode=mode) as client:

            async def die_during_the_call() -> None:
                await anyio.to_thread.run_sync(lambda: first.calls.get(timeout=WAIT_S))
                first.die()

            async with anyio.create_task_group() as group:
                group.start_soon(die_during_the_call)
                result = await client.call_tool("register_workspace", {"cwd": "/a"})
            assert result.is_error
            assert "Ask again" in text_of(result)
            first.die = lambda: None  # type: ignore[method-assign]
            start()
            result = await client.call_tool("register_workspace", {"cwd": "/a"})
            assert not result.is_error

    run(scenario)


@pytest.mark.requires("H4.mcp-no-supervisor")
@pytest.mark.parametrize("mode", MODES)
def test_a_client_started_before_the_supervisor_works_once_there_is_one(start, parameters, mode: str) -> None:
    async def scenario() -> None:
        async with Client(parameters, mode=mode) as client:
            assert client.session.protocol_version == VERSIONS[mode]
            assert len((await client.list_tools()).tools) == 3
            result = await client.call_tool("register_workspace", {"cwd": "/a"})
            assert result.is_error
            assert "va up" in text_of(result)
            start()
            result = await client.call_tool("register_workspace", {"cwd": "/a"})
            assert not result.is_error

    run(scenario)


def test_a_call_that_the_client_gives_up_is_cancelled_at_the_supervisor(start, parameters) -> None:
    supervisor = start(lambda peer, call: None)

    async def scenario() -> None:
        async with Client(parameters, mode="legacy") as client:
            async with anyio.create_task_group() as group:
                group.start_soon(client.call_tool, "register_workspace", {"cwd": "/a"})
                await anyio.to_thread.run_sync(lambda: supervisor.calls.get(timeout=WAIT_S))
                group.cancel_scope.cancel()
            cancelled = await anyio.to_thread.run_sync(lambda: supervisor.cancelled.get(timeout=WAIT_S))
            assert cancelled == 1

    run(scenario)
