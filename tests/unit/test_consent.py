"""An agent that never asks starts in a workspace only after an owner's yes, which is asked for once, kept, and shown."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.unit.world import World, words
from transports.bus.api import Peer
from transports.bus.vocabulary.conversation import Failed
from transports.bus.vocabulary.surface import Answer


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    made.installed.append("pi")
    yield made
    made.close()


def begin(world: World, chat: str = "a") -> list[dict[str, Any]]:
    """A chat with Pi that has written its first message."""
    heard = world.listen(chat)
    world.write(chat, "/agent pi")
    world.write(chat, "do it")
    return heard


def question(events: list[dict[str, Any]]) -> dict[str, Any]:
    return next(e for e in reversed(events) if e["event"] == "choice")


def decide(world: World, asked: dict[str, Any], option: str, chat: str = "a") -> Any:
    return world.loop.ask(f"route/cli:local:{chat}", Answer(asked["id"], option))


@pytest.mark.requires("M3.pi-yes")
def test_nothing_starts_before_the_owner_has_said_yes_and_then_the_message_runs(world: World) -> None:
    heard = begin(world)
    assert world.hosts == []
    assert "WITHOUT asking" in question(heard)["title"]
    decide(world, question(heard), "yes")
    world.host.answer("done")
    assert words(heard)[-1] == "done"
    assert "acts without asking (allowed in this workspace by" in world.write("a", "/status").data["text"]


@pytest.mark.requires("M3.pi-yes")
def test_the_yes_holds_for_the_workspace_also_after_a_restart_and_for_no_other_workspace(world: World) -> None:
    heard = begin(world)
    decide(world, question(heard), "yes")
    world.host.answer("done")
    world.restart()
    heard = world.listen("b")
    world.write("b", "/agent pi")
    world.write("b", "again")
    assert [e for e in heard if e["event"] == "choice"] == []
    assert world.host.prompts[-1].blocks[0]["text"] == "again"
    world.host.answer("ok")
    world.write("b", "/workspace /other")
    world.write("b", "elsewhere")
    assert "/other" in question(heard)["title"]


@pytest.mark.requires("M3.pi-yes")
@pytest.mark.parametrize("how", ["no", "silence"])
def test_without_a_yes_the_message_is_refused_with_a_word_and_the_next_one_is_asked_again(world: World, how: str) -> None:
    heard = begin(world)
    if how == "no":
        decide(world, question(heard), "no")
    else:
        world.loop.pass_time(700.0)
    assert [e["code"] for e in heard if e["event"] == "error"] == ["acts_unasked"]
    assert world.hosts == []
    first = question(heard)["id"]
    world.write("a", "please")
    assert question(heard)["id"] != first


@pytest.mark.requires("M3.pi-yes")
def test_a_member_may_not_say_yes(world: World) -> None:
    heard = begin(world)
    member = Peer("peer/b", 1, 0, "bridge", "bridge/cli:local")
    answer = Answer(question(heard)["id"], "yes", {"id": "7", "name": "bob", "role": "member"})
    refused = world.loop.ask("route/cli:local:a", answer, peer=member)
    assert isinstance(refused, Failed)
    assert refused.error[1] == "foreign"
    assert world.hosts == []


def test_an_agent_that_asks_needs_no_yes(world: World) -> None:
    heard = world.listen("a")
    world.write("a", "hello")
    assert [e for e in heard if e["event"] == "choice"] == []
    assert len(world.hosts) == 1
