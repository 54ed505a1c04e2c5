"""What an agent tried is refused, shown to the people of its conversation and logged, and a loop of it fills nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from actors.attempts import WINDOW_S
from tests.unit.world import World, kinds
from transports.bus.api import Peer
from transports.bus.vocabulary.conversation import Failed, Ok
from transports.bus.vocabulary.surface import Submit
from transports.bus.vocabulary.threads import AgentTried


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.close()


def agent(world: World, thread: str = "") -> Peer:
    return Peer("peer/a", 77, 0, "agent", host_thread=thread or world.host.request.thread)


def notices(events: list[dict[str, object]]) -> list[str]:
    return [str(e["text"]) for e in events if e["event"] == "notice"]


@pytest.mark.requires("M3.agents-refused")
def test_an_agents_message_is_refused_shown_in_its_conversation_and_logged(world: World) -> None:
    heard = world.listen("a")
    world.write("a", "hello")
    answer = world.loop.ask("route/cli:local:a", Submit("k", "and another"), peer=agent(world))
    assert isinstance(answer, Failed)
    assert (answer.error[0], answer.error[1]) == (5, "agent_refused")
    (said,) = notices(heard)
    assert "write to a chat" in said
    assert "process 77" in said
    assert len(world.logged) == 1
    assert len(world.host.prompts) == 1


def test_what_an_agent_may_ask_is_answered_and_reported_to_nobody(world: World) -> None:
    heard = world.listen("a")
    world.write("a", "hello")
    answer = world.loop.ask("route/cli:local:a", Submit("k", "/status"), peer=agent(world))
    assert isinstance(answer, Ok)
    assert notices(heard) == []


@pytest.mark.requires("M3.agents-refused")
def test_a_loop_of_attempts_is_one_line_and_a_count(world: World) -> None:
    heard = world.listen("a")
    world.write("a", "hello")
    for n in range(500):
        world.loop.ask("route/cli:local:a", Submit(f"k{n}", "again"), peer=agent(world))
    assert len(notices(heard)) == 1
    world.loop.pass_time(WINDOW_S + 1)
    assert len(notices(heard)) == 2
    assert "499 times more" in notices(heard)[-1]
    assert len(world.logged) == 2


def test_different_deeds_are_told_apart(world: World) -> None:
    heard = world.listen("a")
    world.write("a", "hello")
    for what in ("answer", "may_change", "pickup_terminal"):
        world.loop.switch.send("attempts", AgentTried(what, world.host.request.thread, "", 5))
    world.loop.run()
    assert len(notices(heard)) == 3
    assert "change the settings" in notices(heard)[1]


def test_an_agent_of_a_terminal_is_told_of_in_the_chat_that_it_meant(world: World) -> None:
    heard = world.listen("a")
    world.loop.switch.send("attempts", AgentTried("answer", "", "cli:local:a", 5))
    world.loop.run()
    assert kinds(heard) == ["notice"]
