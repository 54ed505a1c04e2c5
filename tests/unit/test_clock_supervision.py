"""Time by hand and for real, and when to start a dead child again."""

from __future__ import annotations

import queue
import random
import threading

import pytest

from actors.clock import ManualClock, SystemClock
from actors.supervision import FailureReport, RestartPolicy


def test_manual_timers_run_in_the_order_of_their_times_and_those_they_set_too() -> None:
    clock, ran = ManualClock(), list[str]()
    clock.call_later(2, lambda: ran.append("two"))
    clock.call_later(1, lambda: (ran.append("one"), clock.call_later(0.5, lambda: ran.append("one and a half")))[0])
    cancelled = clock.call_later(1.5, lambda: ran.append("never"))
    cancelled.cancel()
    clock.advance(0.9)
    assert ran == []
    clock.advance(5)
    assert ran == ["one", "one and a half", "two"]
    assert (clock.monotonic(), clock.pending()) == (5.9, 0)


def test_real_timers_run_in_order_a_broken_one_stops_none_and_a_cancelled_one_never_runs() -> None:
    clock = SystemClock()
    ran: queue.SimpleQueue[str] = queue.SimpleQueue()
    clock.call_later(0.02, lambda: ran.put("second"))
    clock.call_later(0.0, lambda: [][0])
    clock.call_later(0.01, lambda: ran.put("first"))
    cancelled = clock.call_later(0.015, lambda: ran.put("never"))
    cancelled.cancel()
    assert [ran.get(timeout=10) for _ in range(2)] == ["first", "second"]
    clock.close()
    clock.call_later(0.0, lambda: ran.put("after close"))
    assert ran.empty()


def test_thousands_of_cancelled_timers_do_not_pile_up() -> None:
    clock = SystemClock()
    for _ in range(10_000):
        clock.call_later(3600, lambda: None).cancel()
    assert len(clock._heap.entries) < 200
    done = threading.Event()
    clock.call_later(0, done.set)
    assert done.wait(10)
    clock.close()


@pytest.mark.requires("H2.restart-policy")
def test_a_crash_loop_backs_off_and_then_gives_up() -> None:
    policy, at, delays = RestartPolicy(rng=random.Random(1)), 0.0, list[float]()
    while (delay := policy.next_delay(at, at + 0.1)) is not None:
        delays.append(delay)
        at += 0.1 + delay
    assert len(delays) == 8
    for number, delay in enumerate(delays):
        ceiling = min(30.0, 0.2 * 2**number)
        assert ceiling / 2 <= delay <= ceiling


@pytest.mark.requires("H2.restart-policy")
def test_a_stable_run_and_a_persons_wish_forget_the_past() -> None:
    policy = RestartPolicy(rng=random.Random(1))
    for _ in range(5):
        policy.next_delay(0.0, 0.1)
    later = policy.next_delay(1.0, 61.0)
    assert later is not None
    assert later <= 0.2
    for _ in range(8):
        policy.next_delay(61.0, 61.1)
    assert policy.next_delay(61.0, 61.1) is None
    policy.reset()
    assert policy.next_delay(61.0, 61.1) is not None


@pytest.mark.requires("H2.reasons")
def test_a_report_says_who_what_and_where() -> None:
    try:
        raise ValueError("broken")
    except ValueError as error:
        text = FailureReport("route/x", error).text()
    assert text.startswith("route/x failed: ValueError: broken at test_clock_supervision.py:")
