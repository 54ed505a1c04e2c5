"""The route actor: the lane of one conversation path.

It takes what people write, in order: durable first, then accepted, then on to the thread. It shows what its thread
and its own commands have to say to whoever listens. An idle one leaves memory; its row stays.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from actors.choices import Choices
from actors.commands import Command, Prompt, Unknown, allowed, parse, rule
from actors.listeners import Listeners
from actors.mailbox import Clock, Mailbox
from actors.policy import agent_refused
from actors.route_commands import RouteCommands
from actors.route_feed import RouteFeed
from actors.turns import error_event
from agents_registry.errors import BusyError, NotFoundError, RefusedError, UsageError, from_wire
from transports.bus.api import Bus, Delivery
from transports.bus.vocabulary.conversation import Failed, Ok, PeerGone
from transports.bus.vocabulary.handover import Attached, NewThread
from transports.bus.vocabulary.storage import Load, Posted, Record
from transports.bus.vocabulary.surface import Accepted, Answer, ItemAck, Listen, Preview, StopTurn, Submit, Unlisten
from transports.bus.vocabulary.threads import (
    AgentTried,
    RouteAsk,
    RouteAttachment,
    RouteNotice,
    RouteUnask,
    ThreadAnswer,
    ThreadPrompt,
    ThreadStop,
    TurnOver,
)
from transports.settings import Settings

MAX_TEXT = 256 * 1024
"""Bytes of a prompt."""


SEEN_S = 1200.0
"""How often the row of a route that is listened to is marked; well within the hour after which it no longer counts."""


@dataclass(slots=True)
class Item:
    """One accepted message on its way through the lane."""

    key: str
    parsed: Prompt | Command
    sender: dict[str, Any]
    workspace: str = ""
    attachments: tuple[Any, ...] = ()
    received_at: float = 0.0
    agreed: bool = False
    """A binding change during the route's own turn was confirmed."""
    claim: Any = None
    waiting: bool = False
    """A question about it is open, or it waits for the turn to end."""
    question: str = ""


class RouteActor(Mailbox):
    """`leave` is called when the actor may leave memory."""

    def __init__(
        self, route: str, bus: Bus, clock: Clock, settings: Settings, new_id: Callable[[str], str], leave: Callable[[], None]
    ) -> None:
        super().__init__(f"route/{route}", bus, clock)
        self.route = route
        self.settings = settings
        self.new_id = new_id
        self._leave = leave
        self.thread = ""
        self.cwd = ""
        self.open_turns: dict[str, tuple[str, str]] = {}
        """Turns asked from here that are not over: key -> (turn id, thread)."""
        self.lane: deque[Item] = deque()
        self.choices = Choices()
        self.commands = RouteCommands(self)
        self.feed = RouteFeed(self)
        self.listeners = Listeners(route, self.tell, self.feed.fetch, self._key_of)
        self._keys: dict[str, str] = {}
        self.after: dict[str, Callable[[], None]] = {}
        """What is to be done when a turn is over, by its key."""
        self.first: dict[str, Callable[[Item, str], None]] = {}
        """What looks at the first prompt of a thread, by the thread; it calls `forward` in the end."""
        self._permissions: dict[str, str] = {}
        self._recording = 0
        self._working = False
        self._loaded = False
        self._buffer: deque[Delivery] = deque()
        self.ask("history", Load("route", [route]), self._on_loaded, limit_s=20.0)

    # --- loading ---

    def receive(self, delivery: Delivery) -> None:
        if not self._loaded and delivery.corr >= 0:
            if len(self._buffer) >= 256:
                self.fail(delivery, BusyError("this chat is still being loaded.", hint="Try again in a moment."))
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
            self._leave()
            return
        row = answer.data["route"]
        if row is not None:
            self.feed.position = row["position"]
            if row["status"] == "open":
                self.thread, self.cwd = row["thread"], row["cwd"]
        for turn in answer.data["turns"]:
            self.open_turns[turn["key"]] = (turn["id"], turn["thread"])
            self._keys[turn["id"]] = turn["key"]
        for waiting in answer.data["waiting"]:
            parsed = parse(waiting["text"])
            if not isinstance(parsed, Unknown):
                self.lane.append(
                    Item(waiting["key"], parsed, waiting["sender"], waiting["workspace"], tuple(waiting["attachments"]))
                )
        for delivery in buffered:
            self.receive(delivery)
        self.pump()

    # --- messages ---

    def handle(self, delivery: Delivery) -> None:
        message = delivery.message
        if isinstance(message, Posted):
            self._posted(message)
        elif isinstance(message, Preview):
            self.listeners.preview(message)
        elif isinstance(message, Submit):
            self._submit(delivery, message)
        elif isinstance(message, TurnOver):
            self._turn_over(message)
        elif isinstance(message, Listen):
            self.feed.listen(delivery, message)
        elif isinstance(message, ItemAck):
            if self.listeners.acked(delivery.sender, message.seq):
                self.feed.moved(message.seq)
        elif isinstance(message, Unlisten):
            self._left(delivery.sender)
            self.reply(delivery, Ok())
            self._rest()
        elif isinstance(message, PeerGone):
            self._left(message.address)
            self._rest()
        elif isinstance(message, Answer):
            self._answer(delivery, message)
        elif isinstance(message, StopTurn):
            self.stop(self.sender_of(delivery, message.sender), lambda answer: self.reply(delivery, answer))
        elif isinstance(message, RouteAttachment):
            self.thread, self.cwd = message.thread, message.cwd
        elif isinstance(message, RouteNotice):
            self.say({"event": "notice", "text": message.text, "key": message.turn})
        elif isinstance(message, RouteAsk):
            self.question(message, lambda option, by: self.reply(delivery, Ok({"option": option, "by": by})))
        elif isinstance(message, RouteUnask):
            self.withdraw(message.id, message.why)
        elif not isinstance(message, Failed):
            raise UsageError("a route does not know this message.", code="unknown_message")

    def _left(self, peer: str) -> None:
        heard = self.listeners.listening
        self.listeners.leave(peer)
        self.feed.left(peer)
        if heard and not self.listeners.listening:
            self.cancel_timer("seen")
            self._seen()

    def seen(self) -> None:
        """Somebody listens: the row says so now and again, as long as it is so."""
        self.set_timer("seen", SEEN_S)

    def _seen(self) -> None:
        self.ask("journal", Record([["route_known", self.route, self.clock.now()]]), lambda _: None, limit_s=60.0)

    def alarm(self, name: str) -> None:
        if name == "rest":
            if not self.listeners and not self.lane and not self.open_turns and not self._working and self.quiet:
                self._leave()
        elif name == "seen":
            if self.listeners.listening:
                self._seen()
                self.seen()
        elif name.startswith("choice:"):
            ask = self.choices.expire(name.removeprefix("choice:"))
            if ask is not None:
                self._choice_done(ask, ask.harmless, "")

    def sender_of(self, delivery: Delivery, claimed: dict[str, Any]) -> dict[str, Any]:
        """Who speaks, with the role that counts: a bridge vouches for its people, anybody else is what the kernel says."""
        peer = delivery.peer
        if peer is None:
            return dict(claimed)
        role = str(claimed.get("role", "")) if peer.role == "bridge" else peer.role
        known = {"id": claimed.get("id") or f"uid:{peer.uid}", "name": claimed.get("name") or "", "role": role}
        return {**known, "via": peer.name.removeprefix("bridge/")} if peer.role == "bridge" else known

    # --- what people write ---

    def _submit(self, delivery: Delivery, request: Submit) -> None:
        sender = self.sender_of(delivery, request.sender)
        if len(request.text.encode("utf-8", "replace")) > MAX_TEXT:
            raise UsageError(
                f"The message is longer than {MAX_TEXT // 1024} KiB.", hint="Put it into a file and name the file.", code="too_large"
            )
        if not request.key or not (request.text.strip() or request.attachments):
            raise UsageError("There is nothing in the message.", hint="Write some text.")
        parsed = parse(request.text)
        if isinstance(parsed, Unknown):
            self._check_role(delivery, sender, "help", "")
            self.reply(delivery, Ok({"event": "reply", "text": parsed.reply, "key": request.key}))
            return
        if isinstance(parsed, Command):
            self._check_role(delivery, sender, parsed.name, parsed.form)
            row = rule(parsed.name, parsed.form)
            if row.when == "at_once":
                self.commands.at_once(delivery, request, parsed, sender)
                return
            if row.when == "claimed":
                item = Item(request.key, parsed, sender, request.workspace, received_at=self.clock.monotonic())
                self.commands.claim(item, lambda: self._accept(delivery, request, item))
                return
        else:
            self._check_role(delivery, sender, "prompt", "")
        self._accept(delivery, request, Item(request.key, parsed, sender, request.workspace, tuple(request.attachments)))

    def _check_role(self, delivery: Delivery | None, sender: dict[str, Any], name: str, form: str) -> None:
        role = str(sender.get("role", ""))
        if allowed(role, name, form=form):
            return
        if role != "agent":
            raise RefusedError("not authorised", code="not_authorised")
        peer = delivery.peer if delivery is not None else None
        if peer is not None:
            self.tell("attempts", AgentTried("submit", peer.host_thread, self.route, peer.pid))
        raise agent_refused()

    def _accept(self, delivery: Delivery, request: Submit, item: Item) -> None:
        waiting = len(self.lane) + self._recording + max(0, len(self.open_turns) - 1)
        if waiting >= self.settings.routes.max_queue:
            self.commands.unclaim(item)
            self.fail(delivery, BusyError(
                f"{waiting} messages of this chat wait already; this one was not taken.",
                hint="Wait for the turn to end, or /stop to drop what waits.", code="queue_full",
            ))
            return
        self._recording += 1
        now = self.clock.now()
        add = ["inbox_add", self.route, request.key, request.text, item.sender, list(item.attachments), item.workspace, now]

        def durable(answer: Any) -> None:
            self._recording -= 1
            if isinstance(answer, Failed):
                self.commands.unclaim(item)
                self.reply(delivery, answer)
                return
            created, state, text = answer.results[0]
            if not created:
                self.commands.unclaim(item)
                self.reply(delivery, Accepted(request.key, True, 0))
                if request.watch:
                    self._watch_known(delivery.sender, request.key, state, text)
                return
            place = len(self.lane) + len(self.open_turns)
            self.reply(delivery, Accepted(request.key, False, place))
            if request.watch:
                self.listeners.watch(request.key, delivery.sender)
            self.lane.append(item)
            self.pump()

        self.ask("journal", Record([add]), durable, limit_s=60.0)

    def _watch_known(self, peer: str, key: str, state: str, reply: str) -> None:
        """The same key again runs nothing: it shows the first turn, and follows it while it runs."""
        if state == "done" and reply:
            self.listeners.watch(key, peer)
            self.listeners.to_watchers(key, 0, self.thread, {"event": "reply", "text": reply})
            return

        def shown(answer: Any) -> None:
            self.listeners.watch(key, peer)
            for event in answer.data["events"] if isinstance(answer, Ok) else []:
                self.listeners.to_watchers(key, event["seq"], event["thread"], event["body"])
            if self.listeners.watched(key) and key not in self.open_turns and all(i.key != key for i in self.lane):
                self.listeners.to_watchers(key, 0, self.thread, {"event": "done", "stop_reason": "end_turn"})

        self.ask("history", Load("turn_events", [self.route, key]), shown)

    # --- the lane ---

    def pump(self) -> None:
        """Take the next message of the lane, one at a time."""
        while self.lane and not self._working:
            item = self.lane[0]
            if isinstance(item.parsed, Prompt):
                self._forward(item, item.parsed.text)
            elif not self.commands.in_order(item):
                return
        self._rest()

    def _forward(self, item: Item, text: str, kind: str = "prompt") -> None:
        """To the attached thread; without one, a new thread first."""
        self._working = True
        if not self.thread:
            new = NewThread(self.route, cwd=item.workspace, sender=item.sender)

            def made(answer: Any) -> None:
                if isinstance(answer, Failed):
                    self.finish(item, error_event(answer.error))
                    return
                attached: Attached = answer
                self.thread, self.cwd = attached.thread, attached.cwd
                self._forward(item, text, kind)

            self.ask("attacher", new, made, limit_s=60.0)
            return
        thread = self.thread
        look = self.first.pop(thread, None)
        if look is not None and kind == "prompt":
            look(item, text)
            return
        prompt = ThreadPrompt(item.key, self.route, text, item.sender, list(item.attachments), kind)

        def taken(answer: Any) -> None:
            if isinstance(answer, Failed):
                error = from_wire(answer.error)
                if error.code in ("thread_closed", "not_found", "no_receiver") and self.thread == thread:
                    self.thread = ""
                self.finish(item, error_event(answer.error))
                return
            turn = str(answer.data.get("turn", ""))
            self.open_turns[item.key] = (turn, thread)
            if turn:
                self._keys[turn] = item.key
            if answer.data.get("session"):
                self.listeners.to_watchers(item.key, 0, thread, answer.data["session"])
            place = int(answer.data.get("position", 0))
            if place > 0:
                self.listeners.passing({"event": "queued", "position": place, "key": item.key}, item.key, thread)
            self._done_with(item)

        self.ask(f"thread/{thread}", prompt, taken, limit_s=30.0)

    def forward(self, item: Item, text: str, kind: str = "prompt") -> None:
        self._forward(item, text, kind)

    def finish(self, item: Item, event: dict[str, Any]) -> None:
        """The lane's item is answered: durable for listeners, at once for who watches; then the next."""
        reply = str(event.get("text", "")) if event["event"] == "reply" else ""
        self.say({**event, "key": item.key}, ops=[["inbox_done", self.route, item.key, reply]])
        self.after.pop(item.key, None)
        self._done_with(item)

    def _done_with(self, item: Item) -> None:
        if self.lane and self.lane[0] is item:
            self.lane.popleft()
        self._working = False
        self.pump()

    def working(self) -> None:
        """A command has begun something that ends with `finish`."""
        self._working = True

    def pause(self) -> None:
        """The head of the lane waits for something (an answer, the end of a turn) and is looked at again by `pump`."""
        self._working = False

    def _turn_over(self, message: TurnOver) -> None:
        self.open_turns.pop(message.key, None)
        if message.event:
            self.listeners.to_watchers(message.key, 0, self.thread, message.event)
        then = self.after.pop(message.key, None)
        if then is not None:
            then()
        self.pump()

    def say(self, event: dict[str, Any], *, ops: list[Any] | None = None) -> None:
        """A durable word to this route alone."""
        row = [self.thread, "", event["event"], event, self.route, ""]

        def recorded(answer: Any) -> None:
            if isinstance(answer, Failed):
                self.listeners.passing(event, str(event.get("key", "")), self.thread)

        self.ask("journal", Record(list(ops or []), [row], [[self.route]]), recorded, limit_s=60.0)

    # --- questions, permissions, stop ---

    def question(self, ask: RouteAsk, then: Callable[[str, str], None]) -> None:
        event = self.choices.open(ask, then)
        self.set_timer(f"choice:{ask.id}", ask.expires_in_s)
        self.listeners.passing({**event, "key": ask.turn}, ask.turn, self.thread)

    def withdraw(self, question: str, why: str) -> None:
        """A question that nobody needs to answer any more."""
        ask = self.choices.withdraw(question, why)
        if ask is not None:
            self.cancel_timer(f"choice:{question}")
            event = {"event": "choice_done", "id": ask.id, "option": "", "by": "", "text": f"No answer is needed: {why}.", "key": ask.turn}
            self.listeners.passing(event, ask.turn, self.thread)

    def _choice_done(self, ask: RouteAsk, option: str, by: str) -> None:
        why = "" if by else "Nobody answered in time."
        event = {"event": "choice_done", "id": ask.id, "option": option, "by": by, "text": why, "key": ask.turn}
        self.listeners.passing(event, ask.turn, self.thread)

    def _answer(self, delivery: Delivery, request: Answer) -> None:
        sender = self.sender_of(delivery, request.sender)
        self._check_role(delivery, sender, "answer_once", "")
        by = str(sender.get("name") or sender.get("id") or "")
        if request.id in self.choices:
            ask = next((a for a in self.choices.asked() if a.id == request.id), None)
            if ask is not None and ask.owner_only and sender.get("role", "owner") != "owner":
                raise RefusedError("Only an owner may answer this.", code="foreign")
            option = self.choices.answer(request.id, request.option, by)
            self.cancel_timer(f"choice:{request.id}")
            self.reply(delivery, Ok({"option": option}))
            if ask is not None:
                self._choice_done(ask, option, by)
            return
        if request.id in self._permissions:
            self._decide(delivery, request, sender, self._permissions[request.id])
        else:
            # From before a restart, or of a conversation that this chat is not on any more.
            self.ask("history", Load("audit", [request.id]), lambda answer: self._press(delivery, request, sender, answer))

    def _press(self, delivery: Delivery, request: Answer, sender: dict[str, Any], answer: Any) -> None:
        row = answer.data["permission"] if isinstance(answer, Ok) else None
        if row is None:
            unknown = NotFoundError(f"There is nothing open with the id {request.id}.", hint="See /status.")
            self.fail(delivery, unknown)
        elif row["state"] == "open":
            self._decide(delivery, request, sender, row["thread"])
        else:
            by = f" by {row['by']}" if row["by"] else ""
            self.fail(delivery, RefusedError(f"This was settled already: {row['state']}{by}.", code="late"))

    def _decide(self, delivery: Delivery, request: Answer, sender: dict[str, Any], thread: str) -> None:
        forward = ThreadAnswer(request.id, request.option, self.route, sender)
        self.ask(f"thread/{thread}", forward, lambda answer: self.reply(delivery, answer), limit_s=30.0)

    def stop(self, sender: dict[str, Any], then: Callable[[Any], None]) -> None:
        """Cancel the running turn and what waits of this route; continues with Ok {cancelled, dropped}."""
        self._check_role(None, sender, "stop", "")
        waiting = [i for i in self.lane if isinstance(i.parsed, Prompt) and (not self._working or i is not self.lane[0])]
        for item in waiting:
            self.lane.remove(item)
            self.say({"event": "done", "stop_reason": "cancelled", "key": item.key}, ops=[["inbox_done", self.route, item.key]])
        threads = {thread for _, thread in self.open_turns.values()} | ({self.thread} if self.thread else set())
        if not threads:
            then(Ok({"cancelled": 0, "dropped": len(waiting)}))
            return
        counts = {"cancelled": 0, "dropped": len(waiting)}
        left = len(threads)

        def stopped(answer: Any) -> None:
            nonlocal left
            left -= 1
            if isinstance(answer, Ok):
                for name in counts:
                    counts[name] += int(answer.data.get(name, 0))
            if left == 0:
                then(Ok(dict(counts)))

        for thread in threads:
            self.ask(f"thread/{thread}", ThreadStop(self.route, False, sender), stopped, limit_s=15.0)

    def _posted(self, posted: Posted) -> None:
        if posted.kind == "permission":
            self._permissions[str(posted.body.get("id"))] = posted.thread
            while len(self._permissions) > 64:
                del self._permissions[next(iter(self._permissions))]
        self.listeners.post(posted)
        self._rest()

    def _key_of(self, turn: str) -> str:
        return self._keys.get(turn, turn)

    def _rest(self) -> None:
        if not self.listeners and not self.lane and not self.open_turns:
            if len(self._keys) > 256:
                self._keys.clear()
            self.set_timer("rest", self.settings.routes.passivate_s)

