"""The door for agents: a tool call becomes a request in the caller's name, and its answer a line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from actors.mcp_door import McpDoor
from tests.unit.world import World
from transports.bus.api import Delivery
from transports.bus.vocabulary.handover import CodeIssued, PrepareHandover
from transports.bus.vocabulary.threads import McpLine


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.close()


class Agent:
    """One MCP connection. `role` is what the kernel's word made of it."""

    def __init__(self, world: World, role: str = "owner", host_thread: str = "") -> None:
        self.world = world
        self.out: list[dict[str, Any]] = []
        self.door = McpDoor(world.loop.switch, world.loop.clock, world.registry, self._write, "t")
        world.loop.add("mcp", self.door.receive)
        self._send(McpLine(1, b"", True, False, 4711, 0, role, host_thread, 99))
        self._number = 0

    def _write(self, connection: int, data: bytes) -> None:
        self.out.extend(json.loads(line) for line in data.splitlines())

    def _send(self, line: McpLine) -> None:
        self.world.loop.switch.send("mcp", line)
        self.world.loop.run()

    def call(self, tool: str, **arguments: str) -> dict[str, Any]:
        self._number += 1
        request = {"jsonrpc": "2.0", "id": self._number, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
        self._send(McpLine(1, json.dumps(request).encode() + b"\n"))
        (answer,) = [line for line in self.out if line.get("id") == self._number]
        result: dict[str, Any] = answer["result"]
        return result


def test_the_session_of_a_chat_is_asked_for_by_channel_and_chat(world: World) -> None:
    world.write("a", "hello")
    world.host.answer("hi")
    agent = Agent(world)
    assert agent.call("get_session_id", channel_kind="cli", chat_id="a")["content"][0]["text"] == world.host.session
    nothing = agent.call("get_session_id", channel_kind="cli", chat_id="nobody")
    assert nothing["isError"]
    assert "no session" in nothing["content"][0]["text"]


def test_a_handover_is_prepared_in_the_callers_name_and_its_answer_has_the_line_to_type(world: World) -> None:
    asked: list[Delivery] = []

    def attacher(delivery: Delivery) -> None:
        asked.append(delivery)
        world.loop.switch.send(delivery.sender, CodeIssued("ABCD", 120.0, "a note"), sender="attacher", corr=-delivery.corr)

    world.leave("attacher")
    world.loop.add("attacher", attacher)
    agent = Agent(world, "agent", "wt_9")
    text = agent.call("prepare_handover", agent_kind="demo", cwd="/w")["content"][0]["text"]
    assert "/pickup ABCD" in text.splitlines()
    assert "a note" in text
    (delivery,) = asked
    assert isinstance(delivery.message, PrepareHandover)
    assert delivery.peer is not None
    assert (delivery.peer.pid, delivery.peer.role, delivery.peer.host_thread) == (4711, "agent", "wt_9")


def test_a_directory_that_does_not_exist_is_not_registered_and_the_agent_is_told(world: World) -> None:
    agent = Agent(world)
    refused = agent.call("register_workspace", cwd="/gone/x")
    assert refused["isError"]
    assert "does not exist" in refused["content"][0]["text"]
    assert "registered" in agent.call("register_workspace", cwd="/there")["content"][0]["text"]
