"""What a thread does with its permissions: decide once, forward, expire, cancel with the turn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from actors.permissions import Permission
from actors.turns import who
from transports.bus.api import Delivery
from transports.bus.vocabulary.conversation import Failed, Ok
from transports.bus.vocabulary.hosting import HostAnswer
from transports.bus.vocabulary.threads import ThreadAnswer

if TYPE_CHECKING:
    from actors.threads import ThreadSupervisor


class PermissionDesk:
    """An allow reaches the agent after its commit; a reject, a cancel or an expiry before it."""

    def __init__(self, thread: ThreadSupervisor) -> None:
        self._t = thread
        self._told: dict[str, str] = {}
        """Request -> option of what was decided in the running turn."""

    def recall(self, rows: list[dict[str, Any]], decided: list[list[str]]) -> None:
        """What an earlier supervisor left: the open ones with the time they still have, and decisions that may not have
        reached the host."""
        t = self._t
        turn = t.turn
        for row in rows:
            permission = Permission(
                row["id"], row["request"], row["turn"], who(turn.sender) if turn else "", turn.route if turn else "", row["body"]
            )
            t.permissions.add(permission)
            left = float(row["asked_at"]) + t.settings.permissions.expire_s - t.now()
            t.set_timer(f"expire:{permission.id}", max(0.0, left))
        self._told = dict(decided)

    def _forward(self, request: str, option: str) -> None:
        self._told[request] = option
        self._t.tell(self._t.host.address, HostAnswer(request, option))

    def tell_again(self) -> None:
        """A host that has just said hello may not have been there when it was told; it ignores what it has applied."""
        for request, option in self._told.items():
            self._t.tell(self._t.host.address, HostAnswer(request, option))

    def forget(self) -> None:
        """The turn is over."""
        self._told.clear()

    def answer(self, delivery: Delivery, request: ThreadAnswer) -> None:
        permission, option = self._t.permissions.choose(request.id, request.option, request.sender)
        by = str(request.sender.get("name") or request.sender.get("id") or request.route)
        outcome = option["name"] if option else "cancelled"
        oid = str(option["id"]) if option else ""
        state = "decided" if option else "cancelled"
        self._t.permissions.decide(permission.id, f"{outcome}, by {by} in {request.route}")
        self._t.cancel_timer(f"expire:{permission.id}")
        allows = option is not None and str(option.get("kind", "")).startswith("allow")
        if not allows:
            self._forward(permission.request, oid)

        def durable(answer: Any) -> None:
            if isinstance(answer, Failed):
                self._forward(permission.request, "")
                self._t.reply(delivery, answer)
                return
            if allows:
                self._forward(permission.request, oid)
            self._t.reply(delivery, Ok({"decided": outcome, "option": oid}))

        ops = [["permission_decide", permission.id, state, oid, by, self._t.now()]]
        event = {"event": "permission_done", "id": permission.id, "outcome": outcome, "option": oid, "by": by, "route": request.route}
        self._t.record(ops, durable, events=[(self._t.turn, "permission_done", event)])

    def expire(self, pid: str) -> None:
        permission = next((p for p in self._t.permissions.open() if p.id == pid), None)
        if permission is not None:
            self._settle(permission, "expired", "it expired")

    def cancel_all(self, turn: str, why: str) -> None:
        for permission in self._t.permissions.of_turn(turn):
            self._settle(permission, "cancelled", why)

    def _settle(self, permission: Permission, state: str, why: str) -> None:
        self._t.permissions.decide(permission.id, why)
        self._t.cancel_timer(f"expire:{permission.id}")
        self._forward(permission.request, "")
        event = {"event": "permission_done", "id": permission.id, "outcome": state, "option": "", "by": "", "why": why}
        ops = [["permission_decide", permission.id, state, "", "", self._t.now()]]
        self._t.record(ops, None, events=[(self._t.turn, "permission_done", event)])
