"""A conversation as Markdown, for people."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from agents_registry.sessions.neutral import (
    USER,
    Block,
    Conversation,
    FileRef,
    ImageRef,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from agents_registry.sessions.plain import clean
from agents_registry.sessions.times import iso
from agents_registry.sessions.vocabulary import Tool, command_of, touched_paths

_TICKS = re.compile(r"`{3,}")


def to_markdown(conversation: Conversation) -> str:
    """One document: a heading, where it comes from, then turn by turn. Ends with a newline."""
    return clean("\n".join(_lines(conversation)).rstrip() + "\n")


def _lines(made: Conversation) -> Iterator[str]:
    yield f"# {made.title or made.id}"
    yield ""
    facts = [("Agent", made.agent), ("Session", made.id), ("Directory", made.cwd), ("Branch", made.branch), ("Model", made.model)]
    if made.last_cwd and made.last_cwd != made.cwd:
        facts.append(("Last directory", made.last_cwd))
    if made.created_at is not None:
        facts.append(("Begun", iso(made.created_at)))
    if made.updated_at is not None:
        facts.append(("Last change", iso(made.updated_at)))
    if made.skipped_count:
        facts.append(("Damaged records left out", str(made.skipped_count)))
    for name, value in facts:
        if value:
            yield f"- {name}: {value}"
    if made.compaction is not None:
        yield ""
        yield f"## Summary of what was before ({made.compaction.turns_before} requests)"
        yield ""
        yield made.compaction.summary
    for turn in made.turns:
        yield ""
        when = f" · {iso(turn.at)}" if turn.at is not None else ""
        yield f"## {'You' if turn.role == USER else made.agent}{when}"
        for block in turn.blocks:
            yield ""
            yield from _block(block)


def _block(block: Block) -> Iterator[str]:
    if isinstance(block, Text):
        yield block.text
    elif isinstance(block, Thinking):
        yield "> " + block.text.replace("\n", "\n> ")
    elif isinstance(block, ToolCall):
        yield f"**{block.name}** {headline(block)}".rstrip()
        if block.tool is Tool.SHELL and command_of(block.input):
            yield from fenced(command_of(block.input), "sh")
        elif block.input:
            yield from fenced(json.dumps(block.input, ensure_ascii=False, indent=1), "json")
    elif isinstance(block, ToolResult):
        yield "Failed:" if block.is_error else "Result:"
        yield from fenced(block.text or "(no output)")
    elif isinstance(block, ImageRef):
        yield f"*Image ({block.media_type}): {block.source}*"
    elif isinstance(block, FileRef):
        yield f"*File: {block.source}*"


def headline(call: ToolCall) -> str:
    """What a call is about, in one line: its files or its description."""
    paths = touched_paths(call.tool, call.input)
    if paths:
        return ", ".join(f"`{path}`" for path in paths)
    described = call.input.get("description") or call.input.get("query") or call.input.get("pattern") or call.input.get("url")
    return " ".join(described.split()) if isinstance(described, str) else ""


def fenced(text: str, language: str = "") -> Iterator[str]:
    """A code block whose fence is longer than any run of backticks in it."""
    fence = "`" * max(3, *(len(run) + 1 for run in _TICKS.findall(text)), 3)
    yield fence + language
    yield text.rstrip("\n")
    yield fence
