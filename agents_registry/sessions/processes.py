"""Is that process still the one that wrote this file?"""

from __future__ import annotations

import os
from pathlib import Path

_SLACK = 2.0
"""Seconds by which clocks of /proc (ticks since boot) and of file systems may differ."""


def alive(pid: int) -> bool:
    """Whether a process with this pid exists (zombies are gone)."""
    if pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # it exists and is somebody else's
    except OverflowError:
        return False
    fields = _stat(pid)
    return not fields or fields[0] not in ("Z", "X")


def started_at(pid: int) -> float | None:
    """When the process started, in seconds since the epoch; None where the system does not tell."""
    fields = _stat(pid)
    if not fields:
        return None
    try:
        for line in Path("/proc/stat").read_text().splitlines():
            if line.startswith("btime "):
                return int(line.split()[1]) + int(fields[19]) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return None
    return None


def lives_since(pid: int, written: float) -> bool:
    """Whether `pid` lives and existed when a file was written at `written`: a pid given anew does not count."""
    if not alive(pid):
        return False
    began = started_at(pid)
    return began is None or began <= written + _SLACK


def _stat(pid: int) -> list[str]:
    """Fields of /proc/<pid>/stat from the state on; empty where there is no such file."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return []
