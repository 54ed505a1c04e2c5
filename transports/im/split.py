"""Cutting what does not fit one message: at paragraph and fence borders, in the platform's own measure. Pure.

A fence that is cut is closed in its piece and opened again, with its language, in the next. Nothing is lost but the blank
space at a cut outside of code.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, replace

from transports.im.content import Content, Part, Unit

Fits = Callable[[Content], bool]

_FENCE = re.compile(r"^([ \t]*)(`{3,}|~{3,})([^\n]*)$")
_SHRINK = 0.8
"""What did not fit is tried again at this share of its length: few renderings, little room wasted."""
_JOINERS = frozenset("\u200d\ufe0e\ufe0f")
_LEAST = 0.4
"""A border is taken when at least this share of the room is used before it; else the next finer kind is looked at."""


@dataclass(frozen=True, slots=True)
class _Rest:
    """What is still to be given of a part. `opener`: the fence that was cut, to be opened again before it."""

    part: Part
    opener: str = ""

    def shown(self) -> Part:
        return replace(self.part, text=f"{self.opener}\n{self.part.text}") if self.opener else self.part


def split(content: Content, fits: Fits, *, room: int, unit: Unit = "codepoints") -> list[Content]:
    """Pieces in order, each of which fits; at least one, none of them empty (unless the content is).

    `room`: the length that is tried first, in `unit` (`Capability.max_text`); `fits` has the last word. A single sign that
    does not fit is given all the same: the platform says then what it thinks of it.
    """
    whole = tuple(part for part in content.parts if part.text.strip() or part.title.strip())
    if not whole or fits(Content(whole)):
        return [Content(whole)]
    done: list[Content] = []
    current: list[Part] = []
    for part in whole:
        rest: _Rest | None = _Rest(part)
        while rest is not None:
            if fits(Content((*current, rest.shown()))):
                current.append(rest.shown())
                break
            head, rest = _cut(current, rest, fits, room, unit)
            if head is not None:
                current.append(head)
            if current:
                done.append(Content(tuple(current)))
                current = []
    if current:
        done.append(Content(tuple(current)))
    return done


def _cut(current: list[Part], rest: _Rest, fits: Fits, room: int, unit: Unit) -> tuple[Part | None, _Rest | None]:
    """As much as goes behind `current`, and the rest. (None, all of it): nothing goes there, begin a new message."""
    part = rest.part
    if current and (part.kind in ("status", "folded") or _short(part, room)):
        return None, rest
    size = _prefix(part.text, room, unit)
    if size == len(part.text):
        size = max(1, int(size * _SHRINK))
    while size > 0:
        at = _border(rest, size)
        if at <= 0:
            break
        head, tail = _halves(rest, at)
        if not head.text.strip():
            return (None, tail) if not current else _cut(current, tail, fits, room, unit) if tail else (None, None)
        if fits(Content((*current, head))):
            return head, tail
        size = min(int(size * _SHRINK), at - 1)
    if current:
        return None, rest
    return _halves(rest, _whole_sign(part.text, 1))


def _short(part: Part, room: int) -> bool:
    """Not worth being cut: a short block of ours, or a code block that has a message's half for itself."""
    return part.kind != "markdown" and len(part.text) < room // 4


def _prefix(text: str, room: int, unit: Unit) -> int:
    """How many code points of `text` have at most `room` units."""
    if unit == "codepoints" or len(text) * 4 <= room:
        return min(len(text), room)
    used = 0
    for index, sign in enumerate(text):
        used += (2 if sign > "\uffff" else 1) if unit == "utf16" else len(sign.encode("utf-8", "replace"))
        if used > room:
            return index
    return len(text)


def _border(rest: _Rest, size: int) -> int:
    """The best place to cut at or before `size`: behind a paragraph, a line, a word, a sign."""
    text = rest.part.text
    if size >= len(text):
        return len(text)
    least = int(size * _LEAST)
    if rest.part.kind == "markdown":
        paragraph = _paragraph(rest.opener, text, size)
        if paragraph > least:
            return paragraph
    for sign in ("\n", " ", "。", "！", "？", "，", "、"):
        at = text.rfind(sign, 0, size)
        if at >= least and at > 0:
            return _before_opening(rest, at + 1)
    return _before_opening(rest, _whole_sign(text, size))


def _before_opening(rest: _Rest, at: int) -> int:
    """Not behind the line that opens a fence: before it, if there is anything before."""
    if rest.part.kind != "markdown":
        return at
    head = rest.part.text[:at].removesuffix("\n")
    start = head.rfind("\n") + 1
    fence = rest.opener
    for line in head[:start].split("\n")[:-1]:
        fence = _fence_after(fence, line)
    return start if start > 0 and not fence and _fence_after("", head[start:]) else at


def _paragraph(fence: str, text: str, size: int) -> int:
    """The last blank line outside of a fence, or the last border of a fence, before `size`; 0 = none."""
    best = at = 0
    for line in text[:size].split("\n")[:-1]:
        after = at + len(line) + 1
        opened, fence = fence, _fence_after(fence, line)
        if not opened and fence and at:
            best = at
        elif (opened and not fence) or (not fence and not line.strip()):
            best = after
        at = after
    return best


def _fence_after(fence: str, line: str) -> str:
    """The open fence's first line after `line`, "" for none (CommonMark 0.31, 4.5; any indentation, for lists)."""
    found = _FENCE.match(line)
    if found is None:
        return fence
    marks, info = found[2], found[3]
    if not fence:
        return "" if marks[0] == "`" and "`" in info else line
    opened = _FENCE.match(fence)
    if opened is not None and marks[0] == opened[2][0] and len(marks) >= len(opened[2]) and not info.strip():
        return ""
    return fence


def open_fence(text: str) -> str:
    """The line that would open again the fence that is open at the end of `text`; "" when none is."""
    fence = ""
    for line in text.split("\n"):
        fence = _fence_after(fence, line)
    return _again(fence) if fence else ""


def _again(fence: str) -> str:
    opened = _FENCE.match(fence)
    return f"{opened[1]}{opened[2]}{(opened[3].split() or [''])[0][:20]}" if opened is not None else "```"


def _whole_sign(text: str, size: int) -> int:
    """`size`, or less, so that no combined sign is torn; more, where one sign is longer than `size`."""
    if size >= len(text):
        return len(text)
    at = size
    while at > 0 and not _boundary(text, at):
        at -= 1
    if at > 0:
        return at
    at = max(1, size)
    while at < len(text) and at < size + 64 and not _boundary(text, at):
        at += 1
    return at


def _boundary(text: str, at: int) -> bool:
    before, after = text[at - 1], text[at]
    if before == "\r" and after == "\n":
        return False
    if after in _JOINERS or before == "\u200d" or unicodedata.combining(after) or "\U0001f3fb" <= after <= "\U0001f3ff":
        return False
    if _flag(before) and _flag(after):
        count = 0
        while count < at and _flag(text[at - 1 - count]):
            count += 1
        return count % 2 == 0
    return True


def _flag(sign: str) -> bool:
    return "\U0001f1e6" <= sign <= "\U0001f1ff"


def _halves(rest: _Rest, at: int) -> tuple[Part, _Rest | None]:
    """The rest cut at `at`; None when nothing is left."""
    part, text = rest.part, rest.part.text
    head, tail = text[:at], text[at:]
    if head.endswith("\n"):
        head = head[:-1]
    elif tail.startswith("\n"):
        tail = tail[1:]
    if part.kind != "markdown":
        return replace(part, text=head), _Rest(replace(part, text=tail, title="")) if tail.strip() else None
    fence = rest.opener
    for line in head.split("\n"):
        fence = _fence_after(fence, line)
    if not fence:
        shown = replace(rest, part=replace(part, text=head.rstrip("\n"))).shown()
        tail = tail.lstrip("\n")
        return shown, _Rest(replace(part, text=tail)) if tail.strip() else None
    opened = _FENCE.match(fence)
    indent, marks = (opened[1], opened[2]) if opened is not None else ("", "```")
    again = _again(fence)
    shown = replace(rest, part=replace(part, text=f"{head}\n{indent}{marks}")).shown()
    first, _, behind = tail.partition("\n")
    if not tail.strip() or not _fence_after(again, first):  # only its end was left: it stands there already
        behind = behind.lstrip("\n")
        return shown, _Rest(replace(part, text=behind)) if behind.strip() else None
    return shown, _Rest(replace(part, text=tail), again)
