"""Plain text out of what stores hold. Kept apart from the neutral form, so that a listing need not load that."""

from __future__ import annotations

from typing import Any


def clean(text: str) -> str:
    """The text with lone surrogates replaced, so that it can always be encoded."""
    if text.isascii():
        return text
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def one_line(text: str, limit: int = 120) -> str:
    """A title: white space becomes single blanks, and what is longer ends in an ellipsis."""
    line = " ".join(clean(text).split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def flat_text(content: Any, depth: int = 0) -> str:
    """The text of a content value as the agents write it: a string, a list of blocks, or an object that holds one."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if depth > 8:
        return "[nested data]"
    if isinstance(content, list):
        return "\n".join(part for part in (flat_text(item, depth + 1) for item in content) if part)
    if isinstance(content, dict):
        for key in ("text", "content", "output"):
            if key in content:
                return flat_text(content[key], depth + 1)
        return f"[{content.get('type', 'data')}]"
    return str(content)
