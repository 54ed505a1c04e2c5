"""An endpoint in the test process, and real peers of it."""

from __future__ import annotations

import hashlib
import json
import os
import queue
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from actors.clock import ManualClock
from transports.bus.access import Access, Policy
from transports.bus.api import Delivery, Peer
from transports.bus.endpoint import Endpoint
from transports.bus.switch import Switch

REPO = Path(__file__).resolve().parents[2]
LIMIT = 10.0
SECRET = b"k" * 32


def _allow(peer: Peer, address: str, message: Any) -> None:
    return None


class Rig:
    """Names are the HELLO's own, for those who prove them with SECRET. `gone` gets (peer, reason), `inbox` what is sent
    to "me". Time stands still unless `clock.advance` moves it."""

    def __init__(self, directory: Path, *, policy: Policy = _allow, hosts: dict[tuple[int, int], str] | None = None, **options: Any) -> None:
        self.path = directory / "bus.sock"
        self.switch = Switch()
        self.clock = ManualClock()
        self.gone: queue.SimpleQueue[tuple[Peer, str]] = queue.SimpleQueue()
        self.inbox: queue.SimpleQueue[Delivery] = queue.SimpleQueue()
        self.hosts = hosts if hosts is not None else {}
        self.access = options.pop("access", None) or Access(
            policy=policy,
            known_hosts=lambda: self.hosts,
            secret_hash=lambda kind, name: hashlib.sha256(SECRET).hexdigest() if name != "nobody" else None,
        )
        self.switch.register("me", self.inbox.put)
        self.endpoint = Endpoint(
            self.path,
            self.switch,
            access=self.access,
            bind_names=lambda peer, hello: [peer.name] if peer.name else [],
            on_gone=lambda peer, reason: self.gone.put((peer, reason)),
            clock=self.clock,
            **options,
        )
        self.endpoint.start()

    def ask(self, address: str, message: Any, corr: int = 1) -> None:
        self.switch.send(address, message, sender="me", corr=corr)

    def answer(self) -> Delivery:
        return self.inbox.get(timeout=LIMIT)


@contextmanager
def rig(directory: Path, **options: Any) -> Iterator[Rig]:
    made = Rig(directory, **options)
    try:
        yield made
    finally:
        made.endpoint.close()


class Process:
    """A `tests.fakes.bus_peer`. `line` is its next report."""

    def __init__(self, *words: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.fakes.bus_peer", *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=REPO,
            env={**os.environ, "PYTHONPATH": str(REPO)},
        )
        self._buffer = b""

    def line(self, limit: float = LIMIT) -> dict[str, Any]:
        """AssertionError when it says nothing in time or has ended."""
        assert self.process.stdout is not None
        until = time.monotonic() + limit
        while b"\n" not in self._buffer:
            ready, _, _ = select.select([self.process.stdout], [], [], max(0.0, until - time.monotonic()))
            assert ready, "the peer said nothing in time"
            data = os.read(self.process.stdout.fileno(), 1 << 16)
            assert data, "the peer ended"
            self._buffer += data
        text, _, self._buffer = self._buffer.partition(b"\n")
        found: dict[str, Any] = json.loads(text)
        return found

    def go(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
        self.process.wait(LIMIT)
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                stream.close()


@contextmanager
def peer(*words: str) -> Iterator[Process]:
    made = Process(*words)
    try:
        yield made
    finally:
        made.close()


@contextmanager
def echo(path: Path, name: str, kind: str = "reader") -> Iterator[Process]:
    """An echo peer that is up."""
    with peer("echo", str(path), kind, name, SECRET.hex()) as made:
        assert made.line() == {"state": "up"}
        yield made


def collected(found: queue.SimpleQueue[Any], count: int, keep: Callable[[Any], Any] = lambda item: item) -> list[Any]:
    return [keep(found.get(timeout=LIMIT)) for _ in range(count)]
