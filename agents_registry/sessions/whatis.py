"""What a file is, in words, for somebody who took it for a session."""

from __future__ import annotations

import stat
from pathlib import Path

from agents_registry.sessions import jsonl

_MAGIC = {
    b"SQLite format 3\0": "an SQLite database without an agent's tables",
    b"\x89PNG": "a PNG image",
    b"\xff\xd8\xff": "a JPEG image",
    b"%PDF": "a PDF document",
    b"PK\x03\x04": "a ZIP archive",
    b"\x1f\x8b": "a gzip archive",
    b"\x28\xb5\x2f\xfd": "data compressed with Zstandard",
    b"\x7fELF": "a program",
}


def what_is(path: Path) -> str:
    """A few words on the content of `path`. Raises OSError when it cannot be read."""
    mode = path.stat().st_mode
    if stat.S_ISDIR(mode):
        return "a directory"
    if not stat.S_ISREG(mode):
        return "no regular file"
    with open(path, "rb") as file:
        start = file.read(jsonl.EDGE)
    if not start:
        return "an empty file"
    for magic, words in _MAGIC.items():
        if start.startswith(magic):
            return words
    if not start.strip():
        return "a file of blank lines"
    if b"\0" in start and not start.startswith(b"\xff\xfe"):
        return "binary data"
    found = jsonl.head(path)
    if found:
        keys = ", ".join(sorted(map(str, found[0][1]))[:6])
        return f"a file of JSON records with the keys {keys}"
    if start.lstrip()[:1] in (b"{", b"["):
        return "a JSON document that no known agent writes"
    return "a text file"
