"""The journal's writer: many records, one commit (group commit), then the answers and the posts."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from actors.journal.operations import apply, dumps
from actors.journal.queries import run
from actors.journal.schema import open_database
from agents_registry.errors import VibeAroundError
from transports.bus.api import Bus, Delivery
from transports.bus.vocabulary.conversation import Failed, Ok
from transports.bus.vocabulary.storage import Load, Posted, Record, Recorded

GROUP = 256
"""Records per commit at most."""


@dataclass(slots=True)
class _Applied:
    delivery: Delivery
    answer: Recorded | Failed
    posts: list[tuple[str, Posted]]


class Journal:
    """Plain logic: takes deliveries, applies them in one transaction when `flush` is called. Not thread-safe."""

    def __init__(self, path: Path, bus: Bus, wall_clock: Any) -> None:
        self._bus = bus
        self._now = wall_clock
        self._connection = open_database(path)
        self._batch: list[Delivery] = []

    def take(self, delivery: Delivery) -> bool:
        """Add to the batch; True when it is full."""
        self._batch.append(delivery)
        return len(self._batch) >= GROUP

    def flush(self) -> None:
        """Commit the batch; only then answer and post. When the disk refuses, every record is answered with Failed."""
        batch, self._batch = self._batch, []
        if not batch:
            return
        applied: list[_Applied] = []
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            for delivery in batch:
                applied.append(self._apply(delivery))
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            failure = Failed(
                VibeAroundError(
                    f"the journal could not be written: {error}.",
                    hint="Is the disk full? `va doctor` tells. Nothing was accepted.",
                    code="journal_write",
                ).to_wire()
            )
            applied = [_Applied(delivery, failure, []) for delivery in batch]
        for entry in applied:
            for address, post in entry.posts:
                self._bus.send(address, post, sender="journal")
            d = entry.delivery
            if d.corr and d.sender:
                self._bus.send(d.sender, entry.answer, sender="journal", corr=-d.corr)

    def _apply(self, delivery: Delivery) -> _Applied:
        record: Record = delivery.message
        c = self._connection
        c.execute("SAVEPOINT record")
        try:
            results = apply(c, record.ops)
            seqs: list[int] = []
            posts: list[tuple[str, Posted]] = []
            # A host event that was applied before (resent after a reconnect) is acked again but not posted again.
            repeated = any(op[0] == "host_acked" and r is False for op, r in zip(record.ops, results, strict=True))
            if not repeated:
                now = self._now()
                for event, routes in zip(record.events, record.fanout, strict=True):
                    thread, turn, kind, body, target, origin = event
                    cursor = c.execute(
                        "INSERT INTO events (thread, turn, kind, body, target, origin, at) VALUES (?, ?, ?, ?, ?, ?, ?)",
                        (thread, turn, kind, dumps(body), target, origin, now),
                    )
                    seq = int(cursor.lastrowid or 0)
                    seqs.append(seq)
                    post = Posted(seq, thread, turn, kind, body, target, origin, now)
                    posts.extend((f"route/{route}", post) for route in routes)
            c.execute("RELEASE record")
            return _Applied(delivery, Recorded(record.token, results, seqs), posts)
        except VibeAroundError as error:
            c.execute("ROLLBACK TO record")
            c.execute("RELEASE record")
            return _Applied(delivery, Failed(error.to_wire()), [])
        except (sqlite3.IntegrityError, TypeError, ValueError, json.JSONDecodeError) as error:
            c.execute("ROLLBACK TO record")
            c.execute("RELEASE record")
            failure = VibeAroundError(f"the journal refused a record: {error}.", code="journal_refused")
            return _Applied(delivery, Failed(failure.to_wire()), [])

    def close(self) -> None:
        self.flush()
        self._connection.close()


class History:
    """The reading side, on a connection of its own."""

    def __init__(self, path: Path, bus: Bus) -> None:
        self._bus = bus
        self._connection = open_database(path, read_only=True)

    def read(self, delivery: Delivery) -> None:
        request: Load = delivery.message
        try:
            answer: Ok | Failed = Ok(run(self._connection, request.query, request.params))
        except VibeAroundError as error:
            answer = Failed(error.to_wire())
        except (sqlite3.Error, TypeError) as error:
            failure = VibeAroundError(f"the journal could not be read: {error}.", hint="`va doctor` tells more.")
            answer = Failed(failure.to_wire())
        if delivery.sender:
            self._bus.send(delivery.sender, answer, sender="history", corr=-delivery.corr)

    def close(self) -> None:
        self._connection.close()
