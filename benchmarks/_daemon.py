"""A supervisor for measuring, with the bare agent and the demo agent, and clients on it."""

from __future__ import annotations

import itertools
import os
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import zmq

from benchmarks.bench_memory import client
from transports.bus.client import SyncClient
from transports.bus.vocabulary.conversation import Failed
from transports.bus.vocabulary.surface import Listen, Submit

AGENT = Path(__file__).with_name("_flood_agent.py")
_KEYS = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Daemon:
    data: Path
    work: Path
    env: dict[str, str]

    @property
    def stamp(self) -> Path:
        return self.data / "stamp"

    def client(self) -> SyncClient:
        return client(self.data)


@contextmanager
def daemon(default: str = "bare") -> Iterator[Daemon]:
    """Ready, with `bare` (our flood agent) and `demo`; `default` is the agent of new threads."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        root = Path(name)
        data, work = root / "data", root / "work"
        data.mkdir(mode=0o700)
        work.mkdir()
        (data / "agents.toml").write_text(
            f'[bare]\nname = "Bare"\nkind = "cli"\n[bare.acp]\ncommand = ["{sys.executable}", "{AGENT}", "{data / "stamp"}"]\n'
        )
        keep = ("PATH", "LANG", "TMPDIR", "VIRTUAL_ENV")
        env = {n: os.environ[n] for n in keep if n in os.environ}
        env |= {"HOME": str(root), "VIBEAROUND_DATA_DIR": str(data), "VIBEAROUND_AGENTS__DEFAULT": default, "SHELL": "/bin/sh"}
        env |= {"VIBEAROUND_HOSTS__MAX_LIVE": "100"}
        made = subprocess.Popen([sys.executable, "-m", "actors.supervisor"], env=env, stderr=subprocess.DEVNULL)
        try:
            client(data).close()
            yield Daemon(data, work, env)
        finally:
            made.terminate()
            made.wait(timeout=60)


def turn(peer: SyncClient, chat: str, text: str, work: Path, *, until: str = "done") -> None:
    """Submit and wait for an event of the kind `until` (or the end of the turn)."""
    key = f"bench-{os.getpid()}-{next(_KEYS)}"
    peer.request(f"route/cli:local:{chat}", Submit(key, text, {}, str(work), watch=True), 30.0)
    while True:
        delivery = peer.receive(30.0)
        if delivery is None or isinstance(delivery.message, Failed):
            raise RuntimeError(f"no answer to {text!r}: {delivery}")
        event = getattr(delivery.message, "event", {})
        if event.get("event") == "error":
            raise RuntimeError(f"{text!r}: {event}")
        if event.get("event") in (until, "done", "reply"):
            return


def drain(peer: SyncClient) -> None:
    """Read on until the end of the turn that is under way."""
    while (delivery := peer.receive(30.0)) is not None:
        if getattr(delivery.message, "event", {}).get("event") == "done":
            return


def listen(peer: SyncClient, chat: str) -> None:
    peer.request(f"route/cli:local:{chat}", Listen(credit=512), 30.0)


@contextmanager
def commits() -> Iterator[Callable[[int], None]]:
    """`commit(n)`: n transactions with synchronous=FULL on a database of their own."""
    with tempfile.TemporaryDirectory() as name:
        base = sqlite3.connect(Path(name) / "floor.db", isolation_level=None)
        base.execute("PRAGMA journal_mode = WAL")
        base.execute("PRAGMA synchronous = FULL")
        base.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, text TEXT)")

        def commit(count: int) -> None:
            for _ in range(count):
                base.execute("BEGIN IMMEDIATE")
                base.execute("INSERT INTO t (text) VALUES ('x')")
                base.execute("COMMIT")

        yield commit
        base.close()


@contextmanager
def echo() -> Iterator[Callable[[int], None]]:
    """`trip(n)`: n raw round trips to a ROUTER over ipc."""
    with tempfile.TemporaryDirectory() as name:
        context = zmq.Context()
        router, dealer = context.socket(zmq.ROUTER), context.socket(zmq.DEALER)
        router.bind(f"ipc://{name}/echo")
        dealer.connect(f"ipc://{name}/echo")
        stop = threading.Event()

        def serve() -> None:
            while not stop.is_set():
                if router.poll(50):
                    router.send_multipart(router.recv_multipart())

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()

        def trip(count: int) -> None:
            for _ in range(count):
                dealer.send(b"x" * 1024)
                dealer.recv()

        trip(50)
        yield trip
        stop.set()
        thread.join()
        router.close(0)
        dealer.close(0)
        context.term()


def stamp_after(path: Path, since: float, *, limit_s: float = 20.0) -> float:
    """The agent's own start time, once it is later than `since`."""
    end = time.monotonic() + limit_s
    while time.monotonic() < end:
        try:
            found = float(path.read_text())
        except (OSError, ValueError):
            found = 0.0
        if found > since:
            return found
        time.sleep(0.002)
    raise RuntimeError("the agent was not started")
