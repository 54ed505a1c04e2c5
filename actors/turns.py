"""A turn and the waiting prompts of a thread, and what a turn's events look like on a surface."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class Turn:
    """One prompt of one route. `id` is unique everywhere, `key` within its route. `kind`: prompt, mode, plan, or
    relay (a prompt of ours that holds what another agent did)."""

    id: str
    key: str
    route: str
    text: str
    sender: dict[str, Any] = field(default_factory=dict)
    attachments: list[Any] = field(default_factory=list)
    kind: str = "prompt"
    started: bool = False
    """The journal holds it, so the agent may have it."""
    sent: bool = False
    told_session: bool = False
    """Who asked has been shown in which session it runs."""
    cancelling: bool = False

    @property
    def person(self) -> str:
        return str(self.sender.get("name") or self.sender.get("id") or "")

    def blocks(self) -> list[Any]:
        """ACP content blocks."""
        return [{"type": "text", "text": self.text}, *self.attachments]

    def asked(self) -> dict[str, Any]:
        text = f"{self.text.strip().partition(chr(10))[0]} …" if self.kind == "relay" else self.text
        return {"event": "asked", "key": self.key, "route": self.route, "by": self.person, "text": text}


def who(sender: dict[str, Any]) -> str:
    """Whose turn it is: two bridges may have people of the same id, and those are not the same person."""
    return f"{sender.get('via') or ''}/{sender.get('id') or ''}"


class TurnQueue:
    """Waiting prompts in order of arrival; the bound is per thread."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._items: deque[Turn] = deque()

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Turn]:
        return iter(self._items)

    @property
    def full(self) -> bool:
        return len(self._items) >= self._limit

    def add(self, turn: Turn) -> int:
        """Its place, counted from 1."""
        self._items.append(turn)
        return len(self._items)

    def put_back(self, turn: Turn) -> None:
        self._items.appendleft(turn)

    def next(self) -> Turn | None:
        return self._items.popleft() if self._items else None

    def drop(self, route: str) -> list[Turn]:
        """Take out what one route has waiting."""
        dropped = [t for t in self._items if t.route == route]
        self._items = deque(t for t in self._items if t.route != route)
        return dropped

    def drop_all(self) -> list[Turn]:
        dropped = list(self._items)
        self._items.clear()
        return dropped

    def knows(self, route: str, key: str) -> bool:
        return any(t.route == route and t.key == key for t in self._items)


def surface_event(kind: str, body: dict[str, Any]) -> dict[str, Any] | None:
    """A host event as a surface shows it; None for what no surface shows."""
    if kind in ("text", "thought"):
        return {"event": kind, "block": body.get("block", 0), "text": body.get("text", ""), "final": True, **_ref(body)}
    if kind in ("tool", "plan", "notice", "title", "mode"):
        return {"event": kind, **body}
    return None


def _ref(body: dict[str, Any]) -> dict[str, Any]:
    return {"ref": body["ref"]} if "ref" in body else {}


def ended(body: dict[str, Any]) -> dict[str, Any]:
    """The last event of a turn: done, or the error that the agent reported."""
    error = body.get("error")
    if error:
        return {
            "event": "error", "code": error.get("code", "agent_failed"), "message": error.get("message", ""),
            "hint": error.get("hint", ""), "exit_code": 7,
        }
    return {"event": "done", "stop_reason": body.get("stop_reason", "end_turn"), "usage": body.get("usage") or {}}


def error_event(error: list[Any]) -> dict[str, Any]:
    """From `VibeAroundError.to_wire()`."""
    exit_code, code, message, hint = [*error, *([""] * (4 - len(error)))][:4]
    return {"event": "error", "code": code, "message": message, "hint": hint, "exit_code": exit_code}
