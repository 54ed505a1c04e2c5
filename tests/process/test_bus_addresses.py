"""The same actor, in this process or in another one: who asks does not see the difference."""

from __future__ import annotations

import queue
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from actors.clock import SystemClock
from actors.handover import HandoverStore
from actors.pooled import Pool, actor_receiver, start_logic
from agents_registry.errors import from_wire
from tests.process.bus_rig import LIMIT, SECRET, peer, rig
from transports.bus.api import Delivery
from transports.bus.switch import Switch
from transports.bus.vocabulary.conversation import Failed
from transports.bus.vocabulary.handover import ClaimCode, IssueCode, SettleClaim


@contextmanager
def _here(sockets: Path) -> Iterator[Switch]:
    switch, pool = Switch(), Pool(2)
    letters = iter("ABCD" * 100)
    store = HandoverStore(
        switch, SystemClock(), random_letter=lambda: next(letters), ttl_s=120.0, max_misses=5, lockout_s=600.0
    )
    switch.register("handover", actor_receiver(start_logic(pool, "handover", store.receive, bus=switch)))
    yield switch
    assert pool.stop(LIMIT)


@contextmanager
def _elsewhere(sockets: Path) -> Iterator[Switch]:
    with rig(sockets) as made, peer("store", str(made.path), "handover", SECRET.hex()) as store:
        assert store.line() == {"state": "up"}
        yield made.switch


@pytest.mark.requires("H2.addresses")
@pytest.mark.parametrize("where", [_here, _elsewhere], ids=["in this process", "in another process"])
def test_the_handover_store_answers_the_same_way_wherever_it_runs(tmp_path: Path, where: Any) -> None:
    sockets = tmp_path / "s"
    sockets.mkdir(mode=0o700)
    with where(sockets) as switch:
        answers: queue.SimpleQueue[Delivery] = queue.SimpleQueue()
        switch.register("asker", answers.put)
        numbers = iter(range(1, 100))

        def ask(message: Any) -> Any:
            number = next(numbers)
            switch.send("handover", message, sender="asker", corr=number)
            answer = answers.get(timeout=LIMIT)
            assert (answer.sender, answer.corr, answer.address) == ("handover", -number, "asker")
            return answer.message

        code = ask(IssueCode("demo", "s-1", "/work")).code
        assert code == "ABCD"
        now = SystemClock().monotonic()
        claimed = ask(ClaimCode(code, "cli:local:a", "me", now))
        assert claimed.payload["session"] == "s-1"
        late = ask(ClaimCode(code, "cli:local:b", "you", now))
        assert from_wire(late.error).exit_code == 8
        switch.send("handover", SettleClaim(code, "cli:local:a", True), sender="asker")
        gone = ask(ClaimCode(code, "cli:local:b", "you", now))  # in order after the settling
        assert isinstance(gone, Failed)
        assert from_wire(gone.error).exit_code == 6
