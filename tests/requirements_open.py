"""The requirements that no test shows yet, each with the reason. An id leaves this table with the commit that brings its test."""

from __future__ import annotations

_UNDER_WAY = "what it asks for is being built"

OPEN: dict[str, str] = dict.fromkeys(
    [
        "H8.bench",
    ],
    _UNDER_WAY,
)
