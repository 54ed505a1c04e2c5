"""Files at the time of a relay, and what became of them since. Nothing hangs: sizes are capped, only regular files are
read, and the whole look has a time limit."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from threading import Thread

MAX_BYTES = 16 * 1024 * 1024
"""A larger file is known by its size and time only."""
LIMIT_S = 5.0
MAX_FILES = 500


@dataclass(frozen=True, slots=True)
class FileState:
    """One file as it was seen. `mark` is its SHA-256 in hex; `missing`; or why there is no hash (`unread: …`), with
    size and time where they are known."""

    path: str
    mark: str

    @property
    def hashed(self) -> bool:
        return len(self.mark) == 64


@dataclass(frozen=True, slots=True)
class Change:
    """A file that is not as it was: `changed`, `missing`, or `new since`."""

    path: str
    what: str


def look(paths: Iterable[str], *, limit_s: float = LIMIT_S, one: Callable[[str], str] | None = None) -> list[FileState]:
    """The state of each path (absolute), in order. What was not reached within `limit_s` seconds is `unread: no time`."""
    wanted = list(dict.fromkeys(paths))[:MAX_FILES]
    found: dict[str, str] = {}
    read = one or _mark

    def work() -> None:
        for path in wanted:
            found[path] = read(path)

    # A thread, since a file on a dead network drive cannot be waited for with a limit; it ends with the process.
    worker = Thread(target=work, name="relay-files", daemon=True)
    worker.start()
    worker.join(limit_s)
    known = dict(found)
    return [FileState(path, known.get(path, "unread: no time")) for path in wanted]


def compare(before: Mapping[str, str], *, limit_s: float = LIMIT_S) -> list[Change]:
    """What changed since `before` (path to mark). A file that could not be read at either time is left out."""
    changes = []
    for now in look(before, limit_s=limit_s):
        then = before[now.path]
        if now.mark == then or "unread: no" in (now.mark[:10], then[:10]):
            continue
        what = "missing" if now.mark == "missing" else "new since" if then == "missing" else "changed"
        changes.append(Change(now.path, what))
    return changes


def _mark(path: str) -> str:
    try:
        # Not blocking: opening a pipe without a writer would wait for ever.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except (FileNotFoundError, NotADirectoryError):
        return "missing"
    except (OSError, ValueError) as error:
        return f"unread: no, {getattr(error, 'strerror', None) or error}"
    try:
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode):
            return f"unread: no, {'a directory' if stat.S_ISDIR(about.st_mode) else 'not a regular file'}"
        if about.st_size > MAX_BYTES:
            return f"unread: too large ({about.st_size} bytes, {about.st_mtime_ns})"
        with open(descriptor, "rb", closefd=False) as file:
            return hashlib.sha256(file.read(MAX_BYTES)).hexdigest()
    except OSError as error:
        return f"unread: no, {error.strerror or error}"
    finally:
        os.close(descriptor)


def absolute(path: str, cwd: str) -> str:
    """The path in the session's directory, normalised as text; links are not followed."""
    return os.path.normpath(Path(cwd or "/") / Path(path))


