"""What starts fast: the MCP shim's first answer, and `va chat send` until the agent is spawned."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import transports.mcp
from benchmarks._daemon import daemon, stamp_after
from benchmarks.harness import Case, Pair, at_most_plus, at_most_times, seconds

SHIM = Path(transports.mcp.__file__).with_name("shim.py")
INITIALIZE = {
    "jsonrpc": "2.0", "id": 1, "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}},
}


@contextmanager
def shim() -> Iterator[Pair]:
    with daemon() as made:
        command = [sys.executable, "-I", "-S", str(SHIM), "--data-dir", str(made.data)]

        def ours() -> float:
            began = time.perf_counter()
            process = subprocess.Popen(command, env=made.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(json.dumps(INITIALIZE).encode() + b"\n")
            process.stdin.flush()
            answer = process.stdout.readline()
            took = time.perf_counter() - began
            assert b"vibearound" in answer
            process.stdin.close()
            process.wait(10)
            process.stdout.close()
            return took * 1e3

        def floor() -> float:
            return seconds(lambda: subprocess.run([sys.executable, "-c", "pass"], env=made.env, check=True)) * 1e3

        ours()
        floor()
        yield floor, ours


@contextmanager
def chat_send() -> Iterator[Pair]:
    chats = itertools.count(1)
    with daemon() as made:
        va = [sys.executable, str(Path(sys.executable).with_name("va"))]

        def ours() -> float:
            began = time.time()
            words = ["chat", "send", "hello", "--chat", f"cold-{next(chats)}", "--workspace", str(made.work)]
            running = subprocess.Popen([*va, *words], env=made.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            started = stamp_after(made.stamp, began)
            running.wait(60)
            return (started - began) * 1e3

        def floor() -> float:
            return seconds(lambda: subprocess.run([sys.executable, "-c", "import click, zmq, msgpack"], env=made.env, check=True)) * 1e3

        ours()
        floor()
        yield floor, ours


CASES = (
    Case("MCP shim, first answer", "python -c pass", "ms", at_most_times(1.5), shim),
    Case("va chat send, cold, until the agent is spawned", "python -c 'import click, zmq, msgpack'", "ms", at_most_plus(80), chat_send),
)
