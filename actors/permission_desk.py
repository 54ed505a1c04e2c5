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
        self._to_tell: list[list[str]] = []

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
        self._to_tell = decided

    def tell_again(self) -> None:
        """To the adopted host, which ignores what it has applied already."""
        decided, self._to_tell = self._to_tell, []
        for request, option in decided:
            self._t.tell(self._t.host.address, HostAnswer(request, option))

    def answer(self, delivery: Delivery, request: ThreadAnswer) -> None:
        permission, option = self._t.permissions.choose(request.id, request.option, request.sender)
        by = str(request.sender.get("name") or request.sender.get("id") or request.route)
        outcome = option["name"] if option else "cancelled"
        oid = str(option["id"]) if option else ""
        state = "decided" if option else "cancelled"
        self._t.permissions.decide(permission.id, f"{outcome}, by {by} in {request.route}")
        self._t.cancel_timer(f"expire:{permission.id}")
        forward = HostAnswer(permission.request, oid)
        allows = option is not None and str(option.get("kind", "")).startswith("allow")
        if not allows:
            self._t.tell(self._t.host.address, forward)

        def durable(answer: Any) -> None:
            if isinstance(answer, Failed):
                self._t.tell(self._t.host.address, HostAnswer(permission.request, ""))
                self._t.reply(delivery, answer)
                return
            if allows:
                self._t.tell(self._t.host.address, forward)
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
        self._t.tell(self._t.host.address, HostAnswer(permission.request, ""))
        event = {"event": "permission_done", "id": permission.id, "outcome": state, "option": "", "by": "", "why": why}
        ops = [["permission_decide", permission.id, state, "", "", self._t.now()]]
        self._t.record(ops, None, events=[(self._t.turn, "permission_done", event)])
