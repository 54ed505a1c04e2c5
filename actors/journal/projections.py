"""What a thread is, rebuilt from its own events alone: the check that the kept tables say what the log says."""

from __future__ import annotations

import json
import sqlite3
from typing import Any

from actors.journal.operations import LOG


def project(events: list[tuple[str, dict[str, Any]]]) -> dict[str, Any]:
    """{workspace, cwd, agent, profile, title, status, session, routes} of one thread from (kind, body) in order. Pure."""
    thread: dict[str, Any] = {"status": "open", "session": "", "routes": set(), "title": ""}
    for kind, body in events:
        if kind == "thread_created":
            thread |= body
        elif kind == "thread_closed":
            thread |= {"status": "closed", "session": ""}
        elif kind == "thread_titled":
            thread["title"] = body["title"]
        elif kind == "turn_started":
            thread["title"] = thread["title"] or body["prompt"]
        elif kind == "session_current":
            thread["session"] = body["id"]
        elif kind == "route_attached":
            thread["routes"].add(body["route"])
        elif kind == "route_detached":
            thread["routes"].discard(body["route"])
    return {**thread, "routes": sorted(thread["routes"])}


def rebuilt(connection: sqlite3.Connection) -> dict[str, dict[str, Any]]:
    """Every thread by id, from the log."""
    by_thread: dict[str, list[tuple[str, dict[str, Any]]]] = {}
    for row in connection.execute("SELECT thread, kind, body FROM events WHERE target = ? ORDER BY seq", (LOG,)):
        by_thread.setdefault(row["thread"], []).append((row["kind"], json.loads(row["body"])))
    return {thread: project(events) for thread, events in by_thread.items()}


def kept(connection: sqlite3.Connection) -> dict[str, dict[str, Any]]:
    """Every thread by id, from the tables."""
    found = {}
    for row in connection.execute("SELECT * FROM threads").fetchall():
        current = connection.execute("SELECT id FROM sessions WHERE thread = ? AND current = 1", (row["id"],)).fetchone()
        routes = connection.execute("SELECT route FROM routes WHERE thread = ? ORDER BY route", (row["id"],)).fetchall()
        names = ("workspace", "cwd", "agent", "profile", "title", "status")
        found[row["id"]] = {
            **{name: row[name] for name in names}, "session": current["id"] if current else "", "routes": [r["route"] for r in routes],
        }
    return found
