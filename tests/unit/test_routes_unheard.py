"""Who counts as attached, what waits for whom, and threads without routes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.unit.world import World, kinds, words
from transports.bus.vocabulary.conversation import Failed, PeerGone
from transports.bus.vocabulary.surface import Answer, StopTurn
from transports.settings import Settings


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.close()


def shared(world: World) -> str:
    """Chats a and b on one thread, which has had a turn."""
    world.session("s1")
    for name in ("a", "b"):
        world.write(name, f"/pickup {world.code('s1')}")
    return str(world.loop.query("threads", 10, False)["threads"][0]["id"])


def status(world: World, thread: str) -> str:
    return str(next(t["status"] for t in world.loop.query("threads", 10, True)["threads"] if t["id"] == thread))


@pytest.mark.requires("M2.unheard-routes")
@pytest.mark.parametrize(("minutes", "closed"), [(50, False), (70, True)])
def test_a_terminal_without_a_listener_for_an_hour_no_longer_keeps_a_thread_open(world: World, minutes: int, closed: bool) -> None:
    thread = shared(world)
    world.loop.pass_time(minutes * 60.0)
    heard = world.listen("a")
    world.write("a", "/close")
    assert status(world, thread) == ("closed" if closed else "open")
    assert ("Conversation closed" in words(heard)[-1]) == closed
    told = [e["text"] for e in world.listen("b") if e["event"] == "notice"]
    assert any("closed the conversation" in text for text in told) == closed


@pytest.mark.requires("M2.unheard-routes")
def test_a_terminal_that_listens_in_silence_for_hours_counts(world: World) -> None:
    thread = shared(world)
    world.listen("b")
    for _ in range(10):
        world.loop.pass_time(1200.0)
    world.write("a", "/close")
    assert status(world, thread) == "open"


@pytest.mark.requires("M2.unheard-routes")
def test_the_hour_begins_when_the_listener_leaves(world: World) -> None:
    thread = shared(world)
    world.listen("b")
    for _ in range(4):
        world.loop.pass_time(1000.0)
    world.loop.switch.send("route/cli:local:b", PeerGone("peer/listen-b"))
    world.loop.run()
    world.loop.pass_time(3000.0)
    world.write("a", "/close")
    assert status(world, thread) == "open"


@pytest.mark.requires("M2.unheard-routes")
def test_a_chat_of_a_bridge_counts_however_long_it_is_silent(world: World) -> None:
    thread = shared(world)
    world.loop.record(["attach", "telegram:bot:1", thread, 0, world.loop.clock.now()], ["detach", "cli:local:b", 1.0])
    world.loop.pass_time(90000.0)
    world.write("a", "/close")
    assert status(world, thread) == "open"


@pytest.mark.requires("M2.thread-without-routes")
def test_a_thread_without_routes_ends_its_turn_keeps_its_output_and_its_host_stops_and_it_comes_back_at_a_pickup(world: World) -> None:
    heard = world.listen("a")
    world.write("a", "long")
    host = world.host
    world.loop.ask("attacher", _new("cli:local:a"), peer=None)
    host.answer("the end of it")
    assert words(heard) == ["the end of it"]
    world.loop.pass_time(5.0)
    assert host.stopped == "idle"
    world.session(host.session)
    assert "Picked up" in _picked(world, "b", host.session)
    world.write("b", "and now")
    assert (world.host.request.thread, world.host.request.session) == (host.request.thread, host.session)
    assert world.host.prompts[-1].blocks[0]["text"] == "and now"


def _picked(world: World, chat: str, session: str) -> str:
    heard = world.listen(chat)
    world.write(chat, f"/pickup {world.code(session)}")
    return words(heard)[-1]


def _new(route: str) -> Any:
    from transports.bus.vocabulary.handover import NewThread

    return NewThread(route, cwd="/elsewhere")


@pytest.mark.requires("M2.stop-counts")
def test_a_stop_counts_and_leaves_the_prompts_of_the_other_chats(world: World) -> None:
    shared(world)
    heard_b = world.listen("b")
    for name, text in (("a", "one"), ("a", "two"), ("b", "three"), ("a", "four")):
        world.write(name, text)
    assert world.loop.ask("route/cli:local:a", StopTurn()).data == {"cancelled": 1, "dropped": 2}
    world.host.end("cancelled")
    assert world.host.prompts[-1].blocks[0]["text"] == "three"
    world.host.answer("three it is")
    assert words(heard_b)[-1] == "three it is"
    assert world.loop.ask("route/cli:local:a", StopTurn()).data == {"cancelled": 0, "dropped": 0}


@pytest.mark.requires("M2.queue-limits")
def test_a_full_lane_refuses_with_a_word_says_places_and_takes_again_when_there_is_room(tmp_path: Path) -> None:
    base = Settings()
    world = World(tmp_path, replace(base, routes=replace(base.routes, max_queue=2)))
    heard = world.listen("a")
    answers = [world.write("a", f"message {n}") for n in range(4)]
    assert [isinstance(one, Failed) for one in answers] == [False, False, False, True]
    assert answers[-1].error[1] == "queue_full"
    assert [e["position"] for e in heard if e["event"] == "queued"] == [1, 2]
    world.host.answer("done")
    assert not isinstance(world.write("a", "message 5"), Failed)
    for _ in range(3):
        world.host.answer("done")
    assert [p.blocks[0]["text"] for p in world.host.prompts] == ["message 0", "message 1", "message 2", "message 5"]
    world.close()


@pytest.mark.requires("M2.listeners-gone")
def test_a_turn_goes_on_when_its_listeners_have_gone_and_who_comes_back_sees_it_all_once(world: World) -> None:
    world.listen("a")
    world.write("a", "long")
    world.host.say("while you listened", 0)
    world.loop.switch.send("route/cli:local:a", PeerGone("peer/listen-a"))
    world.loop.run()
    world.loop.switch.unregister("peer/listen-a")
    world.host.say("while you were away", 1)
    world.host.end()
    world.shown.clear()
    heard = world.listen("a")
    assert words(heard)[-1] == "while you were away"
    assert words(heard).count("while you were away") == 1
    assert kinds(heard)[-1] == "done"


@pytest.mark.requires("M2.choices-in-turn")
@pytest.mark.parametrize("command", ["/new", "/close", "/workspace /other", "/agent demo", "/session s9", "/switch host demo", "/pickup CODE"])
@pytest.mark.parametrize("option", ["wait", "stop", "drop"])
def test_what_changes_the_binding_during_the_own_turn_waits_stops_it_or_is_dropped(world: World, command: str, option: str) -> None:
    world.session("s9")
    heard = world.listen("a")
    world.write("a", "long")
    asking = world.host
    world.write("a", command.replace("CODE", world.code("s9")))
    choice = next(e for e in heard if e["event"] == "choice")
    assert [o["id"] for o in choice["options"]] == ["wait", "stop", "drop"]
    world.loop.ask("route/cli:local:a", Answer(choice["id"], option))
    route = world.loop.query("route", "cli:local:a")["route"]
    assert route["thread"] == asking.request.thread
    assert bool(asking.cancelled) == (option == "stop")
    before = len(words(heard))
    asking.end("cancelled" if option == "stop" else "end_turn")
    if option == "drop":
        assert "Dropped" in words(heard)[-1]
        assert world.loop.query("route", "cli:local:a")["route"]["thread"] == asking.request.thread
    else:
        assert len(words(heard)) > before
        assert world.loop.query("route", "cli:local:a")["route"]["thread"] != asking.request.thread
