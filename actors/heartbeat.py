"""The service manager's sign of life depends on what serves: the io thread and the actors' pool must answer, not only the
main thread, which does nothing but wait."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

Ask = Callable[[Callable[[], None]], None]
"""Takes what is to be called from the part itself, soon."""


class Heartbeat:
    """`parts`: how each is asked. `beat` is called once in a period; a part has that long to answer."""

    def __init__(self, parts: Mapping[str, Ask]) -> None:
        self._parts = dict(parts)
        self._lock = threading.Lock()
        self._open: set[str] = set()

    def beat(self) -> list[str]:
        """The parts that have not answered since the last beat; all others are asked anew."""
        with self._lock:
            silent = sorted(self._open)
            asked = [name for name in self._parts if name not in self._open]
            self._open.update(asked)
        for name in asked:
            self._parts[name](lambda name=name: self._answered(name))  # type: ignore[misc]
        return silent

    def _answered(self, name: str) -> None:
        with self._lock:
            self._open.discard(name)
