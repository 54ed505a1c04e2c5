"""Operations of the journal: threads and their sessions."""

from __future__ import annotations

import sqlite3
from typing import Any

from actors.journal.operation import dumps, log, operation
from agents_registry.errors import NotFoundError, RefusedError


@operation
def thread_create(
    c: sqlite3.Connection, tid: str, workspace: str, cwd: str, agent: str, profile: str, title: str, start: str,
    env: Any, at: float,
) -> None:
    """`workspace` is an id, or `real:<path>` for the active workspace of a real path."""
    if workspace.startswith("real:"):
        row = c.execute("SELECT id FROM workspaces WHERE real = ? AND archived = 0", (workspace[5:],)).fetchone()
        if row is None:
            raise NotFoundError(f"there is no workspace of {workspace[5:]}.")
        workspace = row["id"]
    c.execute(
        "INSERT INTO threads (id, workspace, cwd, agent, profile, status, title, start, env, created_at, updated_at)"
        " VALUES (?, ?, ?, ?, ?, 'open', ?, ?, ?, ?, ?)",
        (tid, workspace, cwd, agent, profile, title, start, dumps(env), at, at),
    )
    log(c, tid, "thread_created", {"workspace": workspace, "cwd": cwd, "agent": agent, "profile": profile, "title": title}, at)


@operation
def thread_close(c: sqlite3.Connection, tid: str, at: float) -> None:
    c.execute("UPDATE threads SET status = 'closed', updated_at = ? WHERE id = ?", (at, tid))
    c.execute("UPDATE sessions SET current = 0 WHERE thread = ?", (tid,))
    log(c, tid, "thread_closed", {}, at)


@operation
def thread_title(c: sqlite3.Connection, tid: str, title: str) -> None:
    c.execute("UPDATE threads SET title = ? WHERE id = ?", (title[:200], tid))
    log(c, tid, "thread_titled", {"title": title[:200]}, 0.0)


@operation
def thread_start(c: sqlite3.Connection, tid: str, start: str) -> None:
    """How the next host begins: new, resume or fork."""
    c.execute("UPDATE threads SET start = ? WHERE id = ?", (start, tid))


@operation
def thread_mode(c: sqlite3.Connection, tid: str, mode: str) -> None:
    c.execute("UPDATE threads SET mode = ? WHERE id = ?", (mode, tid))


@operation
def thread_away(c: sqlite3.Connection, tid: str, away: Any) -> None:
    """{pid, start_time} of the terminal process that has the session, or {}."""
    c.execute("UPDATE threads SET away = ? WHERE id = ?", (dumps(away), tid))


@operation
def session_current(
    c: sqlite3.Connection, thread: str, agent: str, store_root: str, sid: str, alias_of: str, at: float
) -> None:
    """The current session of an open thread. Raises RefusedError when it is another open thread's."""
    holder = c.execute(
        "SELECT thread FROM sessions WHERE agent = ? AND store_root = ? AND id = ? AND current = 1",
        (agent, store_root, sid),
    ).fetchone()
    if holder is not None and holder["thread"] != thread:
        raise RefusedError(
            f"the session {sid} is already the current one of the thread {holder['thread']}.",
            hint="Join that thread instead.",
            code="session_taken",
        )
    c.execute("UPDATE sessions SET current = 0 WHERE thread = ?", (thread,))
    c.execute(
        "INSERT INTO sessions (thread, agent, store_root, id, observed_at, current, alias_of) VALUES (?, ?, ?, ?, ?, 1, ?)"
        " ON CONFLICT (thread, agent, store_root, id) DO UPDATE SET current = 1",
        (thread, agent, store_root, sid, at, alias_of),
    )
    log(c, thread, "session_current", {"agent": agent, "store_root": store_root, "id": sid, "alias_of": alias_of}, at)
