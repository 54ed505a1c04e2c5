"""The agent's process: started from the host's main thread before anything heavy is loaded, ended by the ladder.

Standard library only. The agent gets a session and process group of its own and dies with the host (PDEATHSIG follows
the thread that spawned it). The host is the subreaper of all that the agent starts.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Lock, Thread
from typing import BinaryIO

from actors.children import alive, descendants, process_start_time, set_pdeathsig, stat_of
from agents_registry.errors import AgentError, NotFoundError, VibeAroundError

STDERR_TAIL = 16 << 10
CWD_LIMIT_S = 10.0
COMMANDS_STEP_S = 0.5
GRACE_S = 0.5


class AgentProcess:
    """A running agent. `stdin` and `stdout` are for the ACP client."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        if process.stdin is None or process.stdout is None or process.stderr is None:
            raise ValueError("the agent must be started with pipes")
        self._process = process
        self.stdin: BinaryIO = process.stdin  # type: ignore[assignment]
        self.stdout: BinaryIO = process.stdout  # type: ignore[assignment]
        self.pid = process.pid
        self.pgid = process.pid
        self.start_time = process_start_time(process.pid) or 0
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self._lock = Lock()
        self._stderr: BinaryIO = process.stderr  # type: ignore[assignment]
        self._before: set[tuple[int, int]] = set()
        self._reader = Thread(target=self._read_stderr, name="agent-stderr", daemon=True)
        self._reader.start()

    def exit_code(self, limit_s: float) -> int | None:
        """Wait at most `limit_s` seconds for the end; None = it lives."""
        try:
            return self._process.wait(limit_s)
        except subprocess.TimeoutExpired:
            return None

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


def start_agent(argv: Sequence[str], env: Mapping[str, str], cwd: str, install_hint: str) -> AgentProcess:
    """Spawn the agent in `cwd`, which is never created. Call on the main thread, before other threads exist.

    Raises NotFoundError (directory gone) or AgentError (cannot be started), both before anything ran.
    """
    _check_cwd(cwd)
    try:
        process = subprocess.Popen(
            list(argv),
            cwd=cwd,
            env={**env, "PWD": cwd},  # agents record the directory in the spelling of PWD where it is a link
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            bufsize=-1,
            preexec_fn=set_pdeathsig,
        )
    except OSError as error:
        raise AgentError(
            f"The agent could not be started: {argv[0]}: {error.strerror}.",
            hint=install_hint or "Install it, or set its command in agents.toml.",
            code="agent_missing",
        ) from error
    return AgentProcess(process)


def _check_cwd(cwd: str) -> None:
    """In a thread: a directory on a dead network drive must not hold us for ever."""
    found: list[VibeAroundError | None] = []
    looker = Thread(target=lambda: found.append(_cwd_error(cwd)), name="cwd", daemon=True)
    looker.start()
    looker.join(CWD_LIMIT_S)
    if not found:
        raise NotFoundError(
            f"The directory {cwd} does not answer.", hint="It may lie on a drive that is away; try again.", code="cwd_hangs"
        )
    if found[0] is not None:
        raise found[0]


def _cwd_error(cwd: str) -> VibeAroundError | None:
    path = Path(cwd)
    if not path.is_absolute() or not path.is_dir():
        what = "is not a directory" if path.exists() else "does not exist any more"
        return NotFoundError(
            f"The directory {cwd} {what}, so the agent was not started.",
            hint="Bring it back, or take another workspace: /workspace PATH.",
            code="cwd_gone",
        )
    if not os.access(cwd, os.X_OK | os.R_OK):
        return NotFoundError(f"The directory {cwd} cannot be entered.", hint="Check its permissions.", code="cwd_closed")
    return None


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
    """Orphans that became ours (subreaper) leave zombies; the agent itself is left to its own `Popen`."""
    for pid, _ in _below():
        found = stat_of(pid)
        if found is not None and found[0] == "Z" and found[1] == os.getpid() and _session(pid) != pid:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
