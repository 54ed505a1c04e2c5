"""Which tests claim which requirements: read from the source of all tests, without importing any of them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_TESTS = Path(__file__).resolve().parent


class Mark(NamedTuple):
    """One use of the marker: where (path:line), and the ids that it names."""

    place: str
    names: tuple[str, ...]


def collected(folder: Path = _TESTS) -> list[Mark]:
    """Every `pytest.mark.requires(...)` under a folder, in order of files and lines; ValueError where an id is no literal."""
    marks: list[Mark] = []
    for path in sorted(folder.rglob("test_*.py")):
        marks.extend(_marks(ast.parse(path.read_text("utf-8"), str(path)), path.relative_to(folder.parent).as_posix()))
    return marks


def _marks(tree: ast.AST, path: str) -> Iterator[Mark]:
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and _is_marker(node.func)):
            continue
        place = f"{path}:{node.lineno}"
        names: list[str] = []
        for argument in node.args:
            if not (isinstance(argument, ast.Constant) and isinstance(argument.value, str)):
                raise ValueError(f"{place}: an id of a requirement is written out as text, so that it can be found")
            names.append(argument.value)
        yield Mark(place, tuple(names))


def _is_marker(function: ast.expr) -> bool:
    return (
        isinstance(function, ast.Attribute)
        and function.attr == "requires"
        and isinstance(function.value, ast.Attribute)
        and function.value.attr == "mark"
    )
