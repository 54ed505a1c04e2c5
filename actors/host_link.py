"""A thread's hold on its host process: start, fence, adopt, stop, and the certainty that it is gone.

Plain logic on the thread's own turn. States: dead, starting, idle, busy, stopping, reclaiming. Nothing is spawned
while an earlier host of this thread may live: `dead` is entered only on the spawner's word.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from actors.mailbox import Continue
from agents_registry.errors import AgentError, VibeAroundError, from_wire
from transports.bus.api import Delivery
from transports.bus.vocabulary.children import EndHost, HostAgent, HostExited, HostSlot, HostState, ProbeHost, SpawnHost
from transports.bus.vocabulary.conversation import Failed, Ok
from transports.bus.vocabulary.hosting import HostHello, HostStop, HostWelcome

INSTANCE = "host"
"""A thread has one host agent; sub-agents would be further instances."""
START, STOP, RECLAIM, KILL = "host-start", "host-stop", "host-reclaim", "host-kill"


class Owner(Protocol):
    """What the link needs of its thread."""

    address: str
    thread_id: str

    def ask(self, address: str, msg: Any, then: Continue, *, limit_s: float = 30.0) -> None: ...
    def tell(self, address: str, msg: Any) -> None: ...
    def reply(self, delivery: Delivery, msg: Any) -> None: ...
    def set_timer(self, name: str, delay_s: float) -> None: ...
    def cancel_timer(self, name: str) -> None: ...
    def record(self, ops: list[Any], then: Continue | None = None) -> None: ...
    def now(self) -> float: ...
    def spawn_request(self, epoch: int) -> SpawnHost: ...
    def host_adopted(self, hello: HostHello) -> None: ...
    def host_failed(self, error: VibeAroundError) -> None: ...
    def host_dead(self, reason: str) -> None: ...
    def spooled(self, events: list[Any]) -> None: ...


class HostLink:
    """`limits`: (start_s, stop_s, reclaim_s) in seconds."""

    def __init__(self, owner: Owner, limits: tuple[float, float, float]) -> None:
        self._owner = owner
        self._start_s, self._stop_s, self._reclaim_s = limits
        self.state = "dead"
        self.came_up = False
        """Whether the present host has had its session: one that ends before that is not started again by itself."""
        self.asked_to_stop = False
        self.plan_mode = "plan"
        """The agent's plan mode, as the registry names it; the usual id while an adopted host's is not known."""
        self.epoch = 0
        self.acked = 0
        self.pids: dict[str, int] = {"host_pid": 0, "host_start": 0, "agent_pid": 0, "agent_pgid": 0, "agent_start": 0}
        self._when_dead: list[Callable[[], None]] = []

    @property
    def address(self) -> str:
        return f"agent/{self._owner.thread_id}/{INSTANCE}"

    @property
    def ready(self) -> bool:
        return self.state in ("idle", "busy")

    def _become(self, state: str, **more: Any) -> None:
        self.state = state
        pids = {"host_pid": self.pids["host_pid"], "agent_pid": self.pids["agent_pid"]}
        self._owner.tell("hosts", HostState(self._owner.thread_id, state, **{**pids, **more}))

    def working(self, busy: bool) -> None:
        """idle <-> busy, as turns begin and end."""
        wanted = "busy" if busy else "idle"
        if self.ready and self.state != wanted:
            self._become(wanted)

    # --- after a supervisor start ---

    def recall(self, row: dict[str, Any] | None) -> None:
        """Take up what the journal knows; a host that may live is reclaimed."""
        if row is None:
            return
        self.epoch = int(row["epoch"])
        self.acked = int(row["acked"])
        self.pids = {name: int(row[name]) for name in self.pids}
        if row["state"] == "gone":
            return
        self.came_up = True
        self._become("reclaiming")
        self._owner.set_timer(RECLAIM, self._reclaim_s)
        probe = ProbeHost(self._owner.thread_id, INSTANCE, self.epoch, **self.pids)
        self._owner.ask("spawner", probe, self._probed, limit_s=self._reclaim_s + self._stop_s * 4)

    def _probed(self, answer: Any) -> None:
        if self.state != "reclaiming" or not isinstance(answer, Ok) or answer.data.get("alive"):
            return
        events = list(answer.data.get("spooled") or [])
        if events:
            self._owner.spooled(events)
        self._gone("the host ended while the supervisor was away")

    def _end_unclaimed(self) -> None:
        self._owner.tell("spawner", EndHost(self._owner.thread_id, INSTANCE, self.epoch, **self.pids))

    # --- start ---

    def start(self) -> None:
        """From dead only. Ends in `host_adopted` + the host's ready event, or `host_failed`, or `host_dead`."""
        self.came_up = self.asked_to_stop = False
        self._become("starting")
        self._owner.ask("hosts", HostSlot(self._owner.thread_id), self._slot, limit_s=self._start_s + 10.0)

    def _slot(self, answer: Any) -> None:
        if isinstance(answer, Failed):
            self._refused(from_wire(answer.error))
            return
        ops = [["host_spawn", self._owner.thread_id, INSTANCE, self._owner.now()]]
        self._owner.record(ops, self._fenced)

    def _fenced(self, answer: Any) -> None:
        if isinstance(answer, Failed):
            self._refused(from_wire(answer.error))
            return
        self.epoch = int(answer.results[0])
        self.acked = 0
        self.pids = dict.fromkeys(self.pids, 0)
        self._owner.ask("spawner", self._owner.spawn_request(self.epoch), self._spawned, limit_s=self._start_s)

    def _spawned(self, answer: Any) -> None:
        if isinstance(answer, Failed):
            error = from_wire(answer.error)
            self._owner.record([["host_gone", self._owner.thread_id, INSTANCE, self.epoch, error.message]])
            self._refused(error)
            return
        self.plan_mode = str(answer.data.get("plan_mode") or "")
        self.pids["host_pid"] = int(answer.data["pid"])
        self.pids["host_start"] = int(answer.data["start_time"])
        host = [self.pids["host_pid"], self.pids["host_start"]]
        pids = ["host_pids", self._owner.thread_id, INSTANCE, self.epoch, answer.data["secret_hash"], host, [0, 0, 0]]
        self._owner.record([pids])
        if self.state == "starting":
            self._owner.set_timer(START, self._start_s)

    def _refused(self, error: VibeAroundError) -> None:
        self._owner.cancel_timer(START)
        self._become("dead")
        self._run_waiting()
        self._owner.host_failed(error)

    # --- the host speaks ---

    def hello(self, delivery: Delivery, hello: HostHello) -> None:
        """Adopt the host of our epoch; tell an older one to end."""
        if hello.epoch != self.epoch or self.state == "dead":
            self._owner.reply(delivery, HostWelcome(0, True))
            return
        known = ("host_pid", "host_start", "agent_pid", "agent_pgid", "agent_start")
        self.pids = {name: int(getattr(hello, name)) for name in known}
        self._owner.cancel_timer(RECLAIM)
        self._owner.cancel_timer(START)
        host, agent = [hello.host_pid, hello.host_start], [hello.agent_pid, hello.agent_pgid, hello.agent_start]
        self._owner.tell("spawner", HostAgent(self._owner.thread_id, INSTANCE, self.epoch, *agent))
        if self.state == "reclaiming":
            self.came_up = bool(hello.session)
            self._become({"busy": "busy", "idle": "idle"}.get(hello.state, "starting"), session=hello.session)

        def durable(_: Any) -> None:
            self._owner.reply(delivery, HostWelcome(self.acked))
            self._owner.host_adopted(hello)
            if self.state == "stopping":
                self._owner.tell(self.address, HostStop("stopping"))

        self._owner.record([["host_pids", self._owner.thread_id, INSTANCE, self.epoch, "", host, agent]], durable)

    def is_ready(self, agent: str, session: str) -> None:
        """The agent has its session."""
        self.came_up = True
        if self.state == "starting":
            self._become("idle", agent=agent, session=session)

    # --- stop ---

    def stop(self, reason: str, then: Callable[[], None] | None = None) -> None:
        """Ask the host to stop; by force when it does not. `then` runs once it is gone."""
        if then is not None:
            if self.state == "dead":
                then()
                return
            self._when_dead.append(then)
        if self.state in ("dead", "stopping"):
            return
        self.asked_to_stop = True
        self._become("stopping")
        self._owner.cancel_timer(START)
        self._owner.tell(self.address, HostStop(reason))
        # The host needs three steps of its own ladder; only then is it stuck.
        self._owner.set_timer(STOP, self._stop_s * 4)

    def alarm(self, name: str) -> bool:
        """True when the timer was one of the link's."""
        if (name == RECLAIM and self.state == "reclaiming") or (name == STOP and self.state == "stopping"):
            self._end_unclaimed()
        elif name == START and self.state == "starting":
            self._become("stopping")
            error = AgentError(
                f"the agent's host did not come up within {self._start_s:g} seconds.",
                hint="Look at `va doctor` and the log in the data directory, then try again.",
                code="host_silent",
            )
            self._end_unclaimed()
            self._owner.host_failed(error)
        elif name not in (RECLAIM, STOP, START, KILL):
            return False
        return True

    def kill(self) -> None:
        """End a host that does not answer (a cancel that had no effect)."""
        if self.state not in ("dead", "stopping"):
            self._become("stopping")
            self._end_unclaimed()

    def exited(self, message: HostExited) -> None:
        if message.epoch == self.epoch and self.state != "dead":
            self._gone(message.reason)

    def _gone(self, reason: str) -> None:
        for timer in (RECLAIM, START, STOP):
            self._owner.cancel_timer(timer)
        self._owner.record([["host_gone", self._owner.thread_id, INSTANCE, self.epoch, reason[:500]]])
        self._become("dead")
        self._run_waiting()
        self._owner.host_dead(reason)

    def _run_waiting(self) -> None:
        waiting, self._when_dead = self._when_dead, []
        for then in waiting:
            then()
