"""Somebody else runs a turn in the session when a message comes: it waits, told so, or goes on with a fork."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.unit.world import World, kinds
from transports.bus.api import Delivery
from transports.bus.vocabulary.conversation import Ok
from transports.bus.vocabulary.surface import Answer


class BusyWorld(World):
    busy = 0

    def _reader(self, delivery: Delivery) -> None:
        request = delivery.message
        if request.op in ("tail", "added"):
            assert request.args["ours"] == [200, 100]
            data: dict[str, Any] = {"leaf": self.leaf, "size": 0, "mtime_ns": 0, "texts": self.added, "busy": self.busy}
            self.loop.switch.send(delivery.sender, Ok(data), sender="reader", corr=-delivery.corr)
        elif request.op == "resolve" and self.busy:
            live = {"open": True, "pids": [self.busy], "window": True, "daemon": "", "joinable": False}
            match = {"id": request.args["wanted"], "writer": {"running": True, "locked": False, "live": live}}
            self.loop.switch.send(delivery.sender, Ok({"matches": [match]}), sender="reader", corr=-delivery.corr)
        else:
            super()._reader(delivery)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[BusyWorld]:
    made = BusyWorld(tmp_path)
    yield made
    made.close()


def after_a_turn(world: BusyWorld, seconds: float = 5.0) -> list[dict[str, Any]]:
    heard = world.listen("a")
    world.write("a", "first")
    world.host.answer("one")
    world.host.state = "idle"
    world.loop.pass_time(seconds)
    return heard


@pytest.mark.requires("M1.busy-writer")
@pytest.mark.parametrize("seconds", [0.5, 5.0])
def test_a_message_waits_while_somebody_is_at_work_in_the_terminal_and_then_finds_what_was_added(
    world: BusyWorld, seconds: float
) -> None:
    heard = after_a_turn(world, seconds)
    world.busy = 555
    world.write("a", "second")
    asked = next(e for e in heard if e["event"] == "choice")
    assert [o["id"] for o in asked["options"]] == ["wait", "fork"]
    assert any("process 555" in e.get("text", "") for e in heard if e["event"] == "notice")
    world.loop.ask("route/cli:local:a", Answer(asked["id"], "wait"))
    for _ in range(10):
        world.loop.pass_time(1.0)
    assert len(world.host.prompts) == 1
    world.busy, world.leaf, world.added = 0, "leaf-2", ["typed there"]
    world.loop.pass_time(1.0)
    assert len(world.host.prompts) == 1  # what the other turn said is written a moment after its end
    world.loop.pass_time(2.0)
    assert [b["text"] for b in world.host.prompts[-1].blocks] == ["second"]
    assert len(world.host.reloads) == 1
    assert any("terminal: typed there" in e.get("text", "") for e in heard)
    assert kinds(heard).count("choice") == 1


@pytest.mark.requires("M1.busy-writer")
def test_the_end_of_the_other_turn_takes_the_question_back(world: BusyWorld) -> None:
    heard = after_a_turn(world)
    world.busy = 555
    world.write("a", "second")
    world.busy = 0
    world.loop.pass_time(1.0)
    assert "choice_done" in kinds(heard)
    world.loop.pass_time(2.0)
    assert len(world.host.prompts) == 2


@pytest.mark.requires("M1.busy-writer")
def test_a_fork_is_taken_at_once_when_chosen(world: BusyWorld) -> None:
    heard = after_a_turn(world)
    first = world.host
    world.busy = 555
    world.write("a", "second")
    asked = next(e for e in heard if e["event"] == "choice")
    world.loop.ask("route/cli:local:a", Answer(asked["id"], "fork"))
    assert world.host is not first
    assert (world.host.request.start, world.host.request.session) == ("fork", first.session)
    assert [b["text"] for b in world.host.prompts[-1].blocks] == ["second"]


def test_a_message_that_was_dropped_leaves_nothing_behind(world: BusyWorld) -> None:
    after_a_turn(world)
    world.busy = 555
    world.write("a", "second")
    world.write("a", "/stop")
    world.loop.pass_time(2.0)
    world.busy = 0
    world.write("a", "third")
    assert [b["text"] for b in world.host.prompts[-1].blocks] == ["third"]


@pytest.mark.requires("M1.busy-writer")
def test_a_host_that_comes_back_waits_for_the_other_turn_too(world: BusyWorld) -> None:
    heard = after_a_turn(world)
    world.host.die()
    world.busy = 555
    world.write("a", "second")
    asked = next(e for e in heard if e["event"] == "choice")
    assert "555" in asked["title"]
    assert [o["id"] for o in asked["options"]] == ["wait", "fork", "cancel"]
    world.loop.ask("route/cli:local:a", Answer(asked["id"], "wait"))
    world.busy = 0
    world.loop.pass_time(2.0)
    assert world.host.request.start == "resume"
    assert [b["text"] for b in world.host.prompts[-1].blocks] == ["second"]
