"""Words for people: how long ago, how long, how big, shortened text, short ids. Pure; used by chats and the terminal."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

_PREFIXES = ("ws_", "wt_")
MIN_SHORT = 4
"""Fewest characters of a short id (behind `ws_` or `wt_`)."""


def ago(then: float, now: float) -> str:
    """`then` as seen from `now`, both in seconds since the epoch: "just now", "5 min ago", "3 days ago", "never"."""
    if then <= 0:
        return "never"
    seconds = now - then
    if seconds < -60:
        return f"in {duration(-seconds)}"
    if seconds < 45:
        return "just now"
    return f"{duration(seconds)} ago"


def duration(seconds: float) -> str:
    """A length of time in its largest fitting unit: "40 s", "5 min", "2 hours", "12 days"."""
    seconds = max(0.0, seconds)
    if seconds < 59.5:
        return f"{round(seconds)} s"
    if seconds < 59.5 * 60:
        return f"{round(seconds / 60)} min"
    hours = round(seconds / 3600)
    if hours < 48:
        return f"{hours} hour{'' if hours == 1 else 's'}"
    days = round(seconds / 86400)
    if days < 60:
        return f"{days} days"
    return f"{round(days / 30.4)} months" if days < 700 else f"{round(days / 365.25)} years"


def shorten(text: str, limit: int = 60) -> str:
    """One line of at most `limit` characters; a cut is marked with an ellipsis."""
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: max(1, limit - 1)].rstrip() + "…"


def width(text: str) -> int:
    """Columns that `text` takes in a terminal: wide East Asian characters take two, combining marks none."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def bare(identifier: str) -> str:
    """An id without our own prefix."""
    for prefix in _PREFIXES:
        if identifier.startswith(prefix):
            return identifier[len(prefix) :]
    return identifier


def short_ids(identifiers: Iterable[str], at_least: int = MIN_SHORT) -> dict[str, str]:
    """The shortest prefix of each id that tells it from all the others, at least `at_least` characters behind `ws_`/`wt_`."""
    ordered = sorted(set(identifiers))
    result: dict[str, str] = {}
    for position, one in enumerate(ordered):
        need = 0
        for other in ordered[max(0, position - 1) : position + 2]:
            if other != one:
                need = max(need, _common(one, other) + 1)
        head = len(one) - len(bare(one))
        result[one] = one[: max(need, head + at_least)]
    return result


def _common(a: str, b: str) -> int:
    count = 0
    for x, y in zip(a, b, strict=False):
        if x != y:
            break
        count += 1
    return count


def plural(count: int, one: str, many: str = "") -> str:
    """`1 message`, `2 messages`."""
    return f"{count} {one if count == 1 else many or one + 's'}"
