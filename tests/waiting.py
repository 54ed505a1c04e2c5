"""Waiting in tests: on a condition that nothing announces (a file of a foreign process), with a bound, looked at often."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

_Found = TypeVar("_Found")


def until(found: Callable[[], _Found | None], what: str, *, seconds: float = 10.0) -> _Found:
    """The first true value that `found` returns; AssertionError naming `what` when there is none within `seconds`.

    For what has no event of its own. Where a pipe, a queue or a process tells of the change, wait on that instead.
    """
    end = time.monotonic() + seconds
    pause = threading.Event()
    while True:
        result = found()
        if result:
            return result
        if time.monotonic() > end:
            raise AssertionError(f"not within {seconds} s: {what}")
        pause.wait(0.02)
