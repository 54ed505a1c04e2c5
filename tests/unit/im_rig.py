"""A kit without a process: a platform and a bus in memory, on a loop of the test's own."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from agents_registry.errors import VibeAroundError
from transports.bus.vocabulary.bridges import BridgeKnock
from transports.bus.vocabulary.conversation import Ok
from transports.bus.vocabulary.surface import Accepted, Answer, ItemAck, Listen, Preview, RouteItem, StopTurn, Submit
from transports.im.calls import Calls
from transports.im.gate import Gate
from transports.im.kit import Kit
from transports.im.platform import (
    Buttons,
    Capability,
    Chat,
    FileRef,
    MenuEntry,
    Message,
    Outgoing,
    Press,
    Rate,
    User,
    length,
)
from transports.im.shared import Shared
from transports.im.state import StateFile
from transports.im.turnstile import Turnstile

FAST = Rate(10_000.0, 1000.0)
EDITS = Capability(
    max_text=400, unit="utf16", edit=True, edit_interval_s=0.0, buttons=Buttons(8, 4, 30, 64), reactions=True, file_in_bytes=1000,
    file_out_bytes=1000, chat_budget=FAST, bot_budget=FAST, menu=20, max_parts=3,
)  # fmt: skip
PLAIN = Capability(max_text=400, chat_budget=FAST, bot_budget=FAST)
OWNER = User("1", "Ann")
CHAT = Chat("c1")
ROUTE = "toy:t:c1"
USERS = [{"id": "1", "name": "Ann", "role": "owner"}, {"id": "2", "name": "Bob", "role": "member"}]


@dataclass
class Shown:
    """A message on the platform. `versions`: every state it had."""

    id: str
    chat: Chat
    versions: list[Outgoing]

    @property
    def now(self) -> Outgoing:
        return self.versions[-1]

    @property
    def text(self) -> str:
        return self.now.content.plain()


class ToySurface:
    """`faults`: operation → errors to raise, one per call, before or (with `after`) when it had its effect."""

    def __init__(self, capability: Capability) -> None:
        self.capability = capability
        self.messages: dict[str, Shown] = {}
        self.calls: list[tuple[Any, ...]] = []
        self.faults: dict[str, deque[Exception]] = {}
        self.after: dict[str, deque[Exception]] = {}
        self.changed = asyncio.Condition()
        self.hold: dict[str, asyncio.Event] = {}

    def shown(self) -> list[str]:
        return [m.text for m in self.messages.values()]

    async def _did(self, *call: Any) -> None:
        self.calls.append(call)
        async with self.changed:
            self.changed.notify_all()

    async def _fault(self, name: str, table: dict[str, deque[Exception]]) -> None:
        if table is self.faults and name in self.hold:
            await self.hold[name].wait()
        if table.get(name):
            error = table[name].popleft()
            await self._did("fault", name, error)
            raise error

    async def until(self, true: Callable[[], bool]) -> None:
        async with asyncio.timeout(10.0), self.changed:
            await self.changed.wait_for(true)

    async def run(self, inbox: Any) -> None:
        await asyncio.Event().wait()

    async def close(self) -> None: ...

    def fits(self, outgoing: Outgoing) -> bool:
        return length(outgoing.content.plain(), self.capability.unit) <= self.capability.max_text

    async def send(self, chat: Chat, outgoing: Outgoing) -> str:
        await self._fault("send", self.faults)
        ident = f"m{len(self.messages) + 1}"
        self.messages[ident] = Shown(ident, chat, [outgoing])
        await self._did("send", ident)
        await self._fault("send", self.after)
        return ident

    async def edit(self, chat: Chat, message: str, outgoing: Outgoing) -> None:
        await self._fault("edit", self.faults)
        self.messages[message].versions.append(outgoing)
        await self._did("edit", message)
        await self._fault("edit", self.after)

    async def draft(self, chat: Chat, draft: int, outgoing: Outgoing) -> None:
        await self._fault("draft", self.faults)
        await self._did("draft", draft, outgoing)

    async def end_draft(self, chat: Chat, draft: int) -> None:
        await self._did("end_draft", draft)

    async def drop_buttons(self, chat: Chat, message: str) -> None:
        shown = self.messages[message]
        shown.versions.append(replace(shown.now, buttons=()))
        await self._did("drop_buttons", message)

    async def delete(self, chat: Chat, message: str) -> None:
        await self._did("delete", message)

    async def react(self, chat: Chat, message: str, what: str) -> None:
        await self._did("react", message, what)

    async def typing(self, chat: Chat) -> None:
        await self._did("typing")

    async def send_file(self, chat: Chat, path: Path, name: str, mime: str, outgoing: Outgoing) -> str:
        await self._fault("send_file", self.faults)
        await self._did("file", name, path.read_bytes())
        return f"f{len(self.calls)}"

    async def download(self, file: FileRef, target: Path, limit: int) -> int:
        await self._fault("download", self.faults)
        target.write_bytes(b"data of " + file.id.encode())
        return target.stat().st_size

    async def answer_press(self, press: str, text: str, alert: bool = False) -> None:
        await self._did("answered", press, text)

    async def menu(self, entries: list[MenuEntry], language: str) -> None:
        await self._did("menu", language)


class ToyLink:
    """The bus: answers at once as `answers` says, and keeps what was asked and acknowledged."""

    kind, name = "toy", "t"

    def __init__(self, data_dir: Path) -> None:
        self.data_dir = data_dir
        self.asked: list[tuple[str, Any]] = []
        self.acked: dict[str, int] = {}
        self.asked_of_the_desk: list[BridgeKnock] = []
        self.answers: dict[type, Callable[[Any], Any]] = {}
        self.item: Callable[[Any], None] = lambda item: None
        self.changed = asyncio.Event()

    async def request(self, address: str, message: Any, timeout: float = 30.0) -> Any:
        self.asked.append((address, message))
        self.changed.set()
        answer = self.answers.get(type(message), self._usual)(message)
        if asyncio.iscoroutine(answer):
            answer = await answer
        if isinstance(answer, VibeAroundError):
            raise answer
        return answer

    @staticmethod
    def _usual(message: Any) -> Any:
        if isinstance(message, Submit):
            return Accepted(message.key)
        return Ok({"position": 0}) if isinstance(message, Listen) else Ok({})

    def send(self, address: str, message: Any) -> None:
        if isinstance(message, BridgeKnock):
            self.asked_of_the_desk.append(message)
            return
        assert isinstance(message, ItemAck)
        self.acked[address] = max(message.seq, self.acked.get(address, 0))
        self.changed.set()

    def on_item(self, hear: Callable[[Any], None]) -> None:
        self.item = hear

    def set_people(self, people: Any) -> None: ...

    def of(self, kind: type) -> list[Any]:
        return [message for _, message in self.asked if type(message) is kind]

    async def until(self, true: Callable[[], bool]) -> None:
        async with asyncio.timeout(10.0):
            while not true():
                self.changed.clear()
                await self.changed.wait()


@dataclass
class Rig:
    """`crash` forgets everything but the state file and the platform; the route then sends again what was not acknowledged."""

    folder: Path
    surface: ToySurface
    link: ToyLink
    options: dict[str, str] = field(default_factory=dict)
    kit: Kit = field(init=False)
    state: StateFile = field(init=False)
    calls: Calls = field(init=False)
    logged: list[str] = field(default_factory=list)
    sent: list[RouteItem] = field(default_factory=list)
    users: list[Any] = field(default_factory=lambda: list(USERS))
    claim_open: bool = False

    def start(self) -> None:
        clock = asyncio.get_running_loop().time
        self.state = StateFile(self.folder / "state.json")
        self.calls = Calls(Turnstile(self.surface.capability, clock), clock, asyncio.sleep, self.logged.append)
        shared = Shared(
            self.link, self.surface, self.surface.capability, self.options, self.calls, self.state, self.folder, self.logged.append,  # type: ignore[arg-type]
        )  # fmt: skip
        self.kit = Kit(shared, Gate(self.users, self.claim_open))
        self.kit.start()

    async def crash(self) -> None:
        await self.kit.stop()
        acked = self.link.acked.get(f"route/{ROUTE}", 0)
        self.start()
        for item in self.sent:
            if item.seq > acked:
                self.link.item(item)

    async def write(self, text: str, update: str = "u1", *, user: User = OWNER, chat: Chat = CHAT, **more: Any) -> None:
        async with asyncio.timeout(10.0):
            await self.kit.take(Message(update, chat, user, message=f"p{update}", text=text, **more))

    async def press(self, data: str, update: str = "b1", *, user: User = OWNER, message: str = "m1", chat: Chat = CHAT) -> str:
        """What the one who pressed is told."""
        before = len(self.surface.calls)
        async with asyncio.timeout(10.0):
            await self.kit.take(Press(update, chat, user, data=data, message=message, press=f"x{update}"))
        await self.surface.until(lambda: any(c[0] == "answered" for c in self.surface.calls[before:]))
        return str(next(c[2] for c in self.surface.calls[before:] if c[0] == "answered"))

    def item(self, seq: int, event: str, turn: str = "tn1", **fields: Any) -> None:
        item = RouteItem(ROUTE, seq, turn, "wt_1", {"event": event, **fields})
        self.sent.append(item)
        self.link.item(item)

    def piece(self, text: str, offset: int = 0, turn: str = "k1", block: int = 1) -> None:
        event = {"event": "text", "final": False, "text": text, "offset": offset, "block": block}
        self.link.item(Preview(ROUTE, turn, "wt_1", event))

    def asked(self, seq: int, key: str = "k1", turn: str = "tn1", route: str = ROUTE, by: str = "Ann", text: str = "hello") -> None:
        self.item(seq, "asked", turn, key=key, route=route, by=by, text=text)

    async def acked(self, seq: int) -> None:
        await self.link.until(lambda: self.link.acked.get(f"route/{ROUTE}", 0) >= seq)

    def buttons(self, message: str) -> dict[str, str]:
        return {b.label: b.data for row in self.surface.messages[message].now.buttons for b in row}


def play(folder: Path, capability: Capability, scene: Callable[[Rig], Coroutine[Any, Any, None]], **options: str) -> None:
    """Run a scene with a started kit."""

    async def whole() -> None:
        rig = Rig(folder, ToySurface(capability), ToyLink(folder), options)
        rig.start()
        try:
            await scene(rig)
        finally:
            await rig.kit.stop()
        assert rig.calls.counts["defect"] == 0, rig.logged

    asyncio.run(whole())


__all__ = ["CHAT", "EDITS", "OWNER", "PLAIN", "ROUTE", "Answer", "Rig", "StopTurn", "play"]
