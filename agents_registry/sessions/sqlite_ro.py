"""Opening an agent's SQLite database to read it, beside an agent that may be writing.

Nothing is ever written, and nothing is left behind: a database in WAL mode that nobody has open (no -wal file) is
opened as immutable, because an ordinary read-only connection would create -wal and -shm files beside it and leave
them. With a -wal file present the ordinary read-only connection sees what the writer has committed.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

WAIT_S = 2.0
"""How long a read waits for a writer that holds the database locked."""
_MAGIC = b"SQLite format 3\0"


def is_database(path: Path) -> bool:
    """Whether the file begins like an SQLite database."""
    return _header(path).startswith(_MAGIC)


@contextmanager
def reading(path: Path) -> Iterator[sqlite3.Connection]:
    """A read-only connection whose rows are known by column name; texts that are no UTF-8 are read with replacements.

    Raises `sqlite3.Error` when the file is no database, is damaged, or stays locked for `WAIT_S`; OSError when it is
    not there.
    """
    connection = _open(path)
    try:
        connection.row_factory = sqlite3.Row
        connection.text_factory = _text
        connection.execute("PRAGMA query_only = 1")
        yield connection
    finally:
        connection.close()


def columns(connection: sqlite3.Connection, table: str) -> frozenset[str]:
    """Column names of a table, empty when there is no such table. `table` is a name of this package, never input."""
    return frozenset(str(row["name"]) for row in connection.execute(f"PRAGMA table_info({table})"))


def column(row: sqlite3.Row, name: str) -> Any:
    """A column of a row, None where this version of the schema does not have it."""
    return row[name] if name in row.keys() else None  # noqa: SIM118 - a Row iterates over values, not names


def tail_of(path: Path) -> tuple[int, int]:
    """(bytes, newest modification in ns) of the database and its write-ahead log; (0, 0) when it is gone."""
    size = modified = 0
    for part in (path, path.with_name(path.name + "-wal")):
        try:
            stat = part.stat()
        except OSError:
            continue  # a database without a write-ahead log, or none at all
        size += stat.st_size
        modified = max(modified, stat.st_mtime_ns)
    return size, modified


def _open(path: Path) -> sqlite3.Connection:
    address = path.resolve().as_uri()
    header = _header(path)
    in_wal_mode = len(header) > 19 and header[18] == 2
    log = path.with_name(path.name + "-wal")
    if in_wal_mode and not log.exists():
        connection = sqlite3.connect(f"{address}?mode=ro&immutable=1", uri=True, timeout=WAIT_S)
        if not log.exists():
            # A writer that begins from here on writes to its log first; what is read now stays as it is until the
            # log is checkpointed, after some megabytes or at the writer's end.
            return connection
        connection.close()
    connection = sqlite3.connect(f"{address}?mode=ro", uri=True, timeout=WAIT_S)
    try:
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.OperationalError as error:
        connection.close()
        if "locked" in str(error):
            raise
        # A log whose shared-memory file cannot be made here (a read-only place): what was checkpointed is readable.
        return sqlite3.connect(f"{address}?mode=ro&immutable=1", uri=True, timeout=WAIT_S)
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _header(path: Path) -> bytes:
    with open(path, "rb") as stream:
        return stream.read(100)


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")
