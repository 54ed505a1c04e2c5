"""The switch of one process: which receiver stands behind which address.

Order: a receiver only puts a delivery into an inbox, on the caller's thread; so two sends of one sender to one
address arrive in order, and different addresses do not wait on one another.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from agents_registry.errors import NotFoundError, VibeAroundError
from transports.bus.api import Delivery, Peer, Receiver
from transports.bus.vocabulary.conversation import Failed

Forward = Callable[[Delivery], bool]


class Passivated(Exception):
    """Raised by a receiver whose actor has gone to sleep: the switch asks the prefix for a new one and tries again."""


class Switch:
    """Implements `api.Bus`; thread-safe.

    `forward`: asked for every address that has no receiver here; returns False when it cannot carry it either. A
    process that is not the supervisor hands its `BusClient.forward` in, and its actors need not know where they are.
    """

    def __init__(self, *, forward: Forward | None = None) -> None:
        self._receivers: dict[str, Receiver] = {}
        self._prefixes: list[tuple[str, Callable[[str], Receiver | None]]] = []
        self._lock = threading.RLock()
        self._count_lock = threading.Lock()
        self._forward = forward
        self._counts: Counter[str] = Counter()

    def send(self, address: str, message: Any, *, sender: str = "", corr: int = 0, peer: Peer | None = None) -> None:
        delivery = Delivery(address, message, sender, corr, peer)
        for _ in range(8):  # a sleeper can wake and sleep again between look-up and put; eight times in a row is a defect
            receiver = self._receivers.get(address)
            if receiver is None and corr >= 0:  # nobody is woken for an answer: who asked is no more
                receiver = self._activate(address)
            if receiver is None:
                if self._forward is not None and self._forward(delivery):
                    return
                self._refuse(delivery, "unknown", _nobody(address))
                return
            try:
                receiver(delivery)
                return
            except Passivated:
                self._forget(address, receiver)
            except VibeAroundError as error:
                self._refuse(delivery, error.code, error)
                return
        self._refuse(delivery, "unknown", _nobody(address))

    def register(self, address: str, receiver: Receiver) -> None:
        with self._lock:
            if address in self._receivers:
                raise ValueError(f"two receivers for the bus address {address!r}")
            self._receivers[address] = receiver

    def unregister(self, address: str) -> None:
        with self._lock:
            self._receivers.pop(address, None)

    def register_prefix(self, prefix: str, activate: Callable[[str], Receiver | None]) -> None:
        with self._lock:
            if any(known == prefix for known, _ in self._prefixes):
                raise ValueError(f"two activators for the bus prefix {prefix!r}")
            self._prefixes.append((prefix, activate))
            self._prefixes.sort(key=lambda entry: -len(entry[0]))

    def succeed(self, address: str, receiver: Receiver, backlog: Sequence[Delivery]) -> None:
        """`receiver` has ended with messages waiting: they go first to the one that follows it, before any new message
        finds that one, so that the order of each sender is kept. Without a follower they are refused one by one."""
        with self._lock:
            self._forget(address, receiver)
            follower = self._receivers.get(address) or self._make(address)
            for delivery in backlog:
                try:
                    if follower is None:
                        raise _nobody(address)
                    follower(delivery)
                except Passivated:
                    self._refuse(delivery, "unknown", _nobody(address))
                except VibeAroundError as error:
                    self._refuse(delivery, error.code, error)
            if follower is not None:
                self._receivers.setdefault(address, follower)

    def known(self, address: str) -> bool:
        """Whether a receiver stands behind the address now (nothing is activated)."""
        return address in self._receivers

    def addresses(self, prefix: str = "") -> list[str]:
        """The registered addresses that start with `prefix`."""
        with self._lock:
            return [address for address in self._receivers if address.startswith(prefix)]

    def counters(self) -> dict[str, int]:
        """How many messages were refused, by the code of the refusal ("unknown", "busy", …), and how many of those
        could not be answered because nobody waits ("unanswered")."""
        with self._count_lock:
            return dict(self._counts)

    def _activate(self, address: str) -> Receiver | None:
        with self._lock:  # under the lock, so that two first messages make one actor
            receiver = self._receivers.get(address)
            if receiver is None:
                receiver = self._make(address)
                if receiver is not None:
                    receiver = self._receivers.setdefault(address, receiver)
            return receiver

    def _make(self, address: str) -> Receiver | None:
        for prefix, activate in self._prefixes:
            if address.startswith(prefix):
                receiver = activate(address)
                return self._receivers.get(address) or receiver  # an activator may register by itself
        return None

    def _forget(self, address: str, receiver: Receiver) -> None:
        with self._lock:
            if self._receivers.get(address) == receiver:  # bound methods are equal, not identical
                del self._receivers[address]

    def _refuse(self, delivery: Delivery, code: str, error: VibeAroundError) -> None:
        answerable = delivery.corr > 0 and bool(delivery.sender)  # a negative one is an answer itself
        with self._count_lock:
            self._counts[code] += 1
            if not answerable:
                self._counts["unanswered"] += 1
        if answerable:
            self.send(delivery.sender, Failed(error.to_wire()), sender=delivery.address, corr=-delivery.corr)


def _nobody(address: str) -> VibeAroundError:
    return NotFoundError(
        f"nothing answers at {address!r}.",
        hint="It may have ended or never started: look at `va status`.",
        code="no_receiver",
    )
