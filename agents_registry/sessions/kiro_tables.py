"""The database of older kiro-cli versions and of Amazon Q: one JSON document per conversation, keyed by directory."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from agents_registry.sessions.filestore import Meta, object_of, objects_in, text_of
from agents_registry.sessions.jsonl import NotJson, Record, decode
from agents_registry.sessions.neutral import Text, ToolResult, flat_text
from agents_registry.sessions.paths import home
from agents_registry.sessions.places import data_home
from agents_registry.sessions.port import SessionInfo
from agents_registry.sessions.sqlite_ro import columns
from agents_registry.sessions.steps import Call, Kind, Part, Step
from agents_registry.sessions.tablestore import TableStore
from agents_registry.sessions.times import seconds


class KiroTables(TableStore):
    """See the module. Amazon Q keeps one conversation per directory and gives it no time."""

    agent: str = "kiro"

    def roots(self, env: Mapping[str, str]) -> list[Path]:
        support = home(env) / "Library" / "Application Support"
        base = support if support.is_dir() and "XDG_DATA_HOME" not in env else data_home(env)
        return [base / "kiro-cli", base / "amazon-q"]

    def database(self, root: Path) -> Path:
        return root / "data.sqlite3"

    def has_tables(self, connection: sqlite3.Connection) -> bool:
        return "value" in columns(connection, "conversations_v2") or "value" in columns(connection, "conversations")

    def rows(self, connection: sqlite3.Connection, path: Path, root: Path) -> Iterator[SessionInfo]:
        seen: set[str] = set()
        if columns(connection, "conversations_v2"):
            query = "SELECT key, conversation_id, updated_at FROM conversations_v2 ORDER BY updated_at DESC"
            for row in connection.execute(query):
                seen.add(str(row["conversation_id"]))
                value = self._value(connection, str(row["conversation_id"]), str(row["key"]), Meta())
                yield self._info(path, root, str(row["conversation_id"]), str(row["key"]), row["updated_at"], value)
        if columns(connection, "conversations"):
            for row in connection.execute("SELECT key, value FROM conversations ORDER BY rowid DESC"):
                value = _document(row["value"], Meta())
                name = text_of(value, "conversation_id") or str(row["key"])
                if name not in seen:
                    yield self._info(path, root, name, str(row["key"]), None, value)

    def _info(self, path: Path, root: Path, name: str, cwd: str, updated: Any, value: Record) -> SessionInfo:
        first = next((step.text for step in _steps(value) if step.kind is Kind.USER), "").strip()
        at = seconds(updated)
        return SessionInfo(
            agent=self.agent,
            id=name,
            cwd=cwd,
            title=first.partition("\n")[0][:200],
            updated_at=at if at is not None else path.stat().st_mtime,
            path=path,
            store_root=root,
            first_prompt=first[:200],
        )

    def _value(self, connection: sqlite3.Connection, name: str, cwd: str, meta: Meta) -> Record:
        return _document(self._raw(connection, name, cwd), meta)

    def _raw(self, connection: sqlite3.Connection, name: str, cwd: str) -> bytes:
        for table, where, wanted in (
            ("conversations_v2", "conversation_id = ?", name),
            ("conversations", "key = ?", cwd),
        ):
            if columns(connection, table):
                row = connection.execute(f"SELECT value FROM {table} WHERE {where}", (wanted,)).fetchone()
                if row is not None:
                    return _bytes(row["value"])
        return b"{}"

    def steps(self, connection: sqlite3.Connection, info: SessionInfo, meta: Meta) -> Iterator[Step]:
        yield from _steps(self._value(connection, info.id, info.cwd, meta))

    def leaf(self, connection: sqlite3.Connection, info: SessionInfo) -> str:
        return hashlib.sha256(self._raw(connection, info.id, info.cwd)).hexdigest()[:16]


def _bytes(value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogatepass")


def _document(text: Any, meta: Meta) -> Record:
    try:
        value = decode(_bytes(text))
    except NotJson as error:
        meta.reject(0, f"conversation: {error}")
        return {}
    return value if isinstance(value, dict) else {}


def _steps(value: Record) -> Iterator[Step]:
    """history[] holds pairs: what the user side gave (a prompt, or results of tools), and the assistant's answer."""
    for entry in objects_in(value, "history"):
        user = object_of(entry, "user")
        at = seconds(user.get("timestamp"))
        content = object_of(user, "content")
        for kind, body in content.items():
            body = body if isinstance(body, dict) else {}
            parts: list[Part] = [
                ToolResult(text_of(result, "tool_use_id"), _text(result), _failed(result), 0, 0, at)
                for result in objects_in(body, "tool_use_results")
            ]
            if parts:
                yield Step(Kind.AGENT, parts, 0, at)
            prompt = text_of(body, "prompt")
            if prompt and kind in ("Prompt", "CancelledToolUses"):
                yield Step(Kind.USER, [Text(prompt, 0, at)], 0, at)
        for body in object_of(entry, "assistant").values():
            if isinstance(body, dict):
                answer: list[Part] = [Text(text_of(body, "content"), 0, at)] if text_of(body, "content") else []
                answer += [
                    Call(text_of(use, "id"), text_of(use, "name"), use.get("args")) for use in objects_in(body, "tool_uses")
                ]
                yield Step(Kind.AGENT, answer, 0, at, message_id=text_of(body, "message_id"))


def _text(result: Record) -> str:
    return "\n".join(
        flat_text(item.get("Text", item.get("Json"))) if "Text" in item else flat_text(item)
        for item in objects_in(result, "content")
    )


def _failed(result: Record) -> bool:
    return text_of(result, "status").lower() == "error"
