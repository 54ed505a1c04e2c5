"""Files that people send: kept under `<data>/files`, 0600, under a name of ours; the agent gets a link to each."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from transports.im.inbound import FileRef

MAX_FILES = 10
"""Most files of one message."""
_SAFE = re.compile(r"[^\w.\- ]+")


def safe_name(name: str) -> str:
    """The last part of what the sender called it, without anything that could lead elsewhere or hide."""
    last = re.split(r"[/\\]", name.strip())[-1]
    clean = _SAFE.sub("_", last).strip(" .")
    stem, dot, suffix = clean.rpartition(".")
    if dot and len(suffix) <= 10:
        return f"{stem[:60].strip(' .') or 'file'}.{suffix}"
    return clean[:60].strip(" .") or "file"


def make(directory: Path, file: FileRef) -> Path:
    """An empty private file to download to."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = directory / f"in-{os.urandom(8).hex()}-{safe_name(file.name)}"
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    return path


def block(path: Path, file: FileRef, size: int) -> dict[str, Any]:
    """The ACP content block: a resource link to the file, with the sender's name for it. The host gives images in full to
    an agent that takes images."""
    made: dict[str, Any] = {"type": "resource_link", "uri": path.as_uri(), "name": safe_name(file.name), "size": size}
    if file.mime:
        made["mimeType"] = file.mime
    return made
