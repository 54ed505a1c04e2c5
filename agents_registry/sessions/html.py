"""A conversation as one self-contained HTML page: no script, nothing loaded from anywhere, all text escaped."""

from __future__ import annotations

import json
from collections.abc import Iterator
from html import escape

from agents_registry.sessions.neutral import (
    USER,
    Block,
    Conversation,
    ImageRef,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from agents_registry.sessions.plain import clean
from agents_registry.sessions.times import iso
from agents_registry.sessions.vocabulary import Tool, command_of

_STYLE = (
    ":root{color-scheme:light dark}"
    "body{font:16px/1.55 system-ui,sans-serif;max-width:52rem;margin:2rem auto;padding:0 1rem}"
    "header{border-bottom:1px solid #8886;margin-bottom:1.5rem}h1{font-size:1.4rem}dl{display:grid;grid-template-columns:auto 1fr;gap:.1rem 1rem}"
    "dt{opacity:.7}dd{margin:0;overflow-wrap:anywhere}"
    "section{margin:1.2rem 0;padding:.4rem 1rem;border-left:4px solid #8886}section.user{border-color:#3a7bd5;background:#3a7bd514}"
    "h2{font-size:.85rem;opacity:.75;margin:.2rem 0}p{white-space:pre-wrap;overflow-wrap:anywhere;margin:.5rem 0}"
    "pre{white-space:pre-wrap;overflow-wrap:anywhere;background:#8881;padding:.6rem;border-radius:.3rem;font-size:.85rem;max-height:30rem;overflow:auto}"
    "details{margin:.4rem 0}summary{cursor:pointer}.failed>summary{color:#c62828}.thinking{opacity:.7;font-style:italic}"
)


def to_html(conversation: Conversation) -> str:
    """The page; its policy forbids loading anything, so it can be opened anywhere."""
    return clean("\n".join(_lines(conversation)) + "\n")


def _lines(made: Conversation) -> Iterator[str]:
    title = escape(made.title or made.id)
    yield "<!doctype html>"
    yield '<html><head><meta charset="utf-8">'
    yield "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
    yield f'<meta name="viewport" content="width=device-width,initial-scale=1"><title>{title}</title><style>{_STYLE}</style></head>'
    yield f"<body><header><h1>{title}</h1><dl>"
    facts = [("Agent", made.agent), ("Session", made.id), ("Directory", made.cwd), ("Branch", made.branch), ("Model", made.model)]
    if made.created_at is not None:
        facts.append(("Begun", iso(made.created_at)))
    if made.skipped_count:
        facts.append(("Damaged records left out", str(made.skipped_count)))
    for name, value in facts:
        if value:
            yield f"<dt>{name}</dt><dd>{escape(value)}</dd>"
    yield "</dl></header><main>"
    if made.compaction is not None:
        yield f"<section><h2>Summary of what was before</h2><p>{escape(made.compaction.summary)}</p></section>"
    for turn in made.turns:
        who = "You" if turn.role == USER else made.agent
        when = f" · {iso(turn.at)}" if turn.at is not None else ""
        yield f'<section class="{turn.role}"><h2>{escape(who + when)}</h2>'
        for block in turn.blocks:
            yield _block(block)
        yield "</section>"
    yield "</main></body></html>"


def _block(block: Block) -> str:
    if isinstance(block, Text):
        return f"<p>{escape(block.text)}</p>"
    if isinstance(block, Thinking):
        return f'<p class="thinking">{escape(block.text)}</p>'
    if isinstance(block, ToolCall):
        body = command_of(block.input) if block.tool is Tool.SHELL else ""
        body = body or json.dumps(block.input, ensure_ascii=False, indent=1)
        return f"<details><summary>{escape(block.name)}</summary><pre>{escape(body)}</pre></details>"
    if isinstance(block, ToolResult):
        name, kind = ("Failed", ' class="failed"') if block.is_error else ("Result", "")
        return f"<details{kind}><summary>{name}</summary><pre>{escape(block.text)}</pre></details>"
    if isinstance(block, ImageRef):
        return f"<p>[image {escape(block.media_type)}: {escape(block.source)}]</p>"
    return f"<p>[file {escape(block.source)}]</p>"
