"""Who listens to a chat: what they missed is fetched again, and one that went before it was answered holds nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from actors.listeners import Listeners
from agents_registry.errors import BusyError
from tests.unit.world import World
from transports.bus.vocabulary.conversation import Failed, Ok, PeerGone
from transports.bus.vocabulary.storage import Posted
from transports.bus.vocabulary.surface import Listen

ROUTE = "route/cli:local:a"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.close()


def test_a_listener_that_went_before_it_was_answered_does_not_hold_the_chat(world: World) -> None:
    world.write("a", "/help")
    world.loop.switch.send(ROUTE, Listen(), sender="peer/9", corr=900)
    world.loop.switch.send(ROUTE, PeerGone("peer/9"), sender="supervisor")
    world.loop.run()
    assert isinstance(world.loop.ask(ROUTE, Listen()), Ok)


def test_of_two_listeners_that_ask_at_once_the_second_is_refused(world: World) -> None:
    world.write("a", "/help")
    world.loop.switch.send(ROUTE, Listen(), sender="peer/9", corr=900)
    second = world.loop.ask(ROUTE, Listen())
    assert isinstance(second, Failed)
    assert second.error[1] == "listener_taken"


def test_a_page_that_could_not_be_read_is_asked_for_again_with_the_next_event() -> None:
    shown: list[int] = []
    pages: list[object] = [Failed(BusyError("the journal is busy.").to_wire())]

    def fetch(after: int, then: object) -> None:
        event = {"seq": 1, "turn": "t", "thread": "wt_1", "body": {"event": "notice", "text": "one"}}
        answer = pages.pop(0) if pages else Ok({"events": [event] if after < 1 else []})
        then(answer)  # type: ignore[operator]

    def send(peer: str, item: object) -> None:
        shown.append(item.seq)  # type: ignore[attr-defined]

    listeners = Listeners("cli:local:a", send, fetch, lambda turn: "")
    listeners.listen("peer/1", 10, True, True, 0)
    assert shown == []
    listeners.post(Posted(1, "wt_1", "t", "notice", {"event": "notice", "text": "one"}, "", "", 0.0))
    assert shown == [1]
