"""What a person waits for: a pickup, the first byte of an answer; and what a flood of text does to two listeners."""

from __future__ import annotations

import asyncio
import itertools
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from actors import reader_ops
from agents_registry.loader import load_registry
from agents_registry.sessions.demo import DemoSessionFile
from benchmarks._daemon import AGENT, commits, daemon, drain, echo, listen, turn
from benchmarks.harness import Case, Pair, at_least_times, at_most_plus, at_most_times
from transports.acp.client import AcpClient
from transports.bus.vocabulary.handover import PrepareHandover
from transports.bus.vocabulary.surface import ItemAck, RouteItem

CHUNKS = 20_000
SIZE = 24


@contextmanager
def pickup() -> Iterator[Pair]:
    numbers = itertools.count(1)
    with daemon("demo") as made, commits() as commit, echo() as trip, made.client() as peer:
        registry = load_registry(made.data)
        root = made.data / "demo"

        def session() -> str:
            name = f"bench-{os.getpid()}-{next(numbers)}"
            DemoSessionFile.create(root, name, str(made.work), at=time.time()).append("user", "remember banana", at=time.time())
            return name

        def ours() -> float:
            name, chat = session(), f"pick-{next(numbers)}"
            began = time.perf_counter()
            issued = peer.request("attacher", PrepareHandover("demo", name, str(made.work)), 30.0)
            turn(peer, chat, f"/pickup {issued.code}", made.work)
            return (time.perf_counter() - began) * 1e3

        def floor() -> float:
            name = session()
            env = {**made.env}
            began = time.perf_counter()
            commit(3)
            trip(4)
            asked = {"agent": "demo", "session": name, "cwd": str(made.work), "pid": os.getpid()}
            found = reader_ops.run(registry, env, "identify", asked)
            wanted = {"agent": "demo", "wanted": name, "cwd": str(made.work), "store_root": found["store_root"], "writer": True}
            reader_ops.run(registry, env, "resolve", wanted)
            return (time.perf_counter() - began) * 1e3

        ours()
        floor()
        yield floor, ours


class _First:
    """Hears one agent directly: when the first update of a turn came."""

    def __init__(self) -> None:
        self.came = threading.Event()

    def __getattr__(self, name: str) -> Any:
        def hear(*_: Any, **__: Any) -> None:
            if "update" in name:
                self.came.set()

        return hear


@contextmanager
def first_byte() -> Iterator[Pair]:
    with daemon() as made, commits() as commit, made.client() as peer:
        direct = subprocess.Popen(
            [sys.executable, str(AGENT)], env=made.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        heard = _First()
        assert direct.stdin is not None
        assert direct.stdout is not None
        agent = AcpClient(direct.stdin, direct.stdout, heard, exit_code=lambda limit: direct.poll(), stderr_tail=lambda: "")  # type: ignore[arg-type]
        agent.start()
        agent.initialize(10.0)
        opened = agent.new(str(made.work), [], 10.0)
        turn(peer, "warm", "hello", made.work)

        def floor() -> float:
            heard.came.clear()
            began = time.perf_counter()
            commit(2)
            answered = agent.prompt(opened.session, [{"type": "text", "text": "hello"}])
            heard.came.wait(10)
            took = time.perf_counter() - began
            answered.result(10)
            return took * 1e3

        def ours() -> float:
            began = time.perf_counter()
            turn(peer, "warm", "hello", made.work, until="text")
            took = time.perf_counter() - began
            drain(peer)
            return took * 1e3

        floor()
        ours()
        yield floor, ours
        direct.stdin.close()
        direct.wait(10)


class _Listener(threading.Thread):
    """One listener of a chat; counts the characters it has been shown, and acks."""

    def __init__(self, peer: Any, chat: str) -> None:
        super().__init__(daemon=True)
        self.peer, self.chat = peer, chat
        self.shown = 0
        self.final = 0
        self.in_order = True
        self.over = threading.Event()

    def run(self) -> None:
        while not self.over.is_set():
            delivery = self.peer.receive(30.0)
            if delivery is None:
                return
            event = getattr(delivery.message, "event", {})
            if event.get("event") == "text":
                if event.get("final"):
                    # Earlier, short answers of this chat are listened to as well.
                    if len(event["text"]) > SIZE:
                        # A block this long ends as a reference to its file; what was streamed before is counted.
                        self.final = int((event.get("ref") or {}).get("size") or len(event["text"]))
                else:
                    self.in_order = self.in_order and event["offset"] <= self.shown
                    self.shown = max(self.shown, event["offset"] + len(event["text"]))
            if isinstance(delivery.message, RouteItem) and delivery.message.seq:
                self.peer.send(f"route/cli:local:{self.chat}", ItemAck(delivery.message.seq))
            if event.get("event") == "done" and (self.final or self.shown >= CHUNKS * SIZE):
                self.over.set()


@contextmanager
def flood() -> Iterator[Pair]:
    with daemon() as made, made.client() as peer:
        turn(peer, "a", "hello", made.work)

        def ours() -> float:
            with made.client() as one, made.client() as two:
                listeners = [_Listener(one, "a"), _Listener(two, "a")]
                listen(one, "a")
                two.request("route/cli:local:a", _listen_too(), 30.0)
                for listener in listeners:
                    listener.start()
                began = time.perf_counter()
                turn(peer, "a", f"flood {CHUNKS}", made.work)
                for listener in listeners:
                    if not listener.over.wait(60):
                        raise RuntimeError("a listener did not see the end")
                took = time.perf_counter() - began
                for listener in listeners:
                    assert listener.final == CHUNKS * SIZE, listener.final
                    assert listener.shown == CHUNKS * SIZE, listener.shown
                    assert listener.in_order
                return CHUNKS * SIZE / took / 1e6

        def floor() -> float:
            return CHUNKS * SIZE / asyncio.run(_sdk(made.work)) / 1e6

        ours()
        yield floor, ours


def _listen_too() -> Any:
    from transports.bus.vocabulary.surface import Listen

    return Listen(credit=512, exclusive=False)


async def _sdk(work: Path) -> float:
    """Seconds that the official Python SDK's client takes to hear the same flood."""
    import acp

    heard = 0

    class Client:
        async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
            nonlocal heard
            heard += len(update.content.text)

        def __getattr__(self, name: str) -> Any:
            if name.startswith("on_"):
                return lambda *_: None
            raise AttributeError(name)

    async with acp.spawn_agent_process(Client(), sys.executable, str(AGENT)) as (connection, _):  # type: ignore[arg-type]
        await connection.initialize(protocol_version=1)
        session = await connection.new_session(cwd=str(work), mcp_servers=[])
        began = time.perf_counter()
        await connection.prompt(session_id=session.session_id, prompt=[acp.text_block(f"flood {CHUNKS}")])
        while heard < CHUNKS * SIZE:
            await asyncio.sleep(0)
        return time.perf_counter() - began


CASES = (
    Case(
        "code issued, picked up, attached", "3 FULL commits + 4 raw round trips + its reader requests", "ms", at_most_times(3.0), pickup
    ),
    Case("prompt to a warm agent, first byte", "the same agent over stdio + 2 FULL commits", "ms", at_most_plus(5.0), first_byte),
    Case("20,000 chunks to two listeners", "the ACP Python SDK as the only client", "M chars/s", at_least_times(1.0), flood),
)
