"""The demo agent's sessions on disk: `<root>/<id>.jsonl`, one record a line.

First `{"type": "session", "id", "cwd", "created_at"}`, then `{"type", "text", "at"}` of type user, assistant, thinking or
tool, the last with `{"id", "name", "input", "output", "error"}` (times in Unix seconds). A torn or foreign line costs that
line only. The reader in `agents_registry.sessions.demo` knows the same format; this one is apart from it because an
agent's start is waited for, and that module loads much more.
"""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

KINDS = ("user", "assistant", "thinking", "tool")


@dataclass(slots=True)
class DemoSession:
    """One session in memory: `records` are (type, text) in order."""

    id: str
    cwd: str
    path: Path
    records: list[tuple[str, str]] = field(default_factory=list)

    def said(self) -> list[str]:
        """The user's texts, oldest first."""
        return [text for kind, text in self.records if kind == "user"]

    def add(self, kind: str, text: str, **more: object) -> None:
        """Append one record to the file and to memory; `more` are the further keys of a tool record."""
        self.records.append((kind, text))
        _append(self.path, {"type": kind, "text": text, "at": time.time(), **more})


class DemoStore:
    """The sessions below one root."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> DemoStore:
        """$VIBEAROUND_DEMO_HOME, else `demo` in the data directory (agents.toml says the same)."""
        named = environ.get("VIBEAROUND_DEMO_HOME", "")
        if named:
            return cls(Path(named))
        data = environ.get("VIBEAROUND_DATA_DIR", "")
        return cls(Path(data or "~/.vibearound").expanduser().absolute() / "demo")

    def new(self, cwd: str, session_id: str = "") -> DemoSession:
        """A fresh session; its file is written at once, so that the id can be used anywhere."""
        session_id = session_id or str(uuid.uuid4())
        self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        session = DemoSession(session_id, cwd, self._path(session_id))
        header = {"type": "session", "id": session_id, "cwd": cwd, "created_at": time.time()}
        with os.fdopen(os.open(session.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(_line(header))
        return session

    def open(self, session_id: str) -> DemoSession | None:
        """A stored session, or None when there is none of this id."""
        path = self._path(session_id)
        try:
            raw = path.read_bytes()
        except (OSError, ValueError):
            return None
        session = DemoSession(session_id, "", path)
        for line in raw.split(b"\n"):
            try:
                record = json.loads(line)
            except ValueError:
                continue
            if not isinstance(record, dict):
                continue
            if record.get("type") == "session":
                session.cwd = str(record.get("cwd", ""))
            elif record.get("type") in KINDS:
                session.records.append((record["type"], str(record.get("text", ""))))
        if raw and not raw.endswith(b"\n"):  # a torn tail must not swallow the next record
            with path.open("ab") as file:
                file.write(b"\n")
        return session

    def fork(self, session: DemoSession, cwd: str) -> DemoSession:
        """A new session with the same records."""
        fresh = self.new(cwd)
        fresh.records = list(session.records)
        with fresh.path.open("ab") as file:
            for line in session.path.read_bytes().split(b"\n")[1:]:
                if line.strip():
                    file.write(line + b"\n")
        return fresh

    def list(self, cwd: str | None) -> list[tuple[DemoSession, float]]:
        """Sessions, newest first, with the time of their last change; `cwd` filters."""
        found = []
        for path in self.root.glob("*.jsonl") if self.root.is_dir() else []:
            session = self.open(path.stem)
            if session is not None and (cwd is None or os.path.realpath(session.cwd) == os.path.realpath(cwd)):
                found.append((session, path.stat().st_mtime))
        return sorted(found, key=lambda pair: pair[1], reverse=True)

    def _path(self, session_id: str) -> Path:
        if not session_id or "/" in session_id or session_id.startswith("."):
            raise ValueError(f"not a session id: {session_id!r}")
        return self.root / f"{session_id}.jsonl"


def _line(record: dict[str, object]) -> bytes:
    return json.dumps(record, ensure_ascii=False).encode("utf-8", "replace") + b"\n"


def _append(path: Path, record: dict[str, object]) -> None:
    with path.open("ab") as file:
        file.write(_line(record))
