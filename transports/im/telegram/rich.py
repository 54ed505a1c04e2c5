"""Neutral parts → the blocks of a rich message (Bot API 10.1: InputRichMessage), which has real tables, headings and folds.

Pure. Used only where entities fall short (a Markdown table), since old clients show a placeholder instead of a rich message;
what does not fit Telegram's limits for one gives None, and the entities are sent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from transports.im.content import Content, Part
from transports.im.telegram.entities import clean, parser, plain_of, table_rows

if TYPE_CHECKING:
    from markdown_it.token import Token

Block = dict[str, Any]
MAX_CHARS, MAX_BLOCKS, MAX_DEPTH, MAX_COLUMNS = 32768, 500, 16, 20
_MARKS = {"strong": "bold", "em": "italic", "s": "strikethrough"}


def worth_it(content: Content) -> bool:
    """Whether there is something in it that only a rich message shows well."""
    texts = [part.text for part in content.parts if part.kind == "markdown" and "|" in part.text]
    return any(token.type == "table_open" for text in texts for token in parser().parse(clean(text)))


def blocks_of(content: Content) -> list[Block] | None:
    """The message's blocks; None when it is too large or too deep for a rich message."""
    blocks: list[Block] = []
    for part in content.parts:
        if part.text.strip() or part.title.strip():
            blocks += _part(part)
    size = _size(blocks, 1)
    return blocks if blocks and size is not None and size[0] <= MAX_BLOCKS and size[1] <= MAX_CHARS else None


def _part(part: Part) -> list[Block]:
    text, title = clean(part.text).strip("\n"), clean(part.title).strip()
    if part.kind == "markdown":
        tokens = parser().parse(text)
        return _blocks(tokens, 0, len(tokens))
    if part.kind == "folded":
        return [{"type": "details", "summary": title or "…", "blocks": [_paragraph(text)]}]
    if part.kind == "status":
        return [{"type": "footer", "text": " ".join(text.split())}]
    head = [_paragraph({"type": "bold", "text": title})] if title else []
    if not text:
        return head
    if part.kind in ("code", "diff"):
        return [*head, _pre(text, part.language or ("diff" if part.kind == "diff" else ""))]
    return [*head, _paragraph(text)]


def _paragraph(text: Any) -> Block:
    return {"type": "paragraph", "text": text}


def _pre(text: str, language: str) -> Block:
    word = (language.split() or [""])[0]
    return {"type": "pre", "text": text, **({"language": word[:32]} if word else {})}


def _end(tokens: list[Token], at: int) -> int:
    """Index of the token that closes the one at `at`."""
    closing = tokens[at].type.replace("_open", "_close")
    return next(i for i in range(at + 1, len(tokens)) if tokens[i].type == closing and tokens[i].level == tokens[at].level)


def _blocks(tokens: list[Token], at: int, end: int) -> list[Block]:
    blocks: list[Block] = []
    while at < end:
        token = tokens[at]
        kind = token.type
        if kind in ("fence", "code_block"):
            blocks.append(_pre(token.content.rstrip("\n") or " ", token.info))
        elif kind == "hr":
            blocks.append({"type": "divider"})
        elif kind.endswith("_open"):
            close = _end(tokens, at)
            if kind in ("paragraph_open", "heading_open"):
                text = _inline(tokens[at + 1].children or [])
                blocks.append(_paragraph(text) if kind[0] == "p" else {"type": "heading", "size": int(token.tag[1]), "text": text})
            elif kind == "blockquote_open":
                blocks.append({"type": "blockquote", "blocks": _blocks(tokens, at + 1, close) or [_paragraph(" ")]})
            elif kind == "table_open":
                blocks.append(_table(tokens[at:close]))
            else:
                blocks.append({"type": "list", "items": _items(tokens, at, close)})
            at = close
        elif token.content:
            blocks.append(_paragraph(token.content))
        at += 1
    return blocks


def _items(tokens: list[Token], at: int, end: int) -> list[Block]:
    number = int(tokens[at].attrGet("start") or 1) if tokens[at].type[0] == "o" else 0
    items, at = [], at + 1
    while at < end:
        close = _end(tokens, at)
        label = {"value": number, "type": "1"} if number else {}
        items.append({"blocks": _blocks(tokens, at + 1, close) or [_paragraph(" ")], **label})
        number += bool(number)
        at = close + 1
    return items


def _table(tokens: list[Token]) -> Block:
    aligns = [_align(t) for t in tokens if t.type == "th_open"]
    cells = [
        [
            {"text": _inline(cell), "align": align, "valign": "top", **({"is_header": True} if number == 0 else {})}
            for cell, align in zip(row, aligns, strict=False)
        ]
        for number, row in enumerate(table_rows(tokens))
    ]
    return {"type": "table", "cells": cells, "is_bordered": True, "is_compact": True}


def _align(token: Token) -> str:
    style = str(token.attrGet("style") or "")
    return "right" if "right" in style else "center" if "center" in style else "left"


def _inline(tokens: list[Token]) -> Any:
    """Inline tokens as rich text: a string, or a list of strings and marked pieces."""
    stack: list[tuple[list[Any], Token | None]] = [([], None)]
    for token in tokens:
        here = stack[-1][0]
        kind = token.type
        if kind in ("softbreak", "hardbreak"):
            here.append("\n")
        elif kind == "code_inline":
            here.append({"type": "code", "text": token.content})
        elif kind.endswith("_open"):
            stack.append(([], token))
        elif kind.endswith("_close"):
            inside, opening = stack.pop()
            text = _joined(inside)
            if not text or opening is None:
                continue
            href = str(opening.attrGet("href") or "")
            if opening.type != "link_open":
                stack[-1][0].append({"type": _MARKS[opening.type[:-5]], "text": text})
            elif href.startswith(("http://", "https://", "tg://", "mailto:")):
                stack[-1][0].append({"type": "url", "text": text, "url": href})
            else:
                stack[-1][0].extend([text, f" ({href})"] if href else [text])
        elif kind == "image":
            here.append(f"{plain_of([token])} {token.attrGet('src') or ''}".rstrip())
        elif token.content:
            here.append(token.content)
    return _joined(stack[0][0])


def _joined(pieces: list[Any]) -> Any:
    joined: list[Any] = []
    for piece in pieces:
        if isinstance(piece, str) and joined and isinstance(joined[-1], str):
            joined[-1] += piece
        elif isinstance(piece, list):
            joined.extend(piece)
        elif piece:
            joined.append(piece)
    return joined[0] if len(joined) == 1 else joined or ""


def _size(blocks: list[Block], depth: int) -> tuple[int, int] | None:
    """(blocks, characters); None when too deep or a table is too wide."""
    if depth > MAX_DEPTH:
        return None
    count = chars = 0
    for block in blocks:
        count += 1
        chars += _chars(block.get("text")) + _chars(block.get("summary"))
        rows = block.get("cells", [])
        if any(len(row) > MAX_COLUMNS for row in rows):
            return None
        chars += sum(_chars(cell["text"]) for row in rows for cell in row)
        inner = [block.get("blocks", []), *(item["blocks"] for item in block.get("items", []))]
        for more in inner:
            found = _size(more, depth + 1) if more else (0, 0)
            if found is None:
                return None
            count, chars = count + found[0], chars + found[1]
    return count, chars


def _chars(text: Any) -> int:
    if isinstance(text, str):
        return len(text)
    if isinstance(text, list):
        return sum(map(_chars, text))
    return _chars(text.get("text")) if isinstance(text, dict) else 0
