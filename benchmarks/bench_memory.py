"""What routes and threads cost in the supervisor's memory, and what the supervisor costs at rest."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from actors.journal.writer import Journal
from agents_registry.errors import NotRunningError
from benchmarks.harness import Case, Pair, at_most_plus, pss_mb
from transports.bus.api import Delivery
from transports.bus.client import SyncClient
from transports.bus.switch import Switch
from transports.bus.vocabulary.storage import Record
from transports.bus.vocabulary.surface import Submit
from transports.paths import read_run

KNOWN = 10_000
ACTIVE = 1_000
MAX_THREADS = 12
_BARE = "import zmq, msgpack, pykka, structlog, sys; zmq.Context().socket(zmq.ROUTER); print('ready', flush=True); sys.stdin.read()"
_measured: list[int] = []


@contextmanager
def supervisor(directory: Path) -> Iterator[int]:
    """The pid of a real supervisor over `directory`, ready."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("VIBEAROUND_", "XDG_"))}
    made = subprocess.Popen(
        [sys.executable, "-m", "actors.supervisor", "--data-dir", str(directory)],
        env={**env, "HOME": str(directory)},
        stderr=subprocess.DEVNULL,
    )
    try:
        client(directory).close()
        yield made.pid
    finally:
        made.terminate()
        made.wait(timeout=30)


def client(directory: Path) -> SyncClient:
    """Connected to the supervisor of `directory`; waits for it for ten seconds."""
    until = time.monotonic() + 10.0
    while True:
        try:
            return SyncClient(Path(read_run(directory).socket("bus.sock")))
        except NotRunningError:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)


def fill(directory: Path) -> None:
    """A journal of KNOWN routes, the first ACTIVE of them each attached to a thread of its own."""
    state = directory / "state"
    state.mkdir(parents=True, mode=0o700)
    journal = Journal(state / "journal.db", Switch(), time.time)
    now = time.time()
    ops = [["workspace_add", "ws_bench", "bench", str(directory), str(directory), False, now]]
    for number in range(KNOWN):
        ops.append(["route_known", _route(number), now])
        if number < ACTIVE:
            thread = f"wt_bench{number}"
            ops.append(["thread_create", thread, "ws_bench", str(directory), "demo", "direct", f"Bench {number}", "new", {}, now])
            ops.append(["attach", _route(number), thread, 0, now])
    journal.take(Delivery("journal", Record(ops)))
    journal.flush()
    journal.close()


def _route(number: int) -> str:
    return f"cli:local:bench{number}"


def few_threads() -> bool:
    """Whether the measured supervisor has at most MAX_THREADS; the one that reads the process table ends when idle."""
    until = time.monotonic() + 3.0
    while len(os.listdir(f"/proc/{_measured[0]}/task")) > MAX_THREADS:  # noqa: PTH208 - names only
        if time.monotonic() > until:
            return False
        time.sleep(0.1)
    return True


@contextmanager
def routes() -> Iterator[Pair]:
    with ExitStack() as stack:
        directories = [Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="va-"))) for _ in range(2)]
        fill(directories[1])
        without, with_them = (stack.enter_context(supervisor(directory)) for directory in directories)
        asking = stack.enter_context(client(directories[1]))
        for number in range(ACTIVE):  # wakes the route's actor, which asks its thread's
            asking.request(f"route/{_route(number)}", Submit(f"key-{number}", "/status"), 10.0)
        _measured[:] = [with_them]
        yield lambda: pss_mb(without), lambda: pss_mb(with_them)


@contextmanager
def at_rest() -> Iterator[Pair]:
    with tempfile.TemporaryDirectory(prefix="va-") as directory, supervisor(Path(directory)) as pid:
        bare = subprocess.Popen([sys.executable, "-c", _BARE], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        try:
            if bare.stdout is None or not bare.stdout.readline():
                raise RuntimeError("the bare Python did not start")
            yield lambda: pss_mb(bare.pid), lambda: pss_mb(pid)
        finally:
            bare.communicate(timeout=10)


CASES = [
    Case(
        f"{KNOWN:,} routes known, {ACTIVE:,} active", "the supervisor without them", "MB", at_most_plus(40), routes,
        (f"≤ {MAX_THREADS} threads", few_threads),
    ),
    Case("supervisor at rest", "a bare Python with zmq, msgpack, pykka, structlog", "MB", at_most_plus(20), at_rest),
]  # fmt: skip
