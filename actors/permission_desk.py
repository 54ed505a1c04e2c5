"""What a thread does with its permissions: decide once, forward, expire, cancel with the turn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from actors.permissions import Permission
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
