"""Neutral parts → Telegram's text and entities, counted in UTF-16 units. Pure.

Entities are sent instead of a parse mode: nothing has to be escaped, and no half-written Markdown can be refused. What the
Bot API allows (core.telegram.org/bots/api#formatting-options): `code` and `pre` stand in nothing but a quotation, nothing
stands in them, quotations do not nest, one kind does not stand in itself.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from transports.im.content import Content, Outgoing, Part

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

Entity = dict[str, Any]
MAX_TEXT, MAX_CAPTION, MAX_ENTITIES = 4096, 1024, 100
_QUOTES = ("blockquote", "expandable_blockquote")
_LINKS = ("http://", "https://", "tg://", "mailto:")
_TABLE_COLUMNS = 40
"""A table as fixed text is readable on a phone up to this width; wider ones are written row by row."""
_LONG_QUOTE = 400
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x84\x86-\x9f]")


def units(text: str) -> int:
    """UTF-16 code units, as Telegram counts text, offsets and limits."""
    return len(text) + sum(1 for sign in text if sign > "\uffff")


def clean(text: str) -> str:
    """Without what Telegram refuses or drops: lone surrogates, control signs; line ends as \\n."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return _CONTROLS.sub("", text).encode("utf-8", "replace").decode()


@dataclass(slots=True)
class Writer:
    """Text and entities in the making; `at` is the length so far in UTF-16 units."""

    pieces: list[str] = field(default_factory=list)
    entities: list[Entity] = field(default_factory=list)
    at: int = 0
    open: list[str] = field(default_factory=list)
    """Kinds that are open, outermost first."""

    def write(self, text: str) -> None:
        if text:
            self.pieces.append(text)
            self.at += units(text)

    def mark(self, kind: str, start: int, **more: Any) -> None:
        """What was written since `start` is of this kind. Left out where it may not stand."""
        if self.at <= start or kind in self.open:
            return
        if kind in ("code", "pre"):
            if any(around not in _QUOTES for around in self.open):
                return
        elif kind in _QUOTES and any(around in _QUOTES for around in self.open):
            return
        self.entities.append({"type": kind, "offset": start, "length": self.at - start, **more})

    def gap(self, newlines: int) -> None:
        """At least so many line ends before what follows, unless nothing was written yet."""
        if not self.at:
            return
        tail = "".join(self.pieces[-3:])
        have = len(tail) - len(tail.rstrip("\n"))
        self.write("\n" * max(0, newlines - have))

    def done(self) -> tuple[str, list[Entity]]:
        """Trimmed as Telegram trims, with the entities moved along; those of nothing but space are gone."""
        text = "".join(self.pieces)
        kept = text.rstrip()
        lead = len(kept) - len(kept.lstrip())
        first = min((e["offset"] for e in self.entities if e["type"] == "pre"), default=-1)
        if first == 0 and text[: len(text) - len(text.lstrip())].strip("\n"):
            # the indentation of a first line of code would be trimmed away: something visible stands before it
            moved = [{**e, "offset": e["offset"] + 2} for e in self.entities]
            return Writer(["…\n", *self.pieces], moved, self.at + 2).done()
        kept, lead_units = kept[lead:], units(kept[:lead])
        whole, found = units(kept), []
        for entity in self.entities:
            start = max(0, entity["offset"] - lead_units)
            end = min(whole, entity["offset"] - lead_units + entity["length"])
            if end > start:
                found.append({**entity, "offset": start, "length": end - start})
        return kept, sorted(found, key=lambda e: (e["offset"], -e["length"]))


def render(outgoing: Outgoing) -> tuple[str, list[Entity]]:
    """What to send. `Outgoing.plain`: no entities at all."""
    if outgoing.plain:
        return clean(outgoing.content.plain()).strip(), []
    text, found = _rendered(outgoing.content)
    return text, list(found)


@lru_cache(maxsize=16)  # what is looked at for its length is sent next
def _rendered(content: Content) -> tuple[str, tuple[Entity, ...]]:
    writer, before = Writer(), ""
    for part in content.parts:
        if not part.text.strip() and not part.title.strip():
            continue
        writer.gap(1 if "status" in (before, part.kind) and part.kind != "folded" else 2)
        _part(writer, part)
        before = part.kind
    text, found = writer.done()
    return text, tuple(found)


def fits(outgoing: Outgoing) -> bool:
    text, entities = render(outgoing)
    return units(text) <= MAX_TEXT and len(entities) <= MAX_ENTITIES


def _part(writer: Writer, part: Part) -> None:
    text = clean(part.text)
    if part.kind == "markdown":
        _Markdown(writer).write(text)
        return
    text, title = text.strip("\n"), clean(part.title).strip()
    start = writer.at
    if title:
        writer.write(title)
        writer.mark("bold", start)
        if text:
            writer.write("\n")
    if part.kind in ("code", "diff"):
        inner = writer.at
        writer.write(text)
        language = part.language or ("diff" if part.kind == "diff" else "")
        writer.mark("pre", inner, **_language(language))
    elif part.kind == "status":
        inner = writer.at
        writer.write(" ".join(text.split()))
        writer.mark("italic", inner)
    else:
        writer.write(text)
        if part.kind == "folded":
            writer.mark("expandable_blockquote", start)


def _language(info: str) -> dict[str, str]:
    word = re.sub(r"[^\w+#.-]", "", (info.split() or [""])[0])[:32]
    return {"language": word} if word else {}


@cache
def parser() -> MarkdownIt:
    """CommonMark with tables and strikethrough; HTML is text; link definitions stay visible, so that nothing is lost."""
    from markdown_it import MarkdownIt

    made = MarkdownIt("commonmark", {"html": False, "maxNesting": 100})
    return made.enable(["table", "strikethrough"]).disable(["reference"])


class _Markdown:
    """Writes Markdown through a Writer."""

    def __init__(self, writer: Writer) -> None:
        self._w = writer
        self._lists: list[int] = []
        """Next number of each open list; 0 = bullets."""
        self._fresh = False
        """Right behind a list item's sign: its first block goes on the same line."""

    def write(self, source: str) -> None:
        try:
            tokens = parser().parse(source)
        except (RecursionError, IndexError):  # nested beyond reason: as it stands
            self._w.write(source)
            return
        self._blocks(tokens)

    def _between(self, newlines: int = 2) -> None:
        if self._fresh:
            self._fresh = False
        else:
            self._w.gap(1 if self._lists else newlines)

    def _blocks(self, tokens: list[Token]) -> None:
        w, starts, at = self._w, list[int](), 0
        while at < len(tokens):
            token = tokens[at]
            kind = token.type
            if kind == "table_open":
                end = next(i for i in range(at, len(tokens)) if tokens[i].type == "table_close" and tokens[i].level == token.level)
                self._between()
                self._table(tokens[at:end])
                at = end
            elif kind in ("heading_open", "paragraph_open"):
                self._between()
                starts.append(w.at)
                if kind == "heading_open":
                    w.open.append("bold")
            elif kind == "heading_close":
                w.open.pop()
                start = starts.pop()
                self._around(start, "bold")
            elif kind == "paragraph_close":
                starts.pop()
            elif kind == "inline":
                self._inline(token.children or [])
            elif kind in ("fence", "code_block"):
                self._between()
                start = w.at
                w.write(token.content.rstrip("\n"))
                w.mark("pre", start, **_language(token.info))
            elif kind == "blockquote_open":
                self._between()
                starts.append(w.at)
                w.open.append("blockquote")
                self._fresh = True
            elif kind == "blockquote_close":
                self._fresh = False
                w.open.pop()
                start = starts.pop()
                w.mark("blockquote" if w.at - start < _LONG_QUOTE else "expandable_blockquote", start)
            elif kind in ("bullet_list_open", "ordered_list_open"):
                if not self._lists:
                    self._between()
                self._lists.append(int(token.attrGet("start") or 1) if kind[0] == "o" and token.attrGet("start") != 0 else int(kind[0] == "o"))
            elif kind in ("bullet_list_close", "ordered_list_close"):
                self._lists.pop()
            elif kind == "list_item_open":
                if self._fresh:
                    self._fresh = False
                else:
                    w.gap(1)
                number = self._lists[-1]
                w.write("  " * (len(self._lists) - 1) + (f"{number}. " if number else "• "))
                if number:
                    self._lists[-1] += 1
                self._fresh = True
            elif kind == "list_item_close":
                self._fresh = False
            elif kind == "hr":
                self._between()
                w.write("———")
            elif token.content:
                w.write(token.content)
            at += 1

    def _around(self, start: int, kind: str) -> None:
        """Mark `kind` round what is not code since `start`: code may not stand in it."""
        w = self._w
        for hole in sorted((e for e in w.entities if e["type"] in ("code", "pre") and e["offset"] >= start), key=lambda e: e["offset"]):
            self._piece(kind, start, hole["offset"])
            start = hole["offset"] + hole["length"]
        self._piece(kind, start, w.at)

    def _piece(self, kind: str, start: int, end: int, **more: Any) -> None:
        if end > start and kind not in self._w.open:
            self._w.entities.append({"type": kind, "offset": start, "length": end - start, **more})

    def _inline(self, tokens: list[Token]) -> None:
        w, marks = self._w, {"strong": "bold", "em": "italic", "s": "strikethrough"}
        stack: list[tuple[int, Token]] = []
        for token in tokens:
            kind = token.type
            if kind == "text":
                w.write(token.content)
            elif kind in ("softbreak", "hardbreak"):
                w.write("\n")
            elif kind == "code_inline":
                self._code(token.content)
            elif kind.endswith("_open"):
                stack.append((w.at, token))
                w.open.append(marks.get(kind[:-5], "text_link"))
            elif kind.endswith("_close"):
                start, opening = stack.pop()
                w.open.pop()
                if kind == "link_close":
                    self._link(start, str(opening.attrGet("href") or ""))
                else:
                    self._around(start, marks[kind[:-6]])
            elif kind == "image":
                self._image(token)
            else:
                w.write(token.content)

    def _code(self, text: str) -> None:
        """Code in bold or in a link is code, and the other ends before it and goes on behind it (`_around`)."""
        w = self._w
        start = w.at
        w.write(text)
        if w.at > start:
            w.entities.append({"type": "code", "offset": start, "length": w.at - start})

    def _link(self, start: int, href: str) -> None:
        w = self._w
        shown = _since(w, start)
        if not href or shown == href or f"mailto:{shown}" == href:
            return
        if not href.startswith(_LINKS) or w.at == start:
            w.write(f" ({href})" if shown else href)
            return
        covered = start
        for hole in sorted((e for e in w.entities if e["type"] == "code" and e["offset"] >= start), key=lambda e: e["offset"]):
            self._piece("text_link", covered, hole["offset"], url=href)
            covered = hole["offset"] + hole["length"]
        if covered == w.at and covered > start and all(e["offset"] != start or e["type"] != "text_link" for e in w.entities):
            # nothing but code in it: a link is worth more than the font
            w.entities = [e for e in w.entities if not (e["type"] == "code" and e["offset"] >= start)]
            covered = start
        self._piece("text_link", covered, w.at, url=href)

    def _image(self, token: Token) -> None:
        source = str(token.attrGet("src") or "")
        self._w.write(f"🖼 {token.content}".rstrip())
        if source:
            self._w.write(f" ({source})" if token.content else f" {source}")

    def _table(self, tokens: list[Token]) -> None:
        rows = table_rows(tokens)
        w = self._w
        shown = [[plain_of(cell) for cell in row] for row in rows]
        widths = [max(map(_columns, column)) for column in zip(*shown, strict=True)]
        start = w.at
        if sum(widths) + 3 * (len(widths) - 1) <= _TABLE_COLUMNS:
            lines = [" │ ".join(cell + " " * (width - _columns(cell)) for cell, width in zip(row, widths, strict=True)).rstrip() for row in shown]
            lines.insert(1, "─┼─".join("─" * width for width in widths))
            w.write("\n".join(lines))
            w.mark("pre", start)
            return
        for number, row in enumerate(rows[1:] or rows):
            if number:
                w.write("\n")
            for place, cell in enumerate(row):
                if not plain_of(cell):
                    continue
                begin = w.at
                if begin > start and not "".join(w.pieces[-1:]).endswith("\n"):
                    w.write("\n")
                    begin = w.at
                if place == 0:
                    w.open.append("bold")
                    self._inline(cell)
                    w.open.pop()
                    self._around(begin, "bold")
                else:
                    head = shown[0][place] if len(rows) > 1 else ""
                    w.write(f"  {head}: " if head else "  ")
                    self._inline(cell)


def _since(writer: Writer, start: int) -> str:
    """What was written since `start`."""
    text, left = "", writer.at - start
    for piece in reversed(writer.pieces):
        if left <= 0:
            break
        text, left = piece + text, left - units(piece)
    return text


def table_rows(tokens: list[Token]) -> list[list[list[Token]]]:
    """Rows of cells of inline tokens, all rows equally long (as the parser makes them)."""
    rows: list[list[list[Token]]] = []
    for token in tokens:
        if token.type == "tr_open":
            rows.append([])
        elif token.type == "inline":
            rows[-1].append(token.children or [])
    return rows


def plain_of(tokens: list[Token]) -> str:
    """Inline tokens without markup."""
    pieces = []
    for token in tokens:
        pieces.append(" " if token.type in ("softbreak", "hardbreak") else f"🖼 {token.content}" if token.type == "image" else token.content)
    return "".join(pieces)


def _columns(text: str) -> int:
    """Columns in a fixed font."""
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)
