"""The way of a message through the bus, against the same number of raw socket hops."""

from __future__ import annotations

import itertools
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgpack
import zmq

from actors.journal.actor import JournalActor
from actors.pooled import actor_receiver
from benchmarks.harness import Case, Pair, at_least_times, at_most_times, per_second, seconds
from transports.bus import envelope
from transports.bus.api import Delivery
from transports.bus.client import SyncClient
from transports.bus.codec import encode
from transports.bus.switch import Switch
from transports.bus.vocabulary.storage import Record
from transports.bus.vocabulary.surface import Accepted, Preview, Submit

ROUNDS = 2000
WARM_UP = 300
BODY = Preview("cli:local:bench", "turn", "wt_bench", {"event": "text", "text": "x" * 900})


@contextmanager
def process(*words: str) -> Iterator[None]:
    """One of `_bus_processes`, running and ready."""
    made = subprocess.Popen(
        [sys.executable, "-m", "benchmarks._bus_processes", *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        if made.stdout is None or made.stdout.readline() != b"ready\n":
            raise RuntimeError(f"{words[0]} did not start")
        yield
    finally:
        made.communicate(timeout=10)


def median_us(times: list[float]) -> float:
    """Microseconds."""
    return sorted(times)[len(times) // 2] * 1e6


@contextmanager
def routed(chain: str = "raw-actors") -> Iterator[Pair]:
    """A hop is a hand-over from one thread to another. A route's handler runs on a pool thread and never on the one that owns
    the sockets, so that a raw chain of as many hops has a thread beside its router too."""
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="va-bench-")))
        raw, ours = str(directory / "raw"), directory / "bus"
        for words in ((chain, raw), ("raw-worker", raw), ("supervisor", str(ours)), ("worker", str(ours))):
            stack.enter_context(process(*words))
        context = zmq.Context()
        stack.callback(context.destroy, linger=0)
        dealer = context.socket(zmq.DEALER)
        dealer.connect(f"ipc://{raw}")
        client = stack.enter_context(SyncClient(ours))
        header = msgpack.packb([1, envelope.SEND, 1, 0, "route/cli:local:bench", 0, ""])
        body = encode(BODY)

        def floor() -> float:
            times = []
            for _ in range(ROUNDS):
                start = time.perf_counter()
                dealer.send_multipart((header, body))
                dealer.recv_multipart()
                times.append(time.perf_counter() - start)
            return median_us(times)

        def own() -> float:
            times = []
            for _ in range(ROUNDS):
                start = time.perf_counter()
                client.request("route/cli:local:bench", BODY, 10.0)
                times.append(time.perf_counter() - start)
            return median_us(times)

        for _ in range(WARM_UP):
            dealer.send_multipart((header, body))
            dealer.recv_multipart()
            client.request("route/cli:local:bench", BODY, 10.0)
        yield floor, own


@contextmanager
def accept_time() -> Iterator[Pair]:
    """A message to a route until its durable accept, in microseconds; the floor is the same chain as for the
    routed round trip, with one commit in its router."""
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="va-bench-")))
        raw, ours = str(directory / "raw"), directory / "bus"
        stack.enter_context(process("raw-router", raw, str(directory / "raw.db")))
        stack.enter_context(process("raw-worker", raw))
        stack.enter_context(process("supervisor", str(ours), str(directory / "journal.db")))
        context = zmq.Context()
        stack.callback(context.destroy, linger=0)
        dealer = context.socket(zmq.DEALER)
        dealer.connect(f"ipc://{raw}")
        client = stack.enter_context(SyncClient(ours))
        keys = itertools.count()
        route = "route/cli:local:bench"

        def message() -> Submit:
            return Submit(f"key-{next(keys)}", "x" * 900)

        def raw_accept() -> None:
            dealer.send_multipart((msgpack.packb([1, envelope.SEND, 1, 0, route, 0, ""]), encode(message())))
            dealer.recv_multipart()

        def own_accept() -> None:
            answer = client.request(route, message(), 10.0)
            if not isinstance(answer, Accepted):
                raise RuntimeError(f"not accepted: {answer}")

        def typical(accept: Callable[[], object]) -> float:
            return median_us([seconds(accept) for _ in range(ROUNDS // 2)])

        typical(raw_accept), typical(own_accept)
        yield lambda: typical(raw_accept), lambda: typical(own_accept)


@contextmanager
def group_commit() -> Iterator[Pair]:
    """Rows per second: 64 accepts wait at the journal, whose answer to one sends the next; the floor is SQLite alone."""
    with tempfile.TemporaryDirectory(prefix="va-bench-") as directory:
        raw = sqlite3.connect(Path(directory) / "raw.db", isolation_level=None)
        raw.executescript("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; CREATE TABLE inbox (key TEXT UNIQUE, text TEXT)")
        switch, keys = Switch(), itertools.count()
        journal = JournalActor.start(Path(directory) / "journal.db", switch, time.time, None)
        switch.register("journal", actor_receiver(journal))
        left, done = [0, 0], threading.Event()

        def send() -> None:
            left[0] -= 1
            row = ["inbox_add", "route/bench", f"key-{next(keys)}", "x" * 900, {}, [], "", 0.0]
            switch.send("journal", Record([row]), sender="bench", corr=1)

        def answered(delivery: Delivery) -> None:
            left[1] -= 1
            if left[0]:
                send()
            elif not left[1]:
                done.set()

        switch.register("bench", answered)

        def single() -> None:
            for _ in range(ROUNDS):
                raw.execute("INSERT INTO inbox VALUES (?, ?)", (f"key-{next(keys)}", "x" * 900))

        def grouped() -> None:
            left[:] = [4 * ROUNDS, 4 * ROUNDS]
            done.clear()
            for _ in range(64):
                send()
            if not done.wait(60.0):
                raise RuntimeError("the journal did not answer")

        grouped()
        try:
            yield lambda: per_second(ROUNDS, single), lambda: per_second(4 * ROUNDS, grouped)
        finally:
            journal.stop(timeout=10.0)
            raw.close()


CASES = [
    Case(
        "routed round trip, transient kind", "raw ROUTER/DEALER chain with as many hops", "µs", at_most_times(1.6), routed
    ),
    Case(
        "durable accept, one client", "raw chain with one FULL commit in its router", "µs", at_most_times(1.6), accept_time
    ),
    Case("durable accepts, 64 in flight", "one commit each", "/s", at_least_times(2.5), group_commit),
]
