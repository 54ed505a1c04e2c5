"""Operations of the journal: which route is on which thread, and how far it has read."""

from __future__ import annotations

import sqlite3
from typing import Any

from actors.journal.operation import log, next_seq, operation
from actors.journal.operations_threads import thread_close
from agents_registry.errors import NotFoundError, RefusedError


@operation
def attach(c: sqlite3.Connection, route: str, thread: str, from_seq: int, at: float) -> list[Any]:
    """[joined seq, workspace, cwd]. `from_seq` 0 = from now on. Raises when the thread is not open."""
    row = c.execute("SELECT status, workspace, cwd FROM threads WHERE id = ?", (thread,)).fetchone()
    if row is None:
        raise NotFoundError(f"there is no thread {thread}.", hint="See `va threads list`.")
    if row["status"] != "open":
        raise RefusedError(f"the thread {thread} is closed.", hint="Start a new one with /new.", code="thread_closed")
    joined = from_seq or next_seq(c)
    current = c.execute("SELECT thread, joined_seq FROM routes WHERE route = ?", (route,)).fetchone()
    if current is not None and current["thread"] == thread:
        return [current["joined_seq"], row["workspace"], row["cwd"]]
    detach(c, route, at)
    c.execute(
        "INSERT INTO routes (route, thread, joined_seq, position, workspace, created_at, last_seen) VALUES (?,?,?,?,?,?,?)"
        " ON CONFLICT (route) DO UPDATE SET thread = excluded.thread, joined_seq = excluded.joined_seq,"
        " workspace = excluded.workspace, last_seen = excluded.last_seen",
        (route, thread, joined, max(0, next_seq(c) - 1) if current is None else 0, row["workspace"], at, at),
    )
    c.execute("INSERT INTO attachments (route, thread, from_seq) VALUES (?, ?, ?)", (route, thread, joined))
    log(c, thread, "route_attached", {"route": route}, at)
    return [joined, row["workspace"], row["cwd"]]


@operation
def detach(c: sqlite3.Connection, route: str, at: float) -> str:
    """The thread that the route left, or ""."""
    row = c.execute("SELECT thread FROM routes WHERE route = ?", (route,)).fetchone()
    if row is None or not row["thread"]:
        return ""
    c.execute("UPDATE attachments SET to_seq = ? WHERE route = ? AND to_seq IS NULL", (next_seq(c), route))
    c.execute("UPDATE routes SET thread = '', last_seen = ? WHERE route = ?", (at, route))
    log(c, row["thread"], "route_detached", {"route": route}, at)
    return str(row["thread"])


UNHEARD_S = 3600.0
"""Seconds after which a terminal's or a page's route without a listener no longer counts as attached."""


@operation
def route_known(c: sqlite3.Connection, route: str, at: float) -> None:
    c.execute(
        "INSERT INTO routes (route, position, created_at, last_seen) VALUES (?, ?, ?, ?)"
        " ON CONFLICT (route) DO UPDATE SET last_seen = excluded.last_seen",
        (route, next_seq(c) - 1, at, at),
    )


@operation
def route_position(c: sqlite3.Connection, route: str, seq: int, at: float) -> None:
    c.execute(
        "UPDATE routes SET position = MAX(position, ?), last_seen = ? WHERE route = ?", (seq, at, route)
    )


@operation
def route_at(c: sqlite3.Connection, route: str) -> int:
    row = c.execute("SELECT position FROM routes WHERE route = ?", (route,)).fetchone()
    return int(row[0]) if row else 0


@operation
def thread_members(c: sqlite3.Connection, thread: str) -> dict[str, Any]:
    """{routes: [[route, joined seq]], agent, title, session}."""
    row = c.execute("SELECT agent, title FROM threads WHERE id = ?", (thread,)).fetchone()
    current = c.execute("SELECT id FROM sessions WHERE thread = ? AND current = 1", (thread,)).fetchone()
    routes = c.execute("SELECT route, joined_seq FROM routes WHERE thread = ? ORDER BY route", (thread,))
    return {
        "routes": [[r[0], r[1]] for r in routes], "agent": row["agent"] if row else "", "title": row["title"] if row else "",
        "session": current["id"] if current else "",
    }


@operation
def detach_or_close(c: sqlite3.Connection, route: str, at: float) -> list[Any]:
    """[thread left, closed, routes that did not count]: the last route closes the thread. Terminals and pages without a
    listener for an hour do not count, and are detached with it."""
    thread = detach(c, route, at)
    if not thread:
        return ["", False, []]
    left: list[str] = []
    for row in c.execute("SELECT route, last_seen FROM routes WHERE thread = ? ORDER BY route", (thread,)).fetchall():
        if not row["route"].startswith(("cli:", "web:")) or row["last_seen"] > at - UNHEARD_S:
            return [thread, False, []]
        left.append(row["route"])
    for one in left:
        detach(c, one, at)
    thread_close(c, thread, at)
    return [thread, True, left]
