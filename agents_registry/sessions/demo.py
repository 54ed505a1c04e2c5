"""The store of our own demo agent: `<root>/<session id>.jsonl`.

Root = $VIBEAROUND_DEMO_HOME, else `demo` below $VIBEAROUND_DATA_DIR (~/.vibearound without one). The
first line is {"type": "session", "id", "cwd", "created_at"}; each other line {"type", "text", "at"} with type user,
assistant or thinking, or "tool" with {"id", "name", "input", "output", "error"}. Times are seconds since the epoch.
`DemoSessionFile` is how the demo agent itself writes one.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agents_registry.errors import NotFoundError, RefusedError
from agents_registry.sessions import jsonl
from agents_registry.sessions.paths import home, newest, same_dir
from agents_registry.sessions.port import Inspection, SessionInfo, Tail
from agents_registry.sessions.times import seconds

if TYPE_CHECKING:
    from agents_registry.sessions.neutral import Conversation

PREFIX = 4
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_KINDS = ("user", "assistant", "thinking", "tool")


def root_of(env: Mapping[str, str]) -> Path:
    """Where the demo agent keeps its sessions."""
    if env.get("VIBEAROUND_DEMO_HOME"):
        return Path(env["VIBEAROUND_DEMO_HOME"])
    data = env.get("VIBEAROUND_DATA_DIR")
    return (Path(data) if data else home(env) / ".vibearound") / "demo"


class DemoSessionFile:
    """One session of the demo agent, for writing. Records are appended whole, each with its own newline."""

    def __init__(self, path: Path, session_id: str, cwd: str) -> None:
        self.path = path
        self.id = session_id
        self.cwd = cwd

    @classmethod
    def create(cls, root: Path, session_id: str, cwd: str, *, at: float) -> DemoSessionFile:
        """A new session; raises `RefusedError` when the id is taken or cannot be a file name."""
        if not _ID.fullmatch(session_id):
            raise RefusedError(f"{session_id!r} cannot be the id of a session.", hint="Use letters, digits, dots and dashes.")
        root.mkdir(parents=True, exist_ok=True, mode=0o700)
        path = root / f"{session_id}.jsonl"
        line = json.dumps({"type": "session", "id": session_id, "cwd": cwd, "created_at": at}, ensure_ascii=False)
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            raise RefusedError(f"There is already a session {session_id}.", hint="Load it, or choose another id.") from None
        with open(descriptor, "wb") as file:
            file.write(_bytes(line))
        return cls(path, session_id, cwd)

    @classmethod
    def load(cls, root: Path, session_id: str) -> DemoSessionFile:
        """An existing session; raises `NotFoundError` when there is none of that id."""
        path = root / f"{session_id}.jsonl"
        if not _ID.fullmatch(session_id) or not path.is_file():
            raise NotFoundError(f"The demo agent has no session {session_id!r}.", hint="va sessions list --agent demo shows them.")
        first = next((record for _, record in jsonl.head(path)), {})
        return cls(path, session_id, str(first.get("cwd", "")))

    def append(self, kind: str, text: str, *, at: float, **more: Any) -> None:
        """Adds a record of kind user, assistant, thinking or tool; `more` are the further keys of a tool record.

        A last line that a crash cut off gets its newline first, so that it costs nothing but itself.
        """
        line = json.dumps({"type": kind, "text": text, "at": at, **more}, ensure_ascii=False)
        with open(self.path, "r+b") as file:
            end = file.seek(0, os.SEEK_END)
            torn = False
            if end:
                file.seek(end - 1)
                torn = file.read(1) != b"\n"
                file.seek(0, os.SEEK_END)
            file.write((b"\n" if torn else b"") + _bytes(line))
            file.flush()
            os.fsync(file.fileno())

    def records(self) -> list[dict[str, Any]]:
        """All records after the first line, damaged ones left out."""
        return [record for _, record in jsonl.JsonLines(self.path) if record.get("type") in _KINDS]


class DemoStore:
    """Reads the demo agent's sessions."""

    agent = "demo"

    def roots(self, env: Mapping[str, str]) -> Sequence[Path]:
        return [root_of(env)]

    def list(self, root: Path, *, cwd: str | None = None, limit: int = 20, subagents: bool = False) -> Iterator[SessionInfo]:
        del subagents  # the demo agent has none
        shown = 0
        for path, stat in newest(root.glob("*.jsonl")):
            if shown >= limit:
                return
            info = self._look(path, stat, root)
            if info is None or (cwd is not None and not same_dir(info.cwd, cwd)):
                continue
            shown += 1
            yield info

    def resolve(self, root: Path, wanted: str, *, cwd: str | None = None) -> Sequence[SessionInfo]:
        wanted = wanted.strip()
        files = newest(root.glob("*.jsonl"))
        chosen = [pair for pair in files if pair[0].stem == wanted]
        if not chosen and len(wanted) >= PREFIX:
            chosen = [pair for pair in files if pair[0].stem.startswith(wanted)]
        found = [info for path, stat in chosen if (info := self._look(path, stat, root))]
        here = [info for info in found if cwd is not None and same_dir(info.cwd, cwd)]
        if len(found) > 1 and here:
            return here
        return found or [info for info in self.list(root, cwd=cwd, limit=200) if wanted and info.title == wanted]

    def read(self, info: SessionInfo) -> Conversation:
        from agents_registry.sessions.neutral import Builder

        lines = jsonl.JsonLines(info.path)
        made = Builder(self.agent, info.id)
        made.cwd = info.cwd
        made.model = "demo"
        for number, record in lines:
            kind, text, at = record.get("type"), str(record.get("text", "")), seconds(record.get("at"))
            if kind == "user":
                made.user(text, line=number, at=at)
            elif kind == "assistant":
                made.text(text, line=number, at=at)
            elif kind == "thinking":
                made.thinking(text, line=number, at=at)
            elif kind == "tool":
                call = str(record.get("id") or f"line {number}")
                made.call(call, str(record.get("name", "")), record.get("input"), line=number, at=at)
                if "output" in record:
                    made.result(call, str(record["output"]), is_error=bool(record.get("error")), line=number, at=at)
            elif kind != "session":
                made.conversation.unknown[str(kind)] = made.conversation.unknown.get(str(kind), 0) + 1
        conversation = made.done()
        conversation.title, conversation.path, conversation.store_root = info.title, info.path, info.store_root
        conversation.skipped, conversation.skipped_count = tuple(lines.skipped), lines.malformed + lines.non_object
        return conversation

    def inspect(self, path: Path) -> Inspection:
        import hashlib

        lines = jsonl.JsonLines(path)
        first: dict[str, Any] = {}
        users: list[str] = []
        texts = calls = results = 0
        for _, record in lines:
            kind = record.get("type")
            if kind == "session" and not first:
                first = record
            users += [str(record.get("text", ""))] if kind == "user" else []
            texts += kind == "assistant" and bool(str(record.get("text", "")).strip())
            calls += kind == "tool"
            results += kind == "tool" and "output" in record
        if lines.lines and not _is_header(first):
            raise NotFoundError(f"{path} is no session of the demo agent: its first line does not say so.")
        return Inspection(
            agent=self.agent,
            id=str(first.get("id", "")),
            cwd=str(first.get("cwd", "")),
            user_turns=len(users),
            assistant_texts=texts,
            assistant_messages=texts,
            tool_calls=calls,
            tool_results=results,
            malformed=lines.malformed,
            first_user_sha256=hashlib.sha256(users[0].encode("utf-8", "surrogatepass")).hexdigest() if users else "",
            skipped=tuple(lines.skipped),
        )

    def recognises(self, path: Path) -> bool:
        found = jsonl.head(path)
        return bool(found) and _is_header(found[0][1])

    def tail(self, info: SessionInfo) -> Tail:
        stat = info.path.stat()
        last = next(jsonl.backwards(info.path), {})
        return Tail(f"{last.get('type', '')} {last.get('at', '')}", stat.st_size, stat.st_mtime_ns)

    def describe(self, path: Path, root: Path) -> SessionInfo | None:
        """What a listing shows of one file; None when it is no session or cannot be read."""
        try:
            return self._look(path, path.stat(), root)
        except OSError:
            return None  # vanished, or not ours to read

    def files(self, root: Path, cwd: str | None = None) -> Sequence[Path]:
        """All session files."""
        del cwd  # nothing in a name tells
        return sorted(root.glob("*.jsonl"))

    def _look(self, path: Path, stat: os.stat_result, root: Path) -> SessionInfo | None:
        try:
            head = [record for _, record in jsonl.head(path)]
        except OSError:
            return None  # removed just now, or not ours to read
        if not head or not _is_header(head[0]):
            return None
        prompt = next((str(record.get("text", "")) for record in head if record.get("type") == "user"), "")
        title = " ".join(prompt.split())[:120]
        cwd = str(head[0].get("cwd", ""))
        return SessionInfo(
            self.agent, path.stem, cwd, title, stat.st_mtime, path, root, first_prompt=prompt, cwds=(cwd,) if cwd else ()
        )


def _is_header(record: Mapping[str, Any]) -> bool:
    # Other agents open with a "session" line too (Pi: with a version and an ISO time).
    return record.get("type") == "session" and "version" not in record and isinstance(record.get("created_at"), (int, float))


def _bytes(line: str) -> bytes:
    return line.encode("utf-8", "replace") + b"\n"
