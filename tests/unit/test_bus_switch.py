"""Addresses, refusals, activation: the switch of one process."""

from __future__ import annotations

import threading

import pytest

from agents_registry.errors import BusyError, from_wire
from transports.bus.api import Delivery, Receiver
from transports.bus.switch import Passivated, Switch
from transports.bus.vocabulary.conversation import Failed, Ok
from transports.bus.vocabulary.lists import GetStatus


def test_a_message_reaches_the_receiver_with_all_that_came_with_it() -> None:
    switch, got = Switch(), list[Delivery]()
    switch.register("a", got.append)
    switch.send("a", Ok(), sender="b", corr=3)
    assert got == [Delivery("a", Ok(), "b", 3, None)]


def test_a_question_to_nobody_is_answered_and_a_statement_to_nobody_is_counted() -> None:
    switch, got = Switch(), list[Delivery]()
    switch.register("me", got.append)
    switch.send("nobody", GetStatus(), sender="me", corr=9)
    switch.send("nobody", GetStatus(), sender="me")
    (answer,) = got
    assert (answer.corr, answer.sender) == (-9, "nobody")
    assert from_wire(answer.message.error).code == "no_receiver"
    assert switch.counters() == {"unknown": 2, "unanswered": 1}


def test_an_answer_to_nobody_is_never_answered() -> None:
    switch, got = Switch(), list[Delivery]()
    switch.register("me", got.append)
    switch.send("nobody", Ok(), sender="me", corr=-9)
    switch.send("nobody", Failed([1, "x", "y", ""]), sender="me", corr=-9)
    assert got == []


@pytest.mark.requires("H2.bounded-inbox")
def test_a_full_receiver_refuses_the_question_and_the_asker_hears_busy() -> None:
    switch, got = Switch(), list[Delivery]()

    def full(delivery: Delivery) -> None:
        raise BusyError("full.", hint="Wait.")

    switch.register("full", full)
    switch.register("me", got.append)
    switch.send("full", GetStatus(), sender="me", corr=1)
    assert isinstance(from_wire(got[0].message.error), BusyError)
    assert switch.counters()["busy"] == 1


def test_two_receivers_for_one_address_are_a_programming_error() -> None:
    switch = Switch()
    switch.register("a", lambda delivery: None)
    with pytest.raises(ValueError, match="two receivers"):
        switch.register("a", lambda delivery: None)


def test_the_longest_prefix_activates_and_only_once_among_racing_senders() -> None:
    switch, made, got = Switch(), list[str](), list[Delivery]()
    barrier = threading.Barrier(8)

    def activate(address: str) -> Receiver:
        made.append(address)
        return got.append

    switch.register_prefix("", lambda address: None)
    switch.register_prefix("route/", activate)

    def send(n: int) -> None:
        barrier.wait(10)
        switch.send("route/x", Ok({"n": n}))

    threads = [threading.Thread(target=send, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert made == ["route/x"]
    assert sorted(delivery.message.data["n"] for delivery in got) == list(range(8))


def test_a_receiver_that_went_to_sleep_is_woken_by_the_next_message() -> None:
    switch, got, lives = Switch(), list[Delivery](), list[int]()

    def asleep(delivery: Delivery) -> None:
        raise Passivated

    def activate(address: str) -> Receiver:
        lives.append(1)
        return asleep if len(lives) == 1 else got.append

    switch.register_prefix("t/", activate)
    switch.send("t/1", Ok())
    assert len(got) == 1
    assert len(lives) == 2


def test_an_activator_that_always_sleeps_ends_in_a_refusal_not_in_a_loop() -> None:
    switch, got = Switch(), list[Delivery]()

    def asleep(delivery: Delivery) -> None:
        raise Passivated

    switch.register_prefix("t/", lambda address: asleep)
    switch.register("me", got.append)
    switch.send("t/1", GetStatus(), sender="me", corr=2)
    assert got[0].corr == -2


def test_what_has_no_receiver_here_is_forwarded_where_a_forwarder_carries_it() -> None:
    carried: list[Delivery] = []
    switch, got = Switch(forward=lambda d: not carried and (carried.append(d) or True)), list[Delivery]()
    switch.register("me", got.append)
    switch.send("far", GetStatus(), sender="me", corr=4)
    assert [d.address for d in carried] == ["far"]
    switch.send("far", GetStatus(), sender="me", corr=5)
    assert got[0].corr == -5
