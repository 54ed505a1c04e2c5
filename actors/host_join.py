"""A host that joins the thread which a terminal has open in Codex's daemon: what it is started with, and what it hears.

The adapter speaks to the daemon through `transports/codex/proxy.py`, which tells through a named pipe what the terminal
does. Whether the terminal is still there is looked at from here.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread

from agents_registry.integrate.files import replace_file
from agents_registry.sessions.writers import SOCKET, codex_windows

PROXY = Path(__file__).resolve().parent.parent / "transports" / "codex" / "proxy.py"
LOOK_S = 2.0
MAX_LINE = 64 << 10


def join_environment(data_dir: Path, thread: str, epoch: int, store_root: Path) -> dict[str, str]:
    """Variables for the adapter; makes the program that it starts and the pipe. Raises OSError."""
    program = data_dir / "agents" / "codex-join"
    program.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    replace_file(program, f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -P {shlex.quote(str(PROXY))} "$@"\n'.encode(), mode=0o700)
    folder = data_dir / "join"
    folder.mkdir(exist_ok=True, mode=0o700)
    for old in folder.glob(f"{thread}-*"):
        old.unlink(missing_ok=True)
    feed = folder / f"{thread}-{epoch}"
    os.mkfifo(feed, 0o600)
    return {
        "CODEX_PATH": str(program), "VIBEAROUND_JOIN_SOCKET": str(store_root / SOCKET), "VIBEAROUND_JOIN_FEED": str(feed),
    }


class JoinFeed:
    """`heard(what, text)`, on a thread of its own: begin, said, end (of a turn of the terminal), left (it is closed)."""

    def __init__(self, env: dict[str, str], heard: Callable[[str, str], None]) -> None:
        self._path = Path(env["VIBEAROUND_JOIN_FEED"])
        self._root = Path(env["VIBEAROUND_JOIN_SOCKET"]).parent.parent
        self._heard = heard
        self._stop = Event()
        self._fd = os.open(self._path, os.O_RDWR | os.O_NONBLOCK)
        Thread(target=self._run, name="join-feed", daemon=True).start()

    def close(self) -> None:
        self._stop.set()
        self._path.unlink(missing_ok=True)

    def _run(self) -> None:
        rest, left = b"", False
        while not self._stop.is_set():
            if select.select([self._fd], [], [], LOOK_S)[0]:
                with contextlib.suppress(BlockingIOError):
                    rest = (rest + os.read(self._fd, MAX_LINE))[-MAX_LINE:]
                *lines, rest = rest.split(b"\n")
                for line in lines:
                    self._line(line)
            gone = not codex_windows(self._root)
            if gone and not left:
                self._heard("left", "")
            left = gone

    def _line(self, line: bytes) -> None:
        try:
            told = json.loads(line)
            self._heard(str(told["what"]), str(told.get("text", "")))
        except (ValueError, KeyError, TypeError):
            sys.stderr.write(f"host: the joined thread told something unknown: {line[:200]!r}\n")
