"""The question about a conversation that a terminal has: it is taken back when the terminal's end has answered it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.world import World, kinds
from transports.bus.vocabulary.conversation import Failed, Ok
from transports.bus.vocabulary.handover import PickupTerminal
from transports.bus.vocabulary.surface import Answer


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.close()


def test_the_end_of_the_terminal_takes_its_question_back(world: World) -> None:
    world.session("abc-1")
    world.write("a", f"/pickup {world.code('abc-1')}")
    world.living.add(4242)
    assert isinstance(world.loop.ask("attacher", PickupTerminal(world.code("abc-1"), 4242, 1)), Ok)
    heard = world.listen("a")
    world.write("a", "are you there?")
    asked = next(e for e in heard if e["event"] == "choice")
    world.living.clear()
    world.loop.pass_time(4.0)
    gone = next(e for e in heard if e["event"] == "choice_done")
    assert (gone["id"], gone["text"]) == (asked["id"], "No answer is needed: the terminal is closed.")
    assert kinds(heard).count("choice") == 1
    assert len(world.hosts) == 1
    late = world.loop.ask("route/cli:local:a", Answer(asked["id"], "fork"))
    assert isinstance(late, Failed)
    assert late.error[1] == "late"
