"""Permissions over the life of a supervisor: kept, decided once, told late, expiring; for who may answer them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.unit.support import OWNER
from tests.unit.world import World, words
from transports.bus.api import Peer
from transports.bus.vocabulary.conversation import Failed, Ok
from transports.bus.vocabulary.handover import NewThread
from transports.bus.vocabulary.surface import Answer, StopTurn, Submit


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.close()


def press(world: World, permission: dict[str, Any], option: str = "yes", chat: str = "a") -> Any:
    return world.loop.ask(f"route/cli:local:{chat}", Answer(permission["id"], option))


def asked(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [e for e in events if e["event"] == "permission"]


def reclaimed(world: World, chat: str = "a") -> list[dict[str, Any]]:
    """kill -9 of the supervisor and its successor, with the host alive and adopted."""
    turn = world.host.prompts[-1].turn if world.host.state == "busy" else ""
    world.alive_after_restart = True
    world.restart()
    heard = world.listen(chat)
    world.wake(f"thread/{world.host.request.thread}")
    world.host.say_hello(turn=turn)
    return heard


@pytest.mark.requires("M3.survives-restart")
def test_a_permission_outlives_its_supervisor_and_is_answered_under_the_next(world: World) -> None:
    heard = world.listen("a")
    world.write("a", "do it")
    world.host.ask()
    (permission,) = asked(heard)
    reclaimed(world)
    assert isinstance(press(world, permission), Ok)
    assert [(a.request, a.option) for a in world.host.answers] == [("rq1", "yes")]


@pytest.mark.requires("M3.survives-restart", "M3.expires")
def test_a_permission_expires_when_it_would_have_without_the_restart(world: World) -> None:
    heard = world.listen("a")
    world.write("a", "do it")
    world.host.ask()
    limit = world.settings.permissions.expire_s
    world.loop.pass_time(limit - 100)
    (permission,) = asked(heard)
    after = reclaimed(world)
    world.loop.pass_time(90)
    assert world.host.answers == []
    world.loop.pass_time(20)
    assert [(a.request, a.option) for a in world.host.answers] == [("rq1", "")]
    assert [e["outcome"] for e in after if e["event"] == "permission_done"] == ["expired"]
    late = press(world, permission)
    assert isinstance(late, Failed)
    assert late.error[1] == "late"


@pytest.mark.requires("M3.survives-restart")
def test_a_yes_that_was_written_but_not_forwarded_is_told_to_the_host_by_the_next_supervisor(world: World) -> None:
    heard = world.listen("a")
    world.write("a", "do it")
    world.host.ask()
    (permission,) = asked(heard)
    # The supervisor is killed between the commit and its word to the host.
    world.loop.record(["permission_decide", permission["id"], "decided", "yes", "ann", 5.0])
    reclaimed(world)
    assert [(a.request, a.option) for a in world.host.answers] == [("rq1", "yes")]


@pytest.mark.requires("M3.survives-restart")
@pytest.mark.parametrize("option", ["yes", "no"])
def test_an_answer_given_before_the_host_is_back_reaches_it_with_its_hello(world: World, option: str) -> None:
    heard = world.listen("a")
    world.write("a", "do it")
    world.host.ask()
    (permission,) = asked(heard)
    world.alive_after_restart = True
    world.restart()
    world.loop.switch.unregister(world.host.address)
    assert isinstance(press(world, permission, option), Ok)
    assert world.host.answers == []
    world.loop.add(world.host.address, world.host.receive)
    world.host.say_hello(turn=world.host.prompts[-1].turn)
    assert [(a.request, a.option) for a in world.host.answers] == [("rq1", option)]


@pytest.mark.requires("M2.stop-counts")
def test_a_stop_given_before_the_host_is_back_reaches_it_with_its_hello(world: World) -> None:
    world.write("a", "long")
    world.alive_after_restart = True
    world.restart()
    world.loop.switch.unregister(world.host.address)
    assert world.loop.ask("route/cli:local:a", StopTurn()).data == {"cancelled": 1, "dropped": 0}
    world.loop.add(world.host.address, world.host.receive)
    world.host.say_hello(turn=world.host.prompts[-1].turn)
    assert world.host.cancelled == [world.host.prompts[-1].turn]


@pytest.mark.requires("M3.late-foreign")
def test_a_late_press_is_told_so_also_by_the_next_supervisor(world: World) -> None:
    heard = world.listen("a")
    world.write("a", "do it")
    world.host.ask()
    (permission,) = asked(heard)
    press(world, permission)
    for _ in range(2):
        late = press(world, permission, "no")
        assert isinstance(late, Failed)
        assert late.error[1] == "late"
        reclaimed(world)
    assert [a.option for a in world.host.answers if a.option != "yes"] == []


@pytest.mark.requires("M3.late-foreign")
def test_an_unknown_id_is_answered_and_reaches_no_thread(world: World) -> None:
    world.write("a", "do it")
    world.host.ask()
    unknown = world.loop.ask("route/cli:local:a", Answer("pm_none", "yes"))
    assert isinstance(unknown, Failed)
    assert world.host.answers == []


@pytest.mark.requires("M3.three-in-one-turn")
def test_three_permissions_of_one_turn_are_three_questions_answered_in_any_order(world: World) -> None:
    heard = world.listen("a")
    world.write("a", "do it")
    for request in ("r1", "r2", "r3"):
        world.host.ask(request)
    first, second, third = asked(heard)
    for permission, option in ((third, "no"), (first, "yes"), (second, "always")):
        assert isinstance(press(world, permission, option), Ok)
    assert [(a.request, a.option) for a in world.host.answers] == [("r3", "no"), ("r1", "yes"), ("r2", "always")]


@pytest.mark.requires("M3.cancelled-with-turn")
def test_with_the_turn_its_permissions_end_and_a_press_is_late(world: World) -> None:
    heard = world.listen("a")
    world.write("a", "do it")
    world.host.ask("r1")
    (permission,) = asked(heard)
    world.host.end("cancelled")
    late = press(world, permission)
    assert isinstance(late, Failed)
    assert late.error[1] == "late"
    assert world.loop.query("audit", permission["id"])["permission"]["state"] == "cancelled"


@pytest.mark.requires("M3.follows-who-asked", "M2.answer-follows")
def test_question_and_answer_of_a_turn_reach_the_chat_that_asked_also_after_it_moved_on(world: World) -> None:
    heard = world.listen("a")
    world.write("a", "do it")
    world.loop.ask("attacher", NewThread("cli:local:a", cwd="/elsewhere"), peer=None)
    world.host.ask()
    (permission,) = asked(heard)
    assert isinstance(press(world, permission), Ok)
    assert [a.option for a in world.host.answers] == ["yes"]
    world.host.answer("done")
    assert words(heard) == ["done"]


@pytest.mark.requires("M3.late-foreign")
def test_an_owner_may_answer_from_a_chat_that_never_saw_the_question(world: World) -> None:
    heard = world.listen("a")
    world.write("a", "do it")
    world.host.ask()
    assert isinstance(press(world, asked(heard)[0], chat="c"), Ok)
    assert [a.option for a in world.host.answers] == ["yes"]


@pytest.mark.requires("M3.late-foreign")
def test_people_of_two_bridges_with_the_same_id_are_not_the_same_person(world: World) -> None:
    def person(bridge: str) -> Peer:
        return Peer(f"peer/{bridge}", 1, 0, "bridge", f"bridge/{bridge}")

    member = {"id": "42", "name": "eve", "role": "member"}
    world.loop.ask("route/x:one:1", Submit("k1", "do it", member, "/w"), peer=person("x:one"))
    world.host.ask("r1")
    pid = next(iter(row["id"] for row in world.loop.query("thread", world.host.request.thread)["permissions"]))
    foreign = world.loop.ask("route/x:two:1", Answer(pid, "yes", member), peer=person("x:two"))
    assert isinstance(foreign, Failed)
    assert foreign.error[1] == "foreign"
    assert isinstance(world.loop.ask("route/x:one:1", Answer(pid, "yes", member), peer=person("x:one")), Ok)
    assert [a.option for a in world.host.answers] == ["yes"]


def test_an_answer_by_nobody_known_gets_one_line(world: World) -> None:
    heard = world.listen("a")
    world.write("a", "do it")
    world.host.ask()
    (permission,) = asked(heard)
    stranger = {"id": "9", "name": "", "role": ""}
    peer = Peer("peer/b", 1, 0, "bridge", "bridge/cli:local")
    refused = world.loop.ask("route/cli:local:a", Answer(permission["id"], "yes", stranger), peer=peer)
    assert isinstance(refused, Failed)
    assert refused.error[2] == "not authorised"
    assert isinstance(world.loop.ask("route/cli:local:a", Answer(permission["id"], "yes"), peer=OWNER), Ok)
    assert words(heard) == []
