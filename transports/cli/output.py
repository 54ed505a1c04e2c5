"""What commands print: one JSON document or plain tables on stdout, progress and remarks on stderr."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from transports.human import ago, width

F = TypeVar("F", bound=Callable[..., Any])


def json_option(function: F) -> F:
    """The `--json` flag of a listing, handed in as `as_json`."""
    return click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")(function)


def emit_json(document: Any) -> None:
    """One JSON document, readable; plain ASCII where the terminal's encoding is not UTF-8."""
    import json

    _write(json.dumps(document, ensure_ascii=not _utf8(), indent=2, default=str) + "\n")


def emit_line(event: dict[str, Any]) -> None:
    """One JSON object on a line of its own, out at once: the form of streams."""
    import json

    _write(json.dumps(event, ensure_ascii=not _utf8(), separators=(",", ":"), default=str) + "\n")


def emit(text: str) -> None:
    """A line for people on stdout."""
    _write(text + "\n")


def write(text: str) -> None:
    """A piece of text on stdout, as it is, out at once."""
    _write(text)


def remark(text: str) -> None:
    """A line for people beside the result: progress, notes. On stderr."""
    sys.stdout.flush()
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def table(rows: Sequence[Sequence[str]], head: Sequence[str] = ()) -> str:
    """Aligned columns, aware of wide characters; the last column is not padded. A cell is one line and steers no terminal."""
    lines = [[*head], *([_cell(cell) for cell in row] for row in rows)] if head else [[_cell(cell) for cell in row] for row in rows]
    if not lines:
        return ""
    widths = [max(width(line[i]) for line in lines) for i in range(len(lines[0]))]
    out = []
    for line in lines:
        cells = [cell + " " * (widths[i] - width(cell)) for i, cell in enumerate(line[:-1])]
        out.append("  ".join([*cells, line[-1]]).rstrip())
    return "\n".join(out)


def _cell(text: str) -> str:
    return clean(text).replace("\n", " ").replace("\t", " ")


def when(at: float | int | None) -> str:
    """A time in seconds since the epoch, as people say it now."""
    return ago(float(at or 0), time.time())


def clean(text: str) -> str:
    """Text of an agent or a stranger without the control characters that would steer the terminal (tab, newline stay)."""
    if text.isprintable():
        return text
    return "".join(c for c in text if c.isprintable() or c in "\n\t " or c > "\u009f")


def _utf8() -> bool:
    return (getattr(sys.stdout, "encoding", "") or "").lower().replace("-", "") == "utf8"


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
