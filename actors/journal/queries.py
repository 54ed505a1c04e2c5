"""The named reads of the journal: each returns plain data (dicts and lists) for `Ok.data`.

They run on a connection of their own, so that a long read never stands before a commit.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from typing import Any

from agents_registry.errors import NotFoundError, UsageError
from transports.bus.routes import Route

Query = Callable[..., dict[str, Any]]
QUERIES: dict[str, Query] = {}

PAGE = 200
"""Events read at once for a route that catches up."""


def query(function: Query) -> Query:
    QUERIES[function.__name__] = function
    return function


def run(connection: sqlite3.Connection, name: str, params: list[Any]) -> dict[str, Any]:
    """Raises UsageError for an unknown name, and what the query raises."""
    known = QUERIES.get(name)
    if known is None:
        raise UsageError(f"the journal knows no query {name!r}.", code="bad_message")
    return known(connection, *params)


def _rows(cursor: sqlite3.Cursor) -> list[dict[str, Any]]:
    return [dict(row) for row in cursor]


def _event(row: sqlite3.Row) -> dict[str, Any]:
    return {**dict(row), "body": json.loads(row["body"])}


@query
def route(c: sqlite3.Connection, text: str) -> dict[str, Any]:
    """{route: row|None, waiting: open inbox rows, turns: open turns asked here}."""
    row = c.execute(
        "SELECT r.*, t.cwd, t.agent, t.status FROM routes r LEFT JOIN threads t ON t.id = r.thread WHERE r.route = ?",
        (text,),
    ).fetchone()
    waiting = _rows(c.execute("SELECT * FROM inbox WHERE route = ? AND state = 'waiting' ORDER BY id", (text,)))
    for item in waiting:
        item["sender"], item["attachments"] = json.loads(item["sender"]), json.loads(item["attachments"])
    turns = _rows(c.execute("SELECT id, key, thread FROM turns WHERE route = ? AND ended_at IS NULL", (text,)))
    return {"route": dict(row) if row else None, "waiting": waiting, "turns": turns}


_FEED = """
    SELECT DISTINCT e.* FROM events e JOIN attachments a ON a.route = :route AND a.thread = e.thread
        AND e.seq >= a.from_seq AND (a.to_seq IS NULL OR e.seq < a.to_seq)
        WHERE e.seq > :after AND e.target = ''
    UNION SELECT * FROM events WHERE seq > :after AND target = :route
    UNION SELECT * FROM events WHERE seq > :after AND origin = :route AND target = ''
    ORDER BY seq LIMIT :limit
"""


@query
def feed(c: sqlite3.Connection, text: str, after: int, limit: int = PAGE) -> dict[str, Any]:
    """{events}: what the route shows after a position: its threads' events while it was attached, what is meant for it
    alone, and the turns that it asked for, also after it moved on."""
    cursor = c.execute(_FEED, {"route": text, "after": after, "limit": limit})
    return {"events": [_event(row) for row in cursor]}


@query
def feed_skip(c: sqlite3.Connection, text: str, after: int, keep: int, since: float) -> dict[str, Any]:
    """{skipped, position}: how many waiting events are over the number or the age that is kept, and where to go on."""
    base = f"SELECT seq FROM ({_FEED})"
    params = {"route": text, "after": after, "limit": -1, "since": since}
    old = c.execute(f"SELECT COUNT(*), MAX(seq) FROM ({base.replace('SELECT seq', 'SELECT *')}) WHERE at < :since", params).fetchone()
    count = c.execute(f"SELECT COUNT(*) FROM ({base})", params).fetchone()[0]
    position, skipped = after, 0
    if old[0]:
        position, skipped = int(old[1]), int(old[0])
    if count - skipped > keep:
        row = c.execute(f"{base} LIMIT 1 OFFSET :offset", {**params, "offset": count - keep - 1}).fetchone()
        position, skipped = int(row[0]), count - keep
    return {"skipped": skipped, "position": position}


@query
def turn_events(c: sqlite3.Connection, route_text: str, key: str) -> dict[str, Any]:
    """{turn: row|None, events}: what the turn with this message key showed to the route that asked."""
    turn = c.execute("SELECT * FROM turns WHERE route = ? AND key = ?", (route_text, key)).fetchone()
    if turn is None:
        return {"turn": None, "events": []}
    cursor = c.execute("SELECT * FROM events WHERE turn = ? AND target IN ('', ?) ORDER BY seq", (turn["id"], route_text))
    return {"turn": dict(turn), "events": [_event(row) for row in cursor]}


@query
def thread(c: sqlite3.Connection, tid: str) -> dict[str, Any]:
    """All that a thread supervisor starts from: thread, routes, session, sessions, host, running turn, permissions."""
    row = c.execute("SELECT * FROM threads WHERE id = ?", (tid,)).fetchone()
    if row is None:
        raise NotFoundError(f"there is no thread {tid}.", hint="See `va threads list`.")
    sessions = _rows(c.execute("SELECT * FROM sessions WHERE thread = ? ORDER BY observed_at", (tid,)))
    hosts = _rows(c.execute("SELECT * FROM hosts WHERE thread = ?", (tid,)))
    turns = _rows(c.execute(
        "SELECT t.*, i.attachments FROM turns t LEFT JOIN inbox i ON i.route = t.route AND i.key = t.key"
        " WHERE t.thread = ? AND t.ended_at IS NULL ORDER BY t.started_at", (tid,),
    ))
    permissions = _rows(c.execute("SELECT * FROM permissions WHERE thread = ? AND state = 'open'", (tid,)))
    for permission in permissions:
        permission["body"] = json.loads(permission["body"])
    # Decided, but perhaps not forwarded: a supervisor may have been killed between the commit and the word to the host.
    decided = _rows(c.execute(
        "SELECT p.request, p.option FROM permissions p JOIN turns t ON t.id = p.turn WHERE p.thread = ? AND p.state != 'open'"
        " AND t.ended_at IS NULL", (tid,),
    ))
    for turn in turns:
        turn["sender"] = json.loads(turn["sender"])
        turn["attachments"] = json.loads(turn["attachments"] or "[]")
    data = {**dict(row), "env": json.loads(row["env"]), "away": json.loads(row["away"])}
    routes = [[r["route"], r["joined_seq"]] for r in c.execute("SELECT * FROM routes WHERE thread = ?", (tid,))]
    return {
        "thread": data, "sessions": sessions, "hosts": hosts, "turns": turns, "permissions": permissions,
        "decided": [[d["request"], d["option"]] for d in decided], "routes": routes,
    }


@query
def thread_of_session(c: sqlite3.Connection, agent: str, ids: list[str], store_root: str = "") -> dict[str, Any]:
    """{thread: id|""}: the open thread whose current session is one of these ids (an id and its aliases)."""
    marks = ",".join("?" * len(ids))
    row = c.execute(
        f"SELECT s.thread FROM sessions s JOIN threads t ON t.id = s.thread AND t.status = 'open'"
        f" WHERE s.agent = ? AND s.current = 1 AND s.id IN ({marks}) AND (? = '' OR s.store_root = ? OR s.store_root = '')"
        " ORDER BY t.updated_at DESC",
        (agent, *ids, store_root, store_root),
    ).fetchone()
    return {"thread": row["thread"] if row else ""}


@query
def open_threads(c: sqlite3.Connection, workspace: str, agent: str) -> dict[str, Any]:
    """{threads}: open threads of a workspace (newest first), for the offer of an earlier one."""
    cursor = c.execute(
        "SELECT id, title, agent, updated_at FROM threads WHERE status = 'open' AND workspace = ? AND (? = '' OR agent = ?)"
        " ORDER BY updated_at DESC LIMIT 10",
        (workspace, agent, agent),
    )
    return {"threads": _rows(cursor)}


@query
def recovery(c: sqlite3.Connection) -> dict[str, Any]:
    """What a supervisor must take up at its start: {hosts: not gone, routes: with waiting rows, threads: with open turns}."""
    return {
        "hosts": _rows(c.execute("SELECT * FROM hosts WHERE state != 'gone'")),
        "routes": [r[0] for r in c.execute("SELECT DISTINCT route FROM inbox WHERE state = 'waiting'")],
        "threads": [r[0] for r in c.execute("SELECT DISTINCT thread FROM turns WHERE ended_at IS NULL")],
    }


@query
def threads(c: sqlite3.Connection, limit: int, closed: bool) -> dict[str, Any]:
    """{threads}: objects of `va threads list --json`."""
    cursor = c.execute(
        "SELECT * FROM threads WHERE (? OR status = 'open') ORDER BY updated_at DESC LIMIT ?", (int(closed), limit)
    )
    return {"threads": [_thread_object(c, row) for row in cursor.fetchall()]}


@query
def thread_detail(c: sqlite3.Connection, wanted: str) -> dict[str, Any]:
    """The object of `va threads show --json`; `wanted` is an id or a unique prefix of one (with or without `wt_`)."""
    rows = c.execute("SELECT * FROM threads WHERE id = ? OR id = ?", (wanted, f"wt_{wanted}")).fetchall()
    if not rows and len(wanted) >= 3:
        prefix = wanted if wanted.startswith("wt_") else f"wt_{wanted}"
        rows = c.execute("SELECT * FROM threads WHERE substr(id, 1, ?) = ?", (len(prefix), prefix)).fetchall()
    if not rows:
        raise NotFoundError(f"there is no thread {wanted!r}.", hint="See `va threads list`.")
    if len(rows) > 1:
        raise UsageError(
            f"{wanted!r} may mean {len(rows)} threads: " + ", ".join(r["id"] for r in rows[:5]) + ".",
            hint="Give more of the id.",
        )
    tid = rows[0]["id"]
    sessions = c.execute(
        "SELECT agent, id, observed_at, current FROM sessions WHERE thread = ? ORDER BY observed_at", (tid,)
    )
    turns = c.execute(
        "SELECT key, route, prompt, state, stop_reason, started_at, ended_at, text FROM turns WHERE thread = ?"
        " ORDER BY started_at",
        (tid,),
    )
    return {
        **_thread_object(c, rows[0]),
        "sessions": [{**dict(s), "current": bool(s["current"])} for s in sessions],
        "turns": _rows(turns),
    }


def _thread_object(c: sqlite3.Connection, row: sqlite3.Row) -> dict[str, Any]:
    routes = [r[0] for r in c.execute("SELECT route FROM routes WHERE thread = ? ORDER BY route", (row["id"],))]
    return {
        "id": row["id"], "workspace": row["workspace"], "cwd": row["cwd"],
        "host": {"agent": row["agent"], "profile": row["profile"]}, "status": row["status"], "title": row["title"],
        "routes": routes, "updated_at": row["updated_at"],
    }


@query
def status(c: sqlite3.Connection) -> dict[str, Any]:
    """{threads, routes, hosts} for `va status`: open threads, attached routes, hosts that are not gone."""
    hosts = c.execute(
        "SELECT h.*, t.agent, (SELECT id FROM sessions s WHERE s.thread = h.thread AND s.current = 1) AS session"
        " FROM hosts h JOIN threads t ON t.id = h.thread WHERE h.state != 'gone'"
    )
    routes = c.execute("SELECT route, thread, position, last_seen FROM routes WHERE thread != '' ORDER BY route")
    return {"threads": threads(c, 200, False)["threads"], "routes": _rows(routes), "hosts": _rows(hosts)}


@query
def workspaces(c: sqlite3.Connection, archived: bool) -> dict[str, Any]:
    cursor = c.execute(
        "SELECT w.*, (SELECT COUNT(*) FROM threads t WHERE t.workspace = w.id AND t.status = 'open') AS open"
        " FROM workspaces w WHERE (? OR archived = 0) ORDER BY general DESC, updated_at DESC",
        (int(archived),),
    )
    return {"workspaces": _rows(cursor)}


@query
def audit(c: sqlite3.Connection, pid: str) -> dict[str, Any]:
    """{permission: row|None}: for the word to a late press."""
    row = c.execute("SELECT * FROM permissions WHERE id = ?", (pid,)).fetchone()
    return {"permission": dict(row) if row else None}


@query
def agent_yes(c: sqlite3.Connection, workspace: str, agent: str) -> dict[str, Any]:
    """{by}: who allowed this agent to act unasked in this workspace, "" when nobody did."""
    row = c.execute("SELECT by FROM agent_yes WHERE workspace = ? AND agent = ?", (workspace, agent)).fetchone()
    return {"by": row["by"] if row else ""}


@query
def chat_session(c: sqlite3.Connection, channel: str, chat: str) -> dict[str, Any]:
    """{session, agent, thread} of the conversation that a chat is on, by channel kind and chat id; "" when there is none."""
    for row in c.execute("SELECT route, thread FROM routes WHERE thread != '' AND substr(route, 1, ?) = ?", (len(channel) + 1, f"{channel}:")):
        if Route.parse(row["route"]).chat == chat:
            current = c.execute(
                "SELECT s.id, s.agent FROM sessions s WHERE s.thread = ? AND s.current = 1", (row["thread"],)
            ).fetchone()
            if current is not None:
                return {"session": current["id"], "agent": current["agent"], "thread": row["thread"]}
    return {"session": "", "agent": "", "thread": ""}


@query
def bridge_people(c: sqlite3.Connection) -> dict[str, Any]:
    """{people: [{bridge, user_id, user_name, role}]}, in the order in which they came."""
    return {"people": _rows(c.execute("SELECT bridge, user_id, user_name, role FROM bridge_people ORDER BY approved_at, rowid"))}
