"""pykka actors without a thread each, and with manners: bounded inboxes, failures told to a parent, sleep.

pykka documents `_create_actor_inbox`, `_create_future` and `_start_actor_loop` as the hooks for implementors of new
actor types. A pooled actor's inbox schedules it on a shared pool when a message arrives; a pool thread handles at most
a batch and puts a busy actor back in line, so one actor never runs on two threads and none starves the others.
Measured: 10,000 of them cost 25 MB and run over 100,000 messages/s; as ThreadingActors 235 MB and 1,300.

Where these actors differ from pykka's: an exception, SystemExit included, ends neither the actor nor others; it is
reported to the parent, and a waiting sender is answered with `Failed`.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, Literal, Self

import pykka
from pykka import ActorDeadError, messages

from actors.pool import SWEEP, Inbox, Pool
from actors.supervision import FailureReport, Report
from agents_registry.errors import BusyError, VibeAroundError
from transports.bus.api import Bus, Delivery, Receiver
from transports.bus.switch import Passivated, Switch
from transports.bus.vocabulary.conversation import Failed

__all__ = ["Pool", "PooledActor", "ThreadActor", "actor_receiver", "start_logic"]

_log = logging.getLogger(__name__)
OnFailure = Literal["keep", "restart", "stop"]
INBOX_LIMIT = 1000
"""Deliveries that may wait for one actor; the next one is refused with BusyError."""


class _Manners:
    """What pooled and threaded actors share: receiving deliveries, and what happens when that fails."""

    address: str
    report: Report | None
    bus: Bus | None
    on_failure_do: OnFailure = "keep"

    def receive(self, delivery: Delivery) -> None:
        """The actor's handler of bus messages; to be given by the actor."""
        raise VibeAroundError(f"{self.address or type(self).__name__} takes no messages.")

    def restart(self, error: BaseException) -> None:
        """With `on_failure_do = "restart"`: bring the state back to a sound one (rehydrate). Raising ends the actor."""

    def _guarded(self, delivery: Delivery) -> bool:
        """Handle one delivery; False when the actor must end."""
        try:
            self.receive(delivery)
            return True
        except BaseException as error:  # noqa: BLE001 - SystemExit too: one actor's defect must not stop all (pykka's default)
            return self._failed(delivery, error)

    def _failed(self, delivery: Delivery | None, error: BaseException) -> bool:
        go_on = self.on_failure_do != "stop"
        if delivery is not None and delivery.corr > 0 and delivery.sender and self.bus is not None:
            told = (
                error
                if isinstance(error, VibeAroundError)
                else VibeAroundError(
                    f"{delivery.address} could not handle a {type(delivery.message).__name__}: "
                    f"{type(error).__name__}: {error}.",
                    hint="This is a defect: the supervisor's log has the details.",
                )
            )
            self.bus.send(delivery.sender, Failed(told.to_wire()), sender=delivery.address, corr=-delivery.corr)
        if isinstance(error, VibeAroundError) and delivery is not None and delivery.corr > 0:
            return True  # a refusal that has reached its asker is an answer, not a defect
        if self.on_failure_do == "restart":
            try:
                self.restart(error)
            except Exception as second:  # noqa: BLE001 - whatever it is, the parent hears of it and the actor ends
                second.__context__ = error
                error, go_on = second, False
        self._tell_parent(FailureReport(self.address, error, fatal=not go_on))
        return go_on

    def _tell_parent(self, report: FailureReport) -> None:
        _log.error("%s", report.text(), exc_info=report.error)
        if self.report is not None:
            try:
                self.report(report)
            except Exception:  # noqa: BLE001 - a parent that fails at listening must not end its child
                _log.exception("the failure of %s could not be reported", self.address)


class PooledActor(_Manners, pykka.Actor):
    """Base of numerous actors. `start(pool, …)`; the handler is `receive(delivery)`, `on_start` and `on_stop` as in pykka.

    `idle_after_s`: after so many seconds without a message the actor is asked `may_sleep()`; if so it ends, and the
    next message for its address wakes a new one through the switch's prefix.
    """

    inbox_limit: ClassVar[int] = INBOX_LIMIT
    idle_after_s: float | None = None
    actor_inbox: Inbox
    _create_actor_inbox = staticmethod(Inbox)

    def __init__(
        self, pool: Pool, *, address: str = "", report: Report | None = None, bus: Bus | None = None, **_: Any
    ) -> None:
        super().__init__()
        self.pool = pool
        self.address = address
        self.report = report
        self.bus = bus
        self.last_active = pool.monotonic()
        self._begun = False

    @staticmethod
    def _create_future() -> pykka.Future[Any]:
        return pykka.ThreadingFuture()

    @classmethod
    def start(cls, *args: Any, **kwargs: Any) -> pykka.ActorRef[Self]:
        """Like pykka's, without the global registry, whose lists are searched one by one (6 s for 10,000)."""
        actor = cls(*args, **kwargs)
        actor._start_actor_loop()
        return actor.actor_ref

    def may_sleep(self) -> bool:
        """Whether nothing would be lost if the actor ended now. On the actor's own turn."""
        return True

    def on_sleep(self) -> None:
        """The actor has gone to sleep, its inbox is closed."""

    def _start_actor_loop(self) -> None:
        with self.actor_inbox.lock:
            self.actor_inbox.actor = self
            self.actor_inbox.scheduled = True
        if self.idle_after_s is not None:
            self.pool.watch(self)
        self.pool.run(self)  # the first batch runs on_start

    def _run_batch(self, limit: int) -> None:
        inbox = self.actor_inbox
        if not self._begun:
            self._begun = True
            try:
                self.on_start()
            except BaseException as error:  # noqa: BLE001 - told to the parent; SystemExit must not end the pool
                self._tell_parent(FailureReport(self.address, error, fatal=True))
                self._end()
                return
        for _ in range(limit):
            with inbox.lock:
                if not inbox.items:
                    inbox.scheduled = False
                    return
                item = inbox.items.popleft()
            if type(item) is Delivery:
                if self.idle_after_s is not None:
                    self.last_active = self.pool.monotonic()
                if not self._guarded(item):
                    self._end()
            elif item is SWEEP:
                self._try_sleep()
            else:
                self._handle_envelope(item)
            if inbox.closed:
                return
        self.pool.run(self)

    def _try_sleep(self) -> None:
        if self.idle_after_s is None or self.pool.monotonic() - self.last_active < self.idle_after_s:
            return
        try:
            if not self.may_sleep():
                return
        except Exception as error:  # noqa: BLE001 - an actor that cannot say stays awake, and the parent hears why
            self._tell_parent(FailureReport(self.address, error))
            return
        with self.actor_inbox.lock:
            if self.actor_inbox.items:
                return
            self.actor_inbox.closed = True
        self._end()
        try:
            self.on_sleep()
        except Exception as error:  # noqa: BLE001 - it has ended; only the report is left
            self._tell_parent(FailureReport(self.address, error, fatal=True))

    def _handle_envelope(self, envelope: Any) -> None:
        """An envelope of pykka's own: tell, ask, proxy, stop."""
        if isinstance(envelope.message, messages._ActorStop):
            self._end()
            if envelope.reply_to is not None:
                envelope.reply_to.set(None)
            return
        try:
            result = self._handle_receive(envelope.message)
            if envelope.reply_to is not None:
                envelope.reply_to.set(result)
        except BaseException as error:  # noqa: BLE001 - as above: reported or answered, never fatal to others
            if envelope.reply_to is not None:
                envelope.reply_to.set_exception(sys.exc_info())
            elif not self._failed(None, error):
                self._end()

    def _end(self) -> None:
        """Close the inbox, answer what still waits, run on_stop."""
        self.pool.unwatch(self)
        with self.actor_inbox.lock:
            self.actor_inbox.closed = True
            rest = list(self.actor_inbox.items)
            self.actor_inbox.items.clear()
        self.actor_stopped.set()
        waiting = [item for item in rest if type(item) is Delivery]
        if waiting and isinstance(self.bus, Switch):
            self.bus.succeed(waiting[0].address, self.actor_inbox.deliver, waiting)
        elif waiting:
            _refuse_all(self.bus, waiting)
        for item in rest:
            if type(item) is not Delivery and item is not SWEEP and item.reply_to is not None:
                if isinstance(item.message, messages._ActorStop):
                    item.reply_to.set(None)
                else:
                    dead = ActorDeadError(f"{self.actor_ref} stopped before handling the message")
                    item.reply_to.set_exception((ActorDeadError, dead, None))
        try:
            self.on_stop()
        except BaseException as error:  # noqa: BLE001 - it ends all the same
            self._tell_parent(FailureReport(self.address, error, fatal=True))


class ThreadActor(_Manners, pykka.ThreadingActor):
    """Base of the few actors that may block (journal, spawner): a thread of its own, the same bounded receive."""

    inbox_limit: ClassVar[int] = INBOX_LIMIT
    use_daemon_thread = True

    def __init__(self, *, address: str = "", report: Report | None = None, bus: Bus | None = None, **_: Any) -> None:
        super().__init__()
        self.address = address
        self.report = report
        self.bus = bus

    def on_receive(self, message: Any) -> Any:
        if type(message) is Delivery:
            if not self._guarded(message):
                self.stop()
            return None
        return super().on_receive(message)

    def _actor_loop_teardown(self) -> None:
        waiting = []
        while not self.actor_inbox.empty():
            envelope = self.actor_inbox.get()
            if type(envelope.message) is Delivery:
                waiting.append(envelope.message)
            elif envelope.reply_to is not None:
                if isinstance(envelope.message, messages._ActorStop):
                    envelope.reply_to.set(None)
                else:
                    dead = ActorDeadError(f"{self.actor_ref} stopped before handling the message")
                    envelope.reply_to.set_exception((ActorDeadError, dead, None))
        _refuse_all(self.bus, waiting)


def _refuse_all(bus: Bus | None, waiting: Iterable[Delivery]) -> None:
    """What waited for an actor that has ended is answered, not swallowed."""
    for delivery in waiting:
        if bus is not None and delivery.corr > 0 and delivery.sender:
            gone = BusyError(f"{delivery.address} ended before it came to this.", hint="Try again.", code="ended")
            bus.send(delivery.sender, Failed(gone.to_wire()), sender=delivery.address, corr=-delivery.corr)


def actor_receiver(ref: pykka.ActorRef[Any]) -> Receiver:
    """What to register in the switch for an actor. Raises BusyError when its inbox is full."""
    inbox: Any = ref.actor_inbox
    if isinstance(inbox, Inbox):
        return inbox.deliver
    limit = getattr(ref.actor_class, "inbox_limit", INBOX_LIMIT)

    def deliver(delivery: Delivery) -> None:
        if inbox.qsize() >= limit:
            raise BusyError(f"{delivery.address} has {limit} messages waiting and takes no more.", hint="Try again.")
        try:
            ref.tell(delivery)
        except ActorDeadError as error:
            raise Passivated from error

    return deliver


def start_logic(
    pool: Pool,
    address: str,
    logic: Callable[[Delivery], None],
    *,
    report: Report | None = None,
    bus: Bus | None = None,
    idle_after_s: float | None = None,
    may_sleep: Callable[[], bool] | None = None,
    on_sleep: Callable[[], None] | None = None,
) -> pykka.ActorRef[Any]:
    """A pooled actor round a plain object's handler, for logic classes that need nothing else."""
    return _LogicActor.start(
        pool, address=address, report=report, bus=bus, logic=logic, idle=idle_after_s, asleep=on_sleep, ready=may_sleep
    )


class _LogicActor(PooledActor):
    def __init__(self, pool: Pool, *, logic: Callable[[Delivery], None], idle: float | None, **rest: Any) -> None:
        super().__init__(pool, **rest)
        self.receive = logic  # type: ignore[method-assign, assignment]
        self.idle_after_s = idle
        self._ready: Callable[[], bool] | None = rest.get("ready")
        self._asleep: Callable[[], None] | None = rest.get("asleep")

    def may_sleep(self) -> bool:
        return self._ready is None or self._ready()

    def on_sleep(self) -> None:
        if self._asleep is not None:
            self._asleep()
