"""Grok Build's store: `~/.grok/sessions/<directory>/<id>/chat_history.jsonl` with summary.json beside it.

The chat history is what the model sees (rewritten at a compaction); updates.jsonl repeats it as ACP updates. User
records that the harness made have a `synthetic_reason`; a count believes that mark alone, a conversation also leaves
out the blocks that open with a harness's tag.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import ClassVar

from agents_registry.sessions.filestore import FileStore, Meta, object_of, objects_in, sidecar, text_of
from agents_registry.sessions.jsonl import Record
from agents_registry.sessions.neutral import Text, Thinking, ToolResult, flat_text
from agents_registry.sessions.openai_messages import content_parts
from agents_registry.sessions.paths import home
from agents_registry.sessions.places import named
from agents_registry.sessions.steps import Call, Kind, Part, Step
from agents_registry.sessions.times import seconds

_QUERY = re.compile(r"<user_query>\n?(.*?)\n?</user_query>", re.DOTALL)
_INJECTED = ("<user_info>", "<system-reminder>", "<image_files>", "<git_status>", "<project_layout>")
_CONTINUED = "This session is being continued from a previous conversation"


class GrokStore(FileStore):
    """See the module. `GROK_HOME` takes the place of ~/.grok."""

    agent: str = "grok"
    leaf_keys: ClassVar[tuple[str, ...]] = ()

    def roots(self, env: Mapping[str, str]) -> list[Path]:
        return [named(env, "GROK_HOME") or home(env) / ".grok"]

    def files(self, root: Path) -> Iterator[Path]:
        yield from (root / "sessions").glob("*/*/chat_history.jsonl")

    def steps(self, records: Iterable[tuple[int, Record]], meta: Meta) -> Iterator[Step]:
        for line, record in records:
            kind = text_of(record, "type")
            content = record.get("content")
            if kind == "user" and isinstance(content, list):
                meta.ours += "prompt_index" in record or "synthetic_reason" in record
                if (step := _user(record, line)) is not None:
                    yield step
            elif kind == "assistant" and isinstance(content, str) and ("model_id" in record or "tool_calls" in record):
                meta.ours += 1
                yield _assistant(record, line)
            elif kind == "tool_result" and "tool_call_id" in record:
                meta.ours += 1
                result = ToolResult(text_of(record, "tool_call_id"), flat_text(content), False, 0, line)
                yield Step(Kind.AGENT, [result], line)
            elif kind == "backend_tool_call":
                call = object_of(record, "kind")
                name = text_of(call, "tool_type")
                yield Step(Kind.AGENT, [Call(text_of(call, "id"), name, call.get("action"))], line)
            elif kind == "reasoning":
                text = "\n".join(text_of(part, "text") for part in objects_in(record, "summary"))
                yield Step(Kind.AGENT, [Thinking(text, line)], line)
            elif kind != "system":
                meta.strange(str(kind)[:40])

    def beside(self, path: Path, root: Path | None, meta: Meta) -> None:
        about = sidecar(path.with_name("summary.json"))
        info = object_of(about, "info")
        meta.id = text_of(info, "id") or path.parent.name
        meta.cwd = text_of(info, "cwd") or meta.cwd
        meta.title = text_of(about, "generated_title") or text_of(about, "session_summary")
        meta.branch = text_of(about, "head_branch")
        meta.model = text_of(about, "current_model_id") or meta.model
        meta.created_at, meta.updated_at = seconds(about.get("created_at")), seconds(about.get("updated_at"))
        if about.get("session_kind") == "subagent":
            # The parent's folder names its children; a child does not name its parent.
            parents = [*path.parents[1].glob(f"*/subagents/{meta.id}")]
            meta.parent_id = parents[0].parent.parent.name if parents else "?"


def _user(record: Record, line: int) -> Step | None:
    parts = content_parts(record.get("content"), line)
    step = Step(Kind.USER, parts, line)
    text = step.text
    if "synthetic_reason" in record:
        if text.startswith(_CONTINUED):
            return Step(Kind.COMPACT, [Text(text, line)], line)
        return None
    words: list[Part] = []
    for part in parts:
        if not isinstance(part, Text):
            words.append(part)
        elif queries := _QUERY.findall(part.text):
            words.append(Text("\n".join(queries), line))
        elif not part.text.lstrip().startswith(_INJECTED):
            words.append(part)
    if not parts:
        return None
    step.stored, step.parts, step.carried = text, words, bool(words)
    return step


def _assistant(record: Record, line: int) -> Step:
    content = text_of(record, "content")
    parts: list[Part] = [Text(content, line)] if content else []
    parts += [
        Call(text_of(call, "id"), text_of(call, "name"), call.get("arguments")) for call in objects_in(record, "tool_calls")
    ]
    return Step(Kind.AGENT, parts, line, model=text_of(record, "model_id"))


STORE = GrokStore()
