"""Looking at processes from outside, by what a test put into their environment, and waiting for their end (Linux)."""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Iterable
from pathlib import Path


def marked(mark: str) -> dict[int, str]:
    """pid -> command line of every living process (zombies are none) whose environment holds `mark`; not this process."""
    found: dict[int, str] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            environment = (entry / "environ").read_bytes()
            command = (entry / "cmdline").read_bytes()
        except OSError:
            continue  # it ended meanwhile, or is another user's
        if mark.encode() in environment and command:
            found[int(entry.name)] = command.replace(b"\0", b" ").decode("utf-8", "replace").strip()
    return found


def wait_gone(pids: Iterable[int], *, seconds: float = 10.0) -> list[int]:
    """Wait until all of them have ended; returns those that live on."""
    until = time.monotonic() + seconds
    living: list[int] = []
    for pid in pids:
        try:
            descriptor = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        try:
            if not select.select([descriptor], [], [], max(0.0, until - time.monotonic()))[0]:
                living.append(pid)
        finally:
            os.close(descriptor)
    return living


def kill_marked(mark: str) -> None:
    """SIGKILL to every marked process: the last step of a test's clean-up, after it has said what was left."""
    for pid in marked(mark):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
