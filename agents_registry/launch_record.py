"""Records of agents that `va launch` and `va pickup` started in a terminal: `<data>/launches/<launch id>.json`.

They are how the daemon knows a process as an agent's (and refuses it an owner's commands). A record counts only while
the process of that number still has the recorded start time.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from agents_registry.evidence import process
from agents_registry.integrate.files import replace_file

DIRECTORY = "launches"
_MOST = 1000
"""Records that are looked at; older leftovers beyond that are removed at the next launch."""


@dataclass(frozen=True, slots=True)
class LaunchRecord:
    """`start_time` is field 22 of /proc/<pid>/stat (clock ticks since boot), 0 where there is no /proc;
    `at` is Unix time in seconds; `session` is "" for a new conversation."""

    launch: str
    pid: int
    start_time: int
    agent: str
    cwd: str
    profile: str = "direct"
    session: str = ""
    at: float = 0.0


def new_launch_id(randomness: Callable[[int], bytes] = os.urandom) -> str:
    return "la_" + randomness(10).hex()


def write_launch(data_dir: Path, record: LaunchRecord) -> Path:
    """Keep the record (0600, atomically) and drop those whose process is gone. Raises OSError."""
    directory = data_dir / DIRECTORY
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    prune(data_dir)
    path = directory / f"{record.launch}.json"
    replace_file(path, (json.dumps(asdict(record), ensure_ascii=False) + "\n").encode(), mode=0o600)
    return path


def read_launches(data_dir: Path) -> list[LaunchRecord]:
    """Records whose process still lives, newest first. A record that cannot be read is passed over."""
    return [record for _path, record in _records(data_dir) if _lives(record)]


def prune(data_dir: Path) -> None:
    """Remove the records of ended processes."""
    for path, record in _records(data_dir):
        if not _lives(record):
            with contextlib.suppress(OSError):
                path.unlink()


def _lives(record: LaunchRecord) -> bool:
    found = process(record.pid)
    return found is not None and (not record.start_time or found[0].start_time == record.start_time)


def _records(data_dir: Path) -> list[tuple[Path, LaunchRecord]]:
    records: list[tuple[Path, LaunchRecord]] = []
    with contextlib.suppress(OSError):
        for path in sorted((data_dir / DIRECTORY).glob("*.json"), key=lambda one: one.stat().st_mtime, reverse=True)[:_MOST]:
            try:
                fields = json.loads(path.read_bytes())
                records.append((path, LaunchRecord(**{name: fields[name] for name in LaunchRecord.__slots__ if name in fields})))
            except (OSError, ValueError, TypeError, KeyError):
                continue
    return records
