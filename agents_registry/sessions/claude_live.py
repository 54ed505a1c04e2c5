"""Which Claude Code sessions are open right now, by the agent's own register `<root>/sessions/<pid>.json`.

Each running Claude writes one such file {pid, sessionId, cwd, status idle|waiting|busy, …} and keeps it current through
/clear and /resume. A file whose process is gone, or whose pid another process has since been given, counts nothing.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

from agents_registry.sessions.processes import lives_since


class LiveClaude(NamedTuple):
    """One running Claude Code process."""

    pid: int
    session_id: str
    cwd: str
    status: str
    """idle, waiting (for the user) or busy; "" where the version does not say."""
    kind: str
    entrypoint: str


_LARGEST = 64 * 1024


def register(root: Path) -> list[LiveClaude]:
    """All living entries of the register; damaged ones are passed over."""
    found = []
    try:
        paths = sorted((root / "sessions").iterdir())
    except OSError:
        return []
    for path in paths:
        if path.suffix != ".json" or not path.stem.isdigit():
            continue
        entry = _entry(path, int(path.stem))
        if entry is not None:
            found.append(entry)
    return found


def of_pid(root: Path, pid: int) -> LiveClaude | None:
    """The entry of one process; an MCP server asks with its parent's pid."""
    return _entry(root / "sessions" / f"{pid}.json", pid)


def live_sessions(root: Path) -> dict[str, int]:
    """Session id to pid."""
    return {entry.session_id: entry.pid for entry in register(root)}


def _entry(path: Path, pid: int) -> LiveClaude | None:
    try:
        written = path.stat().st_mtime
        with open(path, "rb") as file:
            value = json.loads(file.read(_LARGEST))
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(value, dict) or not isinstance(value.get("sessionId"), str):
        return None
    if not lives_since(pid, written):
        return None
    word = {key: str(value.get(key) or "") for key in ("sessionId", "cwd", "status", "kind", "entrypoint")}
    return LiveClaude(pid, word["sessionId"], word["cwd"], word["status"], word["kind"], word["entrypoint"])
