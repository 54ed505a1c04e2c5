"""The bus on an asyncio loop: requests as coroutines, items to whoever listens; its end is the process's end."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

from agents_registry.errors import BusyError, NotRunningError, from_wire
from transports.bus.api import Delivery
from transports.bus.client import BusClient
from transports.bus.vocabulary.conversation import Failed
from transports.bus.vocabulary.surface import Preview, RouteItem
from transports.im.platform import Person

State = Literal["starting", "running", "retrying", "failed"]
Make = Callable[[Callable[[Delivery], None], Callable[[str], None]], BusClient]
BRIDGES = "bridges"
"""The supervisor's desk for bridges."""


class BusLink:
    """`make(on_message, on_state)` makes the client, whose callbacks run on its own thread; everything else here runs on the
    loop. `ended` is set when the connection is over; requests under way then raise NotRunningError."""

    def __init__(self, kind: str, name: str, data_dir: Path, make: Make) -> None:
        self.kind, self.name, self.data_dir = kind, name, data_dir
        self.people: Mapping[str, Person] = {}
        self.ended = asyncio.Event()
        self.why = ""
        self._up = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._arrived: deque[Delivery | str] = deque()
        self._ringing = False
        self._questions: dict[int, asyncio.Future[Any]] = {}
        self._corr = 0
        self._on_item: Callable[[Any], None] = lambda item: None
        self._on_other: Callable[[Any], None] = lambda message: None
        self._on_people: list[Callable[[], None]] = []
        self._told: tuple[str, str] = ("", "")
        self._client = make(self._message, self._state)

    async def request(self, address: str, message: Any, timeout: float = 30.0) -> Any:
        self._corr += 1
        corr = self._corr
        answer: asyncio.Future[Any] = self._loop.create_future()
        self._questions[corr] = answer
        try:
            async with asyncio.timeout(timeout):
                await self._up.wait()
                if self.ended.is_set() or not self._client.send(address, message, corr):
                    raise self._gone()
                value = await answer
        except TimeoutError:
            raise BusyError(f"{address} did not answer within {timeout:g} seconds.", hint="Try again in a moment.", code="timeout") from None
        finally:
            self._questions.pop(corr, None)
        if isinstance(value, Failed):
            raise from_wire(value.error)
        return value

    def send(self, address: str, message: Any) -> None:
        if not self.ended.is_set():
            self._client.send(address, message)

    def on_item(self, hear: Callable[[Any], None]) -> None:
        self._on_item = hear

    def on_people(self, hear: Callable[[], None]) -> None:
        self._on_people.append(hear)

    def on_other(self, hear: Callable[[Any], None]) -> None:
        """What the supervisor pushes besides items (`BridgePeople`): for main.py."""
        self._on_other = hear

    def set_people(self, people: Mapping[str, Person]) -> None:
        self.people = people
        for hear in self._on_people:
            hear()

    def state(self, state: State, error: str = "") -> None:
        from transports.bus.vocabulary.bridges import BridgeState

        if (state, error) != self._told:
            self._told = (state, error)
            self.send(BRIDGES, BridgeState(state, error[:500]))

    def close(self) -> None:
        """Blocks for at most two seconds."""
        self._client.close()

    def _gone(self) -> NotRunningError:
        return NotRunningError(f"The supervisor is not there any more{': ' + self.why if self.why else ''}.")

    # --- the client's thread ---

    def _message(self, delivery: Delivery) -> None:
        self._put(delivery)

    def _state(self, state: str) -> None:
        self._put(state)

    def _put(self, what: Delivery | str) -> None:
        self._arrived.append(what)
        if not self._ringing:
            self._ringing = True
            try:
                self._loop.call_soon_threadsafe(self._drain)
            except RuntimeError:  # the loop is closed: the process is ending
                return

    # --- the loop ---

    def _drain(self) -> None:
        self._ringing = False  # before the queue is read, else what comes meanwhile rings nobody
        while self._arrived:
            what = self._arrived.popleft()
            if isinstance(what, str):
                if what == "up":
                    self._up.set()
                else:
                    self._end(str(self._client.error or what))
            elif what.corr < 0:
                answer = self._questions.get(-what.corr)
                if answer is not None and not answer.done():
                    answer.set_result(what.message)
            elif isinstance(what.message, (RouteItem, Preview)):
                self._on_item(what.message)
            else:
                self._on_other(what.message)

    def _end(self, why: str) -> None:
        self.why = self.why or why
        self.ended.set()
        self._up.set()  # whoever waits for it learns that it is over
        for answer in self._questions.values():
            if not answer.done():
                answer.set_exception(self._gone())
