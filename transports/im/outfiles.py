"""Files of an answer that go out: only what lies in the turn's workspace, links resolved; sent from a private copy.

Every function here may wait for a disk and runs on a thread of its own.
"""

from __future__ import annotations

import mimetypes
import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

MAX_FILES = 5
"""Most files of one answer."""
_CHUNK = 1 << 20
_FENCED = re.compile(r"^[ \t]*(`{3,}|~{3,}).*?^[ \t]*\1[`~]*[ \t]*$", re.M | re.S)
_LINK = re.compile(r"(!?)\[([^\]\n]*)\]\(\s*(?:<([^>\n]+)>|([^()\s]+))(?:\s+\"[^\"\n]*\")?\s*\)")


@dataclass(frozen=True, slots=True)
class Ready:
    """A private copy to be sent and then removed."""

    path: Path
    name: str
    mime: str
    size: int


@dataclass(frozen=True, slots=True)
class Refused:
    """Why a file is not sent: outside, missing, odd or too_big."""

    name: str
    why: str


def linked(text: str) -> list[str]:
    """Targets of the local files that an answer shows: images by path, and `file://` links. A plain link to a source file
    is only a reference and stays text."""
    found: list[str] = []
    for mark, _, angled, bare in _LINK.findall(_FENCED.sub("", text)):
        target = angled or bare
        parts = urlsplit(target)
        if parts.scheme == "file" and parts.netloc in ("", "localhost"):
            path = unquote(parts.path)
        elif mark and not parts.scheme and not target.startswith(("#", "//")):
            path = unquote(target.partition("#")[0])
        else:
            continue
        if path and path not in found:
            found.append(path)
    return found[:MAX_FILES]


def fetch(target: str, workspace: str, private: Path, limit: int) -> Ready | Refused:
    """Copy a file of the workspace to `private`. What counts is where the opened file really lies, after every link."""
    name = Path(target).name or "file"
    root = os.path.realpath(workspace)
    if not workspace or root == "/":
        return Refused(name, "outside")
    path = os.path.realpath(Path(root, target))
    if not _within(path, root):
        return Refused(name, "outside")
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return Refused(name, "missing")
    info = os.fstat(descriptor)
    if not stat.S_ISREG(info.st_mode):
        os.close(descriptor)
        return Refused(name, "odd")
    with os.fdopen(descriptor, "rb") as file:
        # A directory of the path may have been exchanged for a link since realpath looked: ask the kernel what was opened.
        real = os.path.realpath(f"/proc/self/fd/{file.fileno()}") if os.path.exists("/proc/self/fd") else path  # noqa: PTH110
        if not _within(real, root):
            return Refused(name, "outside")
        if info.st_size > limit:
            return Refused(name, "file_too_big")
        copy = private / f"out-{os.urandom(8).hex()}"
        size = 0
        with open(os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as out:
            while chunk := file.read(_CHUNK):
                size += len(chunk)
                if size > limit:
                    break
                out.write(chunk)
    if size > limit:
        copy.unlink(missing_ok=True)
        return Refused(name, "file_too_big")
    return Ready(copy, name, mimetypes.guess_type(name)[0] or "application/octet-stream", size)


def write(text: str, private: Path) -> Ready:
    """A long answer as a Markdown file."""
    raw = text.encode("utf-8", "replace")
    copy = private / f"out-{os.urandom(8).hex()}"
    with open(os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as out:
        out.write(raw)
    return Ready(copy, "answer.md", "text/markdown", len(raw))


def read_reference(path: str, data_dir: Path, limit: int = 4 << 20) -> str:
    """The text of a large part that travelled as a file under `<data>/files`. Raises OSError, also for any other place."""
    real = Path(os.path.realpath(path))
    if not real.is_relative_to(os.path.realpath(data_dir / "files")):
        raise OSError("not a file of ours")
    with open(real, "rb") as file:
        return file.read(limit).decode("utf-8", "replace")


def _within(path: str, root: str) -> bool:
    return path.startswith(root.rstrip("/") + "/")
