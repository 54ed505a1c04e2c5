"""Questions of ours to the people of a route: asked once, answered once, harmless when nobody answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from agents_registry.errors import NotFoundError, UsageError
from transports.bus.vocabulary.threads import RouteAsk

Answered = Callable[[str, str], None]
"""Continues with (option id, who); who is "" when the time ran out."""


@dataclass(slots=True)
class _Choice:
    ask: RouteAsk
    then: Answered


class Choices:
    """The open questions of one route, by id."""

    def __init__(self) -> None:
        self._open: dict[str, _Choice] = {}
        self._closed: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._open)

    def __contains__(self, cid: str) -> bool:
        return cid in self._open or cid in self._closed

    def open(self, ask: RouteAsk, then: Answered) -> dict[str, Any]:
        """The event that shows it."""
        self._open[ask.id] = _Choice(ask, then)
        return self.event(ask)

    def event(self, ask: RouteAsk) -> dict[str, Any]:
        options = [{"id": o[0], "name": o[1]} for o in ask.options]
        return {
            "event": "choice", "id": ask.id, "title": ask.title, "options": options, "expires_in_s": ask.expires_in_s,
            "harmless": ask.harmless,
        }

    def asked(self) -> list[RouteAsk]:
        return [c.ask for c in self._open.values()]

    def answer(self, cid: str, option: str, by: str) -> str:
        """The option's id; an option may be given by id, name or number; "" = the harmless one.

        Raises NotFoundError (unknown), UsageError (answered before, or no such option)."""
        choice = self._open.get(cid)
        if choice is None:
            if cid in self._closed:
                raise UsageError(f"This question was answered already: {self._closed[cid]}.", code="late")
            raise NotFoundError(f"There is no open question {cid}.", hint="It may have been answered or expired.")
        ids = [str(o[0]) for o in choice.ask.options]
        names = {str(o[1]).casefold(): str(o[0]) for o in choice.ask.options}
        wanted = option or choice.ask.harmless
        if wanted not in ids:
            wanted = names.get(wanted.casefold(), wanted)
        if wanted not in ids and wanted.isdigit() and 1 <= int(wanted) <= len(ids):
            wanted = ids[int(wanted) - 1]
        if wanted not in ids:
            raise UsageError(f"{option!r} is no answer to this question.", hint=f"Answers: {', '.join(ids)}.")
        self._close(cid, wanted, by)
        return wanted

    def expire(self, cid: str) -> RouteAsk | None:
        """Settle it as its harmless option; None when it was answered meanwhile."""
        choice = self._open.get(cid)
        if choice is None:
            return None
        self._close(cid, choice.ask.harmless, "")
        return choice.ask

    def withdraw(self, cid: str, why: str) -> RouteAsk | None:
        """Settle it without anybody's answer: continues with "withdrawn". None when it is not open."""
        choice = self._open.get(cid)
        if choice is None:
            return None
        self._close(cid, "withdrawn", why)
        return choice.ask

    def _close(self, cid: str, option: str, by: str) -> None:
        choice = self._open.pop(cid)
        self._closed[cid] = f"{option}" + (f", by {by}" if by else " (nobody answered)")
        if len(self._closed) > 64:
            del self._closed[next(iter(self._closed))]
        choice.then(option, by)
