"""What changes round a thread: chats join and leave, the session is set, the writer moves away, it is closed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from actors.turns import Turn, error_event
from agents_registry.errors import BusyError, RefusedError
from transports.bus.api import Delivery
from transports.bus.vocabulary.conversation import Ok
from transports.bus.vocabulary.hosting import HostCancel
from transports.bus.vocabulary.storage import Load
from transports.bus.vocabulary.threads import ThreadClose, ThreadRelease, ThreadRoutes, ThreadSession

if TYPE_CHECKING:
    from actors.threads import ThreadSupervisor


class ThreadBindings:
    def __init__(self, thread: ThreadSupervisor) -> None:
        self._t = thread

    def set_routes(self, request: ThreadRoutes) -> None:
        before, self._t.routes = self._t.routes, [r[0] for r in request.routes]
        for word, route in (("joined", request.joined), ("left", request.left)):
            others = [r for r in (self._t.routes if word == "joined" else before) if r != route]
            if route and others:
                by = str(request.sender.get("name") or "")
                body = {"event": "notice", "text": f"{route} {word} this conversation.", "what": word, "route": route, "by": by}
                self._t.record([], None, events=[(None, "notice", body)], fanout=others)
        if request.joined and self._t.turn is not None:
            self._catch_up(request.joined, self._t.turn)
        self._t.rest()

    def _catch_up(self, route: str, turn: Turn) -> None:
        """Who joins in mid-turn is shown that turn from its first event, with what is still open of it."""
        still_open = {p.id for p in self._t.permissions.open()}

        def shown(answer: Any) -> None:
            events = answer.data["events"] if isinstance(answer, Ok) else []
            again = [
                (turn, e["kind"], e["body"])
                for e in events
                if e["kind"] in ("asked", "text", "tool", "plan") or (e["kind"] == "permission" and e["body"].get("id") in still_open)
            ]
            if again:
                self._t.record([], None, events=again, fanout=[route], target=route)

        self._t.ask("history", Load("turn_events", [turn.route, turn.key]), shown)

    def set_session(self, delivery: Delivery, request: ThreadSession) -> None:
        if self._t.turn is not None:
            raise BusyError("A turn is running in this conversation.", hint="Wait for it, or /stop it first.")

        def gone() -> None:
            self._t.session, self._t.store_root = request.session, request.store_root
            self._t.row["start"] = request.start
            self._t.reply(delivery, Ok({"session": self._t.session}))
            self._t.pump()

        self._t.host.stop("another session", gone)

    def release(self, delivery: Delivery, request: ThreadRelease) -> None:
        if self._t.turn is not None and not request.stop_turn:
            raise BusyError(
                "A turn is running in this conversation.", hint="Wait for it to end, or stop it with /stop.", code="turn_running"
            )
        if self._t.turn is not None and self._t.turn.sent:
            self._t.turn.cancelling = True
            self._t.tell(self._t.host.address, HostCancel(self._t.turn.id))

        def gone() -> None:
            self._t.away.begin(request.away)
            self._t.reply(delivery, Ok({"session": self._t.session}))

        self._t.host.stop(request.reason, gone)

    def close(self, request: ThreadClose) -> None:
        self._t.closing = True
        self._t.row["status"] = "closed"
        closed = RefusedError(f"The conversation was closed: {request.reason}.", code="thread_closed")
        for waiting in self._t.queue.drop_all():
            self._t.answer_unrun(waiting, error_event(closed.to_wire()))
        if self._t.turn is None:
            self.finish_close()

    def finish_close(self) -> None:
        self._t.host.stop("closed", self._t.leave)
