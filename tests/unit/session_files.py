"""Small made-up session files for the tests of the stores, and a view of which files a call opened."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from agents_registry.sessions.neutral import Conversation, Text, ToolResult
from agents_registry.sessions.port import SessionInfo

_opened: list[list[str]] = []


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if _opened and event == "open" and isinstance(arguments[0], (str, os.PathLike)):
        for watch in _opened:
            watch.append(os.fspath(arguments[0]))


sys.addaudithook(_hook)  # cannot be taken back; it does nothing while nobody watches


@contextmanager
def opened_files() -> Iterator[list[str]]:
    """The paths that Python code opens while this is entered."""
    watch: list[str] = []
    _opened.append(watch)
    try:
        yield watch
    finally:
        _opened.remove(watch)


def lines(path: Path, *records: Any, mtime: float | None = None) -> Path:
    """A JSONL file; texts and bytes among the records are written as they are."""
    path.parent.mkdir(parents=True, exist_ok=True)
    raw = [
        record if isinstance(record, bytes) else record.encode() if isinstance(record, str) else json.dumps(record).encode()
        for record in records
    ]
    path.write_bytes(b"\n".join(raw) + b"\n")
    if mtime is not None:
        os.utime(path, (mtime, mtime))
    return path


def document(path: Path, value: Any, *, mtime: float | None = None) -> Path:
    """A file that is one JSON document."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), "utf-8")
    if mtime is not None:
        os.utime(path, (mtime, mtime))
    return path


def info(agent: str, path: Path, root: Path, session_id: str = "s", **more: Any) -> SessionInfo:
    """What a listing would say of a file, for tests that read without listing."""
    return SessionInfo(agent, session_id, more.pop("cwd", ""), more.pop("title", ""), 0.0, path, root, **more)


def said(conversation: Conversation) -> list[str]:
    """The turns as `user: text` and `agent: text` lines; an agent turn without words is `agent:`."""
    return [f"{turn.role}: {turn.text}".strip() for turn in conversation.turns]


def results(conversation: Conversation) -> dict[str, str]:
    """Texts of the results by call id."""
    return {
        block.call_id: block.text for turn in conversation.turns for block in turn.blocks if isinstance(block, ToolResult)
    }


def texts(conversation: Conversation) -> list[str]:
    """All text blocks."""
    return [block.text for turn in conversation.turns for block in turn.blocks if isinstance(block, Text)]
