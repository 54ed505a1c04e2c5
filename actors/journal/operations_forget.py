"""Operations of the journal: what is old enough to go, with the files that belong to it."""

from __future__ import annotations

import json
import sqlite3
from typing import Any
from urllib.parse import unquote

from actors.journal.operation import operation


@operation
def forget_old(c: sqlite3.Connection, before: float) -> list[str]:
    """Delete turns that ended before a time, with their events and inbox rows, once every route is past them.

    Returns the paths of the files that the events referred to and the messages brought; the caller removes ours."""
    old = (
        "FROM events WHERE target != 'log' AND at < ? AND seq <="
        " COALESCE((SELECT MIN(position) FROM routes WHERE thread != ''), 0)"
    )
    files: list[str] = []
    for row in c.execute(f"SELECT body {old} AND body LIKE '%\"ref\"%'", (before,)):
        files.extend(referred(json.loads(row["body"])))
    sent = "FROM inbox WHERE state = 'done' AND received_at < ? AND attachments LIKE '%file://%'"
    for row in c.execute(f"SELECT attachments {sent}", (before,)):
        files.extend(attached(json.loads(row["attachments"])))
    c.execute(f"DELETE {old}", (before,))
    c.execute("DELETE FROM inbox WHERE state = 'done' AND received_at < ?", (before,))
    c.execute("DELETE FROM turns WHERE ended_at IS NOT NULL AND ended_at < ?", (before,))
    return files


def attached(blocks: Any) -> list[str]:
    """The paths of the files that came with a message: its `resource_link` blocks."""
    uris = [str(b.get("uri") or "") for b in blocks if isinstance(b, dict) and b.get("type") == "resource_link"]
    return [unquote(uri.removeprefix("file://")) for uri in uris if uri.startswith("file:///")]


def referred(value: Any) -> list[str]:
    """The paths of all {"ref": {"path": …}} in a body."""
    if isinstance(value, dict):
        ref = value.get("ref")
        own = [str(ref["path"])] if isinstance(ref, dict) and ref.get("path") else []
        return own + [path for item in value.values() for path in referred(item)]
    if isinstance(value, list):
        return [path for item in value for path in referred(item)]
    return []
