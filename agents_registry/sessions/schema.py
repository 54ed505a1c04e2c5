"""The neutral form as JSON, out and in: `{"schema": "vibearound.conversation", "version": 1, …}`.

Version 1: `agent, id, title, cwd, last_cwd, model, branch, created_at, updated_at, parent_id, path, store_root,
compaction {summary, line, at, turns_before} | null, skipped [{line, why}], skipped_count, unknown {kind: count}` and
`turns [{role "user"|"agent", at, cwd, model, line, file, blocks}]`. Blocks, by `type`: `text {text}`, `thinking {text}`,
`tool_call {id, name, tool, input}`, `tool_result {call_id, text, is_error, omitted}`, `image {media_type, source, size}`,
`file {source, media_type}`; each with `line` and `at`. Times are seconds since the epoch or null. Unknown keys are
ignored when reading; a higher version is refused.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agents_registry.errors import UsageError
from agents_registry.sessions.neutral import (
    AGENT,
    USER,
    Block,
    Compaction,
    Conversation,
    FileRef,
    ImageRef,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Turn,
)
from agents_registry.sessions.plain import clean
from agents_registry.sessions.port import Skipped
from agents_registry.sessions.vocabulary import Tool

NAME = "vibearound.conversation"
VERSION = 1


def to_json(conversation: Conversation, *, indent: int | None = 2) -> str:
    """The conversation as a JSON text. Numbers that JSON does not know (NaN) become null inside tool inputs."""
    return clean(json.dumps(_finite(to_dict(conversation)), ensure_ascii=False, indent=indent, allow_nan=False))


def to_dict(conversation: Conversation) -> dict[str, Any]:
    """The same as plain data."""
    made = conversation
    return {
        "schema": NAME,
        "version": VERSION,
        "agent": made.agent,
        "id": made.id,
        "title": made.title,
        "cwd": made.cwd,
        "last_cwd": made.last_cwd,
        "model": made.model,
        "branch": made.branch,
        "created_at": made.created_at,
        "updated_at": made.updated_at,
        "parent_id": made.parent_id,
        "path": str(made.path) if made.path else "",
        "store_root": str(made.store_root) if made.store_root else "",
        "compaction": _compaction(made.compaction),
        "skipped": [{"line": one.line, "why": one.why} for one in made.skipped],
        "skipped_count": made.skipped_count,
        "unknown": dict(made.unknown),
        "turns": [_turn(turn) for turn in made.turns],
    }


def from_json(text: str | bytes) -> Conversation:
    """Reads what `to_json` wrote. Raises `UsageError` for anything else, saying what is wrong with it."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"This is no JSON: {error}.", hint="Give a file that `va sessions export --format json` wrote.") from None
    if not isinstance(value, dict) or value.get("schema") != NAME:
        raise UsageError("This JSON is no exported conversation.", hint="Give a file that `va sessions export --format json` wrote.")
    version = value.get("version")
    if version != VERSION:
        raise UsageError(f"This export has version {version}, and version {VERSION} is known here.", hint="Update VibeAround, or export it again.")
    return from_dict(value)


def from_dict(value: Mapping[str, Any]) -> Conversation:
    """See `from_json`; the version is not checked again."""
    try:
        made = Conversation(str(value["agent"]), str(value["id"]))
        made.turns = [_read_turn(turn) for turn in value["turns"]]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UsageError(f"This exported conversation is damaged: {type(error).__name__} {error}.", hint="Export it again.") from None
    for key in ("title", "cwd", "last_cwd", "model", "branch", "parent_id"):
        setattr(made, key, str(value.get(key) or ""))
    made.created_at, made.updated_at = _time(value.get("created_at")), _time(value.get("updated_at"))
    made.path = Path(value["path"]) if value.get("path") else None
    made.store_root = Path(value["store_root"]) if value.get("store_root") else None
    found = value.get("compaction")
    if isinstance(found, dict):
        made.compaction = Compaction(
            str(found.get("summary", "")), int(found.get("line") or 0), _time(found.get("at")), int(found.get("turns_before") or 0)
        )
    made.skipped = tuple(Skipped(int(one.get("line") or 0), str(one.get("why", ""))) for one in value.get("skipped") or [])
    made.skipped_count = int(value.get("skipped_count") or 0)
    made.unknown = {str(kind): int(count) for kind, count in (value.get("unknown") or {}).items()}
    return made


def _compaction(found: Compaction | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {"summary": found.summary, "line": found.line, "at": found.at, "turns_before": found.turns_before}


def _turn(turn: Turn) -> dict[str, Any]:
    return {
        "role": turn.role,
        "at": turn.at,
        "cwd": turn.cwd,
        "model": turn.model,
        "line": turn.line,
        "file": turn.file,
        "blocks": [_block(block) for block in turn.blocks],
    }


def _block(block: Block) -> dict[str, Any]:
    where: dict[str, Any] = {"line": block.line, "at": block.at}
    if isinstance(block, Text):
        return {"type": "text", "text": block.text, **where}
    if isinstance(block, Thinking):
        return {"type": "thinking", "text": block.text, **where}
    if isinstance(block, ToolCall):
        return {"type": "tool_call", "id": block.id, "name": block.name, "tool": str(block.tool), "input": dict(block.input), **where}
    if isinstance(block, ToolResult):
        return {
            "type": "tool_result",
            "call_id": block.call_id,
            "text": block.text,
            "is_error": block.is_error,
            "omitted": block.omitted,
            **where,
        }
    if isinstance(block, ImageRef):
        return {"type": "image", "media_type": block.media_type, "source": block.source, "size": block.size, **where}
    return {"type": "file", "source": block.source, "media_type": block.media_type, **where}


def _read_turn(value: Mapping[str, Any]) -> Turn:
    role = value["role"]
    if role not in (USER, AGENT):
        raise ValueError(f"role {role!r}")
    blocks = [block for one in value["blocks"] if (block := _read_block(one)) is not None]
    return Turn(
        role,
        blocks,
        _time(value.get("at")),
        str(value.get("cwd") or ""),
        str(value.get("model") or ""),
        int(value.get("line") or 0),
        str(value.get("file") or ""),
    )


def _read_block(value: Mapping[str, Any]) -> Block | None:
    line, at = int(value.get("line") or 0), _time(value.get("at"))
    kind = value["type"]
    if kind == "text":
        return Text(str(value["text"]), line, at)
    if kind == "thinking":
        return Thinking(str(value["text"]), line, at)
    if kind == "tool_call":
        tool = str(value.get("tool"))
        known = Tool(tool) if tool in set(Tool) else Tool.OTHER
        return ToolCall(str(value["id"]), str(value["name"]), dict(value["input"]), known, line, at)
    if kind == "tool_result":
        omitted = int(value.get("omitted") or 0)
        return ToolResult(str(value["call_id"]), str(value["text"]), bool(value.get("is_error")), omitted, line, at)
    if kind == "image":
        return ImageRef(str(value["media_type"]), str(value["source"]), int(value.get("size") or 0), line, at)
    if kind == "file":
        return FileRef(str(value["source"]), str(value.get("media_type") or ""), line, at)
    return None  # of a later minor version: what is not known is not carried


def _time(value: Any) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if value - value == 0 else None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return value
