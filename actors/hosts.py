"""How many agents run at once: a place is given before a host is spawned, and the least recently used idle one makes room."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any

from actors.mailbox import Clock, Mailbox
from agents_registry.errors import BusyError
from transports.bus.api import Bus, Delivery
from transports.bus.vocabulary.children import HostSlot, HostState, ListHosts
from transports.bus.vocabulary.conversation import Failed, Ok
from transports.bus.vocabulary.threads import ThreadRelease

MAX_WAITING = 64


@dataclass(slots=True)
class _Known:
    state: str
    used_at: float
    agent: str = ""
    session: str = ""
    host_pid: int = 0
    agent_pid: int = 0


class Hosts(Mailbox):
    """`max_live`: hosts at once. `wait_s`: how long a thread may wait for a place."""

    def __init__(self, bus: Bus, clock: Clock, *, max_live: int, wait_s: float) -> None:
        super().__init__("hosts", bus, clock)
        self._max = max_live
        self._wait_s = wait_s
        self._known: dict[str, _Known] = {}
        self._granted: set[str] = set()
        self._waiting: deque[Delivery] = deque()
        self._stopping: set[str] = set()

    def handle(self, delivery: Delivery) -> None:
        message = delivery.message
        if isinstance(message, HostState):
            self._note(message)
        elif isinstance(message, HostSlot):
            if len(self._waiting) >= MAX_WAITING:
                raise BusyError("Too many conversations wait for an agent.", hint="Try again later.")
            self._waiting.append(delivery)
            self.set_timer(f"wait:{message.thread}", self._wait_s)
            self._grant()
        elif isinstance(message, ListHosts):
            self.reply(delivery, Ok({"hosts": self.listing()}))

    def alarm(self, name: str) -> None:
        thread = name.removeprefix("wait:")
        for delivery in list(self._waiting):
            if delivery.message.thread == thread:
                self._waiting.remove(delivery)
                busy = BusyError(
                    f"{self._max} agents are running and all of them are busy.",
                    hint="Wait for a turn to end, stop one with /stop, or raise hosts.max_live.", code="hosts_busy",
                )
                self.fail(delivery, busy)

    def listing(self) -> list[dict[str, Any]]:
        return [
            {"thread": t, "state": k.state, "agent": k.agent, "session": k.session, "pid": k.host_pid, "agent_pid": k.agent_pid}
            for t, k in self._known.items()
        ]

    def _note(self, message: HostState) -> None:
        if message.state == "dead":
            self._known.pop(message.thread, None)
            self._granted.discard(message.thread)
            self._stopping.discard(message.thread)
            self._grant()
            return
        known = self._known.setdefault(message.thread, _Known(message.state, 0.0))
        known.state, known.used_at = message.state, self.clock.monotonic()
        known.agent, known.session = message.agent or known.agent, message.session or known.session
        known.host_pid, known.agent_pid = message.host_pid or known.host_pid, message.agent_pid or known.agent_pid
        self._granted.add(message.thread)
        if message.state == "idle" and self._waiting:
            self._grant()

    def _grant(self) -> None:
        while self._waiting:
            thread = self._waiting[0].message.thread
            others = self._granted - {thread, *(d.message.thread for d in self._waiting)}
            if len(others) >= self._max:
                self._make_room()
                return
            delivery = self._waiting.popleft()
            self.cancel_timer(f"wait:{thread}")
            self._granted.add(thread)
            self.reply(delivery, Ok())

    def _make_room(self) -> None:
        if len(self._stopping) >= len(self._waiting):
            return
        idle = [(k.used_at, t) for t, k in self._known.items() if k.state == "idle" and t not in self._stopping]
        if not idle:
            return
        _, oldest = min(idle)
        self._stopping.add(oldest)

        def released(answer: Any) -> None:
            # Refused because a turn began meanwhile: another one is looked for.
            if isinstance(answer, Failed):
                self._stopping.discard(oldest)
                self._grant()

        self.ask(f"thread/{oldest}", ThreadRelease("its place is needed for another conversation"), released, limit_s=self._wait_s)
