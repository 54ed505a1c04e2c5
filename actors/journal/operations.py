"""The named operations of the journal: each changes rows inside the writer's transaction and may return a result.

An operation is data (`[name, param, ...]`) so that an actor in another process can ask for it. What an operation
returns lands in `Recorded.results`. One that raises undoes the whole record it belongs to, and nothing else.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

from agents_registry.errors import BusyError, NotFoundError, RefusedError, UsageError

Operation = Callable[..., Any]
OPERATIONS: dict[str, Operation] = {}


def operation(function: Operation) -> Operation:
    OPERATIONS[function.__name__] = function
    return function


def dumps(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def apply(connection: sqlite3.Connection, ops: list[Any]) -> list[Any]:
    """Run the operations in order; raises UsageError for an unknown name."""
    results = []
    for name, *params in ops:
        known = OPERATIONS.get(name)
        if known is None:
            raise UsageError(f"the journal knows no operation {name!r}.", code="bad_message")
        results.append(known(connection, *params))
    return results


def next_seq(connection: sqlite3.Connection) -> int:
    row = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'events'").fetchone()
    return (int(row[0]) if row else 0) + 1


LOG = "log"
"""The target of events that no route shows: a thread's own history, from which its projection can be rebuilt."""


def log(c: sqlite3.Connection, thread: str, kind: str, body: dict[str, Any], at: float) -> None:
    c.execute(
        "INSERT INTO events (thread, turn, kind, body, target, origin, at) VALUES (?, '', ?, ?, ?, '', ?)",
        (thread, kind, dumps(body), LOG, at),
    )


# --- inbox and turns ---


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


# --- threads, sessions, routes ---


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


# --- hosts ---


@operation
def host_spawn(c: sqlite3.Connection, thread: str, instance: str, at: float) -> int:
    """The epoch of a new host; the earlier one of this instance is of the past from now on."""
    row = c.execute("SELECT epoch, state FROM hosts WHERE thread = ? AND instance = ?", (thread, instance)).fetchone()
    if row is not None and row["state"] not in ("gone", "spawning"):
        raise BusyError(f"the host {instance} of {thread} is still there.", code="host_alive")
    epoch = (int(row["epoch"]) if row else 0) + 1
    c.execute(
        "INSERT INTO hosts (thread, instance, epoch, secret_hash, state, spawned_at) VALUES (?, ?, ?, '', 'spawning', ?)"
        " ON CONFLICT (thread, instance) DO UPDATE SET epoch = excluded.epoch, secret_hash = '', state = 'spawning',"
        " host_pid = 0, host_start = 0, agent_pid = 0, agent_pgid = 0, agent_start = 0, acked = 0, reason = '',"
        " spawned_at = excluded.spawned_at",
        (thread, instance, epoch, at),
    )
    return epoch


@operation
def host_pids(
    c: sqlite3.Connection, thread: str, instance: str, epoch: int, secret_hash: str, host: list[int], agent: list[int]
) -> None:
    """`host` = [pid, start time], `agent` = [pid, process group, start time]; zeros leave what is known."""
    c.execute(
        "UPDATE hosts SET state = 'alive',"
        " secret_hash = CASE WHEN ? = '' THEN secret_hash ELSE ? END,"
        " host_pid = CASE WHEN ? = 0 THEN host_pid ELSE ? END, host_start = CASE WHEN ? = 0 THEN host_start ELSE ? END,"
        " agent_pid = CASE WHEN ? = 0 THEN agent_pid ELSE ? END, agent_pgid = CASE WHEN ? = 0 THEN agent_pgid ELSE ? END,"
        " agent_start = CASE WHEN ? = 0 THEN agent_start ELSE ? END"
        " WHERE thread = ? AND instance = ? AND epoch = ?",
        (
            secret_hash, secret_hash, host[0], host[0], host[1], host[1],
            agent[0], agent[0], agent[1], agent[1], agent[2], agent[2], thread, instance, epoch,
        ),
    )


@operation
def host_acked(c: sqlite3.Connection, thread: str, instance: str, epoch: int, seq: int) -> bool:
    """False when this event was applied before: the record's events are then not posted again."""
    cursor = c.execute(
        "UPDATE hosts SET acked = ? WHERE thread = ? AND instance = ? AND epoch = ? AND acked < ?",
        (seq, thread, instance, epoch, seq),
    )
    return cursor.rowcount > 0


@operation
def host_gone(c: sqlite3.Connection, thread: str, instance: str, epoch: int, reason: str) -> None:
    c.execute(
        "UPDATE hosts SET state = 'gone', reason = ? WHERE thread = ? AND instance = ? AND epoch = ?",
        (reason, thread, instance, epoch),
    )


# --- workspaces ---


@operation
def workspace_add(
    c: sqlite3.Connection, wid: str, cwd: str, real: str, name: str, general: bool, at: float
) -> list[Any]:
    """[id, known]: the active workspace of this real path, made when there is none."""
    row = c.execute("SELECT id FROM workspaces WHERE real = ? AND archived = 0", (real,)).fetchone()
    if row is not None:
        return [row["id"], True]
    c.execute(
        "INSERT INTO workspaces (id, cwd, real, name, general, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?, ?)",
        (wid, cwd, real, name, int(general), at, at),
    )
    return [wid, False]


@operation
def workspace_change(c: sqlite3.Connection, wid: str, action: str, name: str, at: float) -> None:
    row = c.execute("SELECT general FROM workspaces WHERE id = ?", (wid,)).fetchone()
    if row is None:
        raise NotFoundError(f"there is no workspace {wid}.", hint="See `va workspace list`.")
    if action == "archive":
        if row["general"]:
            raise RefusedError("the general workspace cannot be archived.")
        c.execute("UPDATE workspaces SET archived = 1, updated_at = ? WHERE id = ?", (at, wid))
    elif action == "restore":
        c.execute("UPDATE workspaces SET archived = 0, updated_at = ? WHERE id = ?", (at, wid))
    elif action == "rename":
        c.execute("UPDATE workspaces SET name = ?, updated_at = ? WHERE id = ?", (name, at, wid))
    else:
        raise UsageError(f"a workspace cannot be {action!r}.", hint="archive, restore or rename.")


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


@operation
def agent_yes(c: sqlite3.Connection, workspace: str, agent: str, by: str, at: float) -> None:
    """An owner allows an agent that never asks to act in a workspace."""
    c.execute("INSERT INTO agent_yes (workspace, agent, by, at) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING", (workspace, agent, by, at))


# --- the people of bridges ---


@operation
def bridge_person(c: sqlite3.Connection, bridge: str, user: str, name: str, role: str, at: float) -> None:
    c.execute(
        "INSERT INTO bridge_people (bridge, user_id, user_name, role, approved_at) VALUES (?, ?, ?, ?, ?)"
        " ON CONFLICT DO UPDATE SET user_name = excluded.user_name, role = excluded.role, approved_at = excluded.approved_at",
        (bridge, user, name, role, at),
    )


@operation
def bridge_person_gone(c: sqlite3.Connection, bridge: str, user: str) -> None:
    c.execute("DELETE FROM bridge_people WHERE bridge = ? AND user_id = ?", (bridge, user))


@operation
def bridge_forget(c: sqlite3.Connection, bridge: str) -> None:
    c.execute("DELETE FROM bridge_people WHERE bridge = ?", (bridge,))
