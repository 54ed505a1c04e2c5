"""The agent's process once it runs (host_start starts it), ended by the ladder.

The agent has a session and process group of its own and dies with the host (PDEATHSIG follows
the thread that spawned it). The host is the subreaper of all that the agent starts.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from threading import Lock, Thread
from typing import BinaryIO

from actors.children import alive, descendants, process_start_time, stat_of
from actors.host_spec import HostSpec
from actors.host_start import NotStarted, Started
from agents_registry.errors import AgentError, NotFoundError, VibeAroundError

STDERR_TAIL = 16 << 10
COMMANDS_STEP_S = 0.5
GRACE_S = 0.5


class AgentProcess:
    """A running agent. `stdin` and `stdout` are for the ACP client."""

    def __init__(self, started: Started) -> None:
        self.stdin: BinaryIO = os.fdopen(started.stdin, "wb")
        self.stdout: BinaryIO = os.fdopen(started.stdout, "rb")
        self.pid = self.pgid = started.pid
        self.start_time = process_start_time(started.pid) or 0
        self._code: int | None = None
        self._waiting = Lock()
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self._lock = Lock()
        self._stderr: BinaryIO = os.fdopen(started.stderr, "rb", buffering=0)
        self._before: set[tuple[int, int]] = set()
        self._reader = Thread(target=self._read_stderr, name="agent-stderr", daemon=True)
        self._reader.start()

    def exit_code(self, limit_s: float) -> int | None:
        """Wait at most `limit_s` seconds for the end; None = it lives. Negative: the signal that ended it."""
        until, pause = time.monotonic() + limit_s, 0.0005
        while (code := self._reaped()) is None and (left := until - time.monotonic()) > 0:
            time.sleep(min(pause, left))
            pause = min(pause * 2, 0.05)
        return code

    def _reaped(self) -> int | None:
        with self._waiting:  # two threads may ask; only one may reap
            if self._code is None:
                try:
                    pid, status = os.waitpid(self.pid, os.WNOHANG)
                except ChildProcessError:  # reaped by somebody else: how it ended is not known
                    self._code = 0
                else:
                    self._code = os.waitstatus_to_exitcode(status) if pid else None
            return self._code

    def stderr_tail(self) -> str:
        """The end of what the agent wrote to its error output (at most 16 KiB)."""
        self._reader.join(0.2)  # the last words may still be on their way
        with self._lock:
            return b"".join(self._tail).decode("utf-8", "replace")[-STDERR_TAIL:]

    def _read_stderr(self) -> None:
        while chunk := os.read(self._stderr.fileno(), 1 << 14):
            with self._lock:
                self._tail.append(chunk)
                self._tail_size += len(chunk)
                while self._tail_size - len(self._tail[0]) >= STDERR_TAIL:
                    self._tail_size -= len(self._tail.popleft())

    # --- turns

    def mark(self) -> None:
        """Remember the processes that exist before a turn."""
        self._before = set(_below())

    def end_commands(self) -> list[str]:
        """End what the turn started in sessions of its own (shell commands of Codex); the agent's servers, which share
        its session, stay. Returns what was ended, in words. Takes at most a second."""
        found = [p for p in _below() if p not in self._before and p[0] != self.pid and _session(p[0]) != self.pid]
        names = [f"{command_of(pid)} (pid {pid})" for pid, _ in found if _session(pid) == pid or len(found) == 1]
        _end(found, COMMANDS_STEP_S)
        return names or [f"{command_of(pid)} (pid {pid})" for pid, _ in found]

    # --- the end

    def stop(self, step_s: float, *, end_detached: bool) -> tuple[int | None, list[str]]:
        """The ladder: input closed (by the client before), TERM, KILL to the group, then by descent; each step waits
        at most `step_s` seconds. Returns the exit code and what lives on in sessions of its own, in words."""
        mine = set(_below()) | {(self.pid, self.start_time)}
        code = self.exit_code(step_s)
        for number in (signal.SIGTERM, signal.SIGKILL):
            if code is None:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(self.pgid, number)
                code = self.exit_code(step_s)
        mine |= set(_below())
        attached = [p for p in mine if _session(p[0]) == self.pid]
        _end(attached, step_s)
        detached = self._detached(mine, min(step_s, GRACE_S))
        names = [f"{command_of(pid)} (pid {pid})" for pid, _ in detached]
        if end_detached:
            _end(detached, step_s)
            names = []
        return code, names


    def _detached(self, known: set[tuple[int, int]], grace_s: float) -> list[tuple[int, int]]:
        """What still lives. Servers that end with the agent's pipe get a moment to do so before they are named."""
        until = time.monotonic() + grace_s
        while True:
            reap()
            left = sorted(p for p in {*known, *_below()} if alive(*p) and p[0] != self.pid)
            if not left or time.monotonic() >= until:
                return left
            time.sleep(0.01)


def why_not_started(failure: NotStarted, spec: HostSpec) -> VibeAroundError:
    """NotFoundError (directory gone, closed, hanging) or AgentError (the program), in words."""
    cwd = spec.cwd
    if failure.step == "exec":
        return AgentError(
            f"The agent could not be started: {spec.argv[0]}: {os.strerror(failure.number)}.",
            hint=spec.install_hint or "Install it, or set its command in agents.toml.",
            code="agent_missing",
        )
    if failure.number == 0:
        return NotFoundError(
            f"The directory {cwd} does not answer.", hint="It may lie on a drive that is away; try again.", code="cwd_hangs"
        )
    if failure.number in (errno.EACCES, errno.EPERM):
        return NotFoundError(f"The directory {cwd} cannot be entered.", hint="Check its permissions.", code="cwd_closed")
    what = "is not a directory" if failure.number == errno.ENOTDIR else "does not exist any more"
    return NotFoundError(
        f"The directory {cwd} {what}, so the agent was not started.",
        hint="Bring it back, or take another workspace: /workspace PATH.",
        code="cwd_gone",
    )


def command_of(pid: int) -> str:
    """The command line of a process, shortened; "?" when it is gone."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0").replace(b"\0", b" ").decode("utf-8", "replace")
    except OSError:
        return "?"
    return words if len(words) <= 80 else words[:79] + "…"


def _below() -> list[tuple[int, int]]:
    """(pid, start time) of all that descends from this host."""
    return [(pid, found[3]) for pid in descendants(os.getpid()) if (found := stat_of(pid)) is not None]


def _session(pid: int) -> int:
    try:
        return os.getsid(pid)
    except OSError:
        return 0


def _end(processes: Sequence[tuple[int, int]], step_s: float) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        for pid, started in processes:
            if alive(pid, started):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, number)
        until = time.monotonic() + step_s
        while time.monotonic() < until:
            reap()
            if not any(alive(pid, started) for pid, started in processes):
                return
            time.sleep(0.01)


def reap() -> None:
    """Orphans that became ours (subreaper) leave zombies; the agent itself is left to `AgentProcess`."""
    for pid, _ in _below():
        found = stat_of(pid)
        if found is not None and found[0] == "Z" and found[1] == os.getpid() and _session(pid) != pid:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
