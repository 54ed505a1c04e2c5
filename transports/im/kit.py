"""One bridge at work: what people send goes to the routes, what the routes say goes to the lanes.

`take` is the surface's inbox. The place of a message in its chat's order is taken by the call; presses and stops go past
whatever waits, for the turn they are about may be what the chat waits for.
"""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any

from agents_registry.errors import NotRunningError, RefusedError, VibeAroundError
from transports.bus.routes import Route
from transports.bus.vocabulary.bridges import BridgeClaim, BridgePeople
from transports.bus.vocabulary.conversation import Ok
from transports.bus.vocabulary.surface import Answer, Listen, Preview, RouteItem, StopTurn, Submit
from transports.im import infiles
from transports.im.content import Content, Outgoing, Part, plain
from transports.im.errors import PlatformError
from transports.im.gate import Gate, claim_code
from transports.im.inbound import Chat, Command, FileRef, Membership, Message, Migration, Press, Stopped, Update, User
from transports.im.knocks import Knocks
from transports.im.lane import CREDIT, Lane
from transports.im.link import BRIDGES
from transports.im.record import RouteRecord
from transports.im.shared import Shared
from transports.im.words import NOT_AUTHORISED, language_of, say

MAX_WAITING = 64
"""Messages of one chat that wait to be handed to its route; more are refused with a word."""
_SUBMIT_S = 90.0
_START = re.compile(r"/start\b")
_ANSWER_S = 12.0
"""A platform wants to hear about a press within about fifteen seconds."""
_LISTENS_AT_ONCE = 16
_TAKEN_PAUSE_S = 1.0


@dataclass(slots=True)
class _Chat:
    lane: Lane
    waiting: deque[tuple[Message, asyncio.Future[None]]] = field(default_factory=deque)
    listening: asyncio.Future[None] | None = None
    working: bool = False


class Kit:
    """`gate` holds the people. `start` begins to listen to every known chat; `stop` ends all tasks."""

    def __init__(self, shared: Shared, gate: Gate) -> None:
        self._s = shared
        self._gate = gate
        self._loop = asyncio.get_running_loop()
        self._chats: dict[str, _Chat] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self._slots = asyncio.Semaphore(_LISTENS_AT_ONCE)
        self._knocks = Knocks(lambda knock: shared.link.send(BRIDGES, knock))
        shared.moved = self._moved
        shared.link.on_item(self._item)

    def start(self) -> None:
        for route, data in list(self._s.state.data["routes"].items()):
            chat = self._add(route, RouteRecord(data))
            self._spawn(self._listening(chat))

    async def stop(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def people(self, told: BridgePeople) -> None:
        self._gate.update(told.users, told.claim_open)
        self._s.link.set_people(self._gate.people)

    # --- inbox ---

    def take(self, update: Update) -> asyncio.Future[None]:
        done: asyncio.Future[None] = self._loop.create_future()
        done.add_done_callback(lambda f: f.cancelled() or f.exception())  # a surface that ends does not ask any more
        if isinstance(update, Command):
            text = f"/{update.name} {update.arguments}".strip()
            update = Message(update.update, update.chat, update.user, message=update.message, text=text)
        if isinstance(update, Migration):
            self._moved(update.chat, update.to)
            done.set_result(None)
            return done
        if isinstance(update, Membership):
            if update.present:
                self._revive(update.chat)
            done.set_result(None)
            return done
        verdict = self._gate.judge(update, self._s.calls.clock())
        if verdict == "in":
            self._admit(update, done)
        elif verdict == "claim":
            self._spawn(self._finish(self._claim(update), done))
        else:
            if verdict == "line":
                self._spawn(self._line(update.chat))
                self._knocks.knocked(update.user, self._gate.people)
            if isinstance(update, Press):
                self._spawn(self._answered(update, NOT_AUTHORISED, alert=True))
            done.set_result(None)
        return done

    def _admit(self, update: Update, done: asyncio.Future[None]) -> None:
        if isinstance(update, Press):
            self._spawn(self._finish(self._press(update), done))
            return
        if isinstance(update, Stopped):
            self._spawn(self._finish(self._stop(update), done))
            return
        if not isinstance(update, Message):
            done.set_result(None)
            return
        everything = self._s.options.get("groups") == "all"
        if not (update.addressed or everything) or not (update.text.strip() or update.files):
            done.set_result(None)
            return
        chat = self._chat(update)
        self._knocks.wrote(update, self._gate.people.get(update.user.id), chat.lane.route)
        chat.lane.revive()
        answer = chat.lane.questions.typed(update.text)
        if answer is not None and not update.files:
            self._spawn(self._finish(self._typed(chat, update, answer[0].id, answer[1]), done))
        elif update.text.strip().lower() in ("/stop", "/cancel"):
            self._spawn(self._finish(self._submit(chat, update), done))
        elif len(chat.waiting) >= MAX_WAITING:
            chat.lane.say(plain(f"❌ {say(chat.lane.language, 'not_now')}"), update.message)
            done.set_result(None)
        else:
            chat.waiting.append((update, done))
            if not chat.working:
                chat.working = True
                self._spawn(self._work(chat))

    # --- messages, in order ---

    async def _work(self, chat: _Chat) -> None:
        try:
            while chat.waiting:
                update, done = chat.waiting.popleft()
                await self._finish(self._submit(chat, update), done)
        finally:
            chat.working = False

    async def _submit(self, chat: _Chat, update: Message) -> None:
        """Hand it to the route: returns when it is durable, or was answered or refused in the chat."""
        await self._listening(chat)
        blocks, remarks = await self._files(chat, update)
        if remarks:
            chat.lane.say(plain("\n".join(remarks)), update.message)
        text = update.text
        if _START.match(text):
            text = "/help"  # what a phone sends when a chat with a bot is opened
        if update.quote:
            text = "\n".join(f"> {line}" for line in update.quote.splitlines()[:50]) + f"\n\n{text}"
        if not text.strip() and not blocks:
            return
        key = f"{self._s.link.kind}:{self._s.link.name}:{update.update}"
        request = Submit(key, text, self._sender(update.user), attachments=blocks)
        chat.lane.asked_here(key, update.message)
        if not text.startswith("/"):
            self._spawn(self._receipt(chat, update))
        try:
            answer = await self._s.link.request(f"route/{chat.lane.route}", request, _SUBMIT_S)
        except NotRunningError:
            raise
        except VibeAroundError as error:
            if error.code == "not_authorised":  # a role that may not: the same words as for anybody
                chat.lane.say(plain(NOT_AUTHORISED), update.message)
            else:
                chat.lane.say(plain(f"❌ {error.message}" + (f"\n{error.hint}" if error.hint else "")), update.message)
            return
        if isinstance(answer, Ok) and isinstance(answer.data, dict) and answer.data.get("text"):
            chat.lane.say(plain(str(answer.data["text"])), update.message)

    async def _receipt(self, chat: _Chat, update: Message) -> None:
        """Something within a second: a reaction, or that the bot types."""
        surface, capability = self._s.surface, self._s.capability
        if capability.reactions and update.message:
            await chat.lane.delivery.quietly(lambda: surface.react(update.chat, update.message, "seen"), "react")
        if capability.typing_s:
            await chat.lane.delivery.quietly(lambda: surface.typing(update.chat), "typing")

    async def _files(self, chat: _Chat, update: Message) -> tuple[list[dict[str, Any]], list[str]]:
        blocks: list[dict[str, Any]] = []
        remarks: list[str] = []
        language, limit = chat.lane.language, self._s.capability.file_in_bytes
        if update.files and not limit:
            return [], [say(language, "files_none")]
        for file in update.files[: infiles.MAX_FILES]:
            name = infiles.safe_name(file.name)
            too_big = say(language, "file_big", name=name, limit=f"{limit / (1 << 20):.0f} MB")
            if file.size > limit:
                remarks.append(too_big)
                continue
            try:
                blocks.append(await self._fetched(file, limit))
            except PlatformError as error:
                remarks.append(too_big if error.code == "too_long" else say(language, "file_failed", name=name, why=error.message))
            except (OSError, TimeoutError) as error:
                remarks.append(say(language, "file_failed", name=name, why=str(error) or "timeout"))
        return blocks, remarks

    async def _fetched(self, file: FileRef, limit: int) -> dict[str, Any]:
        target = await asyncio.to_thread(infiles.make, self._s.link.data_dir / "files", file)
        try:
            async with asyncio.timeout(300.0):
                size = await self._s.surface.download(file, target, limit)
        except BaseException:
            target.unlink(missing_ok=True)
            raise
        return infiles.block(target, file, size)

    # --- presses, answers, stops: at once ---

    async def _press(self, press: Press) -> None:
        chat = self._chats.get(self._route(press.chat))
        lane = chat.lane if chat is not None else None
        language = lane.language if lane is not None else language_of(self._s.options.get("language", "auto"), press.user.language, "")
        if lane is None:
            await self._answered(press, say(language, "foreign"), alert=True)
            return
        lane.revive()
        kind, _, token = press.data.partition(":")
        if kind == "s":
            if not lane.turn_of_button(token):
                lane.strip(press.message)
                await self._answered(press, say(language, "turn_over"))
                return
            await self._asked_to_stop(lane, press)
            return
        found = lane.questions.pressed(press.data)
        if found is None:
            if kind == "q" and press.message and not any(q.message == press.message for q in lane.questions.open()):
                lane.strip(press.message)  # its like was shown twice over a crash, or it is older than what is remembered
            await self._answered(press, say(language, "foreign"), alert=True)
            return
        question, option = found
        if question.outcome:
            lane.strip(press.message)
            await self._answered(press, say(language, "late", outcome=question.outcome), alert=True)
            return
        try:
            await self._s.link.request(f"route/{lane.route}", Answer(question.id, option, self._sender(press.user)), _ANSWER_S)
        except NotRunningError:
            raise
        except VibeAroundError as error:
            if error.code in ("late", "not_found"):
                lane.strip(press.message)
            await self._answered(press, NOT_AUTHORISED if error.code == "not_authorised" else error.message, alert=True)
            return
        await self._answered(press, say(language, "taken"))

    async def _asked_to_stop(self, lane: Lane, press: Press) -> None:
        try:
            counts = await self._s.link.request(f"route/{lane.route}", StopTurn(self._sender(press.user)), _ANSWER_S)
        except NotRunningError:
            raise
        except VibeAroundError as error:
            await self._answered(press, NOT_AUTHORISED if error.code == "not_authorised" else error.message, alert=True)
            return
        data = counts.data if isinstance(counts, Ok) and isinstance(counts.data, dict) else {}
        words = say(lane.language, "stopped_count", cancelled=data.get("cancelled", 0), dropped=data.get("dropped", 0))
        await self._answered(press, words)

    async def _stop(self, update: Stopped) -> None:
        chat = self._chats.get(self._route(update.chat))
        if chat is None:
            return
        try:
            await self._s.link.request(f"route/{chat.lane.route}", StopTurn(self._sender(update.user)), _ANSWER_S)
        except NotRunningError:
            raise
        except VibeAroundError as error:
            chat.lane.say(plain(f"❌ {error.message}"))

    async def _typed(self, chat: _Chat, update: Message, ident: str, option: str) -> None:
        """A line that answers an open question."""
        try:
            await self._s.link.request(f"route/{chat.lane.route}", Answer(ident, option, self._sender(update.user)), _ANSWER_S)
        except NotRunningError:
            raise
        except VibeAroundError as error:
            chat.lane.say(plain(f"❌ {NOT_AUTHORISED if error.code == 'not_authorised' else error.message}"), update.message)

    async def _answered(self, press: Press, words: str, *, alert: bool = False) -> None:
        if not press.press:
            return
        try:
            await self._s.surface.answer_press(press.press, words[:200], alert)
        except PlatformError as error:  # too old, or the connection: the message itself shows what was decided
            self._s.calls.counts[f"answer_press:{error.code}"] += 1

    # --- strangers ---

    async def _claim(self, update: Update) -> None:
        claim = BridgeClaim(update.user.id, update.user.name, claim_code(update))
        try:
            answer = await self._s.link.request(BRIDGES, claim, 30.0)
        except RefusedError:
            answer = None
        if isinstance(answer, Ok) and isinstance(answer.data, dict) and answer.data.get("outcome") == "owner":
            language = language_of(self._s.options.get("language", "auto"), update.user.language, "")
            await self._blurt(update.chat, say(language, "welcome"))
        elif self._gate.refuse(update, self._s.calls.clock()) == "line":
            await self._line(update.chat)

    async def _line(self, chat: Chat) -> None:
        await self._blurt(chat, NOT_AUTHORISED)

    async def _blurt(self, chat: Chat, words: str) -> None:
        """To a chat that has no lane: one try."""
        try:
            await self._s.calls.turnstile.enter(chat, urgent=False)
            await self._s.surface.send(chat, Outgoing(Content((Part("plain", words),))))
        except PlatformError as error:
            self._s.calls.counts[f"line:{error.code}"] += 1

    # --- chats ---

    def _chat(self, update: Message) -> _Chat:
        route = self._route(update.chat)
        known = self._chats.get(route)
        if known is None:
            data = self._s.state.data["routes"].setdefault(route, {})
            known = self._add(route, RouteRecord(data, update.chat))
        told = language_of(self._s.options.get("language", "auto"), update.user.language, update.text)
        known.lane.record.data["language"] = told
        return known

    def _add(self, route: str, record: RouteRecord) -> _Chat:
        chat = self._chats[route] = _Chat(Lane(route, record, self._s))
        self._spawn(chat.lane.run())
        return chat

    async def _listening(self, chat: _Chat) -> None:
        """Listen to the route, once; whoever comes meanwhile waits for the same."""
        if chat.listening is None:
            chat.listening = self._loop.create_future()
            self._spawn(self._listen(chat, chat.listening))
        await asyncio.shield(chat.listening)

    async def _listen(self, chat: _Chat, done: asyncio.Future[None]) -> None:
        done.add_done_callback(lambda f: f.cancelled() or f.exception())
        await self._s.saved()  # a chat that is listened to is known after a crash
        while True:
            try:
                async with self._slots:
                    await self._s.link.request(f"route/{chat.lane.route}", Listen(CREDIT, True, True), 60.0)
            except NotRunningError as error:
                done.set_exception(error)
                return
            except VibeAroundError as error:
                # The process before this one may still count as the listener; and a busy journal gets better.
                self._s.log(f"{chat.lane.route}: {error}; again in {_TAKEN_PAUSE_S:g} s")
                await asyncio.sleep(_TAKEN_PAUSE_S)
                continue
            chat.lane.acknowledge()
            done.set_result(None)
            return

    def _item(self, item: RouteItem | Preview) -> None:
        chat = self._chats.get(item.route)
        if chat is not None:
            chat.lane.put(item)

    def _route(self, chat: Chat) -> str:
        """A chat that was moved by its platform keeps the route it had."""
        first = self._s.state.data.get("moved", {}).get(chat.id, chat.id)
        return Route(self._s.link.kind, self._s.link.name, first, chat.topic).text

    def _moved(self, chat: Chat, to: str) -> None:
        moved = self._s.state.data.setdefault("moved", {})
        first = moved.get(chat.id, chat.id)
        moved[to] = first
        for entry in self._s.state.data["routes"].values():
            if entry.get("chat") == chat.id:
                entry["chat"] = to
        self._s.state.later()

    def _revive(self, chat: Chat) -> None:
        known = self._chats.get(self._route(chat))
        if known is not None:
            known.lane.revive()

    def _sender(self, user: User) -> dict[str, Any]:
        """Who speaks, in a form that no other platform's user can have."""
        person = self._gate.people.get(user.id)
        role = person.role if person is not None else ""
        name = user.name or (person.name if person is not None else "") or user.id
        return {"id": f"{self._s.link.kind}:{user.id}", "name": name, "role": role}

    # --- tasks ---

    async def _finish(self, work: Coroutine[Any, Any, None], done: asyncio.Future[None]) -> None:
        """Run it and settle the surface's future. Only the end of the process is the surface's business."""
        try:
            await work
        except NotRunningError as error:
            if not done.done():
                done.set_exception(error)
        except asyncio.CancelledError:
            done.cancel()
            raise
        except VibeAroundError as error:
            self._s.log(f"an update could not be handled: {error}")
            if not done.done():
                done.set_result(None)
        except Exception as error:  # noqa: BLE001 - a defect costs one update; the platform would bring it again for ever
            self._s.log(f"an update could not be handled: {type(error).__name__}: {error}")
            if not done.done():
                done.set_result(None)
        else:
            if not done.done():
                done.set_result(None)

    def _spawn(self, work: Coroutine[Any, Any, Any]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None and not isinstance(error, NotRunningError):
            self._s.calls.counts["defect"] += 1
            self._s.log(f"defect: {type(error).__name__}: {error}")


