"""Open permission requests of a thread: who may answer, and the word to a late or foreign press."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from actors.turns import who
from agents_registry.errors import NotFoundError, RefusedError, UsageError

LASTING = ("allow_always", "reject_always")
"""ACP option kinds whose effect outlives the turn: for owners only."""


@dataclass(slots=True)
class Permission:
    """`id` is ours and short; `request` is the host's. `person` is whose turn it is, as `turns.who` says."""

    id: str
    request: str
    turn: str
    person: str
    route: str
    body: dict[str, Any]

    def options(self) -> list[dict[str, Any]]:
        return list(self.body.get("options") or [])

    def event(self) -> dict[str, Any]:
        return {
            "event": "permission", "id": self.id, "title": self.body.get("title", ""), "tool": self.body.get("tool", {}),
            "options": self.options(), "route": self.route,
        }


class Permissions:
    """The open ones, by id. Decided ones are remembered by outcome, so that a late press is told."""

    def __init__(self) -> None:
        self._open: dict[str, Permission] = {}
        self._decided: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._open)

    def add(self, permission: Permission) -> None:
        self._open[permission.id] = permission

    def open(self) -> list[Permission]:
        return list(self._open.values())

    def by_request(self, request: str) -> Permission | None:
        return next((p for p in self._open.values() if p.request == request), None)

    def of_turn(self, turn: str) -> list[Permission]:
        return [p for p in self._open.values() if p.turn == turn]

    def choose(self, pid: str, option: str, sender: dict[str, Any]) -> tuple[Permission, dict[str, Any] | None]:
        """The request and the option meant ("" = none: cancel); an option may be given by id, name, kind or number.

        Raises NotFoundError (unknown or late), RefusedError (not his to answer), UsageError (no such option).
        """
        permission = self._open.get(pid)
        if permission is None:
            outcome = self._decided.get(pid)
            if outcome is not None:
                raise RefusedError(f"This was decided already: {outcome}.", code="late")
            raise NotFoundError(f"There is no open permission {pid}.", hint="It may have been cancelled with its turn.")
        owner = sender.get("role", "owner") == "owner"
        if not owner and who(sender) != permission.person:
            raise RefusedError("Only the person whose turn it is, or an owner, may answer this.", code="foreign")
        if option == "":
            return permission, None
        options = permission.options()
        chosen = next((o for o in options if option in (o.get("id"), o.get("name"))), None)
        if chosen is None and option.isdigit() and 1 <= int(option) <= len(options):
            chosen = options[int(option) - 1]
        if chosen is None:
            chosen = next((o for o in options if o.get("kind") == option), None)
        if chosen is None:
            names = ", ".join(f"{o.get('id')} ({o.get('name')})" for o in options)
            raise UsageError(f"{option!r} is no option of this permission.", hint=f"Options: {names}.")
        if chosen.get("kind") in LASTING and not owner:
            raise RefusedError("An answer that lasts is for owners.", hint="Choose a once-option.", code="foreign")
        return permission, chosen

    def decide(self, pid: str, outcome: str) -> None:
        self._open.pop(pid, None)
        self._decided[pid] = outcome
        if len(self._decided) > 256:
            del self._decided[next(iter(self._decided))]
