"""The supervisor: `python -m actors.supervisor`. Starts layer by layer, stops in reverse.

Routes and stores, nothing else: its actors make no system call that can wait. Reading stores is the reader's,
spawning the spawner's, talking to agents the hosts'.
"""

from __future__ import annotations

import argparse
import os
import secrets
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from actors.attach import Attacher
from actors.attempts import Attempts
from actors.bridges import Bridges
from actors.catalog import Catalog
from actors.clock import SystemClock
from actors.handover import ALPHABET, HandoverStore
from actors.heartbeat import Heartbeat
from actors.hosts import Hosts
from actors.housekeeping import Housekeeping
from actors.journal.actor import HistoryActor, JournalActor
from actors.mcp_door import McpDoor
from actors.mcp_listener import McpListener
from actors.policy import allow
from actors.pooled import Pool, actor_receiver, start_logic
from actors.reader_pool import ReaderPool
from actors.routes import RouteActor
from actors.spawner import Children, SpawnerActor
from actors.supervision import FailureReport
from actors.threads import ThreadSupervisor
from actors.workspaces import Workspaces
from agents_registry.errors import VibeAroundError
from agents_registry.launch_record import read_launches
from agents_registry.loader import load_registry
from transports import paths, settings
from transports.bus.access import Access
from transports.bus.api import Delivery, Peer, Receiver
from transports.bus.endpoint import Endpoint
from transports.bus.switch import Switch
from transports.bus.vocabulary.children import ChildUp, HostState
from transports.bus.vocabulary.conversation import Hello, Ok, PeerGone
from transports.bus.vocabulary.lists import MayChange, Shutdown
from transports.bus.vocabulary.storage import Load
from transports.bus.vocabulary.surface import Listen, Submit
from transports.bus.vocabulary.threads import AgentTried
from transports.service.notify import Notifier

POOL_THREADS = 3
SHUTDOWN_S = 30.0


def new_id(prefix: str) -> str:
    """An id that no other has: 60 random bits."""
    return f"{prefix}_{secrets.token_hex(8)}" if prefix in ("wt", "ws", "tn") else f"{prefix}_{secrets.token_hex(3)}"


class Supervisor:
    """One supervisor over one data directory. `start` returns once it is ready; `wait` until it is told to stop."""

    def __init__(self, data_dir: Path, environ: dict[str, str]) -> None:
        self.data_dir = paths.ensure_data_dir(data_dir)
        # First of all: taken out of the environment, so that no child speaks for us to the service manager.
        self._notifier = Notifier.from_environ(environ)
        self._environ = environ
        self._lock = paths.acquire_lock(self.data_dir)
        self.settings = settings.load(self.data_dir, environ)
        self.registry = load_registry(self.data_dir)
        self.started_at = time.time()
        self.version = _version()
        self.clock = SystemClock()
        self.switch = Switch()
        self._told = threading.Event()
        self._hears: dict[str, set[str]] = {}
        """Routes by the connection that hears them; touched on the io thread only."""
        self._undo: list[tuple[str, Callable[[], None]]] = []
        self._log: Any = None
        self._pool_answers: Callable[[], None] = lambda: None

    # --- layers ---

    def start(self) -> None:
        from transports.logs import logger

        self._log = logger("supervisor", self.settings.log.level)
        socket_dir = paths.prepare_socket_dir(paths.socket_dir(self.data_dir, self._environ))
        self._journal()
        self.children = Children(self.data_dir, self.settings, self.registry, self._environ, socket_dir)
        self._core()
        self._bus(socket_dir)
        self._recover()
        paths.write_run(self.data_dir, socket_dir, self.version, self.started_at)
        self._undo.append(("run.json", lambda: paths.clear_run(self.data_dir)))
        self._notifier.ready(f"data {self.data_dir}")
        self._log.info("ready", pid=os.getpid(), data=str(self.data_dir), sockets=str(socket_dir))

    def _journal(self) -> None:
        path = self.data_dir / "state" / "journal.db"
        writer = JournalActor.start(path, self.switch, self.clock.now, self._report)
        self.switch.register("journal", actor_receiver(writer))
        history = HistoryActor.start(path, self.switch, self._report)
        self.switch.register("history", actor_receiver(history))
        self._undo.append(("journal", lambda: _stop_actors([history, writer])))

    def _core(self) -> None:
        s, bus, clock = self.settings, self.switch, self.clock
        self.pool = Pool(POOL_THREADS)
        self._undo.append(("pool", lambda: _ended(self.pool.stop())))
        spawner = SpawnerActor.start(bus, clock, self.children, self._report)
        self.switch.register("spawner", actor_receiver(spawner))
        self._undo.append(("spawner", lambda: _stop_actors([spawner])))
        default = s.workspaces.default
        workspace = default if default.is_absolute() else self.data_dir / default
        self.hosts = Hosts(bus, clock, max_live=s.hosts.max_live, wait_s=s.hosts.start_s)
        logics = (
            self.hosts,
            HandoverStore(
                bus, clock, random_letter=lambda: secrets.choice(ALPHABET), ttl_s=s.handover.ttl_s,
                max_misses=s.handover.max_misses, lockout_s=s.handover.lockout_s, max_codes=s.handover.max_codes,
            ),
            Workspaces(bus, clock, workspace, new_id),
            Attacher(bus, clock, s, self.registry, new_id, self.children.default_agent),
            Catalog(bus, clock, self.registry, self.about, self.children.installed),
            Housekeeping(bus, clock, keep_days=s.journal.keep_days),
            Attempts(bus, clock, lambda text: self._log.warning("an agent was refused", what=text)),
            ReaderPool(bus, clock, workers=s.reader.workers, idle_s=s.reader.idle_s),
            Bridges(bus, clock, self._definitions(), lambda: secrets.choice(ALPHABET)),
        )
        for logic in logics:
            self._run(logic.address, logic.receive)
        bus.register("supervisor", self._told_by_bus)
        bus.register_prefix("route/", self._route)
        bus.register_prefix("thread/", self._thread)

    def _definitions(self) -> list[tuple[str, str]]:
        """The bridges that there are; none while their file cannot be understood, which is said in the log."""
        if not (self.data_dir / "bridges.toml").exists():
            return []
        from transports.im.definitions import read

        try:
            return [(one.name, one.kind) for one in read(self.data_dir).values()]
        except VibeAroundError as error:
            self._log.error("no bridge is started", error=str(error))
            return []

    def _run(self, address: str, receive: Receiver) -> None:
        ref = start_logic(self.pool, address, receive, report=self._report, bus=self.switch)
        self.switch.register(address, actor_receiver(ref))

    def _route(self, address: str) -> Receiver:
        route = address.removeprefix("route/")
        return self._numerous(
            address, lambda leave: RouteActor(route, self.switch, self.clock, self.settings, new_id, leave)
        )

    def _thread(self, address: str) -> Receiver:
        thread = address.removeprefix("thread/")
        return self._numerous(
            address, lambda leave: ThreadSupervisor(thread, self.switch, self.clock, self.settings, new_id, leave, self._can_ask)
        )

    def _numerous(self, address: str, make: Callable[[Callable[[], None]], Any]) -> Receiver:
        """A pooled actor made on first message; `leave` takes it out of memory, and the next message makes a new one."""
        holder: list[Any] = []

        def leave() -> None:
            holder[0].stop(block=False)

        logic: list[Any] = []

        def receive(delivery: Delivery) -> None:
            if not logic:
                logic.append(make(leave))
            logic[0].receive(delivery)

        ref = start_logic(self.pool, address, receive, report=self._report, bus=self.switch)
        holder.append(ref)
        return actor_receiver(ref)

    def _can_ask(self, agent: str) -> bool:
        try:
            return self.registry.get(agent).modes.can_ask
        except VibeAroundError:
            return True  # not in the registry any more: its start says so, with what to do

    def _bus(self, socket_dir: Path) -> None:
        access = Access(
            policy=self._allow, known_hosts=self.children.known_hosts, launches=lambda: {(r.pid, r.start_time) for r in read_launches(self.data_dir)},
            secret_hash=self.children.secret_hash,
        )
        listener = McpListener(socket_dir / "mcp.sock", self.switch, access)
        self._run("mcp", McpDoor(self.switch, self.clock, self.registry, listener.write, self.version).receive)
        self.endpoint = Endpoint(
            socket_dir / "bus.sock", self.switch, access=access, bind_names=self._bind_names, on_gone=self._gone,
            clock=self.clock, version=self.version, extras=listener.extras,
        )
        listener.wake = self.endpoint.call
        self.endpoint.start()
        self._undo.append(("bus", self.endpoint.close))

    def _bind_names(self, peer: Peer, hello: Hello) -> Sequence[str]:
        if peer.role == "host":
            return [peer.name]
        if peer.role == "reader":
            self.switch.send("reader", ChildUp(peer.name))
            return [peer.name]
        if peer.role == "bridge":
            return [peer.name]
        return []

    def _allow(self, peer: Peer, address: str, message: Any) -> VibeAroundError | None:
        """The policy; and what a surface hears is noted, so that its end is told to those routes and no others."""
        refusal = allow(peer, address, message)
        if refusal is not None and peer.role == "agent":
            route = address.removeprefix("route/") if address.startswith("route/") else ""
            self.switch.send("attempts", AgentTried(message.TAG, peer.host_thread, route, peer.pid))
        if refusal is None and isinstance(message, Listen | Submit):
            self._hears.setdefault(peer.address, set()).add(address)
        return refusal

    def _gone(self, peer: Peer, reason: str) -> None:
        gone = PeerGone(peer.address, peer.name, reason)
        if peer.role == "host":
            self.switch.send(f"thread/{peer.name.split('/')[1]}", gone)
            return
        for address in self._hears.pop(peer.address, ()):
            # One that sleeps has no listeners.
            if self.switch.known(address):
                self.switch.send(address, gone)

    def _recover(self) -> None:
        """Wake the threads whose hosts or turns, and the routes whose messages, an earlier supervisor left."""

        def known(delivery: Delivery) -> None:
            self.switch.unregister("supervisor/recovery")
            if isinstance(delivery.message, Ok):
                data = delivery.message.data
                for thread in {h["thread"] for h in data["hosts"]} | set(data["threads"]):
                    self.switch.send(f"thread/{thread}", HostState(thread, "wake"))
                for route in data["routes"]:
                    self.switch.send(f"route/{route}", HostState("", "wake"))

        self.switch.send("housekeeping", HostState("", "begin"))
        self.switch.send("bridges", HostState("", "begin"))
        self.switch.register("supervisor/recovery", known)
        self.children.recover(self.data_dir / "state" / "journal.db")
        self.switch.send("history", Load("recovery"), sender="supervisor/recovery", corr=1)

    # --- what is told ---

    def about(self) -> dict[str, Any]:
        return {
            "version": self.version, "pid": os.getpid(), "uptime_s": round(time.time() - self.started_at, 3),
            "data_dir": str(self.data_dir),
        }

    def _report(self, report: FailureReport) -> None:
        self._log.error("an actor failed", address=report.address, error=report.text())

    def _told_by_bus(self, delivery: Delivery) -> None:
        if isinstance(delivery.message, Shutdown):
            if delivery.sender:
                self.switch.send(delivery.sender, Ok({"pid": os.getpid()}), sender="supervisor", corr=-delivery.corr)
            self.clock.call_later(0.05, self._told.set)
        elif isinstance(delivery.message, MayChange) and delivery.sender:
            # Who may not has been refused by the policy.
            self.switch.send(delivery.sender, Ok({"what": delivery.message.what}), sender="supervisor", corr=-delivery.corr)

    def tell_to_stop(self) -> None:
        self._told.set()

    def wait(self) -> None:
        """Until told to stop; keeps the service manager's watchdog quiet meanwhile, while everything that serves answers."""
        self._run("beat", lambda _: self._pool_answers())
        heart = Heartbeat({"the bus": self.endpoint.call, "the actors": self._ask_pool})
        heart.beat()
        while not self._told.wait(self._notifier.watchdog_s or 3600.0):
            silent = heart.beat()
            if silent:
                self._log.error("no sign of life", parts=", ".join(silent))
            else:
                self._notifier.alive()

    def _ask_pool(self, answered: Callable[[], None]) -> None:
        self._pool_answers = answered
        self.switch.send("beat", HostState("", "beat"))

    def stop(self) -> None:
        """Hosts first, each seen dead; then the layers in reverse. Bounded."""
        self._notifier.stopping()
        self.children.stop_hosts(self.switch, SHUTDOWN_S)
        for name, undo in reversed(self._undo):
            try:
                undo()
            except Exception as error:  # noqa: BLE001 - the other layers must stop all the same
                self._log.error("a layer did not stop", layer=name, error=repr(error))
        self.children.stop_all()
        self.clock.close()
        self._lock.release()
        self._log.info("stopped")


def _stop_actors(refs: list[Any]) -> None:
    for ref in refs:
        ref.stop(block=True, timeout=10.0)


def _ended(in_time: bool) -> None:
    if not in_time:
        raise VibeAroundError("the actors' threads did not end in time.")


def _version() -> str:
    from importlib import metadata  # 26 ms and the email package: not for who only imports this module

    try:
        return metadata.version("vibearound")
    except metadata.PackageNotFoundError:
        return "0"


def main(argv: list[str] | None = None) -> int:
    """Exit codes as the command line's: 5 when another supervisor serves this data directory."""
    parser = argparse.ArgumentParser(prog="python -m actors.supervisor", description="The VibeAround supervisor.")
    parser.add_argument("--data-dir", type=Path, default=None)
    parser.add_argument("--detach-log", action="store_true", help="write to supervisor.log in the data directory")
    options = parser.parse_args(argv)
    directory = options.data_dir or paths.data_dir(os.environ)
    if options.detach_log:
        _log_to(paths.ensure_data_dir(directory) / "supervisor.log")
    supervisor: Supervisor | None = None
    try:
        supervisor = Supervisor(directory, dict(os.environ))
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: supervisor.tell_to_stop() if supervisor else None)
        supervisor.start()
    except VibeAroundError as error:
        sys.stderr.write(f"{error.message}\n{error.hint}\n")
        return error.exit_code
    supervisor.wait()
    supervisor.stop()
    return 0


def _log_to(path: Path) -> None:
    """Detached from any terminal; the log is rotated by size at each start."""
    if path.exists() and path.stat().st_size > 4 << 20:
        path.replace(path.with_suffix(".log.1"))
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    os.close(descriptor)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)


if __name__ == "__main__":
    sys.exit(main())
