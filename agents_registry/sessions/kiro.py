"""Kiro's stores: the journal of kiro-cli, the database of its older versions and of Amazon Q, and the IDE's documents.

Each root holds one of them: `~/.kiro` the journal (sessions/cli/<id>.jsonl with <id>.json beside it), `kiro-cli` and
`amazon-q` in the XDG data directory a database keyed by directory, the IDE's global storage one document a session.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from agents_registry.sessions.filestore import FileStore, Meta, object_of, objects_in, sidecar, text_of
from agents_registry.sessions.jsonl import Record
from agents_registry.sessions.kiro_tables import KiroTables
from agents_registry.sessions.neutral import Conversation, ImageRef, Text, Thinking, ToolResult, flat_text
from agents_registry.sessions.openai_messages import content_parts
from agents_registry.sessions.paths import home
from agents_registry.sessions.places import config_home, named
from agents_registry.sessions.port import Inspection, SessionInfo, Tail
from agents_registry.sessions.sqlite_ro import is_database
from agents_registry.sessions.steps import Call, Kind, Part, Step
from agents_registry.sessions.times import seconds

_KINDS = frozenset({"Prompt", "AssistantMessage", "ToolResults"})


class KiroStore:
    """See the module. `KIRO_HOME` takes the place of ~/.kiro. Each root is handed to the reader of its kind."""

    agent: str = "kiro"

    def __init__(self) -> None:
        self._files = KiroFiles()
        self._tables = KiroTables()

    def roots(self, env: Mapping[str, str]) -> list[Path]:
        return [*self._files.roots(env), *self._tables.roots(env)]

    def list(
        self, root: Path, *, cwd: str | None = None, limit: int = 20, subagents: bool = False
    ) -> Iterator[SessionInfo]:
        if self._tables.database(root).exists():
            return self._tables.list(root, cwd=cwd, limit=limit, subagents=subagents)
        return self._files.list(root, cwd=cwd, limit=limit, subagents=subagents)

    def resolve(self, root: Path, wanted: str, *, cwd: str | None = None) -> Sequence[SessionInfo]:
        if self._tables.database(root).exists():
            return self._tables.resolve(root, wanted, cwd=cwd)
        return self._files.resolve(root, wanted, cwd=cwd)

    def read(self, info: SessionInfo) -> Conversation:
        return self._tables.read(info) if _in_table(info.path) else self._files.read(info)

    def inspect(self, path: Path) -> Inspection:
        return self._tables.inspect(path) if _in_table(path) else self._files.inspect(path)

    def recognises(self, path: Path) -> bool:
        return self._tables.recognises(path) if _in_table(path) else self._files.recognises(path)

    def tail(self, info: SessionInfo) -> Tail:
        return self._tables.tail(info) if _in_table(info.path) else self._files.tail(info)


class KiroFiles(FileStore):
    """The journal and the IDE's documents."""

    agent: str = "kiro"
    leaf_keys: ClassVar[tuple[str, ...]] = ()

    def roots(self, env: Mapping[str, str]) -> list[Path]:
        return [
            named(env, "KIRO_HOME") or home(env) / ".kiro",
            config_home(env) / "Kiro" / "User" / "globalStorage" / "kiro.kiroagent",
        ]

    def files(self, root: Path) -> Iterator[Path]:
        yield from (root / "sessions" / "cli").glob("*.jsonl")
        yield from (root / "sessions" / "cli").glob("*/messages.jsonl")
        yield from (path for path in (root / "workspace-sessions").glob("*/*.json") if path.name != "sessions.json")

    def is_document(self, path: Path) -> bool:
        return path.suffix == ".json"

    def steps(self, records: Iterable[tuple[int, Record]], meta: Meta) -> Iterator[Step]:
        for line, record in records:
            kind = text_of(record, "kind")
            if kind and isinstance(record.get("data"), dict):
                if kind not in _KINDS:
                    meta.strange(kind[:40])
                    continue
                meta.ours += 1
                if (step := _journal(kind, record["data"], line)) is not None:
                    yield step
            elif isinstance(record.get("history"), list) and "workspacePath" in record and "sessionId" in record:
                meta.ours += 1
                meta.id, meta.cwd = text_of(record, "sessionId"), text_of(record, "workspacePath")
                meta.title = text_of(record, "title")
                meta.model = text_of(record, "selectedModel")
                for entry in objects_in(record, "history"):
                    if (step := _ide(object_of(entry, "message"), line)) is not None:
                        yield step
            else:
                meta.strange(text_of(record, "type")[:40])

    def beside(self, path: Path, root: Path | None, meta: Meta) -> None:
        if path.suffix != ".jsonl":
            return
        plain = path.name == "messages.jsonl"
        about = sidecar(path.parent / "session.json" if plain else path.with_suffix(".json"))
        meta.id = text_of(about, "session_id") or (path.parent.name if plain else path.stem)
        meta.cwd = text_of(about, "cwd") or meta.cwd
        meta.title = text_of(about, "title") or meta.title
        meta.parent_id = text_of(about, "parent_session_id")
        meta.created_at = seconds(about.get("created_at"))
        meta.updated_at = seconds(about.get("updated_at"))


def _in_table(path: Path) -> bool:
    if path.suffix in (".json", ".jsonl"):
        return False
    try:
        return is_database(path)
    except OSError:
        return False


def _journal(kind: str, data: Record, line: int) -> Step | None:
    at = seconds(object_of(data, "meta").get("timestamp"))
    parts: list[Part] = []
    for item in objects_in(data, "content"):
        parts.extend(_item(item, line, at))
    if kind == "Prompt":
        return Step(Kind.USER, parts, line, at) if parts else None
    return Step(Kind.AGENT, parts, line, at, message_id=text_of(data, "message_id"))


def _item(item: Record, line: int, at: float | None) -> Iterator[Part]:
    kind, data = text_of(item, "kind"), item.get("data")
    inner = data if isinstance(data, dict) else {}
    if kind == "text":
        yield Text(flat_text(data), line, at)
    elif kind == "thinking":
        yield Thinking(flat_text(data), line, at)
    elif kind == "toolUse":
        yield Call(text_of(inner, "toolUseId"), text_of(inner, "name"), inner.get("input"))
    elif kind == "toolResult":
        text = "\n".join(flat_text(part.get("data")) for part in objects_in(inner, "content"))
        failed = text_of(inner, "status").lower() == "error"
        yield ToolResult(text_of(inner, "toolUseId"), text, failed, 0, line, at)
    elif kind == "image":
        yield ImageRef(text_of(inner, "format"), "inline", 0, line, at)


def _ide(message: Record, line: int) -> Step | None:
    parts: list[Any] = content_parts(message.get("content"), line)
    if text_of(message, "role") == "user":
        return Step(Kind.USER, parts, line) if parts else None
    if text_of(message, "role") in ("assistant", "bot"):
        return Step(Kind.AGENT, parts, line, message_id=text_of(message, "id"))
    return None


STORE = KiroStore()
