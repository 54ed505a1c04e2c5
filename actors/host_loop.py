"""The host's one loop: everything that happens becomes a call on it, one after the other.

Two queues: what the agent says is bounded (a full one blocks the reader thread, and with it the agent's pipe) and is
left alone while too much is unacked; everything else goes first and is never held back by it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from threading import Condition
from typing import Any, Protocol

MAX_AGENT = 2048
"""Calls from the agent's side that wait."""
BATCH = 256
"""Calls from the agent's side between two looks at the other queue."""
Call = tuple[Callable[..., None], tuple[Any, ...]]


class Timed(Protocol):
    """What the loop serves."""

    @property
    def done(self) -> bool: ...
    @property
    def wants_agent(self) -> bool: ...
    def deadline(self) -> float: ...
    def tick(self) -> None: ...


class HostLoop:
    """`post` and `post_agent` from any thread, `run` on one."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._changed = Condition()
        self._control: deque[Call] = deque()
        self._agent: deque[Call] = deque()
        self._closed = False

    def post(self, function: Callable[..., None], *arguments: Any) -> None:
        """To be called soon."""
        with self._changed:
            self._control.append((function, arguments))
            self._changed.notify_all()

    def post_agent(self, function: Callable[..., None], *arguments: Any) -> None:
        """To be called in the order of the agent's words; blocks while too many wait."""
        with self._changed:
            while len(self._agent) >= MAX_AGENT and not self._closed:
                self._changed.wait(1.0)
            self._agent.append((function, arguments))
            if len(self._agent) == 1:
                self._changed.notify_all()

    def run(self, core: Timed) -> None:
        """Until the core is done."""
        while not core.done:
            for function, arguments in self._take(core):
                function(*arguments)
            core.tick()
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _take(self, core: Timed) -> list[Call]:
        with self._changed:
            if not self._control and not (self._agent and core.wants_agent):
                self._changed.wait(max(0.0, core.deadline() - self._clock()))
            calls = list(self._control)
            self._control.clear()
            if self._agent and core.wants_agent:
                full = len(self._agent) >= MAX_AGENT
                for _ in range(min(BATCH, len(self._agent))):
                    calls.append(self._agent.popleft())
                if full:
                    self._changed.notify_all()
        return calls
