"""`va pickup CODE` and `va launch --resume ID`: the writer moves to a terminal. The host stops first and is seen gone; only then the command is given."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from actors.attach_external import SessionLookup
from agents_registry.errors import BusyError, VibeAroundError, from_wire
from agents_registry.launch import resume_command, shell_line
from transports.bus.api import Delivery
from transports.bus.vocabulary.conversation import Failed, Ok
from transports.bus.vocabulary.handover import ClaimCode, PickupTerminal, SettleClaim
from transports.bus.vocabulary.lists import EndSessionHost
from transports.bus.vocabulary.storage import Load, Record
from transports.bus.vocabulary.threads import ThreadRelease

if TYPE_CHECKING:
    from actors.attach import Attacher


class WriterMoves:
    """A thread's writer goes to a terminal: its turn has ended, its host is gone, and both are on record, in this order.

    `away` is {pid, start_time} of the terminal's process; `again` says what to do once a running turn is over."""

    def __init__(self, attacher: Attacher, thread: str, away: dict[str, Any], again: str) -> None:
        self._a, self._thread, self._away, self._again = attacher, thread, away, again
        self._until = attacher.clock.monotonic() + attacher.settings.threads.pickup_wait_s

    def begin(self, then: Callable[[], None], fail: Callable[[VibeAroundError], None]) -> None:
        """Wait for the chat's turn to end, as long as a pickup waits; then the host must be gone."""
        limit = self._a.settings.hosts.stop_s * 8 + 10

        def durable(answer: Any) -> None:
            if isinstance(answer, Failed):
                fail(from_wire(answer.error))
            else:
                then()

        def released(answer: Any) -> None:
            if isinstance(answer, Ok):
                self._a.ask("journal", Record([["thread_away", self._thread, self._away]]), durable)
                return
            if answer.error[1] == "turn_running" and self._a.clock.monotonic() < self._until:
                self._a.clock.call_later(0.3, lambda: self._a.later(lambda: self.begin(then, fail)))
                return
            fail(
                BusyError(
                    "A turn is running in the chat; the terminal would be a second writer.",
                    hint=f"Wait for it to end, or stop it there with /stop, {self._again}.", code="turn_running",
                )
            )

        release = ThreadRelease("the conversation goes to a terminal", False, self._away)
        self._a.ask(f"thread/{self._thread}", release, released, limit_s=limit)


class TerminalLaunch:
    """`va launch --resume ID`: the session goes on in that process; a thread that has it is away meanwhile."""

    def __init__(self, attacher: Attacher, delivery: Delivery, request: EndSessionHost) -> None:
        self._a, self._delivery, self._request = attacher, delivery, request
        self._spec = attacher.registry.get(request.agent)

    def begin(self) -> None:
        query = Load("thread_of_session", [self._spec.id, [self._request.session]])
        self._a.ask("history", query, lambda a: self._found(a.data["thread"] if isinstance(a, Ok) else ""))

    def _found(self, thread: str) -> None:
        if not thread:
            self._a.reply(self._delivery, Ok({"ended": False}))
            return
        away = {"pid": self._request.pid, "start_time": self._request.start_time}
        moves = WriterMoves(self._a, thread, away, "then run `va launch` again")
        done = Ok({"ended": True, "thread": thread})
        moves.begin(lambda: self._a.reply(self._delivery, done), lambda error: self._a.fail(self._delivery, error))


class TerminalPickup:
    """One pickup into a terminal on its way."""

    def __init__(self, attacher: Attacher, delivery: Delivery, request: PickupTerminal) -> None:
        self._a = attacher
        self._delivery = delivery
        self._request = request
        self._route = f"terminal:{request.pid}"
        self._session: dict[str, Any] = {}
        self._lookup: SessionLookup | None = None

    def begin(self) -> None:
        peer = self._delivery.peer
        user = f"terminals of uid {peer.uid}" if peer is not None else ""
        # Misses of terminals count for the user's own terminals together: each has its own pid.
        claim = ClaimCode(self._request.code, "terminal" if self._request.keep_host else self._route, user, self._a.clock.monotonic())
        self._route = claim.route
        self._a.ask("handover", claim, self._claimed)

    def _claimed(self, answer: Any) -> None:
        if isinstance(answer, Failed):
            self._a.reply(self._delivery, answer)
            return
        self._lookup = SessionLookup(self._a, answer.payload)
        self._lookup.find(self._found, self._fail)

    def _fail(self, error: VibeAroundError) -> None:
        self._settle(False)
        self._a.fail(self._delivery, error)

    def _settle(self, done: bool) -> None:
        self._a.tell("handover", SettleClaim(self._request.code, self._route, done))

    def _found(self, session: dict[str, Any]) -> None:
        self._session = session
        if self._request.keep_host:
            self._settle(False)
            self._answer("")
            return
        assert self._lookup is not None
        ids = [session["id"], *session.get("aliases", [])]
        query = Load("thread_of_session", [self._lookup.spec.id, ids, session["store_root"]])
        self._a.ask("history", query, lambda a: self._thread(a.data["thread"] if isinstance(a, Ok) else ""))

    def _thread(self, thread: str) -> None:
        if not thread:
            self._settle(True)
            self._answer("")
            return
        away = {"pid": self._request.pid, "start_time": self._request.start_time}
        again = "then run `va pickup` again: the code is still valid"

        def moved() -> None:
            self._settle(True)
            self._answer(thread)

        WriterMoves(self._a, thread, away, again).begin(moved, self._fail)

    def _answer(self, thread: str) -> None:
        assert self._lookup is not None
        s = self._session
        try:
            argv = resume_command(self._lookup.spec, s["id"], s["cwd"])
        except VibeAroundError as error:
            self._a.fail(self._delivery, error)
            return
        data = {
            "agent": self._lookup.spec.id, "session": s["id"], "cwd": s["cwd"], "argv": list(argv),
            "line": shell_line(argv, s["cwd"]), "thread": thread, "title": s["title"], "env": self._lookup.payload.get("env") or {},
        }
        self._a.reply(self._delivery, Ok(data))

