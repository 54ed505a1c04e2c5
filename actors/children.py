"""Child processes: start in a group of their own, notice their end, end them with everything they started.

A process is known by (pid,
start time), since pids are used again. Start times are clock ticks since boot (field 22 of /proc/<pid>/stat); where
there is no /proc they are 0, and a pid alone counts.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from actors.host_start import set_pdeathsig

OnExit = Callable[[str], None]

_LOG_LIMIT = 1 << 20


def stat_of(pid: int) -> tuple[str, int, int, int] | None:
    """(state, parent, process group, start time), None when there is no such process or no /proc."""
    try:
        data = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    fields = data[data.rfind(b")") + 2 :].split()
    return fields[0].decode(), int(fields[1]), int(fields[2]), int(fields[19])


def process_start_time(pid: int) -> int | None:
    """None when the process is gone; 0 where the system does not tell."""
    found = stat_of(pid)
    if found is not None:
        return found[3]
    if Path("/proc/self/stat").exists():
        return None
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        return 0
    return 0


def alive(pid: int, start_time: int) -> bool:
    """Whether this very process runs; a zombie does not."""
    if pid <= 0:
        return False
    found = stat_of(pid)
    if found is None:
        return process_start_time(pid) == 0
    return found[0] not in ("Z", "X") and (not start_time or found[3] == start_time)


def group_alive(pgid: int) -> bool:
    """Whether a living process is in the group."""
    return any(found[2] == pgid and found[0] not in ("Z", "X") for found in _all().values()) if pgid > 1 else False


def descendants(pid: int) -> list[int]:
    """Living processes below `pid`, nearest first."""
    table = _all()
    found, frontier = [], [pid]
    while frontier:
        below = [p for p, s in table.items() if s[1] in frontier and p not in found]
        found.extend(below)
        frontier = below
    return found


def _all() -> dict[int, tuple[str, int, int, int]]:
    found = {}
    for entry in os.listdir("/proc") if Path("/proc/self/stat").exists() else []:  # noqa: PTH208 - names only, and often
        if entry.isdigit() and (seen := stat_of(int(entry))) is not None:
            found[int(entry)] = seen
    return found


def end_group(pid: int, start_time: int, step_s: float, *, group: int = 0) -> None:
    """TERM, then KILL, to a process's group and what descends from it; each step waits at most `step_s` seconds.

    Nothing else is touched: a pid that is another process by now is left alone.
    """
    group = group or ((stat_of(pid) or ("", 0, 0, 0))[2] if alive(pid, start_time) else 0)
    own = os.getpgrp()
    marked = {p: s[3] for p in ([pid] if alive(pid, start_time) else []) + descendants(pid) if (s := stat_of(p)) is not None}
    if group > 1 and group != own:
        marked |= {p: s[3] for p, s in _all().items() if s[2] == group}
    for number in (signal.SIGTERM, signal.SIGKILL):
        for target, started in marked.items():
            if target != os.getpid() and alive(target, started):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(target, number)
        until = time.monotonic() + step_s
        while time.monotonic() < until:
            if not any(alive(p, s) for p, s in marked.items()):
                return
            time.sleep(0.01)
        marked |= {p: s[3] for p in descendants(pid) if (s := stat_of(p)) is not None}


def hosted_leftovers(data_dir: Path) -> list[tuple[int, int]]:
    """(pid, start time) of living processes that hosted agents of this data directory started, however far they detached
    themselves: only those carry the mark of a host (Linux)."""
    place = f"VIBEAROUND_DATA_DIR={data_dir}".encode()
    found = []
    for pid, seen in _all().items():
        with contextlib.suppress(OSError):
            environ = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
            if place in environ and any(entry.startswith(b"VIBEAROUND_HOST_ID=") for entry in environ):
                found.append((pid, seen[3]))
    return found


def end_leftovers(data_dir: Path, step_s: float) -> None:
    """`va down`: what tool calls detached into sessions of their own ends as well."""
    for pid, start in hosted_leftovers(data_dir):
        if alive(pid, start):
            end_group(pid, start, step_s)


def watch(pid: int, on_exit: OnExit) -> None:
    """Call `on_exit` once when a process that need not be our child has ended; at once when it has already."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        on_exit("it had ended already")
        return
    except (AttributeError, OSError):
        descriptor = -1

    def wait() -> None:
        if descriptor >= 0:
            select.select([descriptor], [], [])
            os.close(descriptor)
        else:
            start = process_start_time(pid)
            while start is not None and process_start_time(pid) == start:
                time.sleep(0.2)
        on_exit("it ended")

    threading.Thread(target=wait, name=f"watch-{pid}", daemon=True).start()


class Child:
    """A process of ours, in a session and group of its own."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self.pid = process.pid
        self.start_time = process_start_time(process.pid) or 0

    def on_exit(self, then: OnExit) -> None:
        """`then(reason)` on a thread of its own, once, after the process was reaped."""

        def wait() -> None:
            code = self.process.wait()
            then(f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit {code}")

        threading.Thread(target=wait, name=f"child-{self.pid}", daemon=True).start()

    def end(self, step_s: float) -> None:
        end_group(self.pid, self.start_time, step_s)


def spawn(
    argv: Sequence[str], *, env: Mapping[str, str], cwd: str, log: Path, pass_fds: Sequence[int] = (),
    give: tuple[str, bytes] | None = None, die_with_parent: bool = False,
) -> Child:
    """Start a child; its output goes to `log` (started anew above 1 MiB).

    `give` = (option, bytes): the child gets `option N` and reads the bytes from its descriptor N; nothing of it is in
    argv or the environment. `die_with_parent`: a lifeline for children that must not outlive us (Linux).
    Raises OSError.
    """
    log.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if log.exists() and log.stat().st_size > _LOG_LIMIT:
        log.replace(log.with_suffix(log.suffix + ".1"))
    words, fds = list(argv), list(pass_fds)
    read_end = write_end = -1
    if give is not None:
        read_end, write_end = os.pipe()
        words += [give[0], str(read_end)]
        fds.append(read_end)
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        process = subprocess.Popen(
            words, env=dict(env), cwd=cwd, stdin=subprocess.DEVNULL, stdout=output, stderr=output, pass_fds=fds,
            start_new_session=True, close_fds=True, preexec_fn=set_pdeathsig if die_with_parent else None,
        )
    except BaseException:
        if write_end >= 0:
            os.close(write_end)
        raise
    finally:
        os.close(output)
        if read_end >= 0:
            os.close(read_end)
    if give is not None and write_end >= 0:
        # A pipe holds 64 KiB; a larger spec is fed by a thread, so that a slow child does not hold us up.
        threading.Thread(target=_feed, args=(write_end, give[1]), name=f"feed-{process.pid}", daemon=True).start()
    return Child(process)


def _feed(descriptor: int, data: bytes) -> None:
    with contextlib.suppress(BrokenPipeError), os.fdopen(descriptor, "wb") as pipe:
        pipe.write(data)
