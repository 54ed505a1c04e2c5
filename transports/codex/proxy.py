"""Codex's adapter at one end, the daemon that a terminal uses at the other: `python proxy.py app-server`.

The adapter starts this in the place of its own `codex app-server`; its lines go to the daemon's control socket over
WebSocket and back. So the thread that the terminal has open is the very thread that the chat writes to. On the way:
what the terminal does is told to the host through a named pipe (turns begin and end, what the person typed), and
questions that belong to a turn of the terminal stay there: they are not ours to answer.

A program of its own that imports nothing of ours: it runs for each joined host.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable
from typing import Any

SOCKET_VARIABLE = "VIBEAROUND_JOIN_SOCKET"
FEED_VARIABLE = "VIBEAROUND_JOIN_FEED"
OPEN_S = 10.0
MAX_MESSAGE = 64 << 20
"""Bytes of one message: a resumed thread comes with its whole history."""
MAX_TOLD = 4000
"""Characters of a terminal's prompt that are told; a pipe takes less than 64 KiB at once."""


def reachable(socket: str) -> str:
    """`socket`, or a shorter name of it where its path is too long for the kernel (107 bytes)."""
    if len(os.fsencode(socket)) <= 107 or not os.path.isdir("/proc/self/fd"):  # noqa: PTH112 - a plain check
        return socket
    folder, name = os.path.split(socket)
    return f"/proc/self/fd/{os.open(folder, os.O_PATH | os.O_CLOEXEC)}/{name}"


class Traffic:
    """Whose turn is it? `tell` gets {begin}, {said} and {end} of turns that are not ours. Thread-safe."""

    def __init__(self, tell: Callable[[dict[str, str]], None]) -> None:
        self._tell = tell
        self._lock = threading.Lock()
        self._starting: set[Any] = set()
        """Ids of our own turn/start requests that are not answered yet."""
        self._ours: set[str] = set()
        self._theirs: set[str] = set()
        self._undecided: list[dict[str, Any]] = []

    def up(self, line: str) -> None:
        """A line of the adapter, before it is sent."""
        if '"turn/start"' in line:
            message = json.loads(line)
            if message.get("method") == "turn/start":
                with self._lock:
                    self._starting.add(message.get("id"))

    def down(self, line: str) -> bool:
        """A line of the daemon; False = the adapter must not see it."""
        message = json.loads(line)
        method, params = message.get("method"), message.get("params") or {}
        with self._lock:
            if method is None:
                self._answered(message)
                return True
            if message.get("id") is not None:
                turn = str(params.get("turnId") or "")
                return turn in self._ours or (not turn and not self._theirs)
            if method in ("turn/started", "turn/completed", "item/started"):
                if self._starting:
                    # Which of them is ours is known with the answer.
                    self._undecided.append(message)
                else:
                    self._notice(message)
            return True

    def _answered(self, message: dict[str, Any]) -> None:
        if message.get("id") not in self._starting:
            return
        self._starting.discard(message["id"])
        turn = ((message.get("result") or {}).get("turn") or {}).get("id")
        if turn:
            self._ours.add(str(turn))
        if not self._starting:
            waiting, self._undecided = self._undecided, []
            for one in waiting:
                self._notice(one)

    def _notice(self, message: dict[str, Any]) -> None:
        method, params = message["method"], message.get("params") or {}
        turn = str(params.get("turnId") or (params.get("turn") or {}).get("id") or "")
        if not turn or turn in self._ours:
            return
        if turn not in self._theirs and method != "turn/completed":
            self._theirs.add(turn)
            self._tell({"what": "begin", "turn": turn})
        if method == "turn/completed" and turn in self._theirs:
            self._theirs.discard(turn)
            self._tell({"what": "end", "turn": turn})
        item = params.get("item") or {}
        if method == "item/started" and item.get("type") == "userMessage":
            parts = [str(p.get("text", "")) for p in item.get("content") or [] if isinstance(p, dict) and p.get("type") == "text"]
            self._tell({"what": "said", "turn": turn, "text": "\n".join(parts)[:MAX_TOLD]})


def main() -> int:
    """Exit code 0 when the adapter has closed its end, 1 when the daemon cannot be reached or has gone."""
    if "--version" in sys.argv:
        sys.stdout.write("codex-cli 0.171.0\n")
        return 0
    from websockets.exceptions import WebSocketException
    from websockets.sync.client import unix_connect

    feed = os.environ.get(FEED_VARIABLE, "")
    # Read and write: so the pipe can be opened before the host listens, and is never full of nobody.
    pipe = os.open(feed, os.O_RDWR | os.O_NONBLOCK) if feed else -1

    def tell(what: dict[str, str]) -> None:
        if pipe >= 0:
            try:
                os.write(pipe, (json.dumps(what) + "\n").encode())
            except OSError as error:
                sys.stderr.write(f"join: the host could not be told: {error}\n")

    traffic = Traffic(tell)
    try:
        link = unix_connect(
            reachable(os.environ[SOCKET_VARIABLE]), "ws://localhost/", compression=None, open_timeout=OPEN_S, max_size=MAX_MESSAGE
        )
    except (OSError, TimeoutError, WebSocketException) as error:
        sys.stderr.write(f"join: Codex's daemon does not answer: {error}\n")
        return 1

    def up() -> None:
        try:
            for raw in sys.stdin.buffer:
                line = raw.decode("utf-8").rstrip("\n")
                traffic.up(line)
                link.send(line)
        except (OSError, ValueError, WebSocketException) as error:
            sys.stderr.write(f"join: {error}\n")
        link.close()

    threading.Thread(target=up, daemon=True).start()
    try:
        for text in link:
            line = text if isinstance(text, str) else text.decode("utf-8")
            if traffic.down(line):
                sys.stdout.buffer.write(line.encode("utf-8") + b"\n")
                sys.stdout.buffer.flush()
    except (OSError, WebSocketException) as error:
        sys.stderr.write(f"join: the daemon has gone: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    code = main()
    sys.stderr.flush()
    os._exit(code)  # a read of stdin that nobody ends must not keep the process
