"""The bridge kit with the real Telegram surface and a strict Telegram; only the supervisor behind it is played.

Each prompt is a turn that echoes: `say TEXT` answers with TEXT, anything else with "You said: …"; `hold` waits for `release`;
`ask N` asks N permissions, one after another. Items are sent again after `crash`, as the real route does, when they were not
acknowledged.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from agents_registry.errors import RefusedError
from tests.fakes.telegram_process import TOKEN, Call, FakeTelegram, buttons, told
from tests.unit.im_rig import ToyLink
from transports.bus.vocabulary.conversation import Ok
from transports.bus.vocabulary.surface import Accepted, Answer, Preview, RouteItem, StopTurn, Submit
from transports.im.calls import Calls
from transports.im.gate import Gate
from transports.im.kit import Kit
from transports.im.platform import Setup
from transports.im.shared import Shared
from transports.im.state import StateFile
from transports.im.telegram import PLATFORM
from transports.im.telegram.surface import TelegramSurface
from transports.im.turnstile import Turnstile

ANNA, BEN, EVE = 42, 43, 666
USERS = [{"id": "42", "name": "Anna", "role": "owner"}, {"id": "43", "name": "Ben", "role": "member"}]
OPTIONS = [{"id": "y", "name": "Allow once", "kind": "allow_once"}, {"id": "n", "name": "Reject", "kind": "reject_once"}]


class Supervisor:
    """What the routes say, for every chat of the bridge."""

    def __init__(self, folder: Path) -> None:
        self.link = ToyLink(folder)
        self.link.kind, self.link.name = "telegram", "tg"
        self.link.answers = {Submit: self._submit, Answer: self._answer, StopTurn: lambda m: Ok({"cancelled": 1, "dropped": 0})}
        self.sent: dict[str, list[RouteItem]] = defaultdict(list)
        self.turns: list[tuple[str, str]] = []
        """(route, text) of each prompt that ran."""
        self.blocks: list[Any] = []
        self.answers: list[Answer] = []
        self.released = asyncio.Event()
        self._keys: set[str] = set()
        self._decided: dict[str, asyncio.Future[str]] = {}
        self._busy: dict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._tasks: set[asyncio.Task[None]] = set()
        self._request = self.link.request
        self.link.request = self._routed  # type: ignore[method-assign]

    async def _routed(self, address: str, message: Any, timeout: float = 30.0) -> Any:
        self._address = address
        return await self._request(address, message, timeout)

    def _submit(self, message: Submit) -> Any:
        route = self._address.removeprefix("route/")
        if message.key in self._keys:
            return Accepted(message.key, duplicate=True)
        self._keys.add(message.key)
        self.blocks += message.attachments
        task = asyncio.create_task(self._turn(route, message))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return Accepted(message.key)

    def _answer(self, message: Answer) -> Any:
        decided = self._decided[message.id]
        if message.sender.get("role") != "owner":
            return RefusedError("Only the one who asked, or an owner, may answer this.", code="not_yours")
        self.answers.append(message)
        if not decided.done():
            decided.set_result(message.option)
        return Ok({})

    async def _turn(self, route: str, message: Submit) -> None:
        async with self._busy[route]:
            self.turns.append((route, message.text))
            turn = f"tn{len(self.turns)}"

            def say(event: str, **fields: Any) -> None:
                item = RouteItem(route, len(self.sent[route]) + 1, turn, "wt_1", {"event": event, **fields})
                self.sent[route].append(item)
                self.link.item(item)

            who = str(message.sender.get("name"))
            say("asked", key=message.key, route=route, by=who, text=message.text)
            say("session", agent="claude", session="s", cwd=str(self.link.data_dir), thread="wt_1", start="new")
            verb, _, rest = message.text.partition(" ")
            text = rest if verb == "say" else f'You said: "{message.text}"'
            if verb == "hold":
                self.link.item(Preview(route, turn, "wt_1", {"event": "text", "final": False, "text": "held so far", "offset": 0, "block": 1}))
                await self.released.wait()
            for number in range(int(rest) if verb == "ask" else 0):
                ident = f"{turn}-p{number}"
                self._decided[ident] = asyncio.get_running_loop().create_future()
                tool = {"rawInput": {"command": f"echo {number}"}}
                say("permission", id=ident, title="Run a command", tool=tool, options=OPTIONS, expires_in_s=600, person=who)
                option = await self._decided[ident]
                say("permission_done", id=ident, option=option, outcome="selected", by="Anna")
            say("text", text=text, final=True, block=1)
            say("done", stop_reason="end_turn")

    async def stop(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


class Scene:
    """`telegram` is the platform; every wait on it is off the loop."""

    def __init__(self, folder: Path, telegram: FakeTelegram, **options: str) -> None:
        self.folder, self.telegram = folder, telegram
        filled = {o.name: o.default for o in PLATFORM.options} | {"token": TOKEN, "api_base_url": telegram.url, "groups": "mention"} | options
        self.options = filled
        self.supervisor = Supervisor(folder)
        self.states: list[tuple[str, str]] = []
        self.log: list[str] = []

    def start(self) -> None:
        setup = Setup("tg", self.options, self.folder, lambda state, error: self.states.append((state, error)), self.log.append)
        self.surface = TelegramSurface(setup)
        clock = asyncio.get_running_loop().time
        self.calls = Calls(Turnstile(PLATFORM.capability, clock), clock, asyncio.sleep, self.log.append)
        state = self.state = StateFile(self.folder / "state.json")
        shared = Shared(
            self.supervisor.link, self.surface, PLATFORM.capability, self.options, self.calls, state, self.folder, self.log.append,  # type: ignore[arg-type]
        )  # fmt: skip
        self.kit = Kit(shared, Gate(USERS))
        self.kit.start()
        self._running = asyncio.create_task(self.surface.run(self.kit))

    async def stop(self) -> None:
        self._running.cancel()
        await asyncio.gather(self._running, return_exceptions=True)
        await self.kit.stop()
        await self.surface.close()

    async def recorded(self) -> None:
        """Until the state knows the message of each open question: before that, a crash sends it again, marked."""
        async with asyncio.timeout(10.0):
            while True:
                questions = [q for route in self.state.data["routes"].values() for q in route["questions"].values()]
                await self.state.saved()
                if questions and all(q["message"] for q in questions):
                    return

    async def crash(self) -> None:
        """The bridge is gone and comes back; what was not acknowledged comes again."""
        await self.stop()
        acked = dict(self.supervisor.link.acked)
        self.start()
        for route, items in list(self.supervisor.sent.items()):
            for item in items:
                if item.seq > acked.get(f"route/{route}", 0):
                    self.supervisor.link.item(item)

    # --- the phone ---

    async def control(self, operation: str, **body: Any) -> Any:
        return await asyncio.to_thread(self.telegram.control, operation, **body)

    async def say(self, text: str, *, user: int = ANNA, chat: int = 0, **more: Any) -> int:
        """The number that the next call will have."""
        since = await asyncio.to_thread(self.telegram.next)
        await asyncio.to_thread(lambda: self.telegram.say(text, user=user, chat=chat or user, **more))
        return since

    async def wait(self, found: Callable[[Call], bool], *, chat: int = ANNA, since: int = 0) -> Call:
        def here(call: Call) -> bool:
            return bool(call["outcome"].startswith("ok")) and call["params"].get("chat_id") == chat and found(call)

        return await asyncio.to_thread(lambda: self.telegram.wait(here, since=since, timeout=20))

    async def answer(self, text: str, *, chat: int = ANNA, since: int = 0) -> Call:
        """The finished turn with `text`."""
        return await self.wait(lambda c: text in told(c) and "✅ claude" in told(c), chat=chat, since=since)

    async def ask(self, text: str, answer: str, *, user: int = ANNA, chat: int = 0, **more: Any) -> Call:
        since = await self.say(text, user=user, chat=chat, **more)
        return await self.answer(answer, chat=chat or user, since=since)

    async def question(self, text: str, *, chat: int = ANNA, since: int = 0) -> tuple[int, dict[str, str]]:
        call = await self.wait(lambda c: c["method"] == "sendMessage" and text in told(c) and "reply_markup" in c["params"], chat=chat, since=since)
        return int(call["result"]), buttons(call["params"])

    async def press(self, message: int, data: str, *, user: int = ANNA, chat: int = 0, force: bool = False) -> str:
        """What the one who pressed is told."""
        since = await asyncio.to_thread(self.telegram.next)
        query = await asyncio.to_thread(lambda: self.telegram.press(message, data, user=user, chat=chat or user, force=force))

        def here(call: Call) -> bool:
            return bool(call["method"] == "answerCallbackQuery") and call["params"]["callback_query_id"] == query

        call = await asyncio.to_thread(lambda: self.telegram.wait(here, since=since, timeout=10))
        return str(call["params"].get("text") or "")

    async def shown(self, chat: int = ANNA) -> list[str]:
        return await asyncio.to_thread(self.telegram.shown, chat)

    async def calls_to(self, chat: int, method: str = "", since: int = 0) -> list[Call]:
        found = await asyncio.to_thread(self.telegram.calls, method, since)
        return [c for c in found if c["params"].get("chat_id") == chat]

    async def message(self, number: int, chat: int = ANNA) -> dict[str, Any]:
        return next(m for m in await asyncio.to_thread(self.telegram.screen, chat) if m["message_id"] == number)


def play(folder: Path, scene: Callable[[Scene], Coroutine[Any, Any, None]], **options: str) -> None:
    """Run a scene with a started bridge on a Telegram of its own; no call may have been a defect of ours."""
    with FakeTelegram() as telegram:

        async def whole() -> None:
            one = Scene(folder, telegram, **options)
            one.start()
            try:
                async with asyncio.timeout(60):
                    await scene(one)
            finally:
                await one.stop()
                await one.supervisor.stop()
            assert one.calls.counts["defect"] == 0, one.log

        asyncio.run(whole())
