"""The database: tables, and the migrations that lead to them.

`events` is the log; `seq` is global, so that one number is a route's position. The other tables are projections or
state that is written in the same transaction as the event it belongs to.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from agents_registry.errors import VibeAroundError

MIGRATIONS: tuple[str, ...] = (
    """
    CREATE TABLE workspaces (
        id TEXT PRIMARY KEY, cwd TEXT NOT NULL, real TEXT NOT NULL, name TEXT NOT NULL, general INTEGER NOT NULL,
        archived INTEGER NOT NULL DEFAULT 0, created_at REAL NOT NULL, updated_at REAL NOT NULL);
    CREATE UNIQUE INDEX workspace_real ON workspaces (real) WHERE archived = 0;
    CREATE TABLE threads (
        id TEXT PRIMARY KEY, workspace TEXT NOT NULL, cwd TEXT NOT NULL, agent TEXT NOT NULL, profile TEXT NOT NULL,
        status TEXT NOT NULL, title TEXT NOT NULL DEFAULT '', start TEXT NOT NULL DEFAULT 'new',
        mode TEXT NOT NULL DEFAULT '', env TEXT NOT NULL DEFAULT '{}', away TEXT NOT NULL DEFAULT '{}',
        created_at REAL NOT NULL, updated_at REAL NOT NULL);
    CREATE TABLE sessions (
        thread TEXT NOT NULL, agent TEXT NOT NULL, store_root TEXT NOT NULL, id TEXT NOT NULL,
        observed_at REAL NOT NULL, current INTEGER NOT NULL, alias_of TEXT NOT NULL DEFAULT '',
        PRIMARY KEY (thread, agent, store_root, id));
    CREATE UNIQUE INDEX session_current ON sessions (agent, store_root, id) WHERE current = 1;
    CREATE INDEX session_id ON sessions (id);
    CREATE TABLE routes (
        route TEXT PRIMARY KEY, thread TEXT NOT NULL DEFAULT '', joined_seq INTEGER NOT NULL DEFAULT 0,
        position INTEGER NOT NULL DEFAULT 0, workspace TEXT NOT NULL DEFAULT '', created_at REAL NOT NULL,
        last_seen REAL NOT NULL);
    CREATE INDEX route_thread ON routes (thread);
    CREATE TABLE attachments (
        route TEXT NOT NULL, thread TEXT NOT NULL, from_seq INTEGER NOT NULL, to_seq INTEGER);
    CREATE INDEX attachment_route ON attachments (route);
    CREATE TABLE inbox (
        id INTEGER PRIMARY KEY AUTOINCREMENT, route TEXT NOT NULL, key TEXT NOT NULL, text TEXT NOT NULL,
        sender TEXT NOT NULL, attachments TEXT NOT NULL, workspace TEXT NOT NULL, state TEXT NOT NULL,
        reply TEXT NOT NULL DEFAULT '', received_at REAL NOT NULL);
    CREATE UNIQUE INDEX inbox_key ON inbox (route, key);
    CREATE INDEX inbox_open ON inbox (route) WHERE state != 'done';
    CREATE TABLE turns (
        id TEXT PRIMARY KEY, key TEXT NOT NULL, thread TEXT NOT NULL, route TEXT NOT NULL, prompt TEXT NOT NULL,
        sender TEXT NOT NULL, state TEXT NOT NULL, stop_reason TEXT NOT NULL DEFAULT '',
        started_at REAL NOT NULL, ended_at REAL, text TEXT NOT NULL DEFAULT '');
    CREATE INDEX turn_thread ON turns (thread);
    CREATE TABLE events (
        seq INTEGER PRIMARY KEY AUTOINCREMENT, thread TEXT NOT NULL, turn TEXT NOT NULL, kind TEXT NOT NULL,
        body TEXT NOT NULL, target TEXT NOT NULL, origin TEXT NOT NULL, at REAL NOT NULL);
    CREATE INDEX event_thread ON events (thread, seq);
    CREATE INDEX event_turn ON events (turn, seq) WHERE turn != '';
    CREATE INDEX event_target ON events (target, seq) WHERE target != '';
    CREATE INDEX event_origin ON events (origin, seq) WHERE origin != '';
    CREATE TABLE hosts (
        thread TEXT NOT NULL, instance TEXT NOT NULL, epoch INTEGER NOT NULL, secret_hash TEXT NOT NULL,
        state TEXT NOT NULL, host_pid INTEGER NOT NULL DEFAULT 0, host_start INTEGER NOT NULL DEFAULT 0,
        agent_pid INTEGER NOT NULL DEFAULT 0, agent_pgid INTEGER NOT NULL DEFAULT 0,
        agent_start INTEGER NOT NULL DEFAULT 0, acked INTEGER NOT NULL DEFAULT 0, reason TEXT NOT NULL DEFAULT '',
        spawned_at REAL NOT NULL, PRIMARY KEY (thread, instance));
    CREATE TABLE permissions (
        id TEXT PRIMARY KEY, thread TEXT NOT NULL, turn TEXT NOT NULL, request TEXT NOT NULL, body TEXT NOT NULL,
        state TEXT NOT NULL, option TEXT NOT NULL DEFAULT '', by TEXT NOT NULL DEFAULT '', asked_at REAL NOT NULL,
        decided_at REAL);
    CREATE INDEX permission_open ON permissions (thread) WHERE state = 'open';
    """,
    """
    CREATE TABLE bridge_people (
        bridge TEXT NOT NULL, user_id TEXT NOT NULL, user_name TEXT NOT NULL, role TEXT NOT NULL, approved_at REAL NOT NULL,
        PRIMARY KEY (bridge, user_id));
    """,
    """
    CREATE TABLE agent_yes (
        workspace TEXT NOT NULL, agent TEXT NOT NULL, by TEXT NOT NULL, at REAL NOT NULL, PRIMARY KEY (workspace, agent));
    """,
)


def open_database(path: Path, *, read_only: bool = False) -> sqlite3.Connection:
    """A connection in autocommit mode (transactions are explicit). Creates and migrates unless `read_only`.

    Raises VibeAroundError when the file is of a newer version, or is no database; it is left as it is.
    """
    if not read_only:
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            if not path.exists():
                path.touch(mode=0o600)
        except OSError as error:
            raise _unreadable(path, error.strerror, _NO_ACCESS) from error
    # SQLite waits for ever in the open() of a pipe.
    if path.exists() and not path.is_file():
        raise _unreadable(path, "it is not a regular file", _DAMAGED)
    try:
        connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=5.0)
    except sqlite3.OperationalError as error:
        raise _unreadable(path, error, _NO_ACCESS) from error
    connection.row_factory = sqlite3.Row
    try:
        if read_only:
            connection.execute("PRAGMA query_only = ON")
        else:
            version = _known_version(connection, path)
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA wal_autocheckpoint = 2000")
            for number, script in enumerate(MIGRATIONS[version:], version + 1):
                connection.executescript(f"BEGIN IMMEDIATE; {script}; PRAGMA user_version = {number}; COMMIT;")
    except sqlite3.DatabaseError as error:
        connection.close()
        # A full disk, a missing right, a lock: the file may be well, so nobody is told to move it away.
        raise _unreadable(path, error, _NO_ACCESS if isinstance(error, sqlite3.OperationalError) else _DAMAGED) from error
    return connection


_DAMAGED = "Move the file away to start with an empty journal; the agents' own sessions are not touched by that."
_NO_ACCESS = "Check that you may write the file and its directory, and that the disk is not full."


def _unreadable(path: Path, why: object, hint: str) -> VibeAroundError:
    return VibeAroundError(f"the journal {path} cannot be opened: {why}.", hint=hint, code="journal_unreadable")


def _known_version(connection: sqlite3.Connection, path: Path) -> int:
    """The file's version, before anything is written to it."""
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if version > len(MIGRATIONS):
        connection.close()
        raise VibeAroundError(
            f"the journal {path} was written by a newer version (schema {version}, this one knows {len(MIGRATIONS)}).",
            hint="Update vibearound, or set VIBEAROUND_DATA_DIR to another directory.",
            code="journal_newer",
        )
    return version
