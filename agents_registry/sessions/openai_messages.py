"""Messages in the shape of OpenAI's chat API, which several agents store one per record."""

from __future__ import annotations

from typing import Any

from agents_registry.sessions.filestore import object_of, objects_in, text_of
from agents_registry.sessions.jsonl import Record
from agents_registry.sessions.neutral import FileRef, ImageRef, Text, Thinking, ToolResult, flat_text
from agents_registry.sessions.steps import Call, Kind, Part, Step


def chat_step(message: Record, line: int = 0, at: float | None = None) -> Step | None:
    """A user, assistant or tool message as a step; None for other roles. A user message without content is none."""
    role = text_of(message, "role")
    if role == "user":
        parts = content_parts(message.get("content"), line, at)
        return Step(Kind.USER, parts, line, at) if parts else None
    if role == "assistant":
        parts = []
        for key in ("reasoning", "reasoning_content"):
            if (thought := message.get(key)) and isinstance(thought, str):
                parts.append(Thinking(thought, line, at))
                break
        parts += content_parts(message.get("content"), line, at)
        parts += [
            Call(
                text_of(call, "id"),
                text_of(object_of(call, "function"), "name") or text_of(call, "name"),
                object_of(call, "function").get("arguments", call.get("arguments")),
            )
            for call in objects_in(message, "tool_calls")
        ]
        return Step(Kind.AGENT, parts, line, at, model=text_of(message, "model"))
    if role == "tool":
        failed = message.get("is_error") is True or message.get("finish_reason") == "error"
        text = flat_text(message.get("content"))
        return Step(Kind.AGENT, [ToolResult(text_of(message, "tool_call_id"), text, failed, 0, line, at)], line, at)
    return None


def content_parts(content: Any, line: int = 0, at: float | None = None) -> list[Part]:
    """Parts of a content value: a string, or blocks of text, thought, images and files."""
    if isinstance(content, str):
        return [Text(content, line, at)] if content else []
    parts: list[Part] = []
    for block in objects_in({"content": content}, "content"):
        kind = text_of(block, "type")
        if kind in ("text", "input_text", "output_text"):
            parts.append(Text(text_of(block, "text"), line, at))
        elif kind in ("think", "thinking"):
            parts.append(Thinking(text_of(block, kind), line, at))
        elif kind in ("image_url", "input_image", "image"):
            url = text_of(object_of(block, "image_url"), "url") or text_of(block, "image_url") or text_of(block, "url")
            inline = url.startswith("data:") or not url
            media = url[5:].partition(";")[0] if url.startswith("data:") else text_of(block, "media_type")
            parts.append(ImageRef(media, "inline" if inline else url, len(url) * 3 // 4 if inline else 0, line, at))
        elif kind in ("file", "document", "video_url", "audio_url"):
            parts.append(FileRef(text_of(block, "filename") or text_of(block, "path") or "inline", "", line, at))
    return parts
