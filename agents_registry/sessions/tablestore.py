"""The common part of stores that keep many sessions in one SQLite database.

A store says how its rows become `SessionInfo`s and `Step`s; the rest follows. An inspection of a database counts its
main session: the newest one that is neither a sub-agent's nor archived.
"""

from __future__ import annotations

import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from agents_registry.errors import NotFoundError
from agents_registry.sessions import sqlite_ro
from agents_registry.sessions.filestore import Meta, counted, finished, no_session
from agents_registry.sessions.finding import find
from agents_registry.sessions.neutral import Builder, Conversation
from agents_registry.sessions.places import same_place
from agents_registry.sessions.port import Inspection, SessionInfo, Tail
from agents_registry.sessions.steps import Step, Tally, carry


class TableStore(ABC):
    """See the module. Subclasses implement `roots`, `database`, `rows`, `steps` and `has_tables`."""

    agent: str

    @abstractmethod
    def roots(self, env: Mapping[str, str]) -> list[Path]: ...

    @abstractmethod
    def database(self, root: Path) -> Path:
        """The database of a root; it need not exist."""

    @abstractmethod
    def has_tables(self, connection: sqlite3.Connection) -> bool:
        """Whether the tables are those of this agent."""

    @abstractmethod
    def rows(self, connection: sqlite3.Connection, path: Path, root: Path) -> Iterator[SessionInfo]:
        """All sessions, newest first, archived ones left out; sub-agents' have their `parent_id`."""

    @abstractmethod
    def steps(self, connection: sqlite3.Connection, info: SessionInfo, meta: Meta) -> Iterator[Step]:
        """The records of one session in the order in which the agent sees them."""

    def in_file_order(self, steps: Iterable[Step]) -> Iterable[Step]:
        """The steps that an inspection counts."""
        return steps

    def live_of(self, connection: sqlite3.Connection, info: SessionInfo, steps: Iterable[Step]) -> Iterable[Step]:
        """The steps of the agent's own tree."""
        return steps

    def list(
        self, root: Path, *, cwd: str | None = None, limit: int = 20, subagents: bool = False
    ) -> Iterator[SessionInfo]:
        """Newest first; see `SessionStore.list`. A database that is missing, damaged or locked lists nothing."""
        left = limit
        for info in self.every(root):
            if left <= 0:
                return
            if (info.parent_id and not subagents) or (cwd is not None and not same_place(info.cwd, cwd)):
                continue
            left -= 1
            yield info

    def resolve(self, root: Path, wanted: str, *, cwd: str | None = None) -> Sequence[SessionInfo]:
        """See `SessionStore.resolve`."""
        return find(self.every(root), wanted, cwd=cwd)

    def every(self, root: Path) -> Iterator[SessionInfo]:
        """All sessions of a root; nothing where there is no database that can be read."""
        path = self.database(root)
        try:
            with sqlite_ro.reading(path) as connection:
                if self.has_tables(connection):
                    yield from self.rows(connection, path, root)
        except (OSError, sqlite3.Error):
            return

    def read(self, info: SessionInfo) -> Conversation:
        """See `SessionStore.read`. Raises `NotFoundError` when the database cannot be read."""
        meta = Meta()
        builder = Builder(self.agent, info.id)
        try:
            with sqlite_ro.reading(info.path) as connection:
                carry(builder, self.live_of(connection, info, self.steps(connection, info, meta)))
        except (OSError, sqlite3.Error) as error:
            raise NotFoundError(
                f"The database {info.path} cannot be read: {error}.",
                hint="If the agent is writing to it, try again in a moment.",
            ) from None
        return finished(builder, meta, info)

    def inspect(self, path: Path) -> Inspection:
        """See `SessionStore.inspect`; counts the database's main session."""
        if not self.recognises(path):
            raise no_session(path, self.agent)
        meta = Meta()
        tally = Tally()
        try:
            with sqlite_ro.reading(path) as connection:
                infos = list(self.rows(connection, path, path.parent))
                info = next((info for info in infos if not info.parent_id), infos[0] if infos else None)
                if info is not None:
                    for step in self.in_file_order(self.steps(connection, info, meta)):
                        tally.add(step)
        except sqlite3.Error as error:
            meta.reject(0, f"the database cannot be read: {error}")
            info = None
        return counted(self.agent, meta, tally, session_id=info.id if info else "", cwd=info.cwd if info else "")

    def recognises(self, path: Path) -> bool:
        """See `SessionStore.recognises`."""
        try:
            if not sqlite_ro.is_database(path):
                return False
            with sqlite_ro.reading(path) as connection:
                return self.has_tables(connection)
        except (OSError, sqlite3.Error):
            return False

    def tail(self, info: SessionInfo) -> Tail:
        """See `SessionStore.tail`: the number of records of this session, so that others' writing changes nothing."""
        try:
            with sqlite_ro.reading(info.path) as connection:
                return Tail(self.leaf(connection, info), 0, 0)
        except (OSError, sqlite3.Error):
            size, modified = sqlite_ro.tail_of(info.path)
            return Tail("", size, modified)

    @abstractmethod
    def leaf(self, connection: sqlite3.Connection, info: SessionInfo) -> str:
        """A text that changes when something is written to this session, and only then."""
