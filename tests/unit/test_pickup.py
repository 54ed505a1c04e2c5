"""Pickup and its kin: every doorway ends in one function, a failure changes nothing, the writer moves whole."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.world import World, kinds, words
from transports.bus.vocabulary.conversation import Failed, Ok
from transports.bus.vocabulary.handover import CodeIssued, HandoverThread, PickupTerminal
from transports.bus.vocabulary.surface import Answer


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.close()


def pickup(world: World, name: str, code: str) -> str:
    """The words of the reply."""
    heard = world.listen(name)
    before = len(words(heard))
    world.write(name, f"/pickup {code}")
    return "\n".join(words(heard)[before:])


@pytest.mark.requires("B1")
def test_a_pickup_names_title_and_directory_and_the_way_back_and_starts_no_agent(world: World) -> None:
    world.session("abc-1", "/项目 1")
    said = pickup(world, "a", world.code("abc-1"))
    assert "title of abc-1" in said
    assert "/项目 1" in said
    assert "va pickup" in said
    assert world.hosts == []


@pytest.mark.requires("I4")
def test_the_next_prompt_reaches_the_very_session_that_was_picked_up(world: World) -> None:
    world.session("abc-1")
    pickup(world, "a", world.code("abc-1"))
    world.write("a", "go on")
    assert (world.host.request.session, world.host.request.start, world.host.request.cwd) == ("abc-1", "resume", "/w")


@pytest.mark.requires("B4")
@pytest.mark.parametrize("typed", ["{low}", "  {code}  ", "/pickup {code}", "{spaced}"])
def test_a_code_is_understood_as_people_type_it(world: World, typed: str) -> None:
    world.session("abc-1")
    code = world.code("abc-1")
    said = pickup(world, "a", typed.format(code=code, low=code.lower(), spaced=" ".join(code)))
    assert "Picked up" in said


@pytest.mark.requires("B5")
def test_a_directory_that_is_gone_is_a_clear_refusal_and_the_code_lives_on(world: World) -> None:
    session = world.session("abc-1", "/gone", cwd_exists=False, real="")
    code = world.code("abc-1")
    assert "/gone" in pickup(world, "a", code)
    assert world.loop.query("threads", 10, True)["threads"] == []
    session.update(cwd_exists=True, real="/gone")
    assert "Picked up" in pickup(world, "a", code)


@pytest.mark.requires("H3.checked-first", "B6")
def test_an_unknown_session_changes_nothing_and_the_code_lives_on(world: World) -> None:
    code = world.code("nobody")
    assert "has no session nobody" in pickup(world, "a", code)
    assert world.loop.query("threads", 10, True)["threads"] == []
    assert world.loop.query("workspaces", True)["workspaces"] == []
    world.session("nobody")
    assert "Picked up" in pickup(world, "a", code)


def test_an_ambiguous_id_lists_the_candidates(world: World) -> None:
    world.session("abc-1")
    world.session("abc-2")
    said = pickup(world, "a", world.code("abc"))
    assert "abc-1" in said
    assert "abc-2" in said


@pytest.mark.requires("B8")
def test_of_a_thread_with_two_sessions_the_one_that_was_handed_over_goes_on(world: World) -> None:
    world.session("old-1")
    world.session("new-2")
    pickup(world, "a", world.code("old-1"))
    world.write("a", "go on")
    world.host.event("session", {"session": "new-2", "alias_of": "old-1"})
    world.host.answer("ok")
    pickup(world, "b", world.code("old-1"))
    world.write("b", "which one?")
    assert world.host.request.session == "old-1"


@pytest.mark.requires("B9")
def test_a_host_on_another_session_is_left_alone_and_the_picked_up_one_gets_its_own(world: World) -> None:
    world.session("one")
    world.session("two")
    pickup(world, "a", world.code("one"))
    world.write("a", "busy")
    first = world.host
    pickup(world, "b", world.code("two"))
    world.write("b", "hello")
    assert world.host is not first
    assert world.host.request.session == "two"
    assert first.stopped == ""


def test_a_pickup_waits_for_the_issuing_turn_says_so_and_asks_nothing(world: World) -> None:
    world.session("abc-1")
    world.running_turns = 3
    heard = world.listen("a")
    world.write("a", f"/pickup {world.code('abc-1')}")
    assert any("Waiting for the turn" in e.get("text", "") for e in heard)
    assert words(heard) == []
    for _ in range(4):
        world.loop.pass_time(0.5)
    assert "Picked up" in words(heard)[-1]
    assert "choice" not in kinds(heard)


@pytest.mark.parametrize(("choice", "start"), [("fork", "fork"), ("go_on", "resume")])
def test_a_turn_that_still_runs_after_fifteen_seconds_is_a_question(world: World, choice: str, start: str) -> None:
    world.session("abc-1")
    world.running_turns = 10_000
    heard = world.listen("a")
    world.write("a", f"/pickup {world.code('abc-1')}")
    for _ in range(40):
        world.loop.pass_time(0.5)
    asked = next(e for e in heard if e["event"] == "choice")
    assert {o["id"] for o in asked["options"]} == {"go_on", "fork", "cancel"}
    world.loop.ask("route/cli:local:a", Answer(asked["id"], choice))
    assert "Picked up" in words(heard)[-1]
    world.write("a", "go on")
    assert world.host.request.start == start


def test_a_cancelled_question_leaves_the_code_alive(world: World) -> None:
    world.session("abc-1")
    world.running_turns = 10_000
    heard = world.listen("a")
    code = world.code("abc-1")
    world.write("a", f"/pickup {code}")
    for _ in range(40):
        world.loop.pass_time(0.5)
    asked = next(e for e in heard if e["event"] == "choice")
    world.loop.ask("route/cli:local:a", Answer(asked["id"], "cancel"))
    world.running_turns = 0
    assert "Picked up" in pickup(world, "b", code)


def test_a_store_that_only_one_window_may_write_goes_on_as_a_fork_and_says_so(world: World) -> None:
    world.session("abc-1")
    world.locked = True
    said = pickup(world, "a", world.code("abc-1", agent="codex"))
    assert "fork" in said
    world.write("a", "go on")
    assert (world.host.request.start, world.host.request.session) == ("fork", "abc-1")


def test_a_fork_names_both_ids_and_its_own_is_the_one_that_goes_on(world: World) -> None:
    world.session("abc-1")
    world.locked = True
    pickup(world, "a", world.code("abc-1", agent="codex"))
    heard = world.listen("a")
    world.automatic = False
    world.write("a", "go on")
    world.host.say_hello()
    world.host.session = "fork-9"
    world.host.event("ready", {"session": "fork-9", "start": "forked", "forked_from": "abc-1", "modes": []})
    shown = next(e for e in heard if e["event"] == "session")
    assert (shown["session"], shown["forked_from"]) == ("fork-9", "abc-1")
    world.host.answer("ok")
    issued = world.loop.ask("attacher", HandoverThread("cli:local:a"))
    assert isinstance(issued, CodeIssued)
    world.session("fork-9")
    taken = world.loop.ask("attacher", PickupTerminal(issued.code, 4242, 1))
    assert isinstance(taken, Ok)
    assert taken.data["argv"][-1] == "fork-9"


def test_of_racing_pickups_one_wins_and_every_other_hears_why(world: World) -> None:
    world.session("abc-1")
    code = world.code("abc-1")
    world.running_turns = 2
    heards = [world.listen(f"r{n}") for n in range(8)]
    for n in range(8):
        world.write(f"r{n}", f"/pickup {code}")
    for _ in range(4):
        world.loop.pass_time(0.5)
    said = [words(h)[-1] for h in heards]
    assert sum("Picked up" in s for s in said) == 1
    assert all("right now" in s for s in said if "Picked up" not in s)


def test_to_a_terminal_the_host_is_gone_before_the_command_is_given(world: World) -> None:
    world.session("abc-1")
    pickup(world, "a", world.code("abc-1"))
    world.write("a", "go on")
    world.host.answer("ok")
    host = world.host
    taken = world.loop.ask("attacher", PickupTerminal(world.code("abc-1"), 4242, 1))
    assert isinstance(taken, Ok)
    assert host.stopped
    assert taken.data["cwd"] == "/w"
    assert taken.data["argv"] == ["va", "demo-agent", "--resume", "abc-1"]
    assert taken.data["line"].startswith("cd /w && ")


def test_to_a_terminal_a_running_turn_is_waited_for_and_then_refused_with_the_code_alive(world: World) -> None:
    world.session("abc-1")
    pickup(world, "a", world.code("abc-1"))
    world.write("a", "long")
    code = world.code("abc-1")
    pending = world.loop.ask("attacher", PickupTerminal(code, 4242, 1))
    assert pending is None
    for _ in range(60):
        world.loop.pass_time(0.5)
    refused = world.loop.seen[-1].message
    assert isinstance(refused, Failed)
    assert refused.error[0] == 8
    world.host.answer("done")
    assert isinstance(world.loop.ask("attacher", PickupTerminal(code, 4243, 1)), Ok)


def test_printing_the_command_moves_nothing_and_keeps_the_code(world: World) -> None:
    world.session("abc-1")
    pickup(world, "a", world.code("abc-1"))
    world.write("a", "go on")
    world.host.answer("ok")
    code = world.code("abc-1")
    printed = world.loop.ask("attacher", PickupTerminal(code, 1, 1, keep_host=True))
    assert isinstance(printed, Ok)
    assert not world.host.stopped
    assert isinstance(world.loop.ask("attacher", PickupTerminal(code, 2, 1)), Ok)


def test_a_store_that_hangs_holds_up_no_other_chat(world: World) -> None:
    world.reader_hangs = True
    world.write("a", f"/pickup {world.code('abc-1')}")
    heard = world.listen("b")
    world.write("b", "hello")
    world.host.answer("hi")
    assert words(heard) == ["hi"]


def test_the_named_directory_and_the_recorded_one_are_both_told_when_they_differ(world: World) -> None:
    world.session("abc-1", "/real/place", cwd_same=False)
    said = pickup(world, "a", world.code("abc-1", cwd="/named"))
    assert "/named" in said
    assert "/real/place" in said


@pytest.mark.requires("H4.one-function")
def test_session_switch_ends_in_the_same_function(world: World) -> None:
    world.write("a", "hello")
    world.host.answer("hi")
    world.session("abc-1")
    heard = world.listen("a")
    world.write("a", "/session abc")
    assert "Picked up" in words(heard)[-1]
    world.write("a", "go on")
    assert world.host.request.session == "abc-1"


def test_a_pickup_without_a_possible_code_explains_what_a_code_is(world: World) -> None:
    assert "4 characters" in pickup(world, "a", "ABCDE")
    assert "look alike" in pickup(world, "a", "ABO1")


def to_terminal(world: World) -> None:
    world.session("abc-1")
    pickup(world, "a", world.code("abc-1"))
    world.write("a", "go on")
    world.host.answer("ok")
    world.living.add(4242)
    assert isinstance(world.loop.ask("attacher", PickupTerminal(world.code("abc-1"), 4242, 1)), Ok)


@pytest.mark.requires("H4.away")
def test_while_a_terminal_has_the_session_a_message_waits_and_no_second_writer_starts(world: World) -> None:
    to_terminal(world)
    heard = world.listen("a")
    world.write("a", "are you there?")
    choice = next(e for e in heard if e["event"] == "choice")
    assert [o["id"] for o in choice["options"]] == ["wait", "take_back", "fork"]
    world.loop.pass_time(world.settings.choices.expire_s + 1)
    assert len(world.hosts) == 1
    world.living.clear()
    world.loop.pass_time(4.0)
    assert len(world.hosts) == 2
    assert (world.host.request.start, world.host.request.session) == ("resume", "abc-1")


@pytest.mark.parametrize(("choice", "start"), [("take_back", "resume"), ("fork", "fork")])
def test_a_conversation_in_a_terminal_can_be_taken_back_or_forked(world: World, choice: str, start: str) -> None:
    to_terminal(world)
    heard = world.listen("a")
    world.write("a", "are you there?")
    asked = next(e for e in heard if e["event"] == "choice")
    world.loop.ask("route/cli:local:a", Answer(asked["id"], choice))
    assert world.host.request.start == start


@pytest.mark.requires("H4.away")
def test_a_terminal_that_has_ended_needs_no_question_also_after_a_restart(world: World) -> None:
    to_terminal(world)
    world.living.clear()
    world.restart()
    heard = world.listen("a")
    world.write("a", "back again")
    assert "choice" not in kinds(heard)
    assert world.host.request.start == "resume"
