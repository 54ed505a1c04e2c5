"""Time as something that is handed in: one for the running system, one that tests move by hand."""

from __future__ import annotations

import heapq
import itertools
import logging
import threading
import time
from collections.abc import Callable
from typing import Protocol

_log = logging.getLogger(__name__)


class Cancellable(Protocol):
    def cancel(self) -> None:
        """Idempotent; without effect once the function runs."""


class Clock(Protocol):
    """`now`: seconds since the epoch; `monotonic`: seconds that never jump (and stand still while the machine
    sleeps); `call_later`: calls `fn` once, on a thread of the clock, which it must not block."""

    def now(self) -> float: ...
    def monotonic(self) -> float: ...
    def call_later(self, delay: float, fn: Callable[[], None]) -> Cancellable: ...


class _Timer:
    __slots__ = ("due", "fn")

    def __init__(self, due: float, fn: Callable[[], None]) -> None:
        self.due = due
        self.fn: Callable[[], None] | None = fn

    def cancel(self) -> None:
        self.fn = None


class _Heap:
    """Timers by due time, then by order of creation. Cancelled ones are thrown out when they are the majority."""

    def __init__(self) -> None:
        self.entries: list[tuple[float, int, _Timer]] = []
        self._count = itertools.count()
        self._sweep_at = 64

    def push(self, timer: _Timer) -> None:
        if len(self.entries) >= self._sweep_at:
            self.entries = [entry for entry in self.entries if entry[2].fn is not None]
            heapq.heapify(self.entries)
            self._sweep_at = max(64, 2 * len(self.entries))
        heapq.heappush(self.entries, (timer.due, next(self._count), timer))

    def pop_due(self, now: float) -> Callable[[], None] | None:
        while self.entries and (self.entries[0][2].fn is None or self.entries[0][0] <= now):
            fn = heapq.heappop(self.entries)[2].fn
            if fn is not None:
                return fn
        return None


class SystemClock:
    """The real time. One daemon thread, started with the first timer, runs them all; a timer that raises is logged."""

    def __init__(self) -> None:
        self._heap = _Heap()
        self._wake = threading.Condition()
        self._thread: threading.Thread | None = None
        self._closed = False

    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()

    def call_later(self, delay: float, fn: Callable[[], None]) -> Cancellable:
        timer = _Timer(time.monotonic() + max(0.0, delay), fn)
        with self._wake:
            first_before = self._heap.entries[0][2] if self._heap.entries else None
            self._heap.push(timer)
            if self._thread is None and not self._closed:
                self._thread = threading.Thread(target=self._run, name="clock", daemon=True)
                self._thread.start()
            elif self._heap.entries[0][2] is not first_before:
                self._wake.notify()
        return timer

    def close(self) -> None:
        """No timer fires any more. Waits at most a second for the one that runs."""
        with self._wake:
            self._closed = True
            self._wake.notify()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(1.0)

    def _run(self) -> None:
        while True:
            with self._wake:
                while (fn := self._heap.pop_due(time.monotonic())) is None and not self._closed:
                    entries = self._heap.entries
                    self._wake.wait(entries[0][0] - time.monotonic() if entries else None)
                if self._closed or fn is None:
                    return
            try:
                fn()
            except BaseException:  # noqa: BLE001 - one broken timer must not end all others
                _log.exception("a timer failed")


class ManualClock:
    """Time that stands still until `advance`; timers run on the caller's thread, in order of due time."""

    def __init__(self, now: float = 1_700_000_000.0) -> None:
        self._now = now
        self._elapsed = 0.0
        self._heap = _Heap()
        self._lock = threading.Lock()

    def now(self) -> float:
        return self._now + self._elapsed

    def monotonic(self) -> float:
        return self._elapsed

    def call_later(self, delay: float, fn: Callable[[], None]) -> Cancellable:
        with self._lock:
            timer = _Timer(self._elapsed + max(0.0, delay), fn)
            self._heap.push(timer)
        return timer

    def advance(self, seconds: float) -> None:
        """Let time pass; timers that timers set run too, when they fall into it."""
        target = self._elapsed + seconds
        while True:
            with self._lock:
                entries = self._heap.entries
                while entries and entries[0][2].fn is None:
                    heapq.heappop(entries)
                if not entries or entries[0][0] > target:
                    self._elapsed = target
                    return
                self._elapsed = max(self._elapsed, entries[0][0])
                fn = self._heap.pop_due(self._elapsed)
            if fn is not None:
                fn()

    def pending(self) -> int:
        """How many timers wait."""
        with self._lock:
            return sum(1 for entry in self._heap.entries if entry[2].fn is not None)
