"""The spawner: the one actor that starts processes and sees them end. It may block; it has a thread of its own.

`dead` is said of a host only when its process is gone and its agent's group was seen empty, because the next host
opens the same session.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from actors.children import Child, alive, end_group, end_leftovers, group_alive, process_start_time, spawn, watch
from actors.host_launch import host_spec, process_environment
from actors.host_spool import read_spool, spool_path
from actors.pooled import ThreadActor
from agents_registry.detect import installed_ids
from agents_registry.errors import AgentError, UsageError, VibeAroundError
from agents_registry.loader import Registry
from agents_registry.login_env import login_environment
from transports.bus.access import make_secret
from transports.bus.api import Bus, Delivery
from transports.bus.vocabulary.bridges import StartBridge
from transports.bus.vocabulary.children import (
    ChildExited,
    EndHost,
    HostAgent,
    HostExited,
    MemoryOf,
    ProbeHost,
    ProbeProcess,
    RefreshEnvironment,
    SpawnHost,
    StartReader,
    StopChild,
)
from transports.bus.vocabulary.conversation import Failed, Ok
from transports.bus.vocabulary.hosting import HostStop
from transports.bus.vocabulary.storage import RemoveFiles
from transports.settings import Settings

HOST = Path(__file__).with_name("host.py")


@dataclass(slots=True)
class _Host:
    thread: str
    instance: str
    epoch: int
    pid: int
    start_time: int
    agent_pid: int = 0
    agent_pgid: int = 0
    agent_start: int = 0


PROXIES = frozenset({"http_proxy", "https_proxy", "all_proxy", "no_proxy"})
"""What a bridge gets of the user's environment besides what its definition names."""


class Children:
    """The table of our processes; read from any thread, changed by the spawner."""

    def __init__(
        self, data_dir: Path, settings: Settings, registry: Registry, environ: Mapping[str, str], socket_dir: Path
    ) -> None:
        self.data_dir = data_dir
        self.settings = settings
        self.registry = registry
        self.socket_dir = socket_dir
        self._lock = threading.Lock()
        self.closing = False
        """The supervisor stops: a message that waits must not start the host that was just ended anew."""
        self._secrets: dict[tuple[str, str], str] = {}
        self._hosts: dict[str, _Host] = {}
        self._readers: dict[str, Child] = {}
        """Readers and bridges: what ends with the supervisor."""
        self.own_environ = dict(environ)
        self.read_login()

    def read_login(self) -> None:
        """What a terminal would have; hosts that start from now on get it."""
        self.login = login_environment(self.own_environ)
        self.environ = dict(self.login.variables)
        self._installed = installed_ids(self.registry.all(), self.environ, self.data_dir)

    def installed(self) -> list[str]:
        return list(self._installed)

    def refresh(self) -> None:
        """Look again for installed agents: one may have been installed since the start."""
        self._installed = installed_ids(self.registry.all(), self.environ, self.data_dir)

    def default_agent(self) -> str:
        """The agent of a new thread; "" when there is none. One that the user set is never replaced in silence: when it is
        not installed, its start fails with the install hint."""
        if self.settings.agents.default:
            return self.registry.get(self.settings.agents.default).id
        chosen = self.registry.default(self._installed)
        return chosen.id if chosen is not None else ""

    def known_hosts(self) -> Mapping[tuple[int, int], str]:
        with self._lock:
            return {(h.pid, h.start_time): h.thread for h in self._hosts.values()}

    def secret_hash(self, kind: str, name: str) -> str | None:
        return self._secrets.get((kind, name))

    def recover(self, database: Path) -> None:
        """Know the hosts that an earlier supervisor left, before they say hello. On the starter's thread."""
        with contextlib.closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
            connection.row_factory = sqlite3.Row
            for row in connection.execute("SELECT * FROM hosts WHERE state != 'gone'"):
                address = f"agent/{row['thread']}/{row['instance']}"
                with self._lock:
                    self._secrets[("host", address)] = row["secret_hash"]
                    self._hosts[address] = _Host(
                        row["thread"], row["instance"], row["epoch"], row["host_pid"], row["host_start"], row["agent_pid"],
                        row["agent_pgid"], row["agent_start"],
                    )

    # --- changed by the spawner ---

    def expect(self, kind: str, name: str, digest: str) -> None:
        with self._lock:
            self._secrets[(kind, name)] = digest

    def add_host(self, address: str, host: _Host) -> None:
        with self._lock:
            self._hosts[address] = host

    def drop_host(self, address: str, epoch: int) -> None:
        with self._lock:
            known = self._hosts.get(address)
            if known is not None and known.epoch == epoch:
                del self._hosts[address]
                self._secrets.pop(("host", address), None)

    def host(self, address: str) -> _Host | None:
        with self._lock:
            return self._hosts.get(address)

    def add_reader(self, name: str, child: Child) -> None:
        with self._lock:
            self._readers[name] = child

    def drop_reader(self, name: str) -> Child | None:
        with self._lock:
            self._secrets.pop((name.partition("/")[0], name), None)
            return self._readers.pop(name, None)

    # --- at the end ---

    def stop_hosts(self, bus: Bus, limit_s: float) -> None:
        """`va down`: ask each host to stop, wait, end what is left by force, and let none start. On the main thread."""
        with self._lock:
            self.closing = True
            hosts = dict(self._hosts)
        for address in hosts:
            bus.send(address, HostStop("the supervisor stops"))
        until = time.monotonic() + min(limit_s, self.settings.hosts.stop_s * 4)
        while time.monotonic() < until and any(alive(h.pid, h.start_time) for h in hosts.values()):
            time.sleep(0.02)
        with self._lock:
            hosts.update(self._hosts)  # one may have been on its way
        for host in hosts.values():
            end_group(host.pid, host.start_time, self.settings.hosts.stop_s)
            if host.agent_pid:
                end_group(host.agent_pid, host.agent_start, self.settings.hosts.stop_s, group=host.agent_pgid)
        if self.settings.hosts.end_detached:
            end_leftovers(self.data_dir, self.settings.hosts.stop_s)

    def stop_all(self) -> None:
        with self._lock:
            readers, self._readers = self._readers, {}
        for child in readers.values():
            child.end(1.0)


class SpawnerActor(ThreadActor):
    def __init__(self, bus: Bus, clock: Any, children: Children, report: Callable[..., None]) -> None:
        super().__init__(address="spawner", report=report, bus=bus)
        self._bus = bus
        self._clock = clock
        self._children = children

    def receive(self, delivery: Delivery) -> None:
        message = delivery.message
        try:
            if isinstance(message, SpawnHost):
                if not self._children.closing:  # else no word: what waits is in the journal, for the next supervisor
                    self._reply(delivery, Ok(self._spawn_host(message)))
            elif isinstance(message, ProbeHost):
                self._reply(delivery, Ok(self._probe(message)))
            elif isinstance(message, EndHost):
                self._end_host(message)
            elif isinstance(message, HostAgent):
                self._agent_known(message)
            elif isinstance(message, HostExited):
                self._host_exited(message)
            elif isinstance(message, StartReader):
                self._reply(delivery, Ok(self._start_reader(message.name)))
            elif isinstance(message, StartBridge):
                self._reply(delivery, Ok(self._start_bridge(message.kind, message.name)))
            elif isinstance(message, StopChild):
                self._stop_reader(message.name)
            elif isinstance(message, RefreshEnvironment):
                self._children.read_login()
                self._reply(delivery, Ok({"source": self._children.login.source, "agents": self._children.installed()}))
            elif isinstance(message, RemoveFiles):
                self._remove_files(message.paths)
            elif isinstance(message, ProbeProcess):
                self._reply(delivery, Ok({"alive": alive(message.pid, message.start_time)}))
            elif isinstance(message, MemoryOf):
                self._reply(delivery, Ok({"mb": [round(sum(_rss_mb(pid) for pid in group), 1) for group in message.pids]}))
            else:
                raise UsageError("the spawner does not know this message.", code="unknown_message")
        except VibeAroundError as error:
            self._reply(delivery, Failed(error.to_wire()))
        except OSError as error:
            failure = VibeAroundError(f"a process could not be started: {error}.", hint="See `va doctor`.", code="spawn_failed")
            self._reply(delivery, Failed(failure.to_wire()))

    def _reply(self, delivery: Delivery, message: Any) -> None:
        if delivery.corr > 0 and delivery.sender:
            self._bus.send(delivery.sender, message, sender="spawner", corr=-delivery.corr)

    # --- hosts ---

    def _spawn_host(self, request: SpawnHost) -> dict[str, Any]:
        c = self._children
        address = f"agent/{request.thread}/{request.instance}"
        secret, digest = _new_secret()
        try:
            spec = host_spec(request, c.registry, c.settings, c.environ, c.data_dir, secret)
        except VibeAroundError:
            c.refresh()
            raise
        try:
            given = spec.to_bytes()
        except ValueError as error:
            raise AgentError(
                f"The agent {request.agent} could not be started: {error}.", hint="Look at its command and its variables in agents.toml.",
                code="agent_missing",
            ) from error
        c.expect("host", address, digest)
        child = spawn(
            [sys.executable, "-S", "-P", str(HOST)], env=process_environment(c.environ), cwd=str(c.data_dir),
            give=("--spec-fd", given), log=c.data_dir / "logs" / "host.log",
        )
        start = process_start_time(child.pid) or 0
        c.add_host(address, _Host(request.thread, request.instance, request.epoch, child.pid, start))
        thread, instance, epoch = request.thread, request.instance, request.epoch

        def ended(reason: str) -> None:
            self._bus.send("spawner", HostExited(instance, epoch, f"{thread}\n{reason}"))

        child.on_exit(ended)
        plan = c.registry.get(request.agent).modes.plan
        return {"pid": child.pid, "start_time": start, "secret_hash": digest, "plan_mode": plan}

    def _agent_known(self, message: HostAgent) -> None:
        host = self._children.host(f"agent/{message.thread}/{message.instance}")
        if host is not None and host.epoch == message.epoch:
            host.agent_pid, host.agent_pgid, host.agent_start = message.agent_pid, message.agent_pgid, message.agent_start

    def _host_exited(self, message: HostExited) -> None:
        """The host process is gone; see its agent gone too, then say so."""
        thread, _, reason = message.reason.partition("\n")
        address = f"agent/{thread}/{message.instance}"
        host = self._children.host(address)
        if host is not None and host.epoch == message.epoch:
            self._end_agent(host)
        self._children.drop_host(address, message.epoch)
        self._bus.send(f"thread/{thread}", HostExited(message.instance, message.epoch, reason), sender="spawner")

    def _end_agent(self, host: _Host) -> None:
        stop_s = self._children.settings.hosts.stop_s
        pid, pgid, start = host.agent_pid, host.agent_pgid, host.agent_start
        if not pid:
            # It died before its hello: its agent is recognised by what only hosted processes carry.
            for leftover in _marked(f"{host.thread}/{host.instance}/{host.epoch}"):
                end_group(leftover, process_start_time(leftover) or 0, stop_s)
            return
        if alive(pid, start) or group_alive(pgid):
            end_group(pid, start, stop_s, group=pgid)

    def _probe(self, request: ProbeHost) -> dict[str, Any]:
        """{alive, spooled}: a living host of an earlier supervisor is watched from now on; a dead one's agent is ended."""
        c = self._children
        address = f"agent/{request.thread}/{request.instance}"
        host = _Host(
            request.thread, request.instance, request.epoch, request.host_pid, request.host_start, request.agent_pid,
            request.agent_pgid, request.agent_start,
        )
        if request.host_pid and alive(request.host_pid, request.host_start):
            c.add_host(address, host)
            thread, instance, epoch = request.thread, request.instance, request.epoch
            watch(request.host_pid, lambda reason: self._bus.send("spawner", HostExited(instance, epoch, f"{thread}\n{reason}")))
            return {"alive": True, "spooled": []}
        self._end_agent(host)
        c.drop_host(address, request.epoch)
        spooled: list[Any] = []
        path = spool_path(c.data_dir, request.thread, request.instance, request.epoch)
        if path.exists():
            events = read_spool(path).events
            spooled = [[e.seq, e.epoch, e.turn, e.kind, e.body] for e in events]
            path.rename(path.with_suffix(".read"))
        return {"alive": False, "spooled": spooled}

    def _end_host(self, request: EndHost) -> None:
        """By force; its exit is noticed like any other. Without a process to notice, it is said here."""
        address = f"agent/{request.thread}/{request.instance}"
        host = self._children.host(address)
        if host is not None and host.epoch == request.epoch:
            host.agent_pid, host.agent_pgid, host.agent_start = request.agent_pid, request.agent_pgid, request.agent_start
        stop_s = self._children.settings.hosts.stop_s
        if request.host_pid and alive(request.host_pid, request.host_start):
            end_group(request.host_pid, request.host_start, stop_s)
            return
        self._host_exited(HostExited(request.instance, request.epoch, f"{request.thread}\nit was not there any more"))

    def _remove_files(self, paths: list[Any]) -> None:
        directory = self._children.data_dir / "files"
        for name in paths:
            path = Path(str(name))
            if path.parent == directory:
                path.unlink(missing_ok=True)

    # --- readers ---

    def _start_reader(self, name: str) -> dict[str, Any]:
        c = self._children
        words = ["actors.reader", "--name", name]
        env = process_environment(c.environ) | {"VIBEAROUND_READER_ENV": json.dumps(c.environ)}
        return self._start_child("reader", "reader", name, words, env, c.data_dir / "logs" / "reader.log")

    def _start_bridge(self, kind: str, name: str) -> dict[str, Any]:
        """With the variables that its definition refers to, and no others of the user's."""
        from transports.im.definitions import find

        c = self._children
        options = find(c.data_dir, name).options.values()
        named = {value.removeprefix("env:") for value in options if value.startswith("env:")}
        wanted = named | PROXIES
        mine = {n: v for source in (c.environ, c.own_environ) for n, v in source.items() if n in wanted or n.lower() in wanted}
        for variable in sorted(named - mine.keys()):
            raise UsageError(
                f"The environment variable {variable} is not set for the daemon, which starts the bridge.",
                hint=f"Set it in your login shell's profile, then `va up` and `va bridge restart {name}`; or keep the secret in a file: file:PATH.",
                code="no_variable",
            )
        words = ["transports.im.main", kind, name]
        env = process_environment(c.environ) | mine
        log = c.data_dir / "logs" / f"bridge-{name}.log"
        return self._start_child("bridge", "bridges", f"bridge/{kind}:{name}", words, env, log)

    def _start_child(self, kind: str, asker: str, name: str, words: list[str], env: dict[str, str], log: Path) -> dict[str, Any]:
        c = self._children
        descriptor, digest = make_secret()
        c.expect(kind, name, digest)
        argv = [
            sys.executable, "-P", "-m", *words, "--run", str(c.socket_dir / "bus.sock"), "--data-dir", str(c.data_dir),
            "--secret-fd", str(descriptor),
        ]
        try:
            child = spawn(argv, env=env, cwd=str(c.data_dir), pass_fds=(descriptor,), log=log, die_with_parent=True)
        finally:
            os.close(descriptor)
        c.add_reader(name, child)

        def ended(reason: str) -> None:
            c.drop_reader(name)
            self._bus.send(asker, ChildExited(name, reason))

        child.on_exit(ended)
        return {"pid": child.pid}

    def _stop_reader(self, name: str) -> None:
        child = self._children.drop_reader(name)
        if child is not None:
            child.end(1.0)


def _new_secret() -> tuple[str, str]:
    """(hex text for the spec, SHA-256 hex of its bytes)."""
    import hashlib
    import secrets

    secret = secrets.token_bytes(32)
    return secret.hex(), hashlib.sha256(secret).hexdigest()


def _rss_mb(pid: int) -> float:
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1]) if pid else 0
    except (OSError, ValueError, IndexError):
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def _marked(host_id: str) -> list[int]:
    """Processes that carry this host's mark (Linux)."""
    mark = f"VIBEAROUND_HOST_ID={host_id}".encode()
    found = []
    for entry in Path("/proc").glob("[0-9]*") if Path("/proc/self").exists() else ():
        with contextlib.suppress(OSError):
            if mark in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
    return found
