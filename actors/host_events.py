"""What a host reports, on its way into the journal and out to the routes.

Each numbered event becomes one journal record: the host's position, the event as surfaces show it, and what it changes
(session, permission, end of the turn), together. It is acked to the host when that is durable. Text in the making is
held back while an event before it is not yet durable, so that a surface sees both in the agent's order; what its
finished block overtakes is dropped, since that brings the whole text.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from actors.permissions import Permission
from actors.turns import ended, surface_event, who
from agents_registry.errors import AgentError, VibeAroundError, from_wire
from transports.bus.vocabulary.conversation import Failed
from transports.bus.vocabulary.hosting import HostAck, HostDelta, HostEvent

if TYPE_CHECKING:
    from actors.threads import ThreadSupervisor

MAX_HELD = 512
"""Pieces of text held back; beyond that the oldest is dropped: the finished block brings the whole text anyway."""

_FINISHES = frozenset({"text", "thought", "turn_end"})
"""Events after which a piece that is still held back would be shown a second time, behind the whole."""


class HostEvents:
    def __init__(self, thread: ThreadSupervisor) -> None:
        self._thread = thread
        self._taken = 0
        self._undurable = 0
        self._held: deque[dict[str, Any]] = deque(maxlen=MAX_HELD)

    def forget(self) -> None:
        """The host is gone: the next one counts from 1."""
        self._taken = 0
        self._held.clear()

    # --- text in the making ---

    def delta(self, delta: HostDelta) -> None:
        thread = self._thread
        if delta.epoch != thread.host.epoch or thread.turn is None or thread.turn.id != delta.turn:
            return
        event = {"event": delta.kind, "block": delta.block, "offset": delta.offset, "text": delta.text, "final": False}
        if self._undurable:
            self._held.append(event)
        else:
            thread.preview(event)

    def _durable_one(self) -> None:
        self._undurable -= 1
        while not self._undurable and self._held:
            self._thread.preview(self._held.popleft())

    # --- numbered events ---

    def take(self, event: HostEvent) -> None:
        thread = self._thread
        if event.epoch != thread.host.epoch:
            return
        self._taken = max(self._taken, thread.host.acked)
        if event.seq <= self._taken:
            thread.tell(thread.host.address, HostAck(thread.host.acked))
            return
        if event.seq != self._taken + 1:
            return  # a gap: the host sends again from the acked one when it reconnects
        self._taken = event.seq
        if event.kind in _FINISHES:
            self._held.clear()
        handler = getattr(self, f"_on_{event.kind}", self._on_other)
        handler(event, event.body)

    def _store(
        self, event: HostEvent, ops: list[Any], shown: dict[str, Any] | None, then: Any = None, *, turn_bound: bool = True
    ) -> None:
        thread = self._thread
        turn = thread.turn if turn_bound and thread.turn is not None and event.turn in ("", thread.turn.id) else None
        acked = ["host_acked", thread.thread_id, "host", event.epoch, event.seq]
        events = [(turn, shown["event"], shown)] if shown else []
        self._undurable += 1

        def durable(answer: Any) -> None:
            if isinstance(answer, Failed):
                # Not durable: forget that it was taken; the host keeps it and sends it again.
                self._taken = min(self._taken, event.seq - 1)
                self._durable_one()
                return
            if event.epoch == thread.host.epoch:
                thread.host.acked = max(thread.host.acked, event.seq)
                thread.tell(thread.host.address, HostAck(thread.host.acked))
            self._durable_one()
            if then is not None:
                then()

        thread.record([acked, *ops], durable, events=events)

    def _on_other(self, event: HostEvent, body: dict[str, Any]) -> None:
        if event.kind == "mode":
            self._thread.info["mode"] = body.get("mode")
        elif event.kind == "commands":
            self._thread.info["commands"] = body.get("commands")
        ops = []
        if event.kind == "title" and body.get("title"):
            self._thread.row["title"] = str(body["title"])
            ops.append(["thread_title", self._thread.thread_id, str(body["title"])])
        self._store(event, ops, surface_event(event.kind, body))

    def _on_ready(self, event: HostEvent, body: dict[str, Any]) -> None:
        thread = self._thread
        session, started = str(body["session"]), str(body.get("start", "new"))
        before = thread.session
        ops: list[Any] = []
        if session != before:
            alias = before if started in ("resumed", "forked") else ""
            current = [thread.thread_id, thread.row["agent"], thread.store_root, session, alias, thread.now()]
            ops.append(["session_current", *current])
        if thread.row.get("start") != "resume":
            ops.append(["thread_start", thread.thread_id, "resume"])
        thread.row["start"] = "resume"
        thread.session = session
        thread.info = {k: body.get(k) for k in ("modes", "mode", "model", "commands", "agent_name", "agent_version", "joined")}
        shown = thread.session_event("new" if started == "new" else "resumed")
        if started == "forked":
            shown["forked_from"] = body.get("forked_from") or before
        waiting = next(iter(thread.queue), None)
        if waiting is not None:
            shown["key"] = waiting.key
            waiting.told_session = True

        def durable() -> None:
            thread.host.is_ready(thread.row["agent"], session)
            turn = thread.turn
            if turn is not None and turn.started and not turn.sent:
                thread._send(turn)
            thread.pump()

        self._store(event, ops, shown, durable)

    def _on_failed(self, event: HostEvent, body: dict[str, Any]) -> None:
        thread = self._thread
        error: VibeAroundError = AgentError(
            str(body.get("message", "the agent could not start")), hint=str(body.get("hint", "")),
            code=str(body.get("code", "agent_failed")),
        )
        if body.get("exit_code") not in (None, 7):
            error = _as_kind(int(body["exit_code"]), error)
        self._store(event, [], None)
        waiting = next(iter(thread.queue), None)
        if body.get("phase") in ("resume", "load", "fork") and waiting is not None:
            thread.resume.ask_how(waiting.route, waiting.key, error)
        else:
            thread.host_failed(error)

    def _on_session(self, event: HostEvent, body: dict[str, Any]) -> None:
        thread = self._thread
        before, thread.session = thread.session, str(body["session"])
        current = [thread.thread_id, thread.row["agent"], thread.store_root, thread.session, before, thread.now()]
        shown = {"event": "notice", "text": f"The session's id is now {thread.session} (was {before})."}
        self._store(event, [["session_current", *current]], shown)

    def _on_foreign(self, event: HostEvent, body: dict[str, Any]) -> None:
        """The terminal that this host has joined is at work, has said something, or has left."""
        thread, what = self._thread, str(body.get("what", ""))
        thread.tail.joined_terminal(what)
        shown: dict[str, Any] | None = None
        if what == "said":
            shown = {"event": "notice", "text": f"terminal: {body.get('text', '')}", "what": "terminal"}
        elif what == "left":
            text = "The terminal has left; the conversation goes on here alone, in the same session."
            shown = {"event": "notice", "text": text, "what": "terminal_left"}
        self._store(event, [], shown, thread.pump, turn_bound=False)

    def _on_permission(self, event: HostEvent, body: dict[str, Any]) -> None:
        thread = self._thread
        turn = thread.turn
        person = who(turn.sender) if turn else ""
        permission = Permission(
            thread.new_id("pm"), str(body["id"]), event.turn, person, turn.route if turn else "", body
        )
        thread.permissions.add(permission)
        limit = thread.settings.permissions.expire_s
        thread.set_timer(f"expire:{permission.id}", limit)
        add = ["permission_add", permission.id, thread.thread_id, event.turn, permission.request, body, thread.now()]
        shown = {**permission.event(), "person": turn.person if turn else "", "expires_in_s": limit, "asked_at": thread.now()}
        self._store(event, [add], shown)

    def _on_permission_done(self, event: HostEvent, body: dict[str, Any]) -> None:
        """The host settled it by itself (the agent withdrew it, the turn was cancelled, the lease ran out)."""
        thread = self._thread
        permission = thread.permissions.by_request(str(body.get("id", "")))
        if permission is None:
            self._store(event, [], None)
            return
        outcome = str(body.get("outcome") or "cancelled")
        thread.permissions.decide(permission.id, outcome)
        thread.cancel_timer(f"expire:{permission.id}")
        decide = ["permission_decide", permission.id, "cancelled", "", "", thread.now()]
        shown = {"event": "permission_done", "id": permission.id, "outcome": outcome, "option": "", "by": ""}
        self._store(event, [decide], shown)

    def _on_turn_end(self, event: HostEvent, body: dict[str, Any]) -> None:
        thread = self._thread
        turn = thread.turn
        if turn is None or turn.id != event.turn:
            self._store(event, [], None)
            return
        shown = ended(body)
        stop_reason = str(body.get("stop_reason") or ("error" if shown["event"] == "error" else "end_turn"))
        if turn.cancelling and shown["event"] == "done":
            stop_reason = shown["stop_reason"] = "cancelled"
        for permission in thread.permissions.of_turn(turn.id):
            thread.permissions.decide(permission.id, "cancelled with its turn")
            thread.cancel_timer(f"expire:{permission.id}")
        state = {"error": "failed"}.get(shown["event"], "cancelled" if stop_reason == "cancelled" else "done")
        ops = [["turn_end", turn.id, state, stop_reason, thread.now()]]
        if body.get("host_ends"):
            thread.host.stop("its agent has ended")
        self._store(event, ops, shown, thread.turn_ended)

    def _on_agent_gone(self, event: HostEvent, body: dict[str, Any]) -> None:
        detached = body.get("detached") or []
        shown = None
        if detached:
            names = ", ".join(str(d) for d in detached[:5])
            shown = {"event": "notice", "text": f"Left running by the agent's tools: {names}."}
        self._store(event, [], shown)


def _as_kind(exit_code: int, error: VibeAroundError) -> VibeAroundError:
    return from_wire([exit_code, error.code, error.message, error.hint])
