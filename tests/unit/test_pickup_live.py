"""Picking up a session that a process has open: its issuer's window is no question, another one's is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.unit.world import World, kinds, words
from transports.bus.api import Delivery
from transports.bus.vocabulary.conversation import Ok
from transports.bus.vocabulary.handover import CodeIssued, IssueCode
from transports.bus.vocabulary.surface import Answer


class LiveWorld(World):
    """`live` is what the reader says of the session's open windows, `locked` whether one of them alone may write."""

    live: dict[str, Any]

    def _reader(self, delivery: Delivery) -> None:
        self.locks_asked = getattr(self, "locks_asked", 0) + 1
        request = delivery.message
        if request.op == "resolve" and request.args.get("writer") and not self.reader_hangs:
            self.reads.append(request)
            matches = [{**s, "writer": self.writer()} for s in self.sessions if s["id"].startswith(request.args["wanted"])]
            self.loop.switch.send(delivery.sender, Ok({"matches": matches}), sender="reader", corr=-delivery.corr)
        elif request.op == "writer":
            self.loop.switch.send(delivery.sender, Ok(self.writer()), sender="reader", corr=-delivery.corr)
        else:
            super()._reader(delivery)

    def writer(self) -> dict[str, Any]:
        self.running_turns -= 1
        return {"running": self.running_turns >= 0, "locked": self.locked, "live": dict(self.live)}

    def issued(self, session: str, agent: str, *above: int) -> str:
        issuer = {"pid": above[0], "above": list(above)} if above else {}
        answer = self.loop.ask("handover", IssueCode(agent, session, "/w", issuer=issuer))
        assert isinstance(answer, CodeIssued)
        return answer.code


@pytest.fixture
def world(tmp_path: Path) -> Iterator[LiveWorld]:
    made = LiveWorld(tmp_path)
    made.live = {"open": True, "pids": [777], "window": True, "daemon": "", "joinable": False}
    made.session("abc-1")
    yield made
    made.close()


def asked(world: LiveWorld, code: str) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    heard = world.listen("a")
    world.write("a", f"/pickup {code}")
    return heard, next(e for e in heard if e["event"] == "choice")


def options(event: dict[str, Any]) -> list[str]:
    return [o["id"] for o in event["options"]]


def answer(world: LiveWorld, event: dict[str, Any], option: str) -> None:
    world.loop.ask("route/cli:local:a", Answer(event["id"], option))


def test_the_window_that_handed_over_is_no_question(world: LiveWorld) -> None:
    heard = world.listen("a")
    world.write("a", f"/pickup {world.issued('abc-1', 'claude', 900, 777)}")
    assert "choice" not in kinds(heard)
    assert "Picked up" in words(heard)[-1]


@pytest.mark.requires("M1.live-elsewhere")
@pytest.mark.parametrize("above", [(), (900, 901)])
@pytest.mark.parametrize(("choice", "start"), [("go_on", "resume"), ("fork", "fork")])
def test_a_session_that_is_open_in_another_window_is_a_question(
    world: LiveWorld, choice: str, start: str, above: tuple[int, ...]
) -> None:
    heard, event = asked(world, world.issued("abc-1", "claude", *above))
    assert "777" in event["title"]
    assert options(event) == ["go_on", "fork", "cancel"]
    answer(world, event, choice)
    assert "Picked up" in words(heard)[-1]
    assert "777" in words(heard)[-1]
    world.write("a", "go on")
    assert (world.host.request.start, world.host.request.session) == (start, "abc-1")


@pytest.mark.requires("M1.live-elsewhere")
def test_a_cancelled_pickup_of_an_open_session_changes_nothing_and_the_code_lives_on(world: LiveWorld) -> None:
    code = world.issued("abc-1", "claude")
    heard, event = asked(world, code)
    answer(world, event, "cancel")
    assert "777" in words(heard)[-1]
    assert world.loop.query("threads", 10, True)["threads"] == []
    world.live = {}
    world.write("a", f"/pickup {code}")
    assert "Picked up" in words(heard)[-1]


@pytest.mark.requires("M1.live-elsewhere")
def test_a_codex_window_that_did_not_hand_over_is_forked_waited_for_or_joined_but_never_written_beside(world: LiveWorld) -> None:
    world.locked = True
    _, event = asked(world, world.issued("abc-1", "codex"))
    assert options(event) == ["fork", "wait", "cancel"]
    answer(world, event, "cancel")
    world.live["joinable"] = True
    heard, _ = asked(world, world.issued("abc-1", "codex"))
    event = [e for e in heard if e["event"] == "choice"][-1]
    assert options(event) == ["join", "fork", "wait", "cancel"]
    answer(world, event, "join")
    assert "joined" in words(heard)[-1]


@pytest.mark.requires("M1.lock")
def test_who_chose_to_wait_is_neither_asked_again_nor_joined(world: LiveWorld) -> None:
    world.locked = True
    world.live["joinable"] = True
    heard, event = asked(world, world.issued("abc-1", "codex"))
    answer(world, event, "wait")
    assert "waits until that window is closed" in words(heard)[-1]
    world.write("a", "go on")
    for _ in range(60):
        world.loop.pass_time(2.0)
    assert world.hosts == []
    assert kinds(heard).count("choice") == 1
    world.locked = False
    world.loop.pass_time(2.0)
    assert (world.host.request.start, world.host.request.session) == ("resume", "abc-1")


def test_the_issuing_codex_window_is_joined_where_it_can_be_and_forked_where_not(world: LiveWorld) -> None:
    world.locked = True
    heard = world.listen("a")
    world.write("a", f"/pickup {world.issued('abc-1', 'codex', 777)}")
    assert "fork" in words(heard)[-1]
    world.session("xyz-2")
    world.live["joinable"] = True
    world.write("b", f"/pickup {world.issued('xyz-2', 'codex', 777)}")
    assert "joined" in words(world.listen("b"))[-1]


@pytest.mark.requires("M1.lock")
def test_a_lock_that_a_closed_window_left_is_waited_for_and_the_reply_says_so(world: LiveWorld) -> None:
    world.locked = True
    world.live = {"open": True, "pids": [700], "window": False, "daemon": "/s", "joinable": True}
    heard = world.listen("a")
    world.write("a", f"/pickup {world.issued('abc-1', 'codex', 700)}")
    assert "about a minute" in words(heard)[-1]
    assert "choice" not in kinds(heard)


def picked_up_behind_a_lock(world: LiveWorld, *, window: bool) -> list[dict[str, Any]]:
    world.locked = True
    world.live = {"open": True, "pids": [700], "window": False, "daemon": "/s", "joinable": False}
    heard = world.listen("a")
    world.write("a", f"/pickup {world.issued('abc-1', 'codex', 700)}")
    world.live["window"] = window
    world.write("a", "go on")
    return heard


def texts(heard: list[dict[str, Any]]) -> str:
    return "\n".join(str(e.get("text", "")) for e in heard)


@pytest.mark.requires("M1.lock")
def test_the_first_message_waits_for_the_lock_with_progress_and_then_goes_to_the_same_session(world: LiveWorld) -> None:
    heard = picked_up_behind_a_lock(world, window=False)
    for _ in range(16):
        world.loop.pass_time(2.0)
    assert world.hosts == []
    assert texts(heard).count("Waiting for the session") == 2
    assert "(20 s so far)" in texts(heard)
    world.locked = False
    world.loop.pass_time(2.0)
    assert (world.host.request.start, world.host.request.session) == ("resume", "abc-1")
    assert [b["text"] for b in world.host.prompts[-1].blocks] == ["go on"]


@pytest.mark.requires("M1.lock")
@pytest.mark.parametrize("choice", ["fork", "cancel", "wait"])
def test_a_lock_of_an_open_window_is_a_question_before_the_message_is_sent(world: LiveWorld, choice: str) -> None:
    heard = picked_up_behind_a_lock(world, window=True)
    event = next(e for e in heard if e["event"] == "choice")
    assert options(event) == ["wait", "fork", "cancel"]
    answer(world, event, choice)
    if choice == "fork":
        assert world.host.request.start == "fork"
    elif choice == "cancel":
        assert world.hosts == []
        assert "Not sent" in words(heard)[-1]
    else:
        for _ in range(60):
            world.loop.pass_time(2.0)
        assert world.hosts == []
        assert kinds(heard).count("choice") == 1
        world.locked = False
        world.loop.pass_time(2.0)
        assert world.host.request.start == "resume"


@pytest.mark.requires("M1.join")
def test_a_window_that_can_be_joined_is_joined_also_when_the_host_comes_back(world: LiveWorld) -> None:
    heard = picked_up_behind_a_lock(world, window=False)
    world.live.update(window=True, joinable=True)
    world.loop.pass_time(2.0)
    assert world.host.request.start == "join"
    world.host.answer("one")
    world.host.die()
    world.write("a", "again")
    assert world.host.request.start == "join"
    world.host.answer("two")
    world.host.die()
    world.locked = False
    world.write("a", "and again")
    assert world.host.request.start == "resume"
    assert "choice" not in kinds(heard)
