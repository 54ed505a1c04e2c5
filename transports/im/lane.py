"""One chat, outbound: the items of its route become messages, in order, each once; text in the making is shown beside it.

What must be shown is a queue of jobs, one at a time. Previews are no jobs: when there is none, the newest state of the
running turn is shown as often as the platform likes it, and a job that comes does not wait for it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Any

from transports.bus.vocabulary.surface import ItemAck, Preview, RouteItem
from transports.im.content import Button, Content, Outgoing, Part, Rows
from transports.im.deliver import Delivery
from transports.im.errors import BadMarkup, Forbidden, Gone, Migrated, PlatformError, TooLong, Unsupported
from transports.im.inbound import Chat
from transports.im.lane_finish import Finish
from transports.im.live import LiveTurn
from transports.im.questions import Questions
from transports.im.record import RouteRecord
from transports.im.shared import Shared
from transports.im.words import Language, say

CREDIT = 256
"""Items of one route under way unacknowledged (`Listen.credit`)."""
_TICK_S = 15.0
"""The status line's clock moves at least so often."""
_UNSUPPORTED_S = 3600.0
_KEEP_TURNS_S = 14 * 86400.0
_BEGINS = frozenset({"asked", "queued", "session", "text", "thought", "tool"})
_FOLDED = _BEGINS | {"plan", "notice"}
_ENDS = frozenset({"done", "error", "reply"})


@dataclass(slots=True)
class Open:
    """A turn that is shown. `mode`: draft, edit or none (only its end is shown)."""

    turn: LiveTurn
    entry: dict[str, Any]
    mode: str
    seqs: list[int] = field(default_factory=list)
    dirty: bool = True
    shown_at: float = float("-inf")
    shown: bool = False
    finishing: bool = False
    last: Outgoing | None = None
    """What its message was last edited to."""


@dataclass(slots=True)
class Job:
    run: Callable[[], Awaitable[None]]
    seqs: tuple[int, ...] = ()


class Lane:
    """`put` takes items on the loop and never waits; `run` is the lane's task."""

    def __init__(self, route: str, record: RouteRecord, shared: Shared) -> None:
        self.route = route
        self.record = record
        self._s = shared
        self.questions = Questions(shared.new_token, record.data["questions"])
        self.delivery = Delivery(shared.surface, shared.capability, shared.calls, record, self._saved)
        self._finish = Finish(self.delivery, shared, record)
        self._turns: dict[str, Open] = {}
        self._over: dict[str, None] = {}
        """Turns that have ended lately: what still comes of them begins nothing."""
        self._alias: dict[str, str] = {}
        self._reply_to: dict[str, str] = {}
        self._jobs: deque[Job] = deque()
        self._wake, self._urgent, self._alive = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._alive.set()
        self._no_draft_until = float("-inf")
        self._saving_progress = False
        for key, entry in list(record.data["turns"].items()):
            if shared.now() - float(entry.get("started", 0.0)) > _KEEP_TURNS_S:
                record.end_turn(key)
            for raw in entry.get("alias", []):
                self._alias[raw] = key

    @property
    def language(self) -> Language:
        return "zh" if self.record.data["language"] == "zh" else "en"

    @property
    def chat(self) -> Chat:
        return self.record.chat

    # --- what comes ---

    def put(self, item: RouteItem | Preview) -> None:
        seq = item.seq if isinstance(item, RouteItem) else 0
        if seq and not self.record.received(seq):
            if seq <= self.record.through:
                self.acknowledge()
            return
        event, kind = item.event, str(item.event.get("event"))
        key = self._key_of(item)
        known = self._turns.get(key)
        if isinstance(item, Preview):
            if known is not None and not known.finishing:
                known.turn.take(event, self.route)
                known.dirty = True
                self._wake.set()
        elif kind in ("permission", "choice"):
            self._job(lambda: self._ask(seq, event, key), seq)
        elif kind in ("permission_done", "choice_done"):
            self._job(lambda: self._settle(seq, event), seq)
        elif key and key not in self._over and (kind in _BEGINS or (known is not None and kind in _FOLDED | _ENDS)):
            self._fold(self._turn(key), seq, event, kind)
        elif kind in ("reply", "error", "notice"):
            self._job(lambda: self._say(seq, event, kind, key), seq)
        elif seq:
            self._job(lambda: self._handled(seq), seq)
        if self.record.open > CREDIT // 2 and not self._saving_progress:
            self._saving_progress = True
            self._job(self._save_progress)

    def acknowledge(self) -> None:
        """Tell the route again how far this chat is."""
        if self.record.through:
            self._s.link.send(f"route/{self.route}", ItemAck(self.record.through))

    def asked_here(self, key: str, message: str) -> None:
        """A prompt of this chat was accepted: its answer refers to the person's message."""
        self._reply_to[key] = message
        while len(self._reply_to) > 64:
            del self._reply_to[next(iter(self._reply_to))]

    def say(self, content: Content, message: str = "", *, silent: bool = False) -> None:
        """Something of our own, not from the route: shown once, not over a crash."""
        outgoing = Outgoing(content, reply_to=self._quoted(message), silent=silent)
        self._job(lambda: self._show(outgoing))

    def strip(self, message: str) -> None:
        """Take dead buttons from a message."""
        surface = self._s.surface
        self._job(lambda: self.delivery.quietly(lambda: surface.drop_buttons(self.chat, message), "drop_buttons"))

    def turn_of_button(self, token: str) -> str:
        """The key of the running turn whose stop button carries the token, "" for none."""
        return next((key for key, one in self._turns.items() if one.entry.get("token") == token and not one.finishing), "")

    def revive(self) -> None:
        """Somebody wrote from the chat: it can be written to again."""
        self._alive.set()

    def _key_of(self, item: RouteItem | Preview) -> str:
        key = str(item.event.get("key") or "")
        if key and item.turn and item.turn != key and item.event.get("event") == "asked":
            self._alias[item.turn] = key
            while len(self._alias) > 512:
                del self._alias[next(iter(self._alias))]
        return self._alias.get(item.turn, item.turn) or key

    # --- turns ---

    def _turn(self, key: str) -> Open:
        known = self._turns.get(key)
        if known is not None:
            return known
        s = self._s
        entry = self.record.turn(key, s.now(), s.new_token())
        entry["alias"] = [raw for raw, k in self._alias.items() if k == key]
        turn = LiveTurn(key, float(entry["started"]), self.language, s.options.get("show") or "normal")
        # said when an agent starts, and true of the turns after it
        turn.cwd, turn.agent = str(self.record.data.get("cwd") or ""), str(self.record.data.get("agent") or "")
        if "dump" in entry:
            turn.load(entry["dump"])
        if key in self._reply_to:
            entry["reply_to"] = self._reply_to.pop(key)
        opened = self._turns[key] = Open(turn, entry, self._mode())
        if opened.mode == "edit":
            self._job(lambda: self._open(opened))
        return opened

    def _mode(self) -> str:
        capability = self._s.capability
        streams = capability.stream and (self.chat.direct or capability.stream_where == "all")
        if streams and self._s.calls.clock() >= self._no_draft_until:
            return "draft"
        return "edit" if capability.edit else "none"

    def _fold(self, opened: Open, seq: int, event: dict[str, Any], kind: str) -> None:
        opened.turn.take(event, self.route)
        if kind == "session" and opened.turn.cwd:
            self.record.data["cwd"], self.record.data["agent"] = opened.turn.cwd, opened.turn.agent
        if seq:
            opened.seqs.append(seq)
        opened.dirty = True
        if opened.mode == "draft" and opened.turn.place > 0 and not opened.shown and self._s.capability.edit:
            # A chat has one draft, and it is the running turn's: what waits is a message, which becomes its answer.
            opened.mode = "edit"
            self._job(lambda: self._open(opened))
        if opened.turn.ended and not opened.finishing:
            opened.finishing = True
            self._job(lambda: self._end(opened), *opened.seqs)
        self._wake.set()

    async def _open(self, opened: Open) -> None:
        if opened.turn.ended or opened.entry["messages"]:
            return  # so fast that only the answer is shown; or shown before a restart
        # The status alone: no text goes out before the message's id is recorded.
        content = Content((*opened.turn.head(), Part("status", opened.turn.status(self._s.now()))))
        opened.dirty = bool(opened.turn.texts)
        outgoing = Outgoing(content, self._stop_rows(opened), reply_to=self._quoted(opened.entry.get("reply_to", "")))
        await self.delivery.placeholder(opened.entry, outgoing)
        opened.shown_at, opened.shown = self._s.calls.clock(), True

    async def _end(self, opened: Open) -> None:
        quoted = self._quoted(opened.entry.get("reply_to", ""))
        if opened.mode == "draft" and opened.shown:
            draft = self._draft(opened)
            await self.delivery.quietly(lambda: self._s.surface.end_draft(self.chat, draft), "end_draft")
        await self._finish.turn(opened.turn, opened.entry, quoted, f"{self.route}:{opened.turn.key}")
        self._turns.pop(opened.turn.key, None)
        self._over[opened.turn.key] = None
        while len(self._over) > 64:
            del self._over[next(iter(self._over))]
        self.record.end_turn(opened.turn.key)
        await self._handled(*opened.seqs)

    def _stop_rows(self, opened: Open) -> Rows:
        if self._s.capability.buttons is None or opened.turn.ended:
            return ()
        return ((Button(say(self.language, "stop"), f"s:{opened.entry['token']}", "danger"),),)

    def _live_content(self, turn: LiveTurn) -> Content:
        room = int(self._s.capability.max_text * 0.85)
        while True:
            content = turn.live(self._s.now(), room)
            if room < 100 or self._s.surface.fits(Outgoing(content)):
                return content
            room = int(room * 0.6)

    # --- previews ---

    async def _refresh(self) -> float | None:
        """Show the newest of one running turn if it is time; seconds until something is due, None: when something comes."""
        next_due: float | None = None
        for opened in list(self._turns.values()):
            if opened.turn.ended or opened.mode == "none" or (opened.mode == "edit" and not opened.entry["messages"]):
                continue
            due = self._due(opened)
            now = self._s.calls.clock()
            if due <= now:
                if not await self._pass():
                    return 0.0
                await self._preview(opened)
                return 0.0
            next_due = due if next_due is None else min(next_due, due)
        return None if next_due is None else max(0.001, next_due - self._s.calls.clock())

    def _due(self, opened: Open) -> float:
        capability, clock = self._s.capability, self._s.calls.clock()
        if opened.mode == "draft":
            keep = capability.stream_keep_s * 0.6 if capability.stream_keep_s else _TICK_S
            due = opened.shown_at + (capability.stream_interval_s if opened.dirty else min(keep, _TICK_S))
            return max(due, clock + self._s.calls.quiet_for(self.chat, f"draft:{self._draft(opened)}"))
        interval = capability.edit_interval_s
        if not self.chat.direct and capability.group_edit_interval_s:
            interval = capability.group_edit_interval_s
        due = opened.shown_at + (interval if opened.dirty else max(_TICK_S, interval))
        return max(due, clock + self._s.calls.quiet_for(self.chat, opened.entry["messages"][0]))

    async def _pass(self) -> bool:
        """Wait for the budget; False when a job came meanwhile, which goes first."""
        entering = asyncio.ensure_future(self._s.calls.turnstile.enter(self.chat, urgent=False))
        urgent = asyncio.ensure_future(self._urgent.wait())
        try:
            await asyncio.wait({entering, urgent}, return_when=asyncio.FIRST_COMPLETED)
            return entering.done() and not entering.cancelled()
        finally:
            entering.cancel()
            urgent.cancel()

    async def _preview(self, opened: Open) -> None:
        surface, calls = self._s.surface, self._s.calls
        outgoing = Outgoing(self._live_content(opened.turn), self._stop_rows(opened), silent=True)
        opened.shown_at, opened.dirty = calls.clock(), False
        try:
            if opened.mode == "draft":
                draft = self._draft(opened)
                done = await calls.may(self.chat, lambda: surface.draft(self.chat, draft, outgoing), f"draft:{draft}")
                opened.shown, opened.dirty = done or opened.shown, opened.dirty or not done
                return
            message = opened.entry["messages"][0]
            if outgoing == opened.last:
                return  # a place in the queue that has not changed costs no budget
            try:
                done = await calls.may(self.chat, lambda: surface.edit(self.chat, message, outgoing), message)
            except BadMarkup:
                done = await calls.may(self.chat, lambda: surface.edit(self.chat, message, outgoing.as_plain()), message)
            opened.dirty = opened.dirty or not done
            opened.last = outgoing if done else None
        except (Unsupported, BadMarkup, TooLong, Gone) as error:
            calls.counts[f"preview:{error.code}"] += 1
            if isinstance(error, Gone):
                opened.mode = "none"  # somebody deleted it; the answer will be a new message
            elif opened.mode == "draft" and isinstance(error, Unsupported):
                self._no_draft_until = calls.clock() + _UNSUPPORTED_S
                opened.mode = self._mode()
                if opened.mode == "edit":
                    self._job(lambda: self._open(opened))
        except Forbidden:
            opened.mode = "none"
        except Migrated as error:
            self._s.moved(self.chat, error.chat)

    def _draft(self, opened: Open) -> int:
        """The turn's draft number: from its token, so that it is the same after a restart. 1 .. 2^31-1."""
        return int.from_bytes(str(opened.entry["token"]).encode()[:8], "big") % 0x7FFFFFFE + 1

    # --- jobs ---

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            self._wake.clear()
            if self._jobs:
                await self._do(self._jobs[0])
                self._jobs.popleft()
                for opened in self._turns.values():
                    # a draft goes with the next message that the chat gets: it is shown again
                    opened.dirty = opened.dirty or (opened.mode == "draft" and opened.shown)
                continue
            self._urgent.clear()
            try:
                wait = await self._refresh()
            except Exception as error:  # noqa: BLE001 - a defect in a preview costs that preview
                self._s.calls.counts["defect"] += 1
                self._s.log(f"{self.route}: defect in a preview: {type(error).__name__}: {error}")
                wait = _TICK_S
            if wait == 0.0:
                continue
            try:
                async with asyncio.timeout(wait):
                    await self._wake.wait()
            except TimeoutError:
                continue

    def _job(self, run: Callable[[], Awaitable[None]], *seqs: int) -> None:
        self._jobs.append(Job(run, tuple(seq for seq in seqs if seq)))
        self._urgent.set()
        self._wake.set()

    async def _do(self, job: Job) -> None:
        while True:
            await self._alive.wait()
            try:
                await job.run()
                return
            except Forbidden as error:
                self._s.calls.counts["forbidden"] += 1
                self._s.log(f"{self.route}: may not write there: {error}")
                self._alive.clear()
            except Migrated as error:
                self._s.moved(self.chat, error.chat)
            except PlatformError as error:
                self._s.calls.counts["lost"] += 1
                self._s.log(f"{self.route}: could not be shown: {error}")
                await self._handled(*job.seqs)
                return
            except Exception as error:  # noqa: BLE001 - a defect costs this one item, not the chat
                self._s.calls.counts["defect"] += 1
                self._s.log(f"{self.route}: defect, an item is left out: {type(error).__name__}: {error}")
                await self._handled(*job.seqs)
                return

    async def _say(self, seq: int, event: dict[str, Any], kind: str, key: str) -> None:
        text = str(event.get("text") or event.get("message") or "")
        if kind == "error":
            text = f"❌ {text}" + (f"\n{event['hint']}" if event.get("hint") else "")
        if text:
            quoted = self._quoted(self._reply_to.pop(key, ""))
            outgoing = Outgoing(Content((Part("plain", text),)), reply_to=quoted, silent=kind == "notice")
            await self.delivery.one(f"{seq}" if seq else "", outgoing, self.language)
        await self._handled(seq)

    async def _show(self, outgoing: Outgoing) -> None:
        await self.delivery.one("", outgoing, self.language)

    async def _ask(self, seq: int, event: dict[str, Any], key: str) -> None:
        question = self.questions.ask(event, self._s.now(), key)
        if not question.outcome and not question.message:
            self._keep_questions()
            outgoing = self._question(event)
            question.message = await self.delivery.one(f"question:{question.id}", outgoing, self.language) or "?"
        self._keep_questions()
        await self._handled(seq)

    def _question(self, event: dict[str, Any]) -> Outgoing:
        question = self.questions.ask(event, self._s.now())
        return self.questions.shown(question, self.language, self._s.capability.buttons, self._s.now(), self._s.at())

    async def _settle(self, seq: int, event: dict[str, Any]) -> None:
        question = self.questions.decide(event)
        if question is not None and question.message and not question.shown_outcome:
            decided = self.questions.shown(question, self.language, None, self._s.now(), self._s.at())
            try:
                if self._s.capability.edit and question.message != "?":
                    await self.delivery.edit_message(question.message, replace(decided, buttons=()))
                else:
                    line = Content(decided.content.parts[-1:])
                    await self.delivery.one(f"settled:{question.id}", Outgoing(line, silent=True), self.language)
                    if self._s.capability.buttons is not None and question.message != "?":
                        message = question.message
                        await self.delivery.quietly(lambda: self._s.surface.drop_buttons(self.chat, message), "drop_buttons")
            except Gone:
                self._s.calls.counts["gone"] += 1
            question.shown_outcome = True
        if question is not None:
            question.detail = []  # what is remembered of it is its outcome
        self._keep_questions()
        await self._handled(seq)

    def _keep_questions(self) -> None:
        self.record.data["questions"] = self.questions.save()

    async def _save_progress(self) -> None:
        """A very long turn: what it has so far goes into the state, so that its items can be acknowledged."""
        self._saving_progress = False
        seqs: list[int] = []
        for opened in self._turns.values():
            if not opened.finishing:
                opened.entry["dump"] = opened.turn.dump()
                opened.entry["alias"] = [raw for raw, k in self._alias.items() if k == opened.turn.key]
                seqs += opened.seqs
                opened.seqs = []
        await self._handled(*seqs)

    async def _handled(self, *seqs: int) -> None:
        """The platform has these: recorded first, then acknowledged."""
        if not seqs or seqs == (0,):
            return
        moved = self.record.handled(*seqs)
        await self._saved()
        if moved:
            self.acknowledge()

    async def _saved(self) -> None:
        await self._s.saved()

    def _quoted(self, message: str) -> str:
        """In a group an answer refers to what it answers."""
        return "" if self.chat.direct else message
