"""Times as the stores write them: ISO 8601 texts, seconds or milliseconds since the epoch."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any


def seconds(value: Any) -> float | None:
    """Seconds since the epoch, or None for what is no time. Numbers beyond 10^11 are taken for milliseconds."""
    if value.__class__ is str:
        return _of_text(value)
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, (int, float)):
        try:
            number = float(value)
        except OverflowError:  # an integer of hundreds of digits
            return None
        if number != number or number in (float("inf"), float("-inf")):
            return None
        return number / 1000 if abs(number) >= 1e11 else number
    return None


def _of_text(value: str) -> float | None:
    try:
        moment = datetime.fromisoformat(value)
        return (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


def iso(at: float) -> str:
    """The moment as ISO 8601 in UTC with milliseconds, as Claude and Codex write it (2026-05-01T00:00:00.000Z).

    A moment beyond the calendar becomes the epoch: damaged times must not cost a conversation.
    """
    try:
        return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    except (OverflowError, ValueError, OSError):
        return "1970-01-01T00:00:00.000Z"
