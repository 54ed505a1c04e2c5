"""Antigravity's store: `~/.gemini/antigravity-cli/brain/<id>/.system_generated/logs/transcript.jsonl`.

One record a step: what the user put in, what the planner answered (with calls that have no ids), and one record per
tool run, whose type is the tool's. Results are paired with calls in order. An older form holds plain user and
assistant texts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

from agents_registry.sessions.filestore import FileStore, Meta, object_of, objects_in, text_of
from agents_registry.sessions.jsonl import Record
from agents_registry.sessions.neutral import Text, Thinking, ToolResult
from agents_registry.sessions.paths import home
from agents_registry.sessions.places import named
from agents_registry.sessions.steps import Call, Kind, Part, Step
from agents_registry.sessions.times import seconds

_REQUEST = re.compile(r"<USER_REQUEST>\n?(.*?)\n?</USER_REQUEST>", re.DOTALL)
_NO_TOOL = frozenset({"CONVERSATION_HISTORY", "SYSTEM_MESSAGE", "ERROR_MESSAGE", "EPHEMERAL_MESSAGE"})
_SUMMARY = "CHECKPOINT"


class AntigravityStore(FileStore):
    """See the module. `GEMINI_CLI_HOME` moves it with Gemini's."""

    agent: str = "antigravity"
    leaf_keys: ClassVar[tuple[str, ...]] = ()

    def roots(self, env: Mapping[str, str]) -> list[Path]:
        base = (named(env, "GEMINI_CLI_HOME") or home(env)) / ".gemini"
        return [base / "antigravity-cli", base / "antigravity"]

    def files(self, root: Path) -> Iterator[Path]:
        yield from (root / "brain").glob("*/.system_generated/logs/transcript.jsonl")
        yield from (root / "code_tracker").glob("*/*.jsonl")

    def steps(self, records: Iterable[tuple[int, Record]], meta: Meta) -> Iterator[Step]:
        for line, record in records:
            kind = text_of(record, "type")
            if "step_index" in record and kind:
                meta.ours += 1
                if (step := _step(kind, record, line)) is not None:
                    yield step
            elif kind in ("user", "assistant") and isinstance(record.get("content"), str) and len(record) <= 4:
                meta.ours += "timestamp" in record
                at = seconds(record.get("timestamp"))
                speaker = Kind.USER if kind == "user" else Kind.AGENT
                yield Step(speaker, [Text(record["content"], line, at)], line, at)
            else:
                meta.strange(str(kind)[:40])

    def beside(self, path: Path, root: Path | None, meta: Meta) -> None:
        meta.id = path.parents[2].name if path.parent.name == "logs" else path.stem


def _step(kind: str, record: Record, line: int) -> Step | None:
    at = seconds(record.get("created_at"))
    content = text_of(record, "content")
    if kind == "USER_INPUT":
        requests = _REQUEST.findall(content)
        return Step(Kind.USER, [Text("\n".join(requests) if requests else content, line, at)], line, at)
    if kind == "PLANNER_RESPONSE":
        parts: list[Part] = [Thinking(text_of(record, "thinking"), line, at)] if text_of(record, "thinking") else []
        parts += [Text(content, line, at)] if content else []
        parts += [
            Call("", text_of(call, "name"), {key: _plain(value) for key, value in object_of(call, "args").items()})
            for call in objects_in(record, "tool_calls")
        ]
        return Step(Kind.AGENT, parts, line, at)
    if kind == _SUMMARY or kind in _NO_TOOL:
        # A checkpoint's text says only that one was made; what it replaced stays readable in the file.
        return None
    failed = text_of(record, "status") in ("ERROR", "CANCELED", "CANCELLED")
    return Step(Kind.AGENT, [ToolResult("", content, failed, 0, line, at)], line, at)


def _plain(value: Any) -> Any:
    """Arguments are stored as JSON inside a text."""
    if isinstance(value, str) and value[:1] in ('"', "{", "["):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


STORE = AntigravityStore()
