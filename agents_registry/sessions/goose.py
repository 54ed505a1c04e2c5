"""Goose's store: `<data>/goose/sessions/sessions.db`, and the JSONL files (one a session) of before the database.

Results of tools ride on user rows. What a compaction replaced stays in the table and is marked as not visible to the
agent; the summary is marked as not visible to the user (block/goose, session_manager.rs).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from heapq import merge
from pathlib import Path
from typing import Any, ClassVar

from agents_registry.sessions.filestore import FileStore, Meta, object_of, objects_in, text_of
from agents_registry.sessions.jsonl import NotJson, Record, decode
from agents_registry.sessions.neutral import Conversation, ImageRef, Text, Thinking, ToolResult, flat_text
from agents_registry.sessions.paths import home
from agents_registry.sessions.places import data_home, named
from agents_registry.sessions.port import Inspection, SessionInfo, Tail
from agents_registry.sessions.sqlite_ro import column, columns
from agents_registry.sessions.steps import Call, Kind, Part, Step
from agents_registry.sessions.tablestore import TableStore
from agents_registry.sessions.times import seconds


def _roots(env: Mapping[str, str]) -> list[Path]:
    if (own := named(env, "GOOSE_PATH_ROOT")) is not None:
        return [own / "data"]
    mac = home(env) / "Library" / "Application Support" / "Block" / "goose"
    return [data_home(env) / "goose", *([mac] if mac.is_dir() else [])]


class GooseStore(TableStore):
    """See the module. `GOOSE_PATH_ROOT` moves everything."""

    agent: str = "goose"

    def __init__(self) -> None:
        self._files = GooseFiles()

    def roots(self, env: Mapping[str, str]) -> list[Path]:
        return _roots(env)

    def database(self, root: Path) -> Path:
        return root / "sessions" / "sessions.db"

    def has_tables(self, connection: sqlite3.Connection) -> bool:
        return "working_dir" in columns(connection, "sessions") and "content_json" in columns(connection, "messages")

    def rows(self, connection: sqlite3.Connection, path: Path, root: Path) -> Iterator[SessionInfo]:
        for row in connection.execute("SELECT * FROM sessions ORDER BY updated_at DESC, id DESC"):
            kind = str(column(row, "session_type") or "user")
            if kind == "hidden":
                continue
            yield SessionInfo(
                agent=self.agent,
                id=str(row["id"]),
                cwd=str(row["working_dir"] or ""),
                title=str(column(row, "name") or column(row, "description") or ""),
                updated_at=seconds(str(row["updated_at"])) or 0.0,
                path=path,
                store_root=root,
                parent_id="?" if kind == "sub_agent" else "",
            )

    def every(self, root: Path) -> Iterator[SessionInfo]:
        """Sessions of the database, and files that were never imported into it."""
        table = list(super().every(root))
        known = {info.id for info in table}
        rest = (info for info in self._files.list(root, limit=1_000_000) if info.id not in known)
        yield from merge(table, rest, key=lambda info: -info.updated_at)

    def steps(self, connection: sqlite3.Connection, info: SessionInfo, meta: Meta) -> Iterator[Step]:
        query = "SELECT * FROM messages WHERE session_id = ? ORDER BY created_timestamp, id"
        for row in connection.execute(query, (info.id,)):
            content = _json(row["content_json"], f"message {row['id']}", meta)
            flags = column(row, "metadata_json")
            visible = _json(flags, "metadata", Meta()) if flags else {}
            at = seconds(row["created_timestamp"])
            yield from _steps(str(row["role"]), content, visible if isinstance(visible, dict) else {}, 0, at)

    def leaf(self, connection: sqlite3.Connection, info: SessionInfo) -> str:
        query = "SELECT count(*), max(id) FROM messages WHERE session_id = ?"
        return ":".join(str(value) for value in connection.execute(query, (info.id,)).fetchone())

    def read(self, info: SessionInfo) -> Conversation:
        return self._files.read(info) if info.path.suffix == ".jsonl" else super().read(info)

    def inspect(self, path: Path) -> Inspection:
        return self._files.inspect(path) if path.suffix == ".jsonl" else super().inspect(path)

    def recognises(self, path: Path) -> bool:
        return self._files.recognises(path) if path.suffix == ".jsonl" else super().recognises(path)

    def tail(self, info: SessionInfo) -> Tail:
        return self._files.tail(info) if info.path.suffix == ".jsonl" else super().tail(info)


class GooseFiles(FileStore):
    """The JSONL files: a first line about the session, then one message a line."""

    agent: str = "goose"
    leaf_keys: ClassVar[tuple[str, ...]] = ()

    def roots(self, env: Mapping[str, str]) -> list[Path]:
        return _roots(env)

    def files(self, root: Path) -> Iterator[Path]:
        yield from (root / "sessions").glob("*.jsonl")

    def steps(self, records: Iterable[tuple[int, Record]], meta: Meta) -> Iterator[Step]:
        for line, record in records:
            if "working_dir" in record and "role" not in record:
                meta.ours += 1
                meta.cwd = text_of(record, "working_dir")
                meta.title = text_of(record, "description")
            elif text_of(record, "role") and isinstance(record.get("content"), list) and meta.ours:
                meta.ours += 1
                at = seconds(record.get("created"))
                yield from _steps(record["role"], record["content"], object_of(record, "metadata"), line, at)
            else:
                meta.strange(text_of(record, "type")[:40])

    def beside(self, path: Path, root: Path | None, meta: Meta) -> None:
        meta.id = path.stem


def _steps(role: str, content: Any, flags: Record, line: int, at: float | None) -> Iterator[Step]:
    parts = [part for item in objects_in({"content": content}, "content") for part in _part(item, line, at)]
    seen_by_agent = flags.get("agentVisible") is not False
    text = "\n".join(part.text for part in parts if isinstance(part, Text))
    if flags.get("userVisible") is False and seen_by_agent and text:
        yield Step(Kind.COMPACT, [Text(text, line, at)], line, at)
        return
    results: list[Part] = [part for part in parts if isinstance(part, ToolResult)]
    if role == "user":
        if results:
            yield Step(Kind.AGENT, results, line, at, carried=seen_by_agent)
        words: list[Part] = [part for part in parts if not isinstance(part, ToolResult)]
        if words:
            yield Step(Kind.USER, words, line, at, carried=seen_by_agent)
    elif role == "assistant":
        yield Step(Kind.AGENT, parts, line, at, carried=seen_by_agent)


def _part(item: Record, line: int, at: float | None) -> Iterator[Part]:
    kind = text_of(item, "type")
    if kind == "text":
        yield Text(text_of(item, "text"), line, at)
    elif kind == "thinking":
        yield Thinking(text_of(item, "thinking"), line, at)
    elif kind == "image":
        yield ImageRef(text_of(item, "mimeType"), "inline", len(text_of(item, "data")) * 3 // 4, line, at)
    elif kind == "toolRequest":
        call = object_of(item, "toolCall")
        value = object_of(call, "value") or call
        yield Call(text_of(item, "id"), text_of(value, "name"), value.get("arguments"))
    elif kind == "toolResponse":
        result = object_of(item, "toolResult")
        failed = result.get("status") == "error" or object_of(result, "value").get("isError") is True
        text = flat_text(result.get("value", result.get("error")))
        yield ToolResult(text_of(item, "id"), text, failed, 0, line, at)


def _json(text: Any, what: str, meta: Meta) -> Any:
    try:
        return decode(text if isinstance(text, bytes) else str(text).encode("utf-8", "surrogatepass"))
    except NotJson as error:
        meta.reject(0, f"{what}: {error}")
        return None


STORE = GooseStore()
