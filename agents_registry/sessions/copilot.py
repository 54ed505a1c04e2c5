"""GitHub Copilot CLI's store: `~/.copilot/session-state/<id>/events.jsonl`, a flat `<id>.jsonl` before 1.0.

A call is announced in assistant.message (toolRequests) and again when it runs; whichever comes first counts. Events of
sub-agents stand between those of the session and name the call that started them (parentToolCallId). A rewind names
the events it takes away (github/copilot-sdk, session-events.ts).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import ClassVar

from agents_registry.sessions.filestore import FileStore, Meta, list_of, object_of, objects_in, raw_head, text_of
from agents_registry.sessions.jsonl import Record
from agents_registry.sessions.neutral import FileRef, Text, Thinking, ToolResult, flat_text
from agents_registry.sessions.paths import home
from agents_registry.sessions.places import named
from agents_registry.sessions.steps import Call, Kind, Part, Step
from agents_registry.sessions.times import seconds

_FAMILIES = ("session.", "assistant.", "user.", "tool.", "hook.", "subagent.", "system.", "skill.", "permission.")
_KNOWN = frozenset({"abort", "pending_messages.modified"})
_WORKSPACE = re.compile(r"^(name|summary|cwd):[ \t]*(\S.*?)[ \t]*$", re.MULTILINE)


class CopilotStore(FileStore):
    """See the module. `COPILOT_HOME` takes the place of ~/.copilot."""

    agent: str = "copilot"
    leaf_keys: ClassVar[tuple[str, ...]] = ("id",)

    def roots(self, env: Mapping[str, str]) -> list[Path]:
        return [named(env, "COPILOT_HOME") or home(env) / ".copilot"]

    def files(self, root: Path) -> Iterator[Path]:
        for folder in ("session-state", "history-session-state"):
            yield from (root / folder).glob("*/events.jsonl")
            yield from (root / folder).glob("*.jsonl")

    def steps(self, records: Iterable[tuple[int, Record]], meta: Meta) -> Iterator[Step]:
        for line, record in records:
            kind = text_of(record, "type")
            data = record.get("data")
            if not isinstance(data, dict):
                meta.strange(str(kind)[:40])
                continue
            if not kind.startswith(_FAMILIES) and kind not in _KNOWN:
                meta.strange(kind[:40])
                continue
            meta.ours += 1
            self._about(kind, data, meta)
            step = _step(kind, data, line, seconds(record.get("timestamp")), meta)
            if step is not None:
                step.id = text_of(record, "id")
                if data.get("parentToolCallId"):
                    step.carried = False  # a sub-agent's
                yield step

    def _about(self, kind: str, data: Record, meta: Meta) -> None:
        if kind in ("session.start", "session.resume"):
            meta.id = meta.id or text_of(data, "sessionId")
            context = object_of(data, "context")
            meta.cwd = meta.cwd or text_of(context, "cwd")
            meta.branch = text_of(context, "branch") or meta.branch
            meta.model = text_of(data, "selectedModel") or meta.model
            if meta.created_at is None:
                meta.created_at = seconds(data.get("startTime"))
        elif kind == "session.model_change":
            meta.model = text_of(data, "newModel") or meta.model
        elif kind == "session.title_changed":
            meta.title = text_of(data, "title") or meta.title

    def late(self, record: Record, meta: Meta) -> None:
        if text_of(record, "type") == "session.title_changed":
            self._about("session.title_changed", object_of(record, "data"), meta)

    def live(self, steps: Iterable[Step]) -> Iterable[Step]:
        kept: list[Step] = []
        for step in steps:
            if step.message_id != "rewind":
                kept.append(step)
                continue
            gone = {part.text for part in step.parts if isinstance(part, Text)}
            if step.stored is not None:
                place = next((index for index, before in enumerate(kept) if before.id == step.stored), len(kept))
                del kept[place:]
            kept = [before for before in kept if before.id not in gone]
        return kept

    def beside(self, path: Path, root: Path | None, meta: Meta) -> None:
        meta.id = meta.id or (path.parent.name if path.name == "events.jsonl" else path.stem)
        if path.name != "events.jsonl":
            return
        try:
            about = path.with_name("workspace.yaml").read_text("utf-8", "replace")[:65536]
        except OSError:
            return
        found = {key: value.strip("'\"") for key, value in _WORKSPACE.findall(about)}
        title = found.get("name") or found.get("summary") or ""
        meta.title = meta.title or (title if title not in ("|", ">", "|-", ">-", "null") else "")
        meta.cwd = meta.cwd or found.get("cwd", "")

    def torn(self, path: Path) -> bool:
        start = raw_head(path)
        return b'"session.start"' in start and b'"copilotVersion"' in start


def _step(kind: str, data: Record, line: int, at: float | None, meta: Meta) -> Step | None:
    if kind == "user.message":
        parts: list[Part] = [Text(text_of(data, "content"), line, at)] if text_of(data, "content") else []
        parts += [
            FileRef(text_of(item, "path") or text_of(item, "displayName"), "", line, at)
            for item in objects_in(data, "attachments")
        ]
        return Step(Kind.USER, parts, line, at) if parts else None
    if kind == "assistant.message":
        parts = [Thinking(text_of(data, "reasoningText"), line, at)] if text_of(data, "reasoningText") else []
        parts += [Text(text_of(data, "content"), line, at)] if text_of(data, "content") else []
        parts += [
            Call(text_of(call, "toolCallId"), text_of(call, "name"), call.get("arguments"))
            for call in objects_in(data, "toolRequests")
        ]
        model = text_of(data, "model") or meta.model
        return Step(Kind.AGENT, parts, line, at, message_id=text_of(data, "messageId"), model=model)
    if kind == "assistant.reasoning":
        return Step(Kind.AGENT, [Thinking(text_of(data, "content"), line, at)], line, at)
    if kind == "tool.execution_start":
        call = Call(text_of(data, "toolCallId"), text_of(data, "toolName"), data.get("arguments"))
        return Step(Kind.AGENT, [call], line, at)
    if kind == "tool.execution_complete":
        given = data.get("result") if data.get("result") is not None else data.get("error")
        text = flat_text(given if isinstance(given, (str, list)) else object_of({"r": given}, "r").get("content", given))
        if isinstance(given, dict) and "content" not in given:
            text = flat_text(given.get("message", ""))
        result = ToolResult(text_of(data, "toolCallId"), text, data.get("success") is False, 0, line, at)
        return Step(Kind.AGENT, [result], line, at)
    if kind == "session.compaction_complete" and text_of(data, "summaryContent"):
        return Step(Kind.COMPACT, [Text(text_of(data, "summaryContent"), line, at)], line, at)
    if kind == "session.snapshot_rewind":
        named_events = [Text(item) for item in list_of(data, "eventIds") if isinstance(item, str)]
        target = None if named_events else text_of(data, "upToEventId")
        return Step(Kind.NOTE, [*named_events], line, at, message_id="rewind", stored=target)
    return None


STORE = CopilotStore()
