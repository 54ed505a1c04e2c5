"""The small pool of threads that runs pooled actors, and the inbox that puts an actor in line when a message comes."""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Any

from pykka import ActorDeadError

from actors.clock import Clock
from agents_registry.errors import BusyError
from transports.bus.api import Delivery
from transports.bus.switch import Passivated

if TYPE_CHECKING:
    from actors.pooled import PooledActor

_log = logging.getLogger(__name__)


class _Sweep:
    """Tells an actor that it was idle for long enough to sleep."""


SWEEP = _Sweep()


class Pool:
    """`workers` threads that run pooled actors. Handlers must not block: a blocked thread stops a share of all."""

    def __init__(self, workers: int = 4, *, batch: int = 64, name: str = "actors", clock: Clock | None = None) -> None:
        self._ready: queue.SimpleQueue[PooledActor | None] = queue.SimpleQueue()
        self._batch = batch
        self._clock = clock
        self._sleepers: dict[str, PooledActor] = {}
        self._sweeping = False
        self._threads = [threading.Thread(target=self._loop, name=f"{name}-{i}", daemon=True) for i in range(workers)]
        for thread in self._threads:
            thread.start()

    def run(self, actor: PooledActor) -> None:
        """Put an actor in line for a thread."""
        self._ready.put(actor)

    def stop(self, timeout: float = 5.0) -> bool:
        """Let what is in line before this call run, then end the threads. False: one did not end in time."""
        for _ in self._threads:
            self._ready.put(None)
        limit = time.monotonic() + timeout
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(max(0.0, limit - time.monotonic()))
        return not any(thread.is_alive() for thread in self._threads)

    def monotonic(self) -> float:
        return self._clock.monotonic() if self._clock is not None else time.monotonic()

    def watch(self, actor: PooledActor) -> None:
        """Send the actor to sleep when it has been idle for its `idle_after_s` (needs a clock)."""
        self._sleepers[actor.actor_urn] = actor
        if not self._sweeping and self._clock is not None and actor.idle_after_s is not None:
            self._sweeping = True
            self._clock.call_later(max(0.05, actor.idle_after_s / 2), self._sweep)

    def unwatch(self, actor: PooledActor) -> None:
        self._sleepers.pop(actor.actor_urn, None)

    def _sweep(self) -> None:
        now, shortest = self.monotonic(), 3600.0
        for actor in list(self._sleepers.values()):
            if actor.idle_after_s is not None:
                shortest = min(shortest, actor.idle_after_s)
                if now - actor.last_active >= actor.idle_after_s:
                    actor.actor_inbox.put_control(SWEEP)
        self._sweeping = bool(self._sleepers)
        if self._sweeping and self._clock is not None:
            self._clock.call_later(max(0.05, shortest / 2), self._sweep)

    def _loop(self) -> None:
        get, batch = self._ready.get, self._batch
        while (actor := get()) is not None:
            try:
                actor._run_batch(batch)
            except BaseException:  # noqa: BLE001 - a defect in one actor's machinery must not take a pool thread away
                _log.exception("an actor's machinery failed")


class Inbox:
    """The inbox pykka's ActorRef puts envelopes into; bare deliveries (no envelope) come from the switch."""

    __slots__ = ("actor", "closed", "items", "lock", "scheduled")

    def __init__(self) -> None:
        self.items: deque[Any] = deque()
        self.lock = threading.Lock()
        self.scheduled = False
        self.closed = False
        self.actor: PooledActor | None = None

    def put(self, item: Any) -> None:
        with self.lock:
            if self.closed:
                raise ActorDeadError("the actor has stopped")
            self.items.append(item)
            kick = not self.scheduled and self.actor is not None
            if kick:
                self.scheduled = True
        if kick and self.actor is not None:
            self.actor.pool.run(self.actor)

    def put_control(self, item: Any) -> None:
        """For the machinery itself: past the bound, silently nothing when the actor is gone."""
        try:
            self.put(item)
        except ActorDeadError:
            pass

    def deliver(self, delivery: Delivery) -> None:
        with self.lock:
            if self.closed:
                raise Passivated
            actor = self.actor
            # An answer or an own alarm is what the actor waits for, and there are no more of them than it asked for.
            awaited = delivery.corr < 0 or delivery.sender == delivery.address
            if actor is not None and len(self.items) >= actor.inbox_limit and not awaited:
                raise BusyError(
                    f"{delivery.address} has {len(self.items)} messages waiting and takes no more.",
                    hint="Wait a little and try again.",
                )
            self.items.append(delivery)
            kick = not self.scheduled and actor is not None
            if kick:
                self.scheduled = True
        if kick and actor is not None:
            actor.pool.run(actor)

    def get(self) -> Any:
        return self.items.popleft()

    def empty(self) -> bool:
        return not self.items
