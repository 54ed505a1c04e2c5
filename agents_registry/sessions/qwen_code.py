"""Qwen Code's store: `~/.qwen/projects/<project>/chats/<session id>.jsonl`, a tree of records by uuid and parentUuid.

The file's name is the id that resumes (QwenLM/qwen-code, sessionService.ts); records may carry another one, which is
kept as an alias. Several records may share a uuid (one message written in pieces); a rewind is a record whose parent
lies further up; `chat_compression` carries the history that replaces everything before it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from agents_registry.sessions.filestore import FileStore, Meta, list_of, object_of, raw_head, text_of
from agents_registry.sessions.gemini_content import parts_of
from agents_registry.sessions.jsonl import Record
from agents_registry.sessions.neutral import Text, ToolResult, flat_text
from agents_registry.sessions.paths import home
from agents_registry.sessions.places import named
from agents_registry.sessions.steps import Kind, Step, live_path
from agents_registry.sessions.times import seconds

_TYPES = frozenset({"user", "assistant", "tool_result", "system"})
_NOT_HUMAN = frozenset({"notification", "cron"})
_HOOK = re.compile(r"<qwen:user-prompt-submit-context>.*?(</qwen:user-prompt-submit-context>|\Z)", re.DOTALL)
_NAME = re.compile(r"[0-9a-fA-F-]{32,36}")


class QwenStore(FileStore):
    """See the module. `QWEN_RUNTIME_DIR`, then `QWEN_HOME`, take the place of ~/.qwen."""

    agent: str = "qwen-code"

    def roots(self, env: Mapping[str, str]) -> list[Path]:
        return [named(env, "QWEN_RUNTIME_DIR", "QWEN_HOME") or home(env) / ".qwen"]

    def files(self, root: Path) -> Iterator[Path]:
        yield from (root / "projects").glob("*/chats/*.jsonl")

    def steps(self, records: Iterable[tuple[int, Record]], meta: Meta) -> Iterator[Step]:
        for line, record in records:
            kind = text_of(record, "type")
            if kind not in _TYPES or not isinstance(record.get("uuid"), str) or "sessionId" not in record:
                meta.strange(str(kind)[:40])
                continue
            if kind != "system" and not isinstance(object_of(record, "message").get("parts"), list):
                meta.strange(f"{kind} without parts")  # Claude Code's records look alike but for this
                continue
            meta.ours += 1
            meta.id = meta.id or text_of(record, "sessionId")
            meta.cwd = meta.cwd or text_of(record, "cwd")
            meta.branch = text_of(record, "gitBranch") or meta.branch
            self.late(record, meta)
            yield from _steps_of(line, record)

    def late(self, record: Record, meta: Meta) -> None:
        if text_of(record, "type") == "system" and text_of(record, "subtype") == "custom_title":
            meta.title = text_of(object_of(record, "systemPayload"), "customTitle") or meta.title

    def live(self, steps: Iterable[Step]) -> Iterable[Step]:
        return live_path(list(steps))

    def beside(self, path: Path, root: Path | None, meta: Meta) -> None:
        if _NAME.fullmatch(path.stem) and meta.id != path.stem:
            meta.aliases = (meta.id,) if meta.id else ()
            meta.id = path.stem

    def torn(self, path: Path) -> bool:
        start = raw_head(path)
        return all(word in start for word in (b'"parentUuid"', b'"sessionId"', b'"parts"'))


def _steps_of(line: int, record: Record) -> Iterator[Step]:
    kind, subtype = record["type"], text_of(record, "subtype")
    at = seconds(record.get("timestamp"))
    parent = record.get("parentUuid")
    step = Step(
        Kind.NOTE,
        [],
        line,
        at,
        id=record["uuid"],
        parent=parent if isinstance(parent, str) else None,
        cwd=text_of(record, "cwd"),
        model=text_of(record, "model"),
    )
    payload = object_of(record, "systemPayload")
    if record.get("isSidechain") or record.get("agentId"):
        return
    if kind == "system":
        if subtype == "chat_compression" and isinstance(payload.get("compressedHistory"), list):
            yield from _compressed(step, payload)
        elif "parentUuid" in record:  # without the field it hangs outside the tree and is no leaf of it
            yield step
        return
    parts = parts_of(object_of(record, "message").get("parts"), line, at)
    step.parts = parts
    if kind == "assistant":
        step.kind = Kind.AGENT
        step.message_id = step.id
    elif kind == "tool_result" or step.only_results:
        step.kind = Kind.AGENT
        step.parts = [part for part in parts if isinstance(part, ToolResult)]
    elif subtype not in _NOT_HUMAN and parts:
        text = step.text
        step.kind = Kind.COMMAND if text.lstrip().startswith("/") else Kind.USER
        typed = _HOOK.sub("", text).strip() if _HOOK.search(text) else text
        shown = text_of(payload, "displayText")
        if shown.strip() and shown != text:
            typed = shown
        if typed != text:
            step.stored = text
            step.parts = [Text(typed, line, at), *(part for part in parts if not isinstance(part, Text))]
    yield step


def _compressed(step: Step, payload: Record) -> Iterator[Step]:
    """The history that replaces all before: its first message is the summary, an acknowledgement, then what was kept."""
    contents = [item for item in list_of(payload, "compressedHistory") if isinstance(item, dict)]
    summary = flat_text(contents[0].get("parts")) if contents else ""
    step.kind = Kind.COMPACT
    step.parts = [Text(summary, step.line, step.at)]
    yield step
    for index, content in enumerate(contents[1:]):
        if index == 0 and text_of(content, "role") == "model":
            continue  # "Got it": written by the CLI, not by the model
        parts = parts_of(content.get("parts"), step.line, step.at)
        kept = Step(Kind.AGENT, parts, step.line, step.at, id=step.id, parent=step.parent, counted=False)
        if text_of(content, "role") == "user" and not kept.only_results:
            kept.kind = Kind.USER
        yield kept


STORE = QwenStore()
