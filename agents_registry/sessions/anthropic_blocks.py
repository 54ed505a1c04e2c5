"""Content blocks in the shape of Anthropic's API, which several agents besides Claude Code store."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from agents_registry.sessions.filestore import object_of, objects_in, text_of
from agents_registry.sessions.jsonl import Record
from agents_registry.sessions.neutral import FileRef, ImageRef, Text, Thinking, ToolResult, flat_text
from agents_registry.sessions.steps import Call, Part


def blocks(content: Any, line: int = 0, at: float | None = None) -> list[Part]:
    """Parts of a content value: a string, or a list of blocks; unknown kinds of blocks are left out."""
    if isinstance(content, str):
        return [Text(content, line, at)] if content else []
    return [part for block in objects_in({"content": content}, "content") for part in _block(block, line, at)]


def _block(block: Record, line: int, at: float | None) -> Iterator[Part]:
    kind = text_of(block, "type")
    if kind == "text":
        yield Text(text_of(block, "text"), line, at)
    elif kind == "thinking":
        yield Thinking(text_of(block, "thinking"), line, at)
    elif kind == "tool_use":
        # Where a store keeps only a caption of the call, the caption is its name.
        yield Call(text_of(block, "id"), text_of(block, "name") or text_of(block, "text"), block.get("input"))
    elif kind == "tool_result":
        call_id = text_of(block, "tool_use_id") or text_of(block, "toolUseID")
        run = object_of(block, "run")
        text = flat_text(block.get("content") if "content" in block else run.get("result", run.get("error")))
        failed = block.get("is_error") is True or run.get("status") in ("error", "cancelled")
        yield ToolResult(call_id, text, failed, 0, line, at)
    elif kind in ("image", "document"):
        source = object_of(block, "source")
        media = text_of(source, "media_type")
        place = text_of(source, "url") or "inline"
        if kind == "image":
            yield ImageRef(media, place, len(text_of(source, "data")) * 3 // 4, line, at)
        else:
            yield FileRef(place, media, line, at)
