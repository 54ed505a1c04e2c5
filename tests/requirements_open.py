"""The requirements that no test shows yet, each with the reason. An id leaves this table with the commit that brings its test."""

from __future__ import annotations

_UNDER_WAY = "what it asks for is being built"

OPEN: dict[str, str] = dict.fromkeys(
    [
        "H2.by-reference",
        "H2.reliable",
        "H2.credits",
        "H2.journal-durable",
        "H2.group-commit",
        "H2.migrations",
        "H2.positions",
        "H2.keep-days",
        "H2.host-assembles",
        "H2.epochs",
        "H2.lost-turn",
        "H2.subreaper",
        "H2.detached",
        "H2.prompt-meets-stopping",
        "H2.reader-lifeline",
        "H3.demo",
        "H3.acp-order",
        "H3.acp-lines",
        "H3.acp-advertises",
        "H3.acp-oracle",
        "H3.replay-hidden",
        "H3.resume-or-load",
        "H3.checked-first",
        "H3.gemini-same-minute",
        "H3.gemini-junk",
        "H3.mode-that-asks",
        "H4.code-form",
        "H4.code-restart",
        "H4.one-function",
        "H4.away",
        "H7.progress",
        "H8.bench",
        "B30",
        "I3",
        "I4",
        "I9",
    ],
    _UNDER_WAY,
)
