"""Change one member of a JSON object in its text, leaving every other byte as it is.

The text may hold `//` and `/* */` comments and trailing commas, as several agents allow in their settings. A small
scanner finds where members begin and end; nothing is parsed and printed again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_WORD = re.compile(r"[^\s,:{}\[\]\"/]+")
_MAX_DEPTH = 200


class JsonTextError(ValueError):
    """The text is no JSON object (comments and trailing commas aside); says the 1-based line."""


@dataclass(slots=True)
class _Member:
    key: str
    key_start: int
    value_start: int
    value_end: int


@dataclass(slots=True)
class _Object:
    open: int
    close: int
    members: list[_Member]
    trailing_comma: bool

    def get(self, key: str) -> _Member | None:
        """The last one of that name: that is the one parsers take."""
        return next((member for member in reversed(self.members) if member.key == key), None)


class _Scanner:
    def __init__(self, text: str) -> None:
        self.text = text

    def fail(self, at: int, what: str) -> JsonTextError:
        return JsonTextError(f"line {self.text.count(chr(10), 0, at) + 1}: {what}")

    def blank(self, at: int) -> int:
        """The first position from `at` that is neither white space nor comment."""
        text = self.text
        while at < len(text):
            if text[at] in " \t\r\n\ufeff":
                at += 1
            elif text.startswith("//", at):
                end = text.find("\n", at)
                at = len(text) if end < 0 else end
            elif text.startswith("/*", at):
                end = text.find("*/", at + 2)
                if end < 0:
                    raise self.fail(at, "a comment without an end")
                at = end + 2
            else:
                break
        return at

    def string(self, at: int) -> int:
        end = at + 1
        while end < len(self.text) and self.text[end] != '"':
            if self.text[end] == "\n":
                break
            end += 2 if self.text[end] == "\\" else 1
        if end >= len(self.text) or self.text[end] != '"':
            raise self.fail(at, "a text without a closing quote")
        return end + 1

    def value(self, at: int, depth: int) -> int:
        """The end of the value that begins at `at`."""
        if depth > _MAX_DEPTH:
            raise self.fail(at, "nested too deeply")
        if at >= len(self.text):
            raise self.fail(at, "the text ends too early")
        sign = self.text[at]
        if sign == '"':
            end = self.string(at)
        elif sign == "{":
            return self.object(at, depth).close + 1
        elif sign == "[":
            return self.array(at, depth)
        else:
            word = _WORD.match(self.text, at)
            if word is None:
                raise self.fail(at, f"unexpected {sign!r}")
            end = word.end()
        try:
            json.loads(self.text[at:end])
        except ValueError as error:
            raise self.fail(at, f"{self.text[at:end][:40]!r} is no JSON value") from error
        return end

    def array(self, at: int, depth: int) -> int:
        at = self.blank(at + 1)
        while self.text[at : at + 1] != "]":
            at = self.blank(self.value(at, depth + 1))
            if self.text[at : at + 1] == ",":
                at = self.blank(at + 1)
            elif self.text[at : at + 1] != "]":
                raise self.fail(at, "expected ',' or ']'")
        return at + 1

    def object(self, opening: int, depth: int = 0) -> _Object:
        members: list[_Member] = []
        comma = False
        at = self.blank(opening + 1)
        while self.text[at : at + 1] != "}":
            if members and not comma:
                raise self.fail(at, "expected ',' or '}'")
            if self.text[at : at + 1] != '"':
                raise self.fail(at, "expected a member's name in double quotes")
            key_start, key_end = at, self.string(at)
            at = self.blank(key_end)
            if self.text[at : at + 1] != ":":
                raise self.fail(at, "expected ':'")
            value_start = self.blank(at + 1)
            value_end = self.value(value_start, depth + 1)
            try:
                key = json.loads(self.text[key_start:key_end])
            except ValueError as error:
                raise self.fail(key_start, "a member's name that is no JSON text") from error
            members.append(_Member(key, key_start, value_start, value_end))
            at = self.blank(value_end)
            comma = self.text[at : at + 1] == ","
            if comma:
                at = self.blank(at + 1)
        return _Object(opening, at, members, comma and bool(members))

    def document(self) -> _Object:
        start = self.blank(0)
        if self.text[start : start + 1] != "{":
            raise self.fail(start, "expected a JSON object")
        whole = self.object(start)
        rest = self.blank(whole.close + 1)
        if rest != len(self.text):
            raise self.fail(rest, "something follows the end of the object")
        return whole


def get_member(text: str, path: tuple[str, ...]) -> Any:
    """The value at `path`, or None where it (or an object on the way) is missing. Raises JsonTextError."""
    scanner = _Scanner(text)
    current = scanner.document()
    for depth, key in enumerate(path):
        member = current.get(key)
        if member is None:
            return None
        if depth == len(path) - 1:
            return json.loads(strip_comments(text[member.value_start : member.value_end]))
        if text[member.value_start] != "{":
            return None
        current = scanner.object(member.value_start)
    return None


def set_member(text: str, path: tuple[str, ...], value: Mapping[str, Any]) -> str:
    """`text` with the object `value` at `path`; objects on the way are made where missing. An empty text is `{}`.

    Raises:
        JsonTextError: no JSON object, or something on the way is no object.
    """
    if not text.strip(" \t\r\n\ufeff"):
        return json.dumps(_nested(path, value), indent=2, ensure_ascii=False) + "\n"
    scanner = _Scanner(text)
    style = _Style(text)
    current = scanner.document()
    for depth, key in enumerate(path):
        member = current.get(key)
        if member is None:
            return _insert(text, scanner, style, current, key, _nested(path[depth + 1 :], value))
        if depth == len(path) - 1:
            if json.loads(strip_comments(text[member.value_start : member.value_end])) == value:
                return text
            printed = style.printed(value, _indent_of(text, member.key_start))
            return text[: member.value_start] + printed + text[member.value_end :]
        if text[member.value_start] != "{":
            raise scanner.fail(member.value_start, f"'{key}' is not an object")
        current = scanner.object(member.value_start)
    raise AssertionError("an empty path")


def remove_member(text: str, path: tuple[str, ...], *, drop_empty: bool = True) -> str:
    """`text` without the member at `path`; an enclosing object that it leaves empty goes too, with `drop_empty`
    (the outermost object always stays). Unchanged where there is none. Raises JsonTextError."""
    scanner = _Scanner(text)
    current = scanner.document()
    chain: list[tuple[_Object, _Member]] = []
    for depth, key in enumerate(path):
        member = current.get(key)
        if member is None:
            return text
        chain.append((current, member))
        if depth < len(path) - 1:
            if text[member.value_start] != "{":
                return text
            current = scanner.object(member.value_start)
    while drop_empty and len(chain) > 1 and _alone(text, chain[-1][0]):
        chain.pop()
    owner, member = chain[-1]
    index = owner.members.index(member)
    if index + 1 < len(owner.members):  # up to the next member, whose own leading space stays
        after = owner.members[index + 1].key_start
        return text[: member.key_start] + text[after:]
    end = member.value_end
    if owner.trailing_comma:
        end = text.index(",", scanner.blank(member.value_end)) + 1
    if index > 0:
        before = owner.members[index - 1].value_end
        gap = text[before : member.key_start]
        kept = gap.replace(",", "", 1).rstrip() if ("//" in gap or "/*" in gap) else ""
        comma = "," if owner.trailing_comma else ""
        return text[:before] + comma + kept + text[end:]
    rest = text[end : owner.close]
    return text[: owner.open + 1] + (rest if rest.strip() else "") + text[owner.close :]


def _alone(text: str, owner: _Object) -> bool:
    """Whether the object holds one member and no comment."""
    if len(owner.members) != 1:
        return False
    member = owner.members[0]
    around = text[owner.open + 1 : member.key_start] + text[member.value_end : owner.close]
    return not around.replace(",", "").strip()


def _nested(path: tuple[str, ...], value: Mapping[str, Any]) -> Mapping[str, Any]:
    for key in reversed(path):
        value = {key: value}
    return value


class _Style:
    """How the text is laid out: its indentation unit, line ends, and whether it is one line."""

    def __init__(self, text: str) -> None:
        self.newline = "\r\n" if "\r\n" in text else "\n"
        first = re.search(r"\n([ \t]+)\S", text)
        self.unit = first.group(1) if first else "  "
        self.one_line = "\n" not in text.strip()

    def printed(self, value: Any, indent: str) -> str:
        if self.one_line:
            return json.dumps(value, ensure_ascii=False)
        lines = json.dumps(value, indent=self.unit, ensure_ascii=False).split("\n")
        return (self.newline + indent).join(lines)


def _indent_of(text: str, at: int) -> str:
    start = text.rfind("\n", 0, at) + 1
    match = re.match(r"[ \t]*", text[start:at])
    return match.group(0) if match else ""


def _insert(text: str, scanner: _Scanner, style: _Style, owner: _Object, key: str, value: Mapping[str, Any]) -> str:
    name = json.dumps(key, ensure_ascii=False)
    if style.one_line:
        piece = f"{name}: {style.printed(value, '')}"
        if owner.members:
            end = owner.members[-1].value_end
            if owner.trailing_comma:
                end = text.index(",", scanner.blank(end)) + 1
                return text[:end] + " " + piece + "," + text[end:]
            return text[:end] + ", " + piece + text[end:]
        return text[: owner.open + 1] + piece + text[owner.open + 1 :]
    if owner.members:
        last = owner.members[-1]
        own_line = "\n" in text[owner.open : last.key_start]
        indent = _indent_of(text, last.key_start) if own_line else _indent_of(text, owner.open) + style.unit
        piece = f"{style.newline}{indent}{name}: {style.printed(value, indent)}"
        if owner.trailing_comma:
            end = text.index(",", scanner.blank(last.value_end)) + 1
            return text[:end] + piece + "," + text[end:]
        # A comment behind the last member belongs to it: the comma goes before it, the new member after it.
        line_end = _comment_end(text, last.value_end, owner.close)
        return text[: last.value_end] + "," + text[last.value_end : line_end] + piece + text[line_end:]
    outer = _indent_of(text, owner.open)
    indent = outer + style.unit
    inside = text[owner.open + 1 : owner.close].rstrip()
    piece = f"{style.newline}{indent}{name}: {style.printed(value, indent)}{style.newline}{outer}"
    return text[: owner.open + 1] + inside + piece + text[owner.close :]


def _comment_end(text: str, at: int, limit: int) -> int:
    """The end of a comment that stands on the same line behind `at`, else `at`."""
    line_end = text.find("\n", at, limit)
    line_end = limit if line_end < 0 else line_end
    tail = text[at:line_end]
    return at + len(tail.rstrip()) if tail.strip().startswith(("//", "/*")) else at


def strip_comments(text: str) -> str:
    """The same JSON without comments and trailing commas, for a strict parser. Text in quotes is left alone."""
    pieces: list[str] = []
    at = 0
    while at < len(text):
        sign = text[at]
        if sign == '"':
            end = at + 1
            while end < len(text) and text[end] != '"':
                end += 2 if text[end] == "\\" else 1
            pieces.append(text[at : end + 1])
            at = end + 1
        elif text.startswith("//", at):
            end = text.find("\n", at)
            at = len(text) if end < 0 else end
        elif text.startswith("/*", at):
            end = text.find("*/", at + 2)
            at = len(text) if end < 0 else end + 2
        elif sign in "}]":
            while pieces and not pieces[-1].strip():
                pieces.pop()
            if pieces and pieces[-1] == ",":
                pieces.pop()
            pieces.append(sign)
            at += 1
        elif sign == "\ufeff" and at == 0:
            at += 1
        else:
            pieces.append(sign)
            at += 1
    return "".join(pieces)
