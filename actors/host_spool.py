"""What a host could not hand over before it ended: one file, read by the next supervisor before anything else.

`<data>/spool/<thread>-<instance>-<epoch>.msgpack` holds a msgpack map {version, thread, instance, epoch, session,
turns, events}; `events` are the bytes of `HostEvent` messages in order. 0600, written atomically.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import msgpack

from agents_registry.errors import UsageError
from transports.bus.codec import decode, encode
from transports.bus.vocabulary.hosting import HostEvent
from transports.paths import atomic_write

VERSION = 1
MAX_SPOOL = 256 << 20
"""Bytes; a host keeps at most 64 MiB of events."""


class Spooled(NamedTuple):
    """One spool file. `turns` are the keys of the turns that the host has seen."""

    path: Path
    thread: str
    instance: str
    epoch: int
    session: str
    turns: list[str]
    events: list[HostEvent]


def spool_path(data_dir: Path, thread: str, instance: str, epoch: int) -> Path:
    return data_dir / "spool" / f"{thread}-{instance}-{epoch}.msgpack"


def write_spool(
    data_dir: Path, thread: str, instance: str, epoch: int, session: str, turns: list[str], events: list[HostEvent]
) -> Path:
    """OSError passes through: the caller says it on its error output, there is nobody else to tell."""
    path = spool_path(data_dir, thread, instance, epoch)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    content = {
        "version": VERSION,
        "thread": thread,
        "instance": instance,
        "epoch": epoch,
        "session": session,
        "turns": turns,
        "events": [encode(event) for event in events],
    }
    atomic_write(path, msgpack.packb(content))
    return path


def read_spool(path: Path) -> Spooled:
    """Raises UsageError for a file that is no spool of this version (it is left where it is)."""
    try:
        raw: Any = msgpack.unpackb(path.read_bytes())
        if not isinstance(raw, dict) or raw.get("version") != VERSION:
            raise ValueError("its version is not known")
        events = [decode(item) for item in raw["events"]]
        if not all(isinstance(event, HostEvent) for event in events):
            raise ValueError("it holds something else than events")
        return Spooled(
            path,
            str(raw["thread"]),
            str(raw["instance"]),
            int(raw["epoch"]),
            str(raw["session"]),
            [str(t) for t in raw["turns"]],
            events,
        )
    except (ValueError, KeyError, TypeError, msgpack.exceptions.UnpackException, UsageError) as error:
        raise UsageError(
            f"the spool file {path} cannot be read: {error}.", hint="It is left where it is; look at it, then remove it."
        ) from error


def spool_files(data_dir: Path) -> list[Path]:
    """All spool files, oldest first."""
    directory = data_dir / "spool"
    return sorted(directory.glob("*.msgpack"), key=lambda p: p.stat().st_mtime) if directory.is_dir() else []
