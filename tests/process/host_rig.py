"""A supervisor's end of the bus in the test process, and a real host process that talks to it."""

from __future__ import annotations

import hashlib
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from actors.host_spec import HostLimits, HostSpec
from actors.spawner import HOST
from transports.bus.access import Access
from transports.bus.api import Delivery, Peer
from transports.bus.endpoint import Endpoint
from transports.bus.switch import Switch
from transports.bus.vocabulary.hosting import HostAck, HostDelta, HostEvent, HostHello, HostPrompt, HostWelcome
from transports.paths import clear_run, write_run

REPO = Path(__file__).resolve().parents[2]
FAKE = REPO / "tests" / "fakes" / "fake_agent.py"
LIMIT_S = 10.0
SECRET = b"s" * 32


class Timers:
    def call_later(self, delay: float, fn: Callable[[], None], /) -> Any:
        timer = threading.Timer(delay, fn)
        timer.daemon = True
        timer.start()
        return timer


class Supervisor:
    """Answers HELLO, keeps what comes, acks unless told not to. `end_epoch`: hosts up to it are told to end."""

    def __init__(self, data: Path, sockets: Path, *, acked: int = 0, ack: bool = True, end_epoch: int = 0) -> None:
        self.data, self.acked, self.ack, self.end_epoch = data, acked, ack, end_epoch
        self.hellos: queue.SimpleQueue[HostHello] = queue.SimpleQueue()
        self.events: queue.SimpleQueue[HostEvent] = queue.SimpleQueue()
        self.deltas: list[HostDelta] = []
        self.order: list[Any] = []
        self.replies: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.seen: list[HostEvent] = []
        self.switch = Switch()
        digest = hashlib.sha256(SECRET).hexdigest()
        access = Access(policy=lambda peer, address, message: None, secret_hash=lambda kind, name: digest)
        self.endpoint = Endpoint(
            sockets / "bus.sock",
            self.switch,
            access=access,
            bind_names=lambda peer, hello: [hello.name] if hello.name else [],
            on_gone=self._gone,
            clock=Timers(),
            heartbeat_s=1.0,
        )
        self.switch.register("thread/wt_1", self._take)
        self.endpoint.start()
        write_run(data, sockets, "0", time.time())

    def _gone(self, peer: Peer, reason: str) -> None:
        pass

    def _take(self, delivery: Delivery) -> None:
        message = delivery.message
        self.order.append(message)
        if isinstance(message, HostHello):
            end = message.epoch <= self.end_epoch
            self.switch.send(delivery.sender, HostWelcome(self.acked, end), sender="thread/wt_1", corr=-delivery.corr)
            self.hellos.put(message)
        elif isinstance(message, HostEvent):
            if message.seq == self.acked + 1 or not self.ack:
                self.seen.append(message)
                self.events.put(message)
            if self.ack:
                self.acked = max(self.acked, message.seq)
                self.send(HostAck(self.acked))
        elif isinstance(message, HostDelta):
            self.deltas.append(message)
        else:
            self.replies.put(message)

    def send(self, message: Any, corr: int = 0) -> None:
        self.switch.send("agent/wt_1/host", message, sender="thread/wt_1", corr=corr)

    def prompt(self, turn: str, program: str) -> None:
        self.send(HostPrompt(turn, [{"type": "text", "text": program}]))

    def wait(self, kind: str) -> HostEvent:
        """The next event of a kind; those before it are passed over."""
        while True:
            event = self.events.get(timeout=LIMIT_S)
            if event.kind == kind:
                return event

    def close(self) -> None:
        self.endpoint.close()
        clear_run(self.data)


class Host:
    """A host process. `ended` waits for its end and gives its exit code."""

    def __init__(self, spec: HostSpec) -> None:
        read, write = os.pipe()
        env = {**os.environ, "PYTHONPATH": str(REPO)}
        self.process = subprocess.Popen(
            [sys.executable, "-S", "-P", str(HOST), "--spec-fd", str(read)],
            pass_fds=[read],
            env=env,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        os.close(read)
        with os.fdopen(write, "wb") as pipe:
            pipe.write(spec._replace(python_path=sys.path).to_bytes())

    def ended(self, limit_s: float = LIMIT_S) -> int:
        return self.process.wait(limit_s)

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        if self.process.stderr is not None and not self.process.stderr.closed:
            sys.stderr.write(self.process.stderr.read().decode("utf-8", "replace"))  # pytest shows it with a failure
            self.process.stderr.close()


LIMITS = HostLimits(initialize_s=5, session_s=5, mode_s=5, cancel_s=5, stop_s=0.5)


def fake_spec(data: Path, cwd: Path, knobs: Mapping[str, Any] | None = None, **more: Any) -> HostSpec:
    """A spec for the fake agent."""
    import json

    env = {"PATH": os.environ["PATH"], "HOME": str(data), "FAKE_AGENT": json.dumps(knobs or {})}
    spec = HostSpec(
        thread="wt_1",
        instance="host",
        epoch=1,
        argv=[sys.executable, str(FAKE)],
        cwd=str(cwd),
        data_dir=str(data),
        secret=SECRET.hex(),
        env=env,
        agent="fake",
        mode="ask",
        limits=LIMITS,
    )
    return spec._replace(**more)


def wait_until(true: Callable[[], bool], what: str, limit_s: float = LIMIT_S) -> None:
    """Look again and again, for at most `limit_s` seconds; for things that nobody announces (a process's end)."""
    until = time.monotonic() + limit_s
    gate = threading.Event()
    while not true():
        assert time.monotonic() < until, f"not within {limit_s:g} s: {what}"
        gate.wait(0.01)
