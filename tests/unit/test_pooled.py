"""Pooled actors: order, no overlap, parallelism, bounds, failures, sleep. Nothing here measures time."""

from __future__ import annotations

import queue
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pykka
import pytest

from actors.clock import ManualClock
from actors.pooled import Pool, PooledActor, ThreadActor, actor_receiver, start_logic
from actors.supervision import FailureReport
from agents_registry.errors import BusyError, from_wire
from transports.bus.api import Delivery, Receiver
from transports.bus.switch import Switch
from transports.bus.vocabulary.conversation import Ok
from transports.bus.vocabulary.lists import GetStatus

LIMIT = 10.0


@pytest.fixture
def pool() -> Iterator[Pool]:
    made = Pool(4)
    yield made
    assert made.stop(LIMIT)


class _Log(PooledActor):
    """Keeps what it gets; `seen` is set when `until` messages were handled."""

    def __init__(self, pool: Pool, until: int, **rest: Any) -> None:
        super().__init__(pool, **rest)
        self.got: list[Any] = []
        self.until = until
        self.seen = threading.Event()
        self.inside = 0
        self.overlaps = 0

    def receive(self, delivery: Delivery) -> None:
        self.inside += 1
        self.overlaps += self.inside > 1
        self.got.append(delivery.message)
        self.inside -= 1
        if len(self.got) == self.until:
            self.seen.set()


def _started(actor: PooledActor) -> pykka.ActorRef[Any]:
    actor._start_actor_loop()
    return actor.actor_ref


@pytest.mark.requires("H2.order", "H2.pooled")
def test_messages_of_each_sender_stay_in_order_and_never_overlap_with_many_senders(pool: Pool) -> None:
    switch, senders, each, actors = Switch(), 6, 300, 20
    logs = [_Log(pool, senders * each) for _ in range(actors)]
    for n, log in enumerate(logs):
        log.inbox_limit = senders * each  # type: ignore[misc]
        switch.register(f"a/{n}", actor_receiver(_started(log)))

    def produce(sender: int) -> None:
        for number in range(each):
            for n in range(actors):
                switch.send(f"a/{n}", (sender, number), sender=f"s/{sender}")

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)  # many more interleavings than usual
    try:
        threads = [threading.Thread(target=produce, args=(n,)) for n in range(senders)]
        for thread in threads:
            thread.start()
        for log in logs:
            assert log.seen.wait(LIMIT)
    finally:
        sys.setswitchinterval(before)
    for log in logs:
        assert log.overlaps == 0
        for sender in range(senders):
            assert [number for who, number in log.got if who == sender] == list(range(each))


@pytest.mark.requires("H2.pooled")
def test_two_actors_run_at_the_same_time(pool: Pool) -> None:
    meeting = threading.Barrier(2)  # passes only when both handlers are inside at once
    met = [threading.Event(), threading.Event()]

    def handler(n: int) -> Receiver:
        def receive(delivery: Delivery) -> None:
            meeting.wait(LIMIT)
            met[n].set()

        return receive

    refs = [start_logic(pool, f"a/{n}", handler(n)) for n in range(2)]
    for n, ref in enumerate(refs):
        actor_receiver(ref)(Delivery(f"a/{n}", Ok()))
    assert all(event.wait(LIMIT) for event in met)


@pytest.mark.requires("H2.pooled")
def test_ten_thousand_actors_live_on_the_pools_threads_and_all_answer(pool: Pool) -> None:
    before = threading.active_count()
    switch, count = Switch(), 10_000
    answers: queue.SimpleQueue[int] = queue.SimpleQueue()
    switch.register("me", lambda delivery: answers.put(-delivery.corr))

    def logic(delivery: Delivery) -> None:
        switch.send(delivery.sender, Ok(), sender=delivery.address, corr=-delivery.corr)

    switch.register_prefix("r/", lambda address: actor_receiver(start_logic(pool, address, logic, bus=switch)))
    for n in range(count):
        switch.send(f"r/{n}", GetStatus(), sender="me", corr=n + 1)
    assert {answers.get(timeout=LIMIT) for _ in range(count)} == set(range(1, count + 1))
    assert threading.active_count() == before


@pytest.mark.requires("H2.bounded-inbox")
def test_a_full_inbox_still_takes_the_answers_and_alarms_that_its_actor_waits_for(pool: Pool) -> None:
    entered, go, done = threading.Event(), threading.Event(), threading.Event()
    heard: list[object] = []

    class Small(PooledActor):
        inbox_limit = 2

        def receive(self, delivery: Delivery) -> None:
            entered.set()
            go.wait(LIMIT)
            heard.append(delivery.message)
            if delivery.message == "alarm":
                done.set()

    put = actor_receiver(Small.start(pool))
    put(Delivery("a", "first"))
    assert entered.wait(LIMIT)
    put(Delivery("a", 1))
    put(Delivery("a", 2))
    with pytest.raises(BusyError):
        put(Delivery("a", 3))
    put(Delivery("a", "answer", "journal", -7))
    put(Delivery("a", "alarm", "a"))
    go.set()
    assert done.wait(LIMIT)
    assert heard == ["first", 1, 2, "answer", "alarm"]


def test_a_full_inbox_refuses_and_takes_again_when_there_is_room(pool: Pool) -> None:
    entered, go, done = threading.Event(), threading.Event(), threading.Event()

    def slow(delivery: Delivery) -> None:
        entered.set()
        go.wait(LIMIT)
        if delivery.message == "last":
            done.set()

    class Small(PooledActor):
        inbox_limit = 3

        def receive(self, delivery: Delivery) -> None:
            slow(delivery)

    put = actor_receiver(Small.start(pool))
    put(Delivery("a", 0))
    assert entered.wait(LIMIT)
    for n in range(3):
        put(Delivery("a", n))
    with pytest.raises(BusyError) as caught:
        put(Delivery("a", 4))
    assert "3 messages" in caught.value.message
    go.set()
    while True:
        try:
            put(Delivery("a", "last"))
            break
        except BusyError:
            pass
    assert done.wait(LIMIT)


@pytest.mark.requires("H2.actor-failure")
@pytest.mark.parametrize("error", [ValueError("broken"), SystemExit(3), KeyboardInterrupt()], ids=lambda e: type(e).__name__)
@pytest.mark.parametrize("threaded", [False, True])
def test_a_failure_is_reported_the_asker_answered_and_actor_and_others_live_on(
    pool: Pool, error: BaseException, threaded: bool
) -> None:
    reports: queue.SimpleQueue[FailureReport] = queue.SimpleQueue()
    answers: queue.SimpleQueue[Delivery] = queue.SimpleQueue()
    switch = Switch()
    switch.register("me", answers.put)

    def receive(delivery: Delivery) -> None:
        if delivery.message == "fail":
            raise error
        switch.send(delivery.sender, Ok(), sender=delivery.address, corr=-delivery.corr)

    class Threaded(ThreadActor):
        def receive(self, delivery: Delivery) -> None:
            receive(delivery)

    bystander = start_logic(pool, "other", receive, bus=switch)
    ref: pykka.ActorRef[Any] = (
        Threaded.start(address="a", report=reports.put, bus=switch)
        if threaded
        else start_logic(pool, "a", receive, report=reports.put, bus=switch)
    )
    switch.register("a", actor_receiver(ref))
    switch.register("other", actor_receiver(bystander))
    switch.send("a", "fail", sender="me", corr=1)
    failed = answers.get(timeout=LIMIT)
    assert failed.corr == -1
    assert type(error).__name__ in from_wire(failed.message.error).message
    report = reports.get(timeout=LIMIT)
    assert (report.address, report.error, report.fatal) == ("a", error, False)
    for address in ("a", "other"):
        switch.send(address, "ask", sender="me", corr=2)
        assert answers.get(timeout=LIMIT).sender == address
    assert bystander.stop(timeout=LIMIT)
    assert ref.stop(timeout=LIMIT)


@pytest.mark.requires("H2.actor-failure")
def test_by_its_policy_an_actor_is_restarted_or_ends_with_its_failure(pool: Pool) -> None:
    reports: queue.SimpleQueue[FailureReport] = queue.SimpleQueue()
    values: queue.SimpleQueue[int] = queue.SimpleQueue()

    class Counter(PooledActor):
        on_failure_do = "restart"
        value = 0

        def receive(self, delivery: Delivery) -> None:
            self.value += 1
            if delivery.message == "fail":
                raise ValueError("broken")
            values.put(self.value)

        def restart(self, error: BaseException) -> None:
            self.value = 100

    class Frail(Counter):
        on_failure_do = "stop"

    for kind, after in ((Counter, 101), (Frail, None)):
        ref = kind.start(pool, address="a", report=reports.put)
        put = actor_receiver(ref)
        put(Delivery("a", "fail"))
        assert reports.get(timeout=LIMIT).fatal == (after is None)
        if after is not None:
            put(Delivery("a", "go on"))
            assert values.get(timeout=LIMIT) == after
        else:
            assert ref.actor_stopped.wait(LIMIT)


def test_pykkas_own_tell_ask_proxy_and_stop_keep_their_meaning(pool: Pool) -> None:
    class Plain(PooledActor):
        def on_receive(self, message: Any) -> Any:
            if message == "fail":
                raise ValueError("asked for")
            return message * 2

        def double(self, number: int) -> int:
            return number * 2

    ref = Plain.start(pool)
    assert ref.ask(4, timeout=LIMIT) == 8
    assert ref.proxy().double(3).get(timeout=LIMIT) == 6
    with pytest.raises(ValueError, match="asked for"):
        ref.ask("fail", timeout=LIMIT)
    ref.tell("fail")
    assert ref.ask(1, timeout=LIMIT) == 2
    assert ref.stop(timeout=LIMIT)
    with pytest.raises(pykka.ActorDeadError):
        ref.ask(1, timeout=LIMIT)


@pytest.mark.requires("H2.passivate")
def test_an_idle_actor_sleeps_and_the_next_message_wakes_a_new_one() -> None:
    clock = ManualClock()
    pool, switch = Pool(2, clock=clock), Switch()
    handled: queue.SimpleQueue[int] = queue.SimpleQueue()
    slept = threading.Event()
    lives = 0

    def activate(address: str) -> Receiver:
        nonlocal lives
        lives += 1
        life = lives
        ref = start_logic(
            pool, address, lambda delivery: handled.put(life), bus=switch, idle_after_s=60.0, on_sleep=slept.set
        )
        return actor_receiver(ref)

    switch.register_prefix("route/", activate)
    switch.send("route/1", Ok())
    assert handled.get(timeout=LIMIT) == 1
    clock.advance(40)
    switch.send("route/1", Ok())
    assert handled.get(timeout=LIMIT) == 1
    clock.advance(40)
    assert not slept.is_set()
    clock.advance(90)
    assert slept.wait(LIMIT)
    switch.send("route/1", Ok())
    assert handled.get(timeout=LIMIT) == 2
    assert pool.stop(LIMIT)


@pytest.mark.requires("H2.order")
def test_what_waits_behind_a_stop_reaches_the_follower_before_anything_newer() -> None:
    pool, switch = Pool(2), Switch()
    entered, go, done = threading.Event(), threading.Event(), threading.Event()
    got: list[tuple[int, int]] = []
    refs: list[pykka.ActorRef[Any]] = []

    def activate(address: str) -> Receiver:
        life = len(refs)

        def receive(delivery: Delivery) -> None:
            if life == 0:
                entered.set()
                go.wait(LIMIT)
            got.append((life, delivery.message))
            if delivery.message == 200:
                done.set()

        refs.append(start_logic(pool, address, receive, bus=switch))
        return actor_receiver(refs[-1])

    switch.register_prefix("t/", activate)
    switch.send("t/1", 0, sender="s")
    assert entered.wait(LIMIT)
    refs[0].stop(block=False)
    for number in range(1, 100):
        switch.send("t/1", number, sender="s")
    go.set()
    for number in range(100, 201):
        switch.send("t/1", number, sender="s")
    assert done.wait(LIMIT)
    assert [number for _, number in got] == list(range(201))
    assert got[0] == (0, 0)
    assert got[-1][0] == 1
    assert pool.stop(LIMIT)


def test_what_waits_for_a_thread_actor_that_ends_is_refused_not_swallowed() -> None:
    entered, go = threading.Event(), threading.Event()
    answers: queue.SimpleQueue[Delivery] = queue.SimpleQueue()
    switch = Switch()
    switch.register("me", answers.put)

    class Slow(ThreadActor):
        def receive(self, delivery: Delivery) -> None:
            entered.set()
            go.wait(LIMIT)

    ref = Slow.start(address="slow", bus=switch)
    switch.register("slow", actor_receiver(ref))
    switch.send("slow", GetStatus())
    assert entered.wait(LIMIT)
    ref.stop(block=False)
    switch.send("slow", GetStatus(), sender="me", corr=8)
    go.set()
    assert answers.get(timeout=LIMIT).corr == -8
    assert ref.actor_stopped.wait(LIMIT)
