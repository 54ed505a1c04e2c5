"""Who may reach anything through a bridge: the allow-list, the one line for strangers, the owner's one-time claim. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Literal

from transports.im.inbound import Message, Update
from transports.im.platform import Person

LINE_EVERY_S = 60.0
"""A stranger reads the one line at most so often per chat."""
LINES_PER_MINUTE = 10
"""And all strangers together so often: a crowd must not use up the bot's budget."""
_CLAIM = re.compile(r"/start(?:\s+|_)([A-Za-z0-9_-]{4,64})\s*\Z")

Verdict = Literal["in", "line", "silent", "claim"]


class Gate:
    """`people` is replaced as a whole by what the supervisor says."""

    def __init__(self, users: Iterable[Any] = (), claim_open: bool = False) -> None:
        self.people: dict[str, Person] = {}
        self.claim_open = claim_open
        self._told: dict[str, float] = {}
        self._lines: list[float] = []
        self.update(users, claim_open)

    def update(self, users: Iterable[Any], claim_open: bool) -> None:
        """`users`: {id, name, role} each; malformed ones are left out, for they give nobody anything."""
        self.claim_open = claim_open
        self.people = {
            str(u["id"]): Person(str(u["id"]), str(u.get("name") or ""), str(u.get("role") or ""))
            for u in users
            if isinstance(u, dict) and u.get("id") and u.get("role") in ("owner", "member", "viewer")
        }

    def judge(self, update: Update, now: float) -> Verdict:
        """in: on the list. claim: the claim code of somebody who is no owner, for the supervisor to decide. line: tell him the one line.
        silent: nothing at all (nobody's message, not addressed to the bot, or told a moment ago)."""
        if not update.user.id:
            return "silent"
        known = self.people.get(update.user.id)
        if known is not None:
            # Somebody who may a little may become the owner like anybody else who has the code.
            return "claim" if self.claim_open and known.role != "owner" and claim_code(update) else "in"
        if isinstance(update, Message) and not update.addressed:
            return "silent"
        if self.claim_open and claim_code(update):
            return "claim"
        return self.refuse(update, now)

    def refuse(self, update: Update, now: float) -> Verdict:
        """line, or silent when it was told a moment ago."""
        key = f"{update.chat.id}\0{update.user.id}"
        self._lines = [t for t in self._lines if now - t < 60.0]
        if now - self._told.get(key, -LINE_EVERY_S) < LINE_EVERY_S or len(self._lines) >= LINES_PER_MINUTE:
            return "silent"
        if len(self._told) > 4096:
            self._told = {k: t for k, t in self._told.items() if now - t < LINE_EVERY_S}
        self._told[key] = now
        self._lines.append(now)
        return "line"


def claim_code(update: Update) -> str:
    """The code of `/start CODE` in a direct chat, "" for anything else."""
    if not isinstance(update, Message) or not update.chat.direct:
        return ""
    found = _CLAIM.match(update.text.strip())
    return found[1] if found is not None else ""
