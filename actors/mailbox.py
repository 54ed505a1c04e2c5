"""What every actor's logic shares: asking others by address with a limit, and answering.

An `ask` never blocks: the continuation runs in a later delivery, on the actor's own turn. A request that is not
answered in time continues with `Failed(busy)`; a late answer is dropped.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from typing import Any, Protocol

from agents_registry.errors import BusyError, VibeAroundError
from transports.bus.api import Bus, Delivery, Peer
from transports.bus.codec import message
from transports.bus.vocabulary.conversation import Failed

Continue = Callable[[Any], None]

_CORRELATIONS = itertools.count(random.randrange(1, 1 << 20))


@message("timer")
class Timer:
    """An actor's own alarm, delivered like any message so that it runs on the actor's turn."""

    name: str
    generation: int = 0


@message("now")
class Now:
    """An actor's word to itself: run what `later` kept."""


class _Nothing:
    def cancel(self) -> None:
        """Nothing is armed."""


class Cancellable(Protocol):
    def cancel(self) -> None: ...


class Clock(Protocol):
    """`now`: seconds since the epoch; `monotonic`: seconds that never jump; `call_later`: on a thread of the clock."""

    def now(self) -> float: ...
    def monotonic(self) -> float: ...
    def call_later(self, delay: float, fn: Callable[[], None]) -> Cancellable: ...


class Mailbox:
    """Base of an actor's plain logic class. `receive` is called with one delivery at a time."""

    def __init__(self, address: str, bus: Bus, clock: Clock) -> None:
        self.address = address
        self.bus = bus
        self.clock = clock
        self._pending: dict[int, tuple[Continue, Cancellable]] = {}
        self._timers: dict[str, tuple[int, Cancellable]] = {}
        self._generation = 0

    # --- to be given by the actor ---

    def handle(self, delivery: Delivery) -> None:
        """One message that is neither an answer nor a timer."""
        raise VibeAroundError(f"{self.address} has no handler.")

    def alarm(self, name: str) -> None:
        """A timer set with `set_timer` is due."""

    # --- the shared part ---

    def receive(self, delivery: Delivery) -> None:
        if isinstance(delivery.message, Timer) and delivery.sender == self.address:
            timer = delivery.message
            known = self._timers.get(timer.name)
            if known is not None and known[0] == timer.generation:
                del self._timers[timer.name]
                self.alarm(timer.name)
            return
        if delivery.corr < 0:
            pending = self._pending.pop(-delivery.corr, None)
            if pending is not None:
                pending[1].cancel()
                pending[0](delivery.message)
            return
        try:
            self.handle(delivery)
        except VibeAroundError as error:
            self.fail(delivery, error)

    def ask(
        self, address: str, msg: Any, then: Continue, *, limit_s: float = 30.0, peer: Peer | None = None
    ) -> None:
        """`peer`: on whose behalf, when the asker only passes a question on."""
        corr = next(_CORRELATIONS) & 0xFFFFFFFF or 1

        def expired() -> None:
            late = BusyError(f"{address} did not answer within {limit_s:g} seconds.", hint="Try again; see `va status`.")
            self.bus.send(self.address, Failed(late.to_wire()), sender=address, corr=-corr)

        self._pending[corr] = (then, self.clock.call_later(limit_s, expired))
        self.bus.send(address, msg, sender=self.address, corr=corr, peer=peer)

    def tell(self, address: str, msg: Any) -> None:
        self.bus.send(address, msg, sender=self.address)

    def reply(self, delivery: Delivery, msg: Any) -> None:
        if delivery.sender and delivery.corr > 0:
            self.bus.send(delivery.sender, msg, sender=self.address, corr=-delivery.corr)

    def fail(self, delivery: Delivery, error: VibeAroundError) -> None:
        self.reply(delivery, Failed(error.to_wire()))

    def set_timer(self, name: str, delay_s: float) -> None:
        """(Re)arm the named timer."""
        self.cancel_timer(name)
        self._generation += 1
        msg = Timer(name, self._generation)
        handle = self.clock.call_later(delay_s, lambda: self.bus.send(self.address, msg, sender=self.address))
        self._timers[name] = (self._generation, handle)

    def later(self, call: Callable[[], None]) -> None:
        """Run `call` on the actor's own turn; safe from any thread (a clock's timer calls this)."""
        corr = next(_CORRELATIONS) & 0xFFFFFFFF or 1
        self._pending[corr] = (lambda _: call(), _Nothing())
        self.bus.send(self.address, Now(), sender=self.address, corr=-corr)

    def cancel_timer(self, name: str) -> None:
        known = self._timers.pop(name, None)
        if known is not None:
            known[1].cancel()

    @property
    def quiet(self) -> bool:
        """Nothing asked and unanswered, no timer armed: the actor may be passivated."""
        return not self._pending and not self._timers
