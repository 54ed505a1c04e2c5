"""Pi's store: `~/.pi/agent/sessions/--<project>--/<time>_<session id>.jsonl`, a tree of entries in one file.

Version 1 is linear and has no ids, 2 added id and parentId, 3 renamed a role (badlogic/pi-mono, docs/session.md). The
live conversation is the path from the last entry to the root; of a compaction, what follows `firstKeptEntryId` stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from agents_registry.sessions.filestore import FileStore, Meta, object_of, objects_in, text_of
from agents_registry.sessions.jsonl import Record, head
from agents_registry.sessions.neutral import ImageRef, Text, Thinking, ToolResult, flat_text
from agents_registry.sessions.paths import home
from agents_registry.sessions.places import named
from agents_registry.sessions.steps import Call, Kind, Part, Step, keep_after_summary, live_path
from agents_registry.sessions.times import seconds

_QUIET = frozenset({"model_change", "thinking_level_change", "custom", "custom_message", "label", "session_info"})
_STREAM = frozenset({"agent_start", "turn_start", "message_start", "message_update"})
_ENTRIES = _QUIET | {"message", "compaction", "branch_summary"}


class PiStore(FileStore):
    """See the module. `PI_CODING_AGENT_SESSION_DIR` names the sessions' directory, `PI_CODING_AGENT_DIR` its parent."""

    agent: str = "pi"

    def roots(self, env: Mapping[str, str]) -> list[Path]:
        root = named(env, "PI_CODING_AGENT_DIR") or home(env) / ".pi" / "agent"
        own = named(env, "PI_CODING_AGENT_SESSION_DIR")
        return [root] if own is None or own == root / "sessions" else [own]

    def files(self, root: Path) -> Iterator[Path]:
        sessions = root / "sessions"
        base = sessions if sessions.is_dir() else root
        yield from base.glob("*.jsonl")
        yield from base.glob("*/*.jsonl")

    def steps(self, records: Iterable[tuple[int, Record]], meta: Meta) -> Iterator[Step]:
        previous, index, linear = "", -1, False
        headed = False
        for line, record in records:
            index += 1
            kind = text_of(record, "type")
            if kind == "session":
                if not headed and isinstance(record.get("id"), str) and isinstance(record.get("cwd"), str):
                    headed = True
                    version = record.get("version")
                    linear = not isinstance(version, int) or version < 2
                    self._header(record, meta)
                    step = Step(Kind.NOTE, [], line, meta.created_at, cwd=meta.cwd, model=meta.model)
                    step.id = "#0" if linear else meta.id
                    previous = step.id
                    yield step
                continue
            if kind in _STREAM:  # what `pi --mode json` prints, no file of the store
                meta.ours = 0
                return
            if kind not in _ENTRIES:
                meta.strange(str(kind)[:40])
                if kind != "compact":
                    continue
            meta.ours += headed
            step = _entry(line, record)
            if linear:
                step.id, step.parent = f"#{index}", previous
                if isinstance(kept := record.get("firstKeptEntryIndex"), int):
                    step.kept_from = f"#{kept}"
            previous = step.id or previous
            self.late(record, meta)
            yield step

    def _header(self, record: Record, meta: Meta) -> None:
        meta.ours += 1
        meta.id, meta.cwd = record["id"], record["cwd"]
        meta.created_at = seconds(record.get("timestamp"))
        meta.model = text_of(record, "modelId")

    def late(self, record: Record, meta: Meta) -> None:
        if text_of(record, "type") == "session_info":
            meta.title = text_of(record, "name") or meta.title

    def live(self, steps: Iterable[Step]) -> Iterable[Step]:
        return keep_after_summary(live_path(list(steps)))

    def recognises(self, path: Path) -> bool:
        return super().recognises(path) and not from_openclaw(path)


def _entry(line: int, record: Record) -> Step:
    kind = text_of(record, "type")
    message = object_of(record, "message")
    at = seconds(record.get("timestamp"))
    parent = record.get("parentId")
    step = Step(Kind.NOTE, [], line, at, id=text_of(record, "id"), parent=parent if isinstance(parent, str) else None)
    if kind == "message":
        _message(step, message, line, at)
    elif kind == "compaction":
        step.kind = Kind.COMPACT
        step.parts = [Text(text_of(record, "summary"), line, at)]
        step.kept_from = text_of(record, "firstKeptEntryId")
    elif kind == "branch_summary" and text_of(record, "summary"):
        step.kind = Kind.AGENT
        step.counted = False
        step.parts = [Text(f"[Summary of a branch that was left] {text_of(record, 'summary')}", line, at)]
    elif kind == "model_change":
        step.model = text_of(record, "modelId")
    return step


def _message(step: Step, message: Record, line: int, at: float | None) -> None:
    role = text_of(message, "role")
    step.model = text_of(message, "model")
    if role == "user":
        step.parts = _parts(message.get("content"), line, at)
        step.kind = Kind.USER if step.parts else Kind.NOTE
    elif role == "assistant":
        step.kind = Kind.AGENT
        step.parts = _parts(message.get("content"), line, at)
    elif role in ("toolResult", "tool"):
        step.kind = Kind.AGENT
        text = flat_text(message.get("content"))
        step.parts = [ToolResult(text_of(message, "toolCallId"), text, message.get("isError") is True, 0, line, at)]
    elif role == "bashExecution":
        step.kind = Kind.COMMAND
        name = f"user-shell-{step.id or line}"
        code = message.get("exitCode")
        step.carried = message.get("excludeFromContext") is not True
        step.parts = [
            Call(name, "bash", {"command": text_of(message, "command")}),
            ToolResult(name, text_of(message, "output"), isinstance(code, int) and code != 0, 0, line, at),
        ]


def _parts(content: Any, line: int, at: float | None) -> list[Part]:
    if isinstance(content, str):
        return [Text(content, line, at)] if content else []
    parts: list[Part] = []
    for block in objects_in({"content": content}, "content"):
        kind = text_of(block, "type")
        if kind == "text":
            parts.append(Text(text_of(block, "text"), line, at))
        elif kind == "thinking":
            parts.append(Thinking(text_of(block, "thinking"), line, at))
        elif kind == "toolCall":
            parts.append(Call(text_of(block, "id"), text_of(block, "name"), block.get("arguments")))
        elif kind == "image":
            size = len(text_of(block, "data")) * 3 // 4
            parts.append(ImageRef(text_of(block, "mimeType"), "inline", size, line, at))
    return parts


def from_openclaw(path: Path) -> bool:
    """Whether a file of this form is OpenClaw's: by its place, or by a name that one of its first records carries.

    The two agents write the same form; the words looked at are the agent's own (ids, providers, kinds), never content.
    """
    if ".openclaw" in path.parts:
        return True
    names = ("id", "provider", "modelId", "customType", "agent")
    return any(
        isinstance(value := record.get(name), str) and value.startswith("openclaw")
        for _, record in head(path)
        for name in names
    )


STORE = PiStore()
