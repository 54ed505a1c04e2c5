"""Finding sessions by what was said in them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from agents_registry.errors import UsageError
from agents_registry.sessions.index import SessionIndex
from agents_registry.sessions.paths import real
from agents_registry.sessions.words import query

_AROUND = 70
"""Characters of a snippet before and after the word."""
_MORE = 4
"""Documents fetched for each session wanted, since a long session is several documents."""


@dataclass(frozen=True, slots=True)
class Filters:
    """None = any. Times are seconds since the epoch, compared with the session's last change."""

    agent: str | None = None
    cwd: str | None = None
    since: float | None = None
    until: float | None = None


@dataclass(frozen=True, slots=True)
class Hit:
    """A session that holds all the words; `snippet` is one place where the first of them stands."""

    agent: str
    id: str
    cwd: str
    title: str
    updated_at: float
    snippet: str
    path: Path
    store_root: Path


def find(index: SessionIndex, words: str, filters: Filters | None = None, *, limit: int = 20) -> list[Hit]:
    """Best matches first. Every word must occur (as the beginning of a word); case and accents do not matter.

    Raises `UsageError` when there is nothing to look for. Looks only at what `SessionIndex.refresh` has read.
    """
    asked = query(words)
    if not asked:
        raise UsageError("There is no word to look for.", hint="Give letters or digits, not signs alone.")
    only = filters or Filters()
    where, values = ["words match ?"], [asked]
    terms: list[str | float] = list(values)
    if only.agent is not None:
        where.append("indexed.agent = ?")
        terms.append(only.agent)
    if only.cwd is not None:
        where.append("(indexed.cwd = ? or indexed.place = ?)")
        terms += [only.cwd, real(only.cwd)]
    if only.since is not None:
        where.append("indexed.updated_at >= ?")
        terms.append(only.since)
    if only.until is not None:
        where.append("indexed.updated_at < ?")
        terms.append(only.until)
    rows = index.db.execute(
        "select indexed.row, indexed.agent, indexed.id, indexed.cwd, indexed.title, indexed.updated_at, documents.id, "
        "indexed.path, indexed.store_root from words join documents on documents.id = words.rowid "
        f"join indexed on indexed.row = documents.row where {' and '.join(where)} order by words.rank limit ?",
        (*terms, limit * _MORE),
    ).fetchall()
    found: dict[int, Hit] = {}
    for row, agent, session, cwd, title, at, document, path, root in rows:
        if row not in found and len(found) < limit:
            body = index.db.execute("select body from documents where id = ?", (document,)).fetchone()
            found[row] = Hit(agent, session, cwd, title, at, snippet(body[0] if body else "", words), Path(path), Path(root))
    return list(found.values())


def snippet(body: str, words: str) -> str:
    """A piece of the text round the first of the words that stands in it, on one line."""
    for word in sorted(words.split(), key=len, reverse=True):
        for part in (word, *re.findall(r"\w+", word)):
            found = re.search(re.escape(part), body, re.IGNORECASE)
            if found is not None:
                start, end = max(0, found.start() - _AROUND), min(len(body), found.end() + _AROUND)
                piece = " ".join(body[start:end].split())
                return ("… " if start else "") + piece + (" …" if end < len(body) else "")
    return " ".join(body[: 2 * _AROUND].split())


def day(text: str, *, end: bool = False) -> float | None:
    """The begin of a local day (its end with `end`) as seconds since the epoch; None for "".

    Raises `UsageError` for what is no date.
    """
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"{text!r} is no date.", hint="Write it as 2026-05-31.") from None
    moment = moment.astimezone() if moment.tzinfo is None else moment
    return (moment + timedelta(days=1)).timestamp() if end and len(text) == 10 else moment.timestamp()
