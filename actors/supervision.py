"""Failures go to a parent, which decides: pure policy and the report it decides on."""

from __future__ import annotations

import random
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class FailureReport:
    """What a parent hears of an actor's failure. `fatal`: the actor does not go on (its start failed, or it was told
    to stop by its policy)."""

    address: str
    error: BaseException
    fatal: bool = False

    def text(self) -> str:
        """One line for a person: who, what, where."""
        frames = traceback.extract_tb(self.error.__traceback__)
        where = f" at {frames[-1].filename.rsplit('/', 1)[-1]}:{frames[-1].lineno}" if frames else ""
        return f"{self.address or 'an actor'} failed: {type(self.error).__name__}: {self.error}{where}"


Report = Callable[[FailureReport], None]


@dataclass(slots=True)
class RestartPolicy:
    """When to start a dead child again: exponential back-off with jitter, forgotten after a stable run; gives up when
    more than `burst` deaths fall into `window` seconds.

    All times are seconds of one monotonic clock, handed in; the random source too.
    """

    base: float = 0.2
    cap: float = 30.0
    stable_after: float = 10.0
    burst: int = 8
    window: float = 120.0
    rng: random.Random = field(default_factory=random.Random)
    _streak: int = 0
    _deaths: list[float] = field(default_factory=list)

    def next_delay(self, started_at: float, died_at: float) -> float | None:
        """Seconds to wait before the next start; None = give up, a person must look."""
        if died_at - started_at >= self.stable_after:
            self.reset()
        self._deaths = [at for at in self._deaths if died_at - at < self.window]
        self._deaths.append(died_at)
        if len(self._deaths) > self.burst:
            return None
        self._streak += 1
        ceiling = min(self.cap, self.base * 2.0 ** min(self._streak - 1, 64))
        return self.rng.uniform(ceiling / 2, ceiling)

    def reset(self) -> None:
        """A person asked for a new start: the past is forgotten."""
        self._streak = 0
        self._deaths.clear()
