"""Gemini CLI's store: `~/.gemini/tmp/<project>/chats/session-*.jsonl`, and the JSON documents of older versions.

A JSONL file is replayed as the CLI itself does it (google-gemini/gemini-cli, chatRecordingService.ts): a header, then
messages; the same id again replaces a message in its place; `$rewindTo` drops a message and all after it (all of them
when the id is unknown); `$set.messages` replaces everything, other `$set` fields are about the session. The working
directory is not in the file: it stands in `.project_root` beside `chats`, in `projects.json`, or is proven by its hash.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from agents_registry.sessions.filestore import (
    FileStore,
    Meta,
    list_of,
    objects_in,
    raw_head,
    sidecar,
    text_of,
)
from agents_registry.sessions.gemini_content import parts_of
from agents_registry.sessions.jsonl import Record
from agents_registry.sessions.neutral import Text, Thinking, ToolResult, flat_text
from agents_registry.sessions.paths import home
from agents_registry.sessions.places import named
from agents_registry.sessions.steps import Call, Kind, Part, Step
from agents_registry.sessions.times import seconds

_TYPES = frozenset({"user", "gemini", "info", "error", "warning"})
_CONTEXT = ("<session_context>", "<hook_context>")
_ENDED = frozenset({"success", "error", "cancelled"})
_DIRECTORY = re.compile(r"(?:working in the directory:|Workspace Directories:\**\s*\n\s*-)\s*(\S[^\n]*)")


class GeminiStore(FileStore):
    """See the module. `GEMINI_CLI_HOME` takes the place of the user's home."""

    agent: str = "gemini"

    def roots(self, env: Mapping[str, str]) -> list[Path]:
        return [(named(env, "GEMINI_CLI_HOME") or home(env)) / ".gemini"]

    def files(self, root: Path) -> Iterator[Path]:
        for pattern in ("session-*.json", "session-*.jsonl", "*/*.jsonl", "*/*.json"):
            yield from (root / "tmp").glob(f"*/chats/{pattern}")

    def is_subagent(self, path: Path) -> bool:
        return path.parent.name != "chats"

    def name_part(self, wanted: str) -> str:
        return wanted[:8]

    def is_document(self, path: Path) -> bool:
        return path.suffix == ".json"

    def steps(self, records: Iterable[tuple[int, Record]], meta: Meta) -> Iterator[Step]:
        headers = 0
        messages: dict[str, tuple[int, Record]] = {}
        for line, record in records:
            if isinstance(target := record.get("$rewindTo"), str):
                keep = list(messages).index(target) if target in messages else 0
                messages = dict(list(messages.items())[:keep])
            elif isinstance(change := record.get("$set"), dict):
                self._about(change, meta)
                if isinstance(change.get("messages"), list):
                    messages = _by_id(line, change)
            elif text_of(record, "type") in _TYPES and isinstance(record.get("id"), str):
                messages[record["id"]] = (line, record)
            elif isinstance(record.get("sessionId"), str) and ("projectHash" in record or "startTime" in record):
                headers += 1
                self._about(record, meta)
                if isinstance(record.get("messages"), list):
                    messages.update(_by_id(line, record))
            else:
                meta.strange(text_of(record, "type")[:40])
        if headers or (len(messages) > 1 and any(message["type"] == "gemini" for _, message in messages.values())):
            meta.ours += headers + len(messages)
        for line, message in messages.values():
            if (step := _step(line, message, meta)) is not None:
                yield step

    def late(self, record: Record, meta: Meta) -> None:
        change = record.get("$set")
        if isinstance(change, dict):
            self._about(change, meta)

    def _about(self, record: Record, meta: Meta) -> None:
        meta.id = meta.id or text_of(record, "sessionId")
        meta.project = meta.project or text_of(record, "projectHash")
        meta.title = text_of(record, "summary") or meta.title
        if text_of(record, "kind") == "subagent":
            meta.parent_id = meta.parent_id or "?"
        start, updated = seconds(record.get("startTime")), seconds(record.get("lastUpdated"))
        meta.created_at = meta.created_at if meta.created_at is not None else start
        meta.updated_at = updated if updated is not None else meta.updated_at
        meta.hints.extend(item for item in list_of(record, "directories") if isinstance(item, str))

    def beside(self, path: Path, root: Path | None, meta: Meta) -> None:
        nested = self.is_subagent(path)
        if nested:
            meta.parent_id = path.parent.name
        project = path.parents[2 if nested else 1]
        try:
            meta.cwd = (project / ".project_root").read_text("utf-8", "replace").strip()
        except OSError:
            pass  # an older installation, or a folder copied from elsewhere
        if meta.cwd or root is None:
            return
        registry = sidecar(root / "projects.json")
        known = registry.get("projects", registry)
        known = known if isinstance(known, dict) else {}
        for directory, slug in known.items():
            if slug == project.name or _hash(directory) == meta.project:
                meta.cwd = directory
                return
        self.place(meta, None)

    def place(self, meta: Meta, cwd: str | None) -> None:
        if not meta.cwd and meta.project:
            candidates = [*meta.hints, *([cwd] if cwd else [])]
            meta.cwd = next((hint for hint in candidates if _hash(hint) == meta.project), "")

    def torn(self, path: Path) -> bool:
        start = raw_head(path)
        return b'"projectHash"' in start and b'"sessionId"' in start


def _by_id(line: int, holder: Record) -> dict[str, tuple[int, Record]]:
    found: dict[str, tuple[int, Record]] = {}
    for number, message in enumerate(objects_in(holder, "messages")):
        if text_of(message, "type") in _TYPES:
            found[str(message.get("id") or f"#{number}")] = (line, message)
    return found


def _step(line: int, message: Record, meta: Meta) -> Step | None:
    at = seconds(message.get("timestamp"))
    kind = text_of(message, "type")
    parts = parts_of(message.get("content"), line, at)
    if kind == "gemini":
        return Step(
            Kind.AGENT, _answer(message, parts, line, at), line, at, model=text_of(message, "model"), id=text_of(message, "id")
        )
    if kind != "user":
        return None
    step = Step(Kind.USER, parts, line, at)
    text = step.text.strip()
    if step.only_results:
        step.kind = Kind.AGENT
    elif text.startswith(_CONTEXT):
        step.kind = Kind.NOTE
        meta.hints.extend(found.strip() for found in _DIRECTORY.findall(text))
    elif text.startswith(("/", "?")):
        step.kind = Kind.COMMAND
    elif not text and not any(not isinstance(part, Text) for part in parts):
        return None
    else:
        typed = flat_text(message.get("displayContent"))
        if typed.strip() and typed != step.text:
            step.stored = step.text
            step.parts = [Text(typed, line, at), *(part for part in parts if not isinstance(part, Text))]
    return step


def _answer(message: Record, parts: list[Part], line: int, at: float | None) -> list[Part]:
    """Thoughts, words, calls and results of one answer; what stands in the content is not taken twice."""
    made: list[Part] = []
    if not any(isinstance(part, Thinking) for part in parts):
        for thought in objects_in(message, "thoughts"):
            text = "\n".join(filter(None, (text_of(thought, "subject"), text_of(thought, "description"))))
            made.append(Thinking(text, line, at))
    made.extend(parts)
    seen = {part.id for part in parts if isinstance(part, Call) and part.id}
    for call in objects_in(message, "toolCalls"):
        name = text_of(call, "id")
        if not name or name not in seen:
            made.append(Call(name, text_of(call, "name"), call.get("args")))
        status = text_of(call, "status")
        given = [part for part in parts_of(call.get("result"), line, at) if isinstance(part, (Text, ToolResult))]
        if not given and status not in _ENDED:
            continue
        text = "\n".join(part.text for part in given) or flat_text(call.get("resultDisplay"))
        failed = status in ("error", "cancelled") or any(isinstance(part, ToolResult) and part.is_error for part in given)
        made.append(ToolResult(name, text, failed, 0, line, seconds(call.get("timestamp")) or at))
    return made


def _hash(directory: str) -> str:
    return hashlib.sha256(directory.encode("utf-8", "surrogatepass")).hexdigest()


STORE = GeminiStore()
