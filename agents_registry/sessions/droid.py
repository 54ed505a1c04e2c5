"""Factory Droid's store: `~/.factory/sessions/<project>/<id>.jsonl`, and the stream form it also prints.

The store's records hold messages with Anthropic's blocks; those of the stream are flat (message, tool_call,
tool_result, completion), with snake or camel case, ISO times or milliseconds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

from agents_registry.sessions.anthropic_blocks import blocks
from agents_registry.sessions.filestore import FileStore, Meta, object_of, text_of
from agents_registry.sessions.jsonl import Record
from agents_registry.sessions.neutral import Text, ToolResult, flat_text
from agents_registry.sessions.paths import home
from agents_registry.sessions.places import named
from agents_registry.sessions.steps import Call, Kind, Part, Step
from agents_registry.sessions.times import seconds

_REMINDER = re.compile(r"<system-reminder>.*?</system-reminder>\s*", re.DOTALL)
_STREAM = frozenset({"system", "tool_call", "tool_result", "completion", "error"})
_QUIET = frozenset({"todo_state", "compaction_state"})


class DroidStore(FileStore):
    """See the module. `FACTORY_HOME` takes the place of ~/.factory."""

    agent: str = "droid"
    leaf_keys: ClassVar[tuple[str, ...]] = ("id",)

    def roots(self, env: Mapping[str, str]) -> list[Path]:
        return [named(env, "FACTORY_HOME") or home(env) / ".factory"]

    def files(self, root: Path) -> Iterator[Path]:
        yield from (root / "sessions").glob("*.jsonl")
        yield from (root / "sessions").glob("*/*.jsonl")
        yield from (root / "projects").glob("*/*.jsonl")

    def steps(self, records: Iterable[tuple[int, Record]], meta: Meta) -> Iterator[Step]:
        for line, record in records:
            kind = text_of(record, "type")
            at = seconds(record.get("timestamp"))
            message = record.get("message")
            session = text_of(record, "session_id") or text_of(record, "sessionId")
            if kind == "session_start" and isinstance(record.get("id"), str):
                meta.ours += 1
                meta.id, meta.cwd = record["id"], text_of(record, "cwd")
                meta.title = text_of(record, "sessionTitle") or text_of(record, "title")
            elif kind == "message" and isinstance(message, dict):
                if (step := _stored(message, line, at)) is not None:
                    yield step
            elif session and (kind in _STREAM or (kind == "message" and "role" in record)):
                meta.ours += 1
                meta.id = meta.id or session
                meta.cwd = meta.cwd or text_of(record, "cwd")
                meta.model = text_of(record, "model") or meta.model
                if (step := _streamed(str(kind), record, line, at)) is not None:
                    yield step
            elif kind not in _QUIET:
                meta.strange(str(kind)[:40])

    def beside(self, path: Path, root: Path | None, meta: Meta) -> None:
        meta.id = meta.id or path.stem


def _stored(message: Record, line: int, at: float | None) -> Step | None:
    parts = blocks(message.get("content"), line, at)
    if text_of(message, "role") == "user":
        step = Step(Kind.USER, parts, line, at)
        if step.only_results:
            step.kind = Kind.AGENT
        elif not parts:
            return None
        else:
            _without_reminders(step)
        return step
    return Step(Kind.AGENT, parts, line, at) if text_of(message, "role") == "assistant" else None


def _without_reminders(step: Step) -> None:
    """Carry the human's words without the reminders put before them. A message that opens with one is not counted."""
    if not step.text.startswith("<system-reminder>"):
        return
    step.counted = False
    rest: list[Part] = []
    for part in step.parts:
        if not isinstance(part, Text):
            rest.append(part)
        elif words := _REMINDER.sub("", part.text).strip():
            rest.append(Text(words, part.line, part.at))
    step.parts = rest
    if not rest:
        step.kind = Kind.NOTE


def _streamed(kind: str, record: Record, line: int, at: float | None) -> Step | None:
    if kind == "message":
        text = text_of(record, "text")
        if text_of(record, "role") == "user":
            typed = _REMINDER.sub("", text).strip()
            stored = None if typed == text else text
            return Step(Kind.USER, [Text(typed, line, at)], line, at, stored=stored) if typed else None
        return Step(Kind.AGENT, [Text(text, line, at)], line, at)
    if kind == "tool_call":
        name = text_of(record, "toolName") or text_of(record, "tool_name")
        return Step(Kind.AGENT, [Call(_call_id(record), name, record.get("parameters"))], line, at)
    if kind == "tool_result":
        value = record.get("value")
        failed = record.get("isError") is True or record.get("is_error") is True
        code = object_of(record, "value").get("exitCode")
        failed = failed or (isinstance(code, int) and code != 0)
        return Step(Kind.AGENT, [ToolResult(_call_id(record), _value(value), failed, 0, line, at)], line, at)
    if kind == "completion" and text_of(record, "finalText"):
        # It repeats or ends the answer; a reader that only counts what was said as messages passes over it.
        return Step(Kind.AGENT, [Text(text_of(record, "finalText"), line, at)], line, at, counted=False)
    return None


def _call_id(record: Record) -> str:
    return text_of(record, "toolCallId") or text_of(record, "tool_call_id") or text_of(record, "id")


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return "\n".join(part for key in ("stdout", "stderr") if (part := text_of(value, key))) or flat_text(value)
    return flat_text(value)


STORE = DroidStore()
