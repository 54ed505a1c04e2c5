"""The content shape of Google's API (parts of text, function calls and responses), which Gemini CLI and Qwen Code store."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from agents_registry.sessions.neutral import FileRef, ImageRef, Text, Thinking, ToolResult, flat_text
from agents_registry.sessions.steps import Call, Part

_SHELL = "run_shell_command"
_EXIT = re.compile(r"^Exit Code: -?[1-9]", re.MULTILINE)


def parts_of(content: Any, line: int = 0, at: float | None = None) -> list[Part]:
    """Parts of a content value: a string, one part, or a list of parts. Unknown parts are left out."""
    return list(_parts(content, line, at))


def _parts(content: Any, line: int, at: float | None) -> Iterator[Part]:
    if isinstance(content, str):
        if content:
            yield Text(content, line, at)
        return
    for part in content if isinstance(content, list) else [content]:
        if isinstance(part, str):
            yield Text(part, line, at)
        elif isinstance(part, dict):
            yield from _part(part, line, at)


def _part(part: dict[str, Any], line: int, at: float | None) -> Iterator[Part]:
    text = part.get("text")
    if isinstance(text, str):
        yield Thinking(text, line, at) if part.get("thought") is True else Text(text, line, at)
    elif isinstance(call := part.get("functionCall"), dict):
        yield Call(str(call.get("id") or ""), str(call.get("name") or ""), call.get("args"))
    elif isinstance(response := part.get("functionResponse"), dict):
        yield result_of(response, line, at)
    elif isinstance(data := part.get("inlineData"), dict):
        kind = str(data.get("mimeType") or "")
        size = len(data["data"]) * 3 // 4 if isinstance(data.get("data"), str) else 0
        yield ImageRef(kind, "inline", size, line, at) if kind.startswith("image/") else FileRef("inline", kind, line, at)
    elif isinstance(data := part.get("fileData"), dict):
        kind = str(data.get("mimeType") or "")
        source = str(data.get("fileUri") or "")
        yield ImageRef(kind, source, 0, line, at) if kind.startswith("image/") else FileRef(source, kind, line, at)


def result_of(response: dict[str, Any], line: int = 0, at: float | None = None) -> ToolResult:
    """A functionResponse: its output, or its error."""
    given = response.get("response")
    failed = isinstance(given, dict) and "error" in given and "output" not in given
    text = flat_text(given["error"]) if failed and isinstance(given, dict) else flat_text(given)
    # A command that failed is a call that went well; only the last lines of its output tell.
    failed = failed or (response.get("name") == _SHELL and _EXIT.search(text[-400:]) is not None)
    return ToolResult(str(response.get("id") or ""), text, failed, 0, line, at)
