"""The writer moves to a terminal by `va pickup` and by `va launch --resume`; issuing a code moves nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.world import World, kinds
from transports.bus.vocabulary.conversation import Failed, Ok
from transports.bus.vocabulary.handover import CodeIssued, HandoverThread
from transports.bus.vocabulary.lists import EndSessionHost


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    made.session("abc-1")
    made.write("a", f"/pickup {made.code('abc-1')}")
    made.write("a", "go on")
    yield made
    made.close()


def launch(world: World, pid: int = 4242) -> object:
    world.living.add(pid)
    return world.loop.ask("attacher", EndSessionHost("demo", "abc-1", pid, 1))


@pytest.mark.requires("M1.launch-away")
def test_a_launch_that_resumes_a_chats_session_has_it_until_its_process_ends(world: World) -> None:
    world.host.answer("ok")
    first = world.host
    answer = launch(world)
    assert isinstance(answer, Ok)
    assert answer.data["ended"]
    assert first.stopped
    heard = world.listen("a")
    world.write("a", "are you there?")
    asked = next(e for e in heard if e["event"] == "choice")
    assert "4242" in asked["title"]
    assert [o["id"] for o in asked["options"]] == ["wait", "take_back", "fork"]
    assert len(world.hosts) == 1
    world.living.clear()
    world.loop.pass_time(4.0)
    assert (world.host.request.start, world.host.request.session) == ("resume", "abc-1")


@pytest.mark.requires("M1.launch-away")
def test_it_is_still_away_after_a_restart_of_the_supervisor(world: World) -> None:
    world.host.answer("ok")
    assert isinstance(launch(world), Ok)
    world.restart()
    heard = world.listen("a")
    world.write("a", "are you there?")
    assert "choice" in kinds(heard)
    assert len(world.hosts) == 1


@pytest.mark.requires("M1.launch-away")
def test_a_launch_waits_for_the_chats_turn_and_refuses_to_be_a_second_writer(world: World) -> None:
    assert launch(world) is None
    world.loop.pass_time(5.0)
    world.host.answer("done")
    world.loop.pass_time(1.0)
    assert world.host.stopped
    assert isinstance(world.loop.seen[-1].message, Ok)
    world.living.clear()
    world.write("a", "long")
    assert launch(world) is None
    for _ in range(60):
        world.loop.pass_time(0.5)
    refused = world.loop.seen[-1].message
    assert isinstance(refused, Failed)
    assert refused.error[0] == 8
    assert not world.host.stopped
    assert not world.host.cancelled


def test_a_session_of_no_chat_is_nobodys_to_end(world: World) -> None:
    answer = world.loop.ask("attacher", EndSessionHost("demo", "xyz", 4242, 1))
    assert isinstance(answer, Ok)
    assert answer.data == {"ended": False}


@pytest.mark.requires("M1.code-moves-nothing")
def test_issuing_a_code_moves_nothing(world: World) -> None:
    world.host.answer("ok")
    issued = world.loop.ask("attacher", HandoverThread("cli:local:a"))
    assert isinstance(issued, CodeIssued)
    heard = world.listen("a")
    world.write("a", "still here")
    assert not world.host.stopped
    assert len(world.host.prompts) == 2
    assert "choice" not in kinds(heard)
