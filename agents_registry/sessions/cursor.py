"""Cursor's command-line agent: transcripts in ~/.cursor/projects, databases in ~/.cursor/chats and acp-sessions.

A transcript (`projects/<project>/agent-transcripts/<id>/<id>.jsonl`) has neither tool results nor times nor a
directory; the database of the same id (`chats/<hash>/<id>/store.db`) has results, and `meta.json` beside it the
directory. The database is read in the order of its root node, never in that of its rows.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

from agents_registry.sessions import sqlite_ro
from agents_registry.sessions.cursor_blobs import blobs_in_order, store_meta
from agents_registry.sessions.filestore import FileStore, Meta, file_tail, object_of, objects_in, sidecar, text_of
from agents_registry.sessions.jsonl import Record
from agents_registry.sessions.neutral import Conversation, ImageRef, Text, Thinking, ToolResult, flat_text
from agents_registry.sessions.paths import home
from agents_registry.sessions.places import named
from agents_registry.sessions.port import SessionInfo, Tail
from agents_registry.sessions.steps import Call, Kind, Part, Step
from agents_registry.sessions.times import seconds

_FIRST = 40
"""Messages of a database that a listing looks at."""
_QUERY = re.compile(r"<user_query>\n?(.*?)\n?</user_query>", re.DOTALL)
_INJECTED = re.compile(r"\s*<(user_info|system_reminder|system-reminder|open_and_recently|attached_|git_status|rules|"
                       r"agent_|project_layout|additional_data|environment|available_skills|manually_attached)")  # fmt: skip


class CursorStore(FileStore):
    """See the module. `CURSOR_CONFIG_DIR` takes the place of ~/.cursor."""

    agent: str = "cursor"
    leaf_keys: ClassVar[tuple[str, ...]] = ()

    def roots(self, env: Mapping[str, str]) -> list[Path]:
        return [named(env, "CURSOR_CONFIG_DIR") or home(env) / ".cursor"]

    def files(self, root: Path) -> Iterator[Path]:
        """Transcripts, and the databases of sessions that have none."""
        transcripts = [*(root / "projects").glob("*/agent-transcripts/**/*.jsonl")]
        yield from transcripts
        known = {path.stem for path in transcripts}
        for pattern in ("chats/*/*/store.db", "acp-sessions/*/store.db"):
            yield from (path for path in root.glob(pattern) if path.parent.name not in known)

    def is_document(self, path: Path) -> bool:
        return path.suffix == ".db"

    def is_subagent(self, path: Path) -> bool:
        return path.parent.name == "subagents"

    def records(self, path: Path, meta: Meta) -> Iterator[tuple[int, Record]]:
        if path.suffix != ".db":
            yield from super().records(path, meta)
            return
        try:
            with sqlite_ro.reading(path) as connection:
                head = store_meta(connection)
                meta.objects += 1
                yield 0, {"type": "store", **head}
                for record in blobs_in_order(connection, head, meta):
                    meta.objects += 1
                    yield 0, record
        except sqlite3.Error as error:
            meta.reject(0, f"the database cannot be read: {error}")

    def first_records(self, path: Path, meta: Meta) -> Iterator[tuple[int, Record]]:
        return islice(self.records(path, meta), _FIRST) if path.suffix == ".db" else super().first_records(path, meta)

    def steps(self, records: Iterable[tuple[int, Record]], meta: Meta) -> Iterator[Step]:
        for line, record in records:
            kind = text_of(record, "type")
            message = record.get("message")
            if kind == "store":
                meta.ours += "agentId" in record
                self._about(record, meta)
            elif kind == "turn_ended":
                meta.ours += 1
            elif (role := text_of(record, "role")) and isinstance(message, dict) and "uuid" not in record:
                meta.ours += "type" not in record
                yield from _steps_of(role, message.get("content"), line)
            elif isinstance(role, str) and "content" in record and line == 0:
                yield from _steps_of(role, record.get("content"), line, text_of(record, "id"))
            else:
                meta.strange(str(kind)[:40])

    def _about(self, record: Record, meta: Meta) -> None:
        meta.id = meta.id or text_of(record, "agentId")
        meta.title = text_of(record, "name") or meta.title
        meta.model = text_of(record, "lastUsedModel") or meta.model
        meta.cwd = meta.cwd or text_of(record, "workspacePath")
        meta.created_at = seconds(record.get("createdAt"))

    def beside(self, path: Path, root: Path | None, meta: Meta) -> None:
        if path.suffix == ".db":
            database: Path | None = path
            meta.id = meta.id or path.parent.name
        else:
            meta.id = path.stem
            if self.is_subagent(path):
                meta.parent_id = path.parent.parent.name
            database = self.database_of(meta.id, root)
        if database is None:
            return
        about = sidecar(database.with_name("meta.json"))
        meta.cwd = text_of(about, "cwd") or meta.cwd
        meta.title = text_of(about, "title") or meta.title
        meta.updated_at = seconds(about.get("updatedAtMs")) or meta.updated_at
        if path != database and not (meta.cwd and meta.title):
            try:
                with sqlite_ro.reading(database) as connection:
                    self._about(store_meta(connection), meta)
            except (OSError, sqlite3.Error):
                pass  # the transcript is what is read; its database only adds to it

    def database_of(self, session_id: str, root: Path | None) -> Path | None:
        """The database of a transcript's session."""
        if root is None:
            return None
        found = [*root.glob(f"chats/*/{session_id}/store.db"), *root.glob(f"acp-sessions/{session_id}/store.db")]
        return found[0] if found else None

    def read(self, info: SessionInfo) -> Conversation:
        """The transcript, or the database of the same session where that holds no fewer human turns: it has results."""
        made = super().read(info)
        database = None if info.path.suffix == ".db" else self.database_of(info.id, info.store_root)
        if database is None:
            return made
        fuller = super().read(
            SessionInfo(
                info.agent, info.id, info.cwd, info.title, info.updated_at, database, info.store_root, info.parent_id
            )
        )
        if len(fuller.user_turns()) < len(made.user_turns()) or not fuller.turns:
            return made
        fuller.path = info.path
        return fuller

    def recognises(self, path: Path) -> bool:
        try:
            if not sqlite_ro.is_database(path):
                return super().recognises(path)
            with sqlite_ro.reading(path) as connection:
                return "agentId" in store_meta(connection)
        except (OSError, sqlite3.Error):
            return False

    def tail(self, info: SessionInfo) -> Tail:
        if info.path.suffix != ".db":
            return file_tail(info.path)
        size, modified = sqlite_ro.tail_of(info.path)
        try:
            with sqlite_ro.reading(info.path) as connection:
                return Tail(text_of(store_meta(connection), "latestRootBlobId"), size, modified)
        except (OSError, sqlite3.Error):
            return Tail("", size, modified)


def _steps_of(role: str, content: Any, line: int, message_id: str = "") -> Iterator[Step]:
    parts = [Text(content, line)] if isinstance(content, str) else []
    odd: list[Part] = []
    for block in objects_in({"content": content}, "content"):
        made = _block(block, line)
        (odd if line and text_of(block, "type") in ("tool_call", "tool-result", "tool-call") else parts).extend(made)  # type: ignore[arg-type]
    if role == "user":
        step = _human(parts, line)
        if step is not None:
            yield step
    elif role in ("assistant", "tool"):
        yield Step(Kind.AGENT, [*parts], line, message_id=message_id)
    if odd:
        # Spellings that a transcript of today's versions does not have: carried, and left out of the counts.
        yield Step(Kind.AGENT, odd, line, counted=False)


def _human(parts: list[Any], line: int) -> Step | None:
    """What the human typed: it stands in <user_query>; other blocks in tags were put there by the harness."""
    results = [part for part in parts if isinstance(part, ToolResult)]
    if results:
        return Step(Kind.AGENT, [*results], line)
    kept: list[Part] = []
    for part in parts:
        if not isinstance(part, Text):
            kept.append(part)
        elif queries := _QUERY.findall(part.text):
            kept.append(Text("\n".join(queries), line))
        elif part.text.strip() and not _INJECTED.match(part.text):
            kept.append(part)
    return Step(Kind.USER, kept, line) if kept else None


def _block(block: Record, line: int) -> list[Part]:
    kind = text_of(block, "type")
    if kind == "text":
        return [Text(text_of(block, "text"), line)]
    if kind in ("thinking", "reasoning"):
        return [Thinking(text_of(block, "thinking") or text_of(block, "text"), line)]
    if kind in ("tool_use", "tool_call"):
        return [Call(text_of(block, "id"), text_of(block, "name"), block.get("input"))]
    if kind == "tool-call":
        return [Call(text_of(block, "toolCallId"), text_of(block, "toolName"), block.get("args", block.get("input")))]
    if kind in ("tool_result", "tool-result"):
        call_id = text_of(block, "tool_use_id") or text_of(block, "toolCallId")
        given = next((block[key] for key in ("content", "result", "output") if key in block), "")
        failed = block.get("is_error") is True or block.get("isError") is True
        return [ToolResult(call_id, flat_text(given), failed, 0, line)]
    if kind == "image":
        return [ImageRef(text_of(object_of(block, "source"), "media_type") or text_of(block, "mimeType"), "inline", 0, line)]
    return []


STORE = CursorStore()
