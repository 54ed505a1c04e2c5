"""The way of a message through the bus, against the same number of raw socket hops."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgpack
import zmq

from benchmarks.harness import Case, Pair, at_most_times
from transports.bus import envelope
from transports.bus.client import SyncClient
from transports.bus.codec import encode
from transports.bus.messages import Preview

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
def routed() -> Iterator[Pair]:
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="va-bench-")))
        raw, ours = str(directory / "raw"), directory / "bus"
        for words in (("raw-router", raw), ("raw-worker", raw), ("supervisor", str(ours)), ("worker", str(ours))):
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


CASES = [
    Case(
        "routed round trip, transient kind",
        "raw ROUTER/DEALER chain with as many hops",
        "µs",
        at_most_times(1.6),
        routed,
    ),
]
