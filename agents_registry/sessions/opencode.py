"""OpenCode's store: the database opencode.db (since 1.2), and beside it the JSON tree that older versions wrote.

Both may hold the same session; the database's is the current one. Directories are compared as places, whatever their
spelling: OpenCode itself writes `D:/x` and `D:\\x` for one project (anomalyco/opencode#36178).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from heapq import merge
from pathlib import Path

from agents_registry.sessions.filestore import Meta
from agents_registry.sessions.jsonl import NotJson, Record, decode
from agents_registry.sessions.neutral import Conversation
from agents_registry.sessions.opencode_parts import as_counted, in_order, message_step
from agents_registry.sessions.opencode_tree import OpenCodeTree
from agents_registry.sessions.places import data_home, named
from agents_registry.sessions.port import Inspection, SessionInfo, Tail
from agents_registry.sessions.sqlite_ro import column, columns
from agents_registry.sessions.steps import Step, keep_after_summary
from agents_registry.sessions.tablestore import TableStore
from agents_registry.sessions.times import seconds


class OpenCodeStore(TableStore):
    """See the module. A root is the database; `OPENCODE_DB` names it, else it lies in the XDG data directory."""

    agent: str = "opencode"

    def __init__(self) -> None:
        self._tree = OpenCodeTree()

    def roots(self, env: Mapping[str, str]) -> list[Path]:
        if (own := named(env, "OPENCODE_DB")) is not None:
            return [own]
        folder = data_home(env) / "opencode"
        main = folder / "opencode.db"
        if not main.exists() and (folder / "storage").is_dir():
            main = folder  # only an older version was ever used here
        # Builds of other channels keep a database of their own beside it (opencode-dev.db).
        return [main, *sorted(path for path in folder.glob("opencode-*.db"))]

    def database(self, root: Path) -> Path:
        return root / "opencode.db" if root.is_dir() else root

    def has_tables(self, connection: sqlite3.Connection) -> bool:
        return {"directory", "time_updated"} <= columns(connection, "session") and "message_id" in columns(
            connection, "part"
        )

    def rows(self, connection: sqlite3.Connection, path: Path, root: Path) -> Iterator[SessionInfo]:
        archived = "time_archived" in columns(connection, "session")
        where = "WHERE time_archived IS NULL" if archived else ""
        for row in connection.execute(f"SELECT * FROM session {where} ORDER BY time_updated DESC, id DESC"):
            yield SessionInfo(
                agent=self.agent,
                id=str(row["id"]),
                cwd=str(row["directory"] or ""),
                title=str(row["title"] or ""),
                updated_at=seconds(row["time_updated"]) or 0.0,
                path=path,
                store_root=root,
                parent_id=str(row["parent_id"] or ""),
            )

    def every(self, root: Path) -> Iterator[SessionInfo]:
        """Sessions of both stores, latest first; one that is in both comes from the database."""
        known: set[str] = set()
        path = self.database(root)
        storage = path.parent / "storage"
        if path.name == "opencode.db" and storage.is_dir():
            # Which ids the database has must be known before the first of the tree is let through.
            table = list(super().every(root))
            known.update(info.id for info in table)
            tree = (info for info in self._tree.every(storage, root) if info.id not in known)
            yield from merge(table, tree, key=lambda info: -info.updated_at)
        else:
            yield from super().every(root)

    def steps(self, connection: sqlite3.Connection, info: SessionInfo, meta: Meta) -> Iterator[Step]:
        query = "SELECT id, data, time_created FROM message WHERE session_id = ? ORDER BY time_created, id"
        for row in connection.execute(query, (info.id,)):
            data = _json(row["data"], f"message {row['id']}", meta)
            if data is None:
                continue
            data.setdefault("time", {"created": row["time_created"]})
            parts = connection.execute("SELECT id, data FROM part WHERE message_id = ? ORDER BY id", (row["id"],))
            step = message_step(str(row["id"]), data, _parts(parts, meta), meta)
            if step is not None:
                yield step

    def in_file_order(self, steps: Iterable[Step]) -> Iterable[Step]:
        return as_counted(steps)

    def read(self, info: SessionInfo) -> Conversation:
        return self._tree.read(info) if info.path.suffix == ".json" else super().read(info)

    def live_of(self, connection: sqlite3.Connection, info: SessionInfo, steps: Iterable[Step]) -> Iterable[Step]:
        revert: Record = {}
        if "revert" in columns(connection, "session"):
            row = connection.execute("SELECT revert FROM session WHERE id = ?", (info.id,)).fetchone()
            revert = _json(column(row, "revert"), "revert", Meta()) or {} if row is not None and row["revert"] else {}
        return keep_after_summary(list(in_order(steps, revert)))

    def inspect(self, path: Path) -> Inspection:
        return self._tree.inspect(path) if path.suffix == ".json" else super().inspect(path)

    def recognises(self, path: Path) -> bool:
        return self._tree.recognises(path) if path.suffix == ".json" else super().recognises(path)

    def tail(self, info: SessionInfo) -> Tail:
        return self._tree.tail(info) if info.path.suffix == ".json" else super().tail(info)

    def leaf(self, connection: sqlite3.Connection, info: SessionInfo) -> str:
        query = "SELECT count(*), max(time_updated), max(id) FROM part WHERE session_id = ?"
        parts = connection.execute(query, (info.id,)).fetchone()
        messages = connection.execute("SELECT count(*) FROM message WHERE session_id = ?", (info.id,)).fetchone()
        return ":".join(str(value) for value in (*messages, *parts))


def _parts(rows: Iterable[sqlite3.Row], meta: Meta) -> Iterator[tuple[str, Record]]:
    for row in rows:
        # A part that is damaged costs itself; the messages alone are what is counted as records.
        data = _json(row["data"], f"part {row['id']}", meta, counts=False)
        if data is not None:
            yield str(row["id"]), data


def _json(text: object, what: str, meta: Meta, *, counts: bool = True) -> Record | None:
    """The object in a column, None and a word in `meta.skipped` when there is none."""
    raw = text if isinstance(text, bytes) else str(text).encode("utf-8", "surrogatepass")
    why = "not an object"
    try:
        value = decode(raw)
        if isinstance(value, dict):
            return value
    except NotJson as error:
        why = str(error)
    before = meta.malformed
    meta.reject(0, f"{what}: {why}")
    meta.malformed = before + counts
    return None


STORE = OpenCodeStore()
