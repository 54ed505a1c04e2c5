"""Which Codex threads a process has open for writing.

Since 0.166 a writer holds a lock (flock) on `<root>/thread-writer-locks/<thread id>.lock`. The lock is never tried
here, not even for a moment, since a writer that starts just then would be turned away; the kernel's list of locks tells
it. Where there is no such list (macOS) nothing is known and nothing is called live.
"""

from __future__ import annotations

import os
from pathlib import Path


def live_threads(root: Path) -> frozenset[str]:
    """Ids of the threads whose writer lock is held."""
    return frozenset(_holders(root))


def holder(root: Path, thread: str) -> int:
    """Pid of the process that holds the writer lock of a thread; 0 = nobody, or not known."""
    return _holders(root).get(thread, 0)


def _holders(root: Path) -> dict[str, int]:
    """Thread id to the pid that holds its lock."""
    files: dict[tuple[int, int, int], str] = {}
    try:
        with os.scandir(root / "thread-writer-locks") as entries:
            for entry in entries:
                if entry.name.endswith(".lock"):
                    stat = entry.stat()
                    files[os.major(stat.st_dev), os.minor(stat.st_dev), stat.st_ino] = entry.name.removesuffix(".lock")
    except OSError:
        return {}
    if not files:
        return {}
    held = _held()
    # The device number of a file may differ from the one the kernel lists (overlay and btrfs mounts): the inode decides.
    inodes = {inode: pid for (_, _, inode), pid in held.items()}
    return {thread: held.get(key) or inodes[key[2]] for key, thread in files.items() if key in held or key[2] in inodes}


def _held() -> dict[tuple[int, int, int], int]:
    found = {}
    try:
        lines = Path("/proc/locks").read_text().splitlines()
    except OSError:
        return {}
    for line in lines:
        words = line.split()
        if len(words) < 6 or words[1] not in ("FLOCK", "POSIX", "OFDLCK"):
            continue  # "->" marks a process that only waits
        try:
            major, minor, inode = words[5].split(":")
            found[int(major, 16), int(minor, 16), int(inode)] = int(words[4])
        except ValueError:
            continue  # a kernel with another layout
    return found
