"""Operations of the journal: the inbox, turns and permissions."""

from __future__ import annotations

import json
import sqlite3
from typing import Any

from actors.journal.operation import dumps, log, operation
from actors.journal.operations_routes import route_known


@operation
def inbox_add(
    c: sqlite3.Connection, route: str, key: str, text: str, sender: Any, attachments: Any, workspace: str, at: float
) -> list[Any]:
    """[created, state, reply]: a known key changes nothing."""
    cursor = c.execute(
        "INSERT INTO inbox (route, key, text, sender, attachments, workspace, state, received_at)"
        " VALUES (?, ?, ?, ?, ?, ?, 'waiting', ?) ON CONFLICT DO NOTHING",
        (route, key, text, dumps(sender), dumps(attachments), workspace, at),
    )
    if cursor.rowcount:
        # From its first message on a route has a position: who listens later misses nothing of what was said to it.
        route_known(c, route, at)
        return [True, "waiting", ""]
    row = c.execute("SELECT state, reply FROM inbox WHERE route = ? AND key = ?", (route, key)).fetchone()
    return [False, row["state"], row["reply"]]


@operation
def inbox_done(c: sqlite3.Connection, route: str, key: str, reply: str = "") -> None:
    c.execute("UPDATE inbox SET state = 'done', reply = ? WHERE route = ? AND key = ?", (reply, route, key))


@operation
def turn_start(
    c: sqlite3.Connection, turn: str, key: str, thread: str, route: str, prompt: str, sender: Any, at: float
) -> None:
    c.execute(
        "INSERT INTO turns (id, key, thread, route, prompt, sender, state, started_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (turn, key, thread, route, prompt, dumps(sender), "running", at),
    )
    c.execute("UPDATE inbox SET state = 'started' WHERE route = ? AND key = ?", (route, key))
    c.execute(
        "UPDATE threads SET updated_at = ?, title = CASE WHEN title = '' THEN ? ELSE title END WHERE id = ?",
        (at, " ".join(prompt.split())[:80], thread),
    )
    log(c, thread, "turn_started", {"prompt": " ".join(prompt.split())[:80]}, at)


@operation
def turn_end(c: sqlite3.Connection, turn: str, state: str, stop_reason: str, at: float) -> None:
    row = c.execute("SELECT route, key, thread FROM turns WHERE id = ?", (turn,)).fetchone()
    if row is None:
        return
    texts = c.execute("SELECT body FROM events WHERE turn = ? AND kind = 'text' AND target = '' ORDER BY seq", (turn,))
    text = "\n\n".join(str(json.loads(r["body"]).get("text", "")) for r in texts)
    c.execute(
        "UPDATE turns SET state = ?, stop_reason = ?, ended_at = ?, text = ? WHERE id = ? AND ended_at IS NULL",
        (state, stop_reason, at, text, turn),
    )
    c.execute("UPDATE inbox SET state = 'done' WHERE route = ? AND key = ?", (row["route"], row["key"]))
    c.execute("UPDATE threads SET updated_at = ? WHERE id = ?", (at, row["thread"]))
    c.execute(
        "UPDATE permissions SET state = 'cancelled', decided_at = ? WHERE turn = ? AND state = 'open'", (at, turn)
    )


@operation
def permission_add(c: sqlite3.Connection, pid: str, thread: str, turn: str, request: str, body: Any, at: float) -> None:
    c.execute(
        "INSERT INTO permissions (id, thread, turn, request, body, state, asked_at) VALUES (?, ?, ?, ?, ?, 'open', ?)"
        " ON CONFLICT DO NOTHING",
        (pid, thread, turn, request, dumps(body), at),
    )


@operation
def permission_decide(c: sqlite3.Connection, pid: str, state: str, option: str, by: str, at: float) -> None:
    c.execute(
        "UPDATE permissions SET state = ?, option = ?, by = ?, decided_at = ? WHERE id = ? AND state = 'open'",
        (state, option, by, at, pid),
    )
