"""Hermes's store: `~/.hermes/state.db`, and the JSON documents (sessions/session_<id>.json) it wrote before and beside.

A session that grew too long goes on in a new one whose parent it is: such a child is the live session, not a
sub-agent's (NousResearch/hermes-agent, hermes_state.py).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from heapq import merge
from pathlib import Path
from typing import ClassVar

from agents_registry.sessions.filestore import FileStore, Meta, objects_in, raw_head, text_of
from agents_registry.sessions.jsonl import NotJson, Record, decode
from agents_registry.sessions.neutral import Conversation
from agents_registry.sessions.openai_messages import chat_step
from agents_registry.sessions.paths import home
from agents_registry.sessions.places import named
from agents_registry.sessions.port import Inspection, SessionInfo, Tail
from agents_registry.sessions.sqlite_ro import column, columns
from agents_registry.sessions.steps import Step
from agents_registry.sessions.tablestore import TableStore
from agents_registry.sessions.times import seconds

_SUBAGENT_SOURCES = frozenset({"subagent", "delegate"})


class HermesStore(TableStore):
    """See the module. `HERMES_HOME` takes the place of ~/.hermes."""

    agent: str = "hermes"

    def __init__(self) -> None:
        self._documents = HermesDocuments()

    def roots(self, env: Mapping[str, str]) -> list[Path]:
        return [named(env, "HERMES_HOME") or home(env) / ".hermes"]

    def database(self, root: Path) -> Path:
        return root / "state.db"

    def has_tables(self, connection: sqlite3.Connection) -> bool:
        return {"started_at", "source"} <= columns(connection, "sessions") and {"role", "tool_calls"} <= columns(
            connection, "messages"
        )

    def rows(self, connection: sqlite3.Connection, path: Path, root: Path) -> Iterator[SessionInfo]:
        query = (
            "SELECT s.*, (SELECT max(m.timestamp) FROM messages m WHERE m.session_id = s.id) AS last_at "
            "FROM sessions s ORDER BY coalesce(last_at, s.started_at) DESC"
        )
        for row in connection.execute(query):
            source = str(column(row, "source") or "")
            at = seconds(row["last_at"])
            yield SessionInfo(
                agent=self.agent,
                id=str(row["id"]),
                cwd=str(column(row, "cwd") or ""),
                title=str(column(row, "title") or ""),
                updated_at=(at if at is not None else seconds(row["started_at"])) or 0.0,
                path=path,
                store_root=root,
                parent_id=str(column(row, "parent_session_id") or "?") if source in _SUBAGENT_SOURCES else "",
            )

    def every(self, root: Path) -> Iterator[SessionInfo]:
        """Sessions of the database, and those that only a document holds."""
        table = list(super().every(root))
        known = {info.id for info in table}
        documents = self._documents.list(root, limit=1_000_000, subagents=True)
        rest = (info for info in documents if info.id not in known)
        yield from merge(table, rest, key=lambda info: -info.updated_at)

    def steps(self, connection: sqlite3.Connection, info: SessionInfo, meta: Meta) -> Iterator[Step]:
        for row in connection.execute("SELECT * FROM messages WHERE session_id = ? ORDER BY id", (info.id,)):
            message: Record = {key: row[key] for key in row.keys()}  # noqa: SIM118 - a Row iterates over values
            for key in ("tool_calls", "content"):
                text = message.get(key)
                if isinstance(text, str) and text.startswith(("[", "\x00json:[")):
                    message[key] = _json(text.removeprefix("\x00json:"), text)
            step = chat_step(message, 0, seconds(row["timestamp"]))
            if step is not None:
                yield step

    def leaf(self, connection: sqlite3.Connection, info: SessionInfo) -> str:
        query = "SELECT count(*), max(id) FROM messages WHERE session_id = ?"
        return ":".join(str(value) for value in connection.execute(query, (info.id,)).fetchone())

    def read(self, info: SessionInfo) -> Conversation:
        return self._documents.read(info) if info.path.suffix == ".json" else super().read(info)

    def inspect(self, path: Path) -> Inspection:
        return self._documents.inspect(path) if path.suffix == ".json" else super().inspect(path)

    def recognises(self, path: Path) -> bool:
        return self._documents.recognises(path) if path.suffix == ".json" else super().recognises(path)

    def tail(self, info: SessionInfo) -> Tail:
        return self._documents.tail(info) if info.path.suffix == ".json" else super().tail(info)


class HermesDocuments(FileStore):
    """The JSON documents."""

    agent: str = "hermes"
    leaf_keys: ClassVar[tuple[str, ...]] = ()

    def roots(self, env: Mapping[str, str]) -> list[Path]:
        return [named(env, "HERMES_HOME") or home(env) / ".hermes"]

    def files(self, root: Path) -> Iterator[Path]:
        yield from (root / "sessions").glob("session_*.json")

    def is_document(self, path: Path) -> bool:
        return True

    def steps(self, records: Iterable[tuple[int, Record]], meta: Meta) -> Iterator[Step]:
        for line, record in records:
            if not isinstance(record.get("session_id"), str) or not isinstance(record.get("messages"), list):
                meta.strange("no session")
                continue
            if "session_start" not in record and "platform" not in record:
                meta.strange("no session")
                continue
            meta.ours += 1
            meta.id, meta.cwd, meta.model = record["session_id"], text_of(record, "cwd"), text_of(record, "model")
            meta.created_at, meta.updated_at = seconds(record.get("session_start")), seconds(record.get("last_updated"))
            for message in objects_in(record, "messages"):
                step = chat_step(message, line, seconds(message.get("timestamp")))
                if step is not None:
                    yield step

    def torn(self, path: Path) -> bool:
        start = raw_head(path)
        return all(word in start for word in (b'"session_id"', b'"session_start"', b'"platform"'))


def _json(text: str, otherwise: str) -> object:
    try:
        return decode(text.encode("utf-8", "surrogatepass"))
    except NotJson:
        return otherwise


STORE = HermesStore()
