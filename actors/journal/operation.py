"""The named operations of the journal: each changes rows inside the writer's transaction and may return a result.

An operation is data (`[name, param, ...]`) so that an actor in another process can ask for it. What an operation
returns lands in `Recorded.results`. One that raises undoes the whole record it belongs to, and nothing else.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from typing import Any

from agents_registry.errors import UsageError

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
