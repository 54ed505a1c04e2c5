"""Change one table of a TOML file in its text, leaving every other byte as it is.

The new table is appended, an existing one is cut out or exchanged by its lines; tomlkit is the second way, for files
that hold the table in another form (inline, dotted). Whatever way was taken, the result is parsed and compared with
what it ought to say before it is used.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from typing import Any

_HEADER = re.compile(r"^\s*(\[{1,2})\s*(.*?)\s*\]{1,2}\s*(#.*)?$")
_BARE = re.compile(r"[A-Za-z0-9_-]+")


class TomlTextError(ValueError):
    """The text is no TOML, or the change cannot be made in it safely."""


def get_table(text: str, path: tuple[str, ...]) -> Any:
    """The value at `path`, or None. Raises TomlTextError."""
    current: Any = _parsed(text)
    for key in path:
        if not isinstance(current, dict) or key not in current:
            return None
        current = current[key]
    return current


def set_table(text: str, path: tuple[str, ...], value: Mapping[str, Any]) -> str:
    """`text` with the table `value` at `path`. Raises TomlTextError, also when something on the way is no table."""
    parsed = _parsed(text)
    current = get_table(text, path)
    if current == value:
        return text
    expected = _with(parsed, path, dict(value))
    newline = "\r\n" if "\r\n" in text else "\n"
    block = newline.join(_block(path, value)) + newline

    def exchange() -> str:
        without = _cut(text, path) if current is not None else text
        if not without.strip():
            return without.strip() + block
        gap = "" if without.endswith(("\n\n", "\r\n\r\n")) else newline if without.endswith("\n") else newline * 2
        return without + gap + block

    def by_tomlkit() -> str:
        import tomlkit
        from tomlkit.items import InlineTable

        document = tomlkit.parse(text)
        table: Any = document
        for key in path[:-1]:
            table = table.setdefault(key, tomlkit.table())
        if isinstance(table, InlineTable):
            entry = tomlkit.inline_table()
            entry.update(value)
            table[path[-1]] = entry
        else:
            table[path[-1]] = tomlkit.item(dict(value))
        return tomlkit.dumps(document)

    return _first_right([exchange, by_tomlkit], expected, text)


def remove_table(text: str, path: tuple[str, ...]) -> str:
    """`text` without the table at `path`; enclosing tables that it leaves empty go too. Raises TomlTextError."""
    parsed = _parsed(text)
    if get_table(text, path) is None:
        return text
    expected = _without(parsed, path)

    def by_lines() -> str:
        return _cut(text, path)

    def by_tomlkit() -> str:
        import tomlkit

        document = tomlkit.parse(text)
        owners: list[Any] = [document]
        for key in path[:-1]:
            owners.append(owners[-1][key])
        for depth in range(len(path) - 1, -1, -1):
            if depth == len(path) - 1 or not owners[depth + 1]:
                del owners[depth][path[depth]]
        return tomlkit.dumps(document)

    return _first_right([by_lines, by_tomlkit], expected, text)


def _parsed(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise TomlTextError(str(error)) from error


def _first_right(ways: list[Callable[[], str]], expected: dict[str, Any], text: str) -> str:
    for way in ways:
        try:
            result = way()
            if _parsed(result) == expected:
                return result
        except Exception:  # noqa: BLE001 - tomlkit has no common error class; the next way, or the refusal below, follows
            continue
    raise TomlTextError("the table cannot be changed without touching the rest of the file")


def _with(parsed: dict[str, Any], path: tuple[str, ...], value: Any) -> dict[str, Any]:
    key, rest = path[0], path[1:]
    inner = parsed.get(key, {})
    if rest and not isinstance(inner, dict):
        raise TomlTextError(f"'{key}' is not a table")
    return {**parsed, key: _with(inner, rest, value) if rest else value}


def _without(parsed: dict[str, Any], path: tuple[str, ...]) -> dict[str, Any]:
    key, rest = path[0], path[1:]
    inner = _without(parsed[key], rest) if rest else {}
    others = {name: value for name, value in parsed.items() if name != key}
    return {name: inner if name == key else value for name, value in parsed.items()} if inner else others


def _block(path: tuple[str, ...], value: Mapping[str, Any]) -> list[str]:
    lines = ["[" + ".".join(_key(part) for part in path) + "]"]
    lines += [f"{_key(key)} = {_value(item)}" for key, item in value.items() if not isinstance(item, dict)]
    for key, item in value.items():
        if isinstance(item, dict):
            lines += ["", *_block((*path, key), item)]
    return lines


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _value(key)


def _value(value: Any) -> str:
    import json

    if isinstance(value, list | tuple):
        return "[" + ", ".join(_value(item) for item in value) + "]"
    # JSON's texts, numbers and booleans are TOML's, apart from DEL, which TOML wants escaped.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _cut(text: str, path: tuple[str, ...]) -> str:
    """Without the sections `[path]` and `[path.…]`. Comments and blank lines above the next header stay with it."""
    kept: list[str] = []
    section: list[str] = []
    inside = False
    for line in [*text.splitlines(keepends=True), ""]:
        header = _HEADER.match(line.rstrip("\r\n"))
        if header or not line:
            ours = header is not None and _path_of(header.group(2))[: len(path)] == path
            if inside and not ours:
                kept += _tail(section)
                section = []
            inside = ours
        (section if inside else kept).append(line)
    result = "".join(kept)
    blank = "\r\n" if "\r\n" in text else "\n"
    return result[: -len(blank)] if result.endswith(blank * 2) and not text.endswith(blank * 2) else result


def _tail(section: list[str]) -> list[str]:
    """The blank and comment lines at the end of a section."""
    cut = len(section)
    while cut > 1 and (not section[cut - 1].strip() or section[cut - 1].lstrip().startswith("#")):
        cut -= 1
    return section[cut:]


def _path_of(dotted: str) -> tuple[str, ...]:
    parts = re.findall(r'"((?:[^"\\]|\\.)*)"|\'([^\']*)\'|([A-Za-z0-9_-]+)', dotted)
    return tuple(next(word for word in part if word) if any(part) else "" for part in parts)
