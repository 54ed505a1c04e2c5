"""The map of relays, `claude:x ↔ codex:y`: which sessions belong together, how far each has been carried, and the files
as they were. Kept in the database of the session index, so that it works without a supervisor; one short transaction each.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from agents_registry.errors import BusyError
from agents_registry.relay.drift import FileState
from agents_registry.relay.earlier import Seen
from agents_registry.sessions.index import SessionIndex

_TABLE = """
create table if not exists relay_links(
    a_agent text not null, a_id text not null, a_root text not null, a_requests integer not null, a_mark text not null,
    b_agent text not null, b_id text not null, b_root text not null, b_requests integer not null, b_mark text not null,
    cwd text not null, files text not null, at real not null,
    primary key (a_agent, a_id, a_root, b_agent, b_id, b_root))
"""


@dataclass(frozen=True, slots=True)
class End:
    """One session of a link, and how far it has been carried to the other."""

    agent: str
    id: str
    root: str
    seen: Seen

    @property
    def key(self) -> tuple[str, str, str]:
        return self.agent, self.id, self.root


@dataclass(frozen=True, slots=True)
class Link:
    """Two sessions of one piece of work, as of the last relay at `at` (seconds since the epoch). `mine` is the end that
    was asked for (or the source), `other` the session of the other agent; `files`: path to mark, as of that time."""

    mine: End
    other: End
    cwd: str
    files: dict[str, str]
    at: float


class RelayMap:
    """The open map; a context manager. Raises as `SessionIndex`, `BusyError` when others hold the database too long."""

    def __init__(self, path: Path, *, clock: Callable[[], float] = time.time) -> None:
        self._index = SessionIndex(path)
        self._clock = clock
        self._run(_TABLE)

    def __enter__(self) -> RelayMap:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._index.db.close()

    def record(self, mine: End, other: End, cwd: str, files: Iterable[FileState]) -> None:
        """Say that `mine` was carried to `other` up to where both `seen` say. An earlier entry of the pair is replaced."""
        first, second = sorted((mine, other), key=lambda end: end.key)
        marks = json.dumps({state.path: state.mark for state in files}, ensure_ascii=True)
        row = [*first.key, first.seen.requests, first.seen.mark, *second.key, second.seen.requests, second.seen.mark]
        self._run(f"insert or replace into relay_links values({','.join('?' * 13)})", [*row, cwd, marks, self._clock()])

    def find(self, agent: str, session: str, root: str, other_agent: str) -> Link | None:
        """The latest link of a session with one of `other_agent`, None when there is none."""
        return next((link for link in self.links() for link in (link, _turned(link)) if link.mine.key == (agent, session, root) and link.other.agent == other_agent), None)

    def links(self) -> list[Link]:
        """All links, the latest first."""
        found = []
        for row in self._run("select * from relay_links order by at desc, rowid desc"):
            a = End(row[0], row[1], row[2], Seen(row[3], row[4]))
            b = End(row[5], row[6], row[7], Seen(row[8], row[9]))
            found.append(Link(a, b, row[10], dict(json.loads(row[11])), row[12]))
        return found

    def forget(self, link: Link) -> None:
        """Take one link out (one of its sessions is gone)."""
        first, second = sorted((link.mine, link.other), key=lambda end: end.key)
        self._run(
            "delete from relay_links where a_agent=? and a_id=? and a_root=? and b_agent=? and b_id=? and b_root=?", [*first.key, *second.key]
        )

    def _run(self, statement: str, values: Iterable[object] = ()) -> list[tuple[Any, ...]]:
        try:
            return self._index.db.execute(statement, tuple(values)).fetchall()
        except sqlite3.OperationalError as error:
            raise BusyError(f"The map of relays cannot be used now: {error}.", hint="Try again in a moment.") from error


def _turned(link: Link) -> Link:
    return Link(link.other, link.mine, link.cwd, link.files, link.at)
