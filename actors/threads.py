"""The thread supervisor: one conversation, its queue of turns, its host, its permissions, its idle timer.

One turn at a time; output fans out to every attached route; after idle minutes the host stops and the thread stays.
What a host reports is durable before a surface sees it, and acked to the host only then.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from actors.away import TIMER as AWAY
from actors.away import Away
from actors.consent import Consent
from actors.host_events import HostEvents
from actors.host_link import INSTANCE, HostLink
from actors.mailbox import Clock, Continue, Mailbox
from actors.permission_desk import PermissionDesk
from actors.permissions import Permissions
from actors.resume import Resume
from actors.tail_check import TIMER as TAIL
from actors.tail_check import TailCheck
from actors.thread_bindings import ThreadBindings
from actors.turns import Turn, TurnQueue, error_event, who
from agents_registry.errors import AgentError, BusyError, NotFoundError, RefusedError, UsageError, VibeAroundError
from transports.bus.api import Bus, Delivery
from transports.bus.vocabulary.children import HostExited, HostState, SpawnHost
from transports.bus.vocabulary.conversation import Failed, Ok, PeerGone
from transports.bus.vocabulary.hosting import HostCancel, HostDelta, HostEvent, HostHello, HostPrompt, HostSetMode
from transports.bus.vocabulary.storage import Load, Record
from transports.bus.vocabulary.surface import Preview
from transports.bus.vocabulary.threads import (
    RouteAsk,
    ThreadAnswer,
    ThreadClose,
    ThreadNotice,
    ThreadPrompt,
    ThreadRelease,
    ThreadRoutes,
    ThreadSession,
    ThreadStatus,
    ThreadStop,
    TurnOver,
)
from transports.settings import Settings

IDLE, CANCEL, LOST = "idle", "cancel", "host-lost"
MAX_BUFFERED = 256


class ThreadSupervisor(Mailbox):
    """`new_id(prefix)` gives an id that is unique everywhere; `leave` is called when the actor may leave memory.

    `asks(agent)`: whether it can be hosted in a mode in which it asks before it acts."""

    def __init__(
        self, thread_id: str, bus: Bus, clock: Clock, settings: Settings, new_id: Callable[[str], str],
        leave: Callable[[], None], asks: Callable[[str], bool] = lambda agent: True,
    ) -> None:
        super().__init__(f"thread/{thread_id}", bus, clock)
        self.thread_id = thread_id
        self.settings = settings
        self.new_id = new_id
        self.leave = leave
        hosts = settings.hosts
        self.host = HostLink(self, (hosts.start_s, hosts.stop_s, hosts.reclaim_s))
        self.events = HostEvents(self)
        self.queue = TurnQueue(settings.routes.max_queue * 8)
        self.permissions = Permissions()
        self.desk = PermissionDesk(self)
        self.bindings = ThreadBindings(self)
        self.away = Away(self)
        self.resume = Resume(self)
        self.consent = Consent(self, asks)
        self.tail = TailCheck(self)
        self.turn: Turn | None = None
        self.row: dict[str, Any] = {}
        self.session = ""
        self.store_root = ""
        self.routes: list[str] = []
        self.info: dict[str, Any] = {}
        """What the last ready event said: modes, model, agent name and version."""
        self.deciding = False
        """The people are asked how to go on with a session that could not be resumed: nothing is started meanwhile."""
        self._loaded = False
        self.closing = False
        self._buffer: deque[Delivery] = deque()
        self.ask("history", Load("thread", [thread_id]), self._on_loaded, limit_s=20.0)

    # --- loading ---

    def receive(self, delivery: Delivery) -> None:
        if not self._loaded and delivery.corr >= 0:
            if len(self._buffer) >= MAX_BUFFERED:
                self.fail(delivery, BusyError("the conversation is still being loaded.", hint="Try again in a moment."))
                return
            self._buffer.append(delivery)
            return
        super().receive(delivery)

    def _on_loaded(self, answer: Any) -> None:
        self._loaded = True
        buffered, self._buffer = self._buffer, deque()
        if isinstance(answer, Failed):
            for delivery in buffered:
                self.reply(delivery, answer)
            self.leave()
            return
        data = answer.data
        self.row = data["thread"]
        self.routes = [r[0] for r in data["routes"]]
        self.away.process = self.row["away"]
        current = next((s for s in data["sessions"] if s["current"]), None)
        if current is not None:
            self.session, self.store_root = current["id"], current["store_root"]
        for turn in data["turns"]:
            self.turn = Turn(
                turn["id"], turn["key"], turn["route"], turn["prompt"], turn["sender"], turn["attachments"], started=True, sent=True
            )
        self.desk.recall(data["permissions"], data["decided"])
        self.host.recall(next((h for h in data["hosts"] if h["instance"] == INSTANCE), None))
        if self.host.state == "reclaiming" and self.turn is None:
            self.tail.reclaimed(float(self.row.get("updated_at") or 0.0))
        if self.turn is not None and self.host.state == "dead":
            self._interrupted("the agent was not running when the supervisor came back")
        for delivery in buffered:
            self.receive(delivery)

    # --- messages ---

    def handle(self, delivery: Delivery) -> None:
        message = delivery.message
        if isinstance(message, HostDelta):
            self.events.delta(message)
        elif isinstance(message, HostEvent):
            self.events.take(message)
        elif isinstance(message, HostHello):
            self.host.hello(delivery, message)
        elif isinstance(message, HostExited):
            self.host.exited(message)
        elif isinstance(message, ThreadPrompt):
            self._prompt(delivery, message)
        elif isinstance(message, ThreadStop):
            self._stop(delivery, message)
        elif isinstance(message, ThreadAnswer):
            self.desk.answer(delivery, message)
        elif isinstance(message, ThreadRoutes):
            self.bindings.set_routes(message)
        elif isinstance(message, ThreadStatus):
            self.reply(delivery, Ok(self.status()))
        elif isinstance(message, ThreadRelease):
            self.bindings.release(delivery, message)
        elif isinstance(message, ThreadSession):
            self.bindings.set_session(delivery, message)
        elif isinstance(message, ThreadClose):
            self.bindings.close(message)
        elif isinstance(message, ThreadNotice):
            body = {"event": "notice", "text": message.text, "what": message.what}
            self.record([], None, events=[(None, "notice", body)])
        elif isinstance(message, PeerGone):
            if self.host.state in ("idle", "busy", "starting"):
                self.set_timer(LOST, self.settings.hosts.reclaim_s * 3)
        elif not isinstance(message, Failed):
            raise UsageError("a thread does not know this message.", code="unknown_message")

    def alarm(self, name: str) -> None:
        if self.host.alarm(name):
            return
        if name == IDLE:
            if self.host.state == "idle" and self.turn is None and not len(self.queue):
                self.host.stop("idle")
        elif (name == CANCEL and self.turn is not None and self.turn.cancelling) or name == LOST:
            self.host.kill()
        elif name.startswith("expire:"):
            self.desk.expire(name.removeprefix("expire:"))
        elif name == TAIL:
            self.tail.alarm()
        elif name == AWAY:
            self.away.alarm()
        elif name == "leave":
            self.rest()

    # --- prompts and turns ---

    def _prompt(self, delivery: Delivery, request: ThreadPrompt) -> None:
        if self.row.get("status") != "open" or self.closing:
            raise RefusedError("This conversation is closed.", hint="Start a new one with /new.", code="thread_closed")
        same = self.turn is not None and (self.turn.route, self.turn.key) == (request.route, request.key)
        if same or self.queue.knows(request.route, request.key):
            self.reply(delivery, Ok({"state": "known", "position": 0}))
            return
        if self.queue.full:
            raise BusyError("Too many messages wait in this conversation.", hint="Wait for the turn to end, or /stop.")
        turn = Turn(
            self.new_id("tn"), request.key, request.route, request.text, request.sender, request.attachments, request.kind
        )
        place = self.queue.add(turn) + (1 if self.turn is not None else 0)
        waits = place > 1
        answer: dict[str, Any] = {"state": "queued" if waits else "started", "position": place - 1, "turn": turn.id}
        if self.host.ready:
            turn.told_session = True
            answer["session"] = self.session_event("resumed")
        self.reply(delivery, Ok(answer))
        self.pump()

    def pump(self) -> None:
        """Begin the next turn when there is one and the host can take it; start the host when it is needed."""
        if self.turn is not None or not self._loaded or self.deciding:
            return
        if not len(self.queue):
            self.rest()
            return
        self.cancel_timer(IDLE)
        if self.host.state == "dead":
            if not self.away.holds():
                self.resume.start()
            return
        if not self.host.ready or not self.tail.clear():
            return
        turn = self.queue.next()
        assert turn is not None
        if turn.kind in ("mode", "plan"):
            self._set_mode(turn)
            return
        self.turn = turn
        self.host.working(True)
        if not turn.told_session:
            # It came while the host was being reclaimed, or behind another one that woke it.
            shown = {**self.session_event("resumed"), "key": turn.key}
            self.record([], None, events=[(turn, "session", shown)], fanout=[turn.route], target=turn.route)
        prompt, at = turn.text, self.now()
        ops = [["turn_start", turn.id, turn.key, self.thread_id, turn.route, prompt, turn.sender, at]]
        self.record(ops, self._turn_durable, events=[(turn, "asked", turn.asked())])

    def _turn_durable(self, answer: Any) -> None:
        turn = self.turn
        if turn is None:
            return
        if isinstance(answer, Failed):
            self.turn = None
            self.answer_unrun(turn, error_event(answer.error))
            self.host.working(False)
            self.pump()
            return
        turn.started = True
        if self.host.ready and not turn.sent:
            self._send(turn)

    def _send(self, turn: Turn) -> None:
        turn.sent = True
        self.tell(self.host.address, HostPrompt(turn.id, turn.blocks()))
        if turn.cancelling:
            self.tell(self.host.address, HostCancel(turn.id))

    def answer_unrun(self, turn: Turn, event: dict[str, Any]) -> None:
        """The visible word for a prompt that never became a turn of the agent."""

        # No row of a turn says later which message this was about.
        event = {**event, "key": turn.key}

        def durable(answer: Any) -> None:
            # With the journal refusing, the word still reaches whoever is connected.
            self.tell(f"route/{turn.route}", TurnOver(turn.key, event if isinstance(answer, Failed) else {}))

        ops = [["inbox_done", turn.route, turn.key]]
        self.record(ops, durable, events=[(turn, event["event"], event)], fanout=[turn.route], target=turn.route)

    def turn_ended(self) -> None:
        """After the end of the running turn is durable."""
        turn, self.turn = self.turn, None
        self.desk.forget()
        self.cancel_timer(CANCEL)
        if turn is not None:
            self.tell(f"route/{turn.route}", TurnOver(turn.key, {}))
        self.host.working(False)
        self.tail.turn_over()
        if self.closing:
            self.bindings.finish_close()
            return
        self.pump()

    def _interrupted(self, why: str) -> None:
        """The host is gone and the turn with it: said so, and offered to run again; nothing is run twice by itself."""
        turn = self.turn
        if turn is None:
            return
        error = {
            "event": "error", "code": "interrupted", "exit_code": 7,
            "message": f"The turn was interrupted: {why}.", "hint": "Send it again to run it again.",
        }
        self.desk.cancel_all(turn.id, "the turn was interrupted")
        if turn.cancelling:
            ended = {"event": "done", "stop_reason": "cancelled"}
            ops = [["turn_end", turn.id, "cancelled", "cancelled", self.now()]]
            self.record(ops, lambda _: self.turn_ended(), events=[(turn, "done", ended)])
            return
        ops = [["turn_end", turn.id, "interrupted", "interrupted", self.now()]]
        self.record(ops, lambda _: self.turn_ended(), events=[(turn, "error", error)])
        self._offer_again(turn)

    def _offer_again(self, turn: Turn) -> None:
        options = [["again", "run it again"], ["leave", "leave it"]]
        question = RouteAsk(
            self.new_id("q"), "The turn was interrupted. Run it again?", options, "leave",
            self.settings.choices.expire_s, turn.key,
        )

        def answered(answer: Any) -> None:
            if isinstance(answer, Ok) and answer.data.get("option") == "again":
                again = Turn(self.new_id("tn"), f"{turn.key}~again", turn.route, turn.text, turn.sender, turn.attachments)
                self.queue.add(again)
                self.pump()

        self.ask(f"route/{turn.route}", question, answered, limit_s=self.settings.choices.expire_s + 10)

    # --- stop, permissions, mode ---

    def _stop(self, delivery: Delivery, request: ThreadStop) -> None:
        dropped = self.queue.drop(request.route)
        for waiting in dropped:
            self.answer_unrun(waiting, {"event": "done", "stop_reason": "cancelled"})
        turn, cancelled = self.turn, 0
        owner = request.sender.get("role", "owner") == "owner"
        mine = turn is not None and (turn.route == request.route or owner or who(turn.sender) == who(request.sender))
        if turn is not None and mine and not turn.cancelling:
            cancelled = 1
            turn.cancelling = True
            if turn.sent:
                # Forwarded first, journaled by the turn's end: stopping works with a slow or full disk.
                self.tell(self.host.address, HostCancel(turn.id))
            # The host ends an agent that is deaf to it; this is for a host that is deaf itself.
            self.set_timer(CANCEL, self.settings.threads.cancel_s + self.settings.hosts.stop_s * 4)
        self.reply(delivery, Ok({"cancelled": cancelled, "dropped": len(dropped)}))

    def _set_mode(self, turn: Turn) -> None:
        modes = [m for m in self.info.get("modes") or [] if isinstance(m, dict)]
        wanted = self.host.plan_mode if turn.kind == "plan" else turn.text
        chosen = next((m["id"] for m in modes if wanted and wanted in (m.get("id"), m.get("name"))), "")
        if not chosen:
            known = ", ".join(str(m.get("id")) for m in modes) or "none"
            what = "This agent has no plan mode" if turn.kind == "plan" else f"This agent has no mode {turn.text!r}"
            hint = f"Its modes: {known}."
            self.answer_unrun(turn, error_event(NotFoundError(f"{what}.", hint=hint, code="no_mode").to_wire()))
            self.pump()
            return

        def answered(answer: Any) -> None:
            if isinstance(answer, Failed):
                event = error_event(answer.error)
            else:
                mode = str(answer.data.get("mode", chosen))
                self.info["mode"] = self.row["mode"] = mode
                self.record([["thread_mode", self.thread_id, mode]])
                event = {"event": "reply", "text": f"Mode is now {mode}."}
            self.answer_unrun(turn, event)
            self.pump()

        self.ask(self.host.address, HostSetMode(chosen), answered, limit_s=30.0)

    def rest(self) -> None:
        """Nothing to do: stop the host later (or now when nobody is attached), leave memory when it is gone."""
        if self.turn is not None or len(self.queue) or len(self.permissions):
            self.cancel_timer(IDLE)
            return
        if self.host.state == "idle":
            self.set_timer(IDLE, self.settings.threads.idle_shutdown_s if self.routes else 0.0)
        elif self.host.state == "dead":
            if self.quiet:
                self.leave()
            elif "leave" not in self._timers:
                self.set_timer("leave", 5.0)

    # --- what the link and the events need ---

    def session_event(self, start: str) -> dict[str, Any]:
        return {
            "event": "session", "agent": self.row["agent"], "session": self.session, "workspace": self.row["workspace"],
            "cwd": self.row["cwd"], "thread": self.thread_id, "start": start,
        }

    def now(self) -> float:
        return self.clock.now()

    def tell_state(self, state: str) -> None:
        self.tell("hosts", HostState(self.thread_id, state))

    def spawn_request(self, epoch: int) -> SpawnHost:
        start = self.row.get("start", "new") if self.session else "new"
        return SpawnHost(
            self.thread_id, INSTANCE, epoch, self.row["agent"], self.row["profile"], self.row["cwd"],
            self.row["workspace"], self.session, "resume" if start == "new" and self.session else start,
            self.row["env"], self.row.get("mode", ""),
        )

    def host_adopted(self, hello: HostHello) -> None:
        self.cancel_timer(LOST)
        if hello.info:
            self.info = dict(hello.info)
        turn = self.turn
        # A turn that the host never saw is sent again; one that it has seen goes on or has ended, as its events say.
        if turn is not None and turn.started and turn.id not in hello.turns and hello.session:
            turn.sent = False
            self._send(turn)
        self.desk.tell_again()
        if turn is not None and turn.sent and turn.cancelling:
            self.tell(self.host.address, HostCancel(turn.id))
        if turn is None:
            self.pump()

    def host_failed(self, error: VibeAroundError) -> None:
        """The host could not be started: everything that waits is answered, and nothing is forgotten of the session."""
        for waiting in self.queue.drop_all():
            self.answer_unrun(waiting, error_event(error.to_wire()))
        self.rest()

    def host_dead(self, reason: str) -> None:
        self.cancel_timer(IDLE)
        self.cancel_timer(LOST)
        self.events.forget()
        self.tail.forget()
        if self.turn is not None:
            self._interrupted(reason)
        elif self.deciding:
            return
        elif not self.host.came_up and len(self.queue) and not self.host.asked_to_stop:
            hint = "Look at logs/host.log in the data directory and at `va doctor`, then send the message again."
            self.host_failed(AgentError(f"The agent's host ended before it was ready: {reason}.", hint=hint, code="host_ended"))
        else:
            self.pump()

    def spooled(self, events: list[Any]) -> None:
        for fields in events:
            self.events.take(HostEvent(*fields))

    def record(
        self, ops: list[Any], then: Continue | None = None, *, events: Sequence[tuple[Turn | None, str, dict[str, Any]]] | None = None,
        fanout: list[str] | None = None, target: str = "",
    ) -> None:
        """One transaction; its events go to the attached routes and to the route that asked."""
        rows, fans = [], []
        for turn, kind, body in events or []:
            origin = turn.route if turn else ""
            rows.append([self.thread_id, turn.id if turn else "", kind, body, target, origin])
            routes = fanout if fanout is not None else self.routes
            fans.append([*routes, origin] if origin and origin not in routes and not target else list(routes))
        self.ask("journal", Record(ops, rows, fans), then or self._recorded, limit_s=60.0)

    def _recorded(self, answer: Any) -> None:
        """Nothing depends on it; a failure is the journal's to report."""

    def preview(self, event: dict[str, Any]) -> None:
        turn = self.turn
        routes = self.routes if turn is None or turn.route in self.routes else [*self.routes, turn.route]
        for route in routes:
            self.tell(f"route/{route}", Preview(route, turn.id if turn else "", self.thread_id, event))

    def status(self) -> dict[str, Any]:
        return {
            "id": self.thread_id, "state": self.host.state, "busy": self.turn is not None, "agent": self.row["agent"],
            "profile": self.row["profile"], "cwd": self.row["cwd"], "workspace": self.row["workspace"],
            "title": self.row["title"], "session": self.session, "queue": len(self.queue), "routes": self.routes,
            "turn": self.turn.key if self.turn else "", "turn_route": self.turn.route if self.turn else "",
            "permissions": len(self.permissions), **{k: self.info.get(k) for k in ("model", "modes", "commands")},
            "mode": self.consent.mode(self.info.get("mode")),
        }
