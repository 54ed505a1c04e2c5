"""Crush's store: `<project>/.crush/crush.db`, one database a project.

After a summary the agent sees only what follows it (sessions.summary_message_id). Sessions of its agent tool name
their parent; times are in seconds whatever the schema's comments say (charmbracelet/crush, internal/db).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path

from agents_registry.sessions.filestore import Meta, object_of, objects_in, sidecar, text_of
from agents_registry.sessions.jsonl import NotJson, Record, decode
from agents_registry.sessions.neutral import FileRef, ImageRef, Text, Thinking, ToolResult
from agents_registry.sessions.places import data_home, named
from agents_registry.sessions.port import SessionInfo
from agents_registry.sessions.sqlite_ro import column, columns
from agents_registry.sessions.steps import Call, Kind, Part, Step
from agents_registry.sessions.tablestore import TableStore
from agents_registry.sessions.times import seconds


class CrushStore(TableStore):
    """See the module. Roots are the `.crush` nearest to the working directory, and those of the projects it knows."""

    agent: str = "crush"

    def roots(self, env: Mapping[str, str]) -> list[Path]:
        found: list[Path] = []
        if env.get("PWD"):
            here = Path(env["PWD"])
            near = next((folder / ".crush" for folder in (here, *here.parents) if (folder / ".crush").is_dir()), None)
            found.append(near if near is not None else here / ".crush")
        registry = sidecar((named(env, "CRUSH_GLOBAL_DATA") or data_home(env) / "crush") / "projects.json")
        found += [Path(text_of(project, "data_dir")) for project in objects_in(registry, "projects")]
        return list(dict.fromkeys(path for path in found if path.is_absolute()))

    def database(self, root: Path) -> Path:
        return root / "crush.db"

    def has_tables(self, connection: sqlite3.Connection) -> bool:
        return "parent_session_id" in columns(connection, "sessions") and "parts" in columns(connection, "messages")

    def rows(self, connection: sqlite3.Connection, path: Path, root: Path) -> Iterator[SessionInfo]:
        for row in connection.execute("SELECT * FROM sessions ORDER BY updated_at DESC, id DESC"):
            yield SessionInfo(
                agent=self.agent,
                id=str(row["id"]),
                # The database says no directory; Crush keeps it in a folder of the project itself.
                cwd=str(path.parent.parent) if path.parent.name == ".crush" else "",
                title=str(row["title"] or ""),
                updated_at=seconds(row["updated_at"]) or 0.0,
                path=path,
                store_root=root,
                parent_id=str(row["parent_session_id"] or ""),
            )

    def steps(self, connection: sqlite3.Connection, info: SessionInfo, meta: Meta) -> Iterator[Step]:
        session = connection.execute("SELECT * FROM sessions WHERE id = ?", (info.id,)).fetchone()
        summary = str(column(session, "summary_message_id") or "") if session is not None else ""
        for row in connection.execute("SELECT * FROM messages WHERE session_id = ? ORDER BY created_at, rowid", (info.id,)):
            parts = list(_parts(row["parts"], str(row["id"]), seconds(row["created_at"]), meta))
            step = _step(str(row["role"]), parts, seconds(row["created_at"]))
            if step is None:
                continue
            step.message_id = str(row["id"])
            step.model = str(column(row, "model") or "")
            if step.message_id == summary and step.text:
                step = Step(Kind.COMPACT, [Text(step.text, 0, step.at)], 0, step.at)
            yield step

    def leaf(self, connection: sqlite3.Connection, info: SessionInfo) -> str:
        query = "SELECT count(*), max(updated_at), max(rowid) FROM messages WHERE session_id = ?"
        return ":".join(str(value) for value in connection.execute(query, (info.id,)).fetchone())


def _step(role: str, parts: list[Part], at: float | None) -> Step | None:
    if role == "user":
        return Step(Kind.USER, parts, 0, at) if parts else None
    return Step(Kind.AGENT, parts, 0, at) if role in ("assistant", "tool") else None


def _parts(text: object, message: str, at: float | None, meta: Meta) -> Iterator[Part]:
    try:
        value = decode(text if isinstance(text, bytes) else str(text).encode("utf-8", "surrogatepass"))
    except NotJson as error:
        meta.reject(0, f"message {message}: {error}")
        return
    for item in objects_in({"parts": value}, "parts"):
        yield from _part(text_of(item, "type"), object_of(item, "data"), at, meta)


def _part(kind: str, data: Record, at: float | None, meta: Meta) -> Iterator[Part]:
    if kind == "text":
        if text_of(data, "text"):
            yield Text(text_of(data, "text"), 0, at)
    elif kind == "reasoning":
        yield Thinking(text_of(data, "thinking"), 0, at)
    elif kind == "tool_call":
        yield Call(text_of(data, "id"), text_of(data, "name"), data.get("input"))
    elif kind == "tool_result":
        failed = data.get("is_error") is True
        yield ToolResult(text_of(data, "tool_call_id"), text_of(data, "content"), failed, 0, 0, at)
    elif kind == "image_url":
        yield ImageRef("image", text_of(data, "url"), 0, 0, at)
    elif kind == "binary":
        yield FileRef(text_of(data, "path") or "inline", text_of(data, "mime_type"), 0, at)
    elif kind == "shell_command":
        yield Call("", "bash", {"command": text_of(data, "command")})
        yield ToolResult("", text_of(data, "output"), False, 0, 0, at)
    elif kind != "finish":
        meta.strange(f"part {kind[:30]}")


STORE = CrushStore()
