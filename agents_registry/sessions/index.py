"""The index of all sessions, `<data>/sessions.db`: what listings show, and the words said, of files that did not change.

Keyed by path and id; a row counts while size and modification time of its file (for databases: the time of the session
itself) are the same, so only what changed is read again. SQLite in WAL mode, used by several processes at once, each
holding the lock for a moment. The file is private (0600). It holds nothing that cannot be made again from the stores.
"""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple

from agents_registry.errors import BusyError, UsageError, VibeAroundError
from agents_registry.sessions import catalog
from agents_registry.sessions.paths import newest, real, same_dir
from agents_registry.sessions.port import SessionInfo, SessionStore

if TYPE_CHECKING:
    from agents_registry.sessions.neutral import Conversation

VERSION = "1"
CHUNK = 200_000
"""Characters of one indexed document; a longer session is several, and words must meet within one."""
_RESULT = 500
_BUSY_S = 5.0
_EVERY = 100_000
_TABLES = """
create table if not exists index_meta(key text primary key, value text);
create table if not exists indexed(
    row integer primary key, path text not null, id text not null, agent text not null, store_root text not null,
    fingerprint text not null, cwd text not null, place text not null, title text not null, first_prompt text not null,
    parent_id text not null, aliases text not null, cwds text not null, updated_at real not null, read text not null,
    unique(path, id));
create index if not exists indexed_agent on indexed(agent, store_root);
create table if not exists documents(id integer primary key, row integer not null, body text not null);
create index if not exists documents_row on documents(row);
create virtual table if not exists words using fts5(body, content='', tokenize="unicode61 remove_diacritics 2");
"""
_COLUMNS = "row, path, id, agent, store_root, fingerprint, cwd, title, first_prompt, parent_id, aliases, cwds, updated_at, read"


class Refreshed(NamedTuple):
    """What a refresh did, in sessions."""

    kept: int = 0
    read: int = 0
    gone: int = 0
    failed: int = 0


class SessionIndex:
    """An open index; a context manager. Not to be shared between threads.

    Raises `UsageError` when the file is no such index (it is left as it is) or cannot be opened, `BusyError` when others
    hold it for more than `_BUSY_S` seconds.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
            self.db = sqlite3.connect(path, timeout=_BUSY_S, isolation_level=None)
        except (OSError, sqlite3.Error) as error:
            raise UsageError(f"The session index {path} cannot be opened: {error}.", hint="Check the rights of that file.") from error
        try:
            self._to_wal()
            self.db.execute("pragma synchronous=normal")
            self._prepare()
        except sqlite3.OperationalError as error:
            self.db.close()
            raise BusyError(f"The session index {path} cannot be used now: {error}.", hint="Try again in a moment.") from error
        except sqlite3.DatabaseError as error:
            self.db.close()
            raise UsageError(
                f"{path} is no session index: {error}.", hint="Move that file away; it is made again from the agents' stores."
            ) from error

    def _to_wal(self) -> None:
        # SQLite does not wait for the lock when the mode changes, so two processes that make the file at once must.
        until = time.monotonic() + _BUSY_S
        while True:
            try:
                self.db.execute("pragma journal_mode=wal")
                return
            except sqlite3.OperationalError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.02)

    def __enter__(self) -> SessionIndex:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.db.close()

    def _prepare(self) -> None:
        known = self.db.execute("select 1 from sqlite_master where name = 'index_meta'").fetchone()
        version = self.db.execute("select value from index_meta where key = 'version'").fetchone() if known else None
        if version == (VERSION,):
            return
        self.db.execute("begin immediate")
        if version is not None:
            for table in ("words", "documents", "indexed", "index_meta"):
                self.db.execute(f"drop table if exists {table}")
        for statement in _TABLES.split(";"):
            if statement.strip():
                self.db.execute(statement)
        self.db.execute("insert or replace into index_meta values('version', ?)", (VERSION,))
        self.db.execute("commit")

    def listing(
        self, env: Mapping[str, str], *, agent: str | None = None, cwd: str | None = None, limit: int = 20
    ) -> list[SessionInfo]:
        """Sessions of one agent or all, newest first. Opens no file that did not change since it was last looked at."""
        chosen = {agent: catalog.need(agent)} if agent is not None else catalog.stores_here(env)
        found: list[SessionInfo] = []
        fresh: list[tuple[SessionInfo, str]] = []
        for one in chosen.values():
            for root in dict.fromkeys(one.roots(env)):
                if root.exists():
                    found += self._list_root(one, root, cwd, limit, fresh)
        if fresh:
            self.db.execute("begin immediate")
            for info, fingerprint in fresh:
                self._put(info, fingerprint)
            self.db.execute("commit")
        found.sort(key=lambda info: -info.updated_at)
        return found[:limit]

    def _list_root(
        self, one: SessionStore, root: Path, cwd: str | None, limit: int, fresh: list[tuple[SessionInfo, str]]
    ) -> Iterator[SessionInfo]:
        shown = 0
        known = self._rows(one.agent, root)
        for path, fingerprint, info in self._candidates(one, root, cwd, known):
            if info is None:
                info = _describe(one, path, root) or _no_session(one.agent, path, root)
                fresh.append((info, fingerprint))
            if info.parent_id or (cwd is not None and not any(same_dir(place, cwd) for place in (info.cwd, *info.cwds[:1]))):
                continue
            shown += 1
            yield info
            if shown >= limit:
                return

    def _candidates(
        self, one: SessionStore, root: Path, cwd: str | None, known: Mapping[tuple[str, str], _Row]
    ) -> Iterator[tuple[Path, str, SessionInfo | None]]:
        """(path, fingerprint, what the index knows of it if it did not change), newest first."""
        if not _by_file(one):
            for info in one.list(root, cwd=cwd, limit=_EVERY):
                yield info.path, fingerprint_of(info), info
            return
        live = one.live(root) if one.agent in ("claude", "codex") and hasattr(one, "live") else frozenset()
        names = one.names(root) if hasattr(one, "names") else {}
        by_path: dict[str, _Row] = {path: row for (path, _), row in known.items()}
        for name, stat in _stats(one, root, cwd):
            fingerprint = f"{stat.st_size}:{stat.st_mtime_ns}"
            row = by_path.get(name)
            if row is not None and row.fingerprint == fingerprint:
                info = row.info
                title = names.get(info.id) or info.title
                if info.id in live or title != info.title:
                    info = replace(info, live=info.id in live, title=title)
                yield info.path, fingerprint, info
            elif not getattr(one, "is_subagent", _never)(Path(name)):
                yield Path(name), fingerprint, None

    def refresh(self, env: Mapping[str, str], *, agent: str | None = None) -> Refreshed:
        """Reads the words of all sessions that changed, and forgets those that are gone.

        A session that cannot be read is counted and left for the next time; a store that cannot be listed keeps its rows.
        """
        chosen = {agent: catalog.need(agent)} if agent is not None else catalog.stores_here(env)
        kept = read = gone = failed = 0
        for one in chosen.values():
            for root in dict.fromkeys(one.roots(env)):
                try:
                    found = list(self._changed(one, root)) if root.exists() else []
                except (OSError, VibeAroundError):
                    failed += 1
                    continue
                for info, fingerprint, changed in found:
                    if not changed:
                        kept += 1
                    elif self._read(one, info, fingerprint):
                        read += 1
                    else:
                        failed += 1
                gone += self._forget(one.agent, root, {(str(info.path), info.id) for info, _, _ in found})
        return Refreshed(kept, read, gone, failed)

    def _changed(self, one: SessionStore, root: Path) -> Iterator[tuple[SessionInfo, str, bool]]:
        known = self._rows(one.agent, root)
        for path, fingerprint, info in self._candidates(one, root, None, known):
            looked = info or _describe(one, path, root) or _no_session(one.agent, path, root)
            row = known.get((str(looked.path), looked.id))
            if looked.parent_id and info is None:
                self._put(looked, fingerprint)
            yield looked, fingerprint, not looked.parent_id and (row is None or row.read != fingerprint)

    def _read(self, one: SessionStore, info: SessionInfo, fingerprint: str) -> bool:
        from agents_registry.sessions.neutral import clipped_results
        from agents_registry.sessions.words import indexable

        try:
            with clipped_results(_RESULT):
                conversation = one.read(info)
        except (OSError, ValueError, KeyError, TypeError, AttributeError, sqlite3.Error, VibeAroundError):
            return False  # one unreadable session must not keep the others from being found; it is counted and told
        self.db.execute("begin immediate")
        row = self._put(info, fingerprint, read=fingerprint)
        self._drop_documents(row)
        for body in _bodies(info, conversation):
            made = self.db.execute("insert into documents(row, body) values(?, ?)", (row, body)).lastrowid
            self.db.execute("insert into words(rowid, body) values(?, ?)", (made, indexable(body)))
        self.db.execute("commit")
        return True

    def _put(self, info: SessionInfo, fingerprint: str, *, read: str = "") -> int:
        place = real(info.cwd) if info.cwd else ""
        lists = [json.dumps(list(value), ensure_ascii=False) for value in (info.aliases, info.cwds)]
        found = self.db.execute(
            "insert into indexed(path, id, agent, store_root, fingerprint, cwd, place, title, first_prompt, parent_id, aliases, "
            "cwds, updated_at, read) values(?,?,?,?,?,?,?,?,?,?,?,?,?,?) on conflict(path, id) do update set "
            "fingerprint=excluded.fingerprint, cwd=excluded.cwd, place=excluded.place, title=excluded.title, "
            "first_prompt=excluded.first_prompt, parent_id=excluded.parent_id, aliases=excluded.aliases, cwds=excluded.cwds, "
            "updated_at=excluded.updated_at, read=case when excluded.read = '' then read else excluded.read end returning row",
            (
                *(str(info.path), info.id, info.agent, str(info.store_root), fingerprint, info.cwd, place),
                *(info.title, info.first_prompt[:1000], info.parent_id, *lists, info.updated_at, read),
            ),
        ).fetchone()
        return int(found[0])

    def _forget(self, agent: str, root: Path, present: set[tuple[str, str]]) -> int:
        gone = [row.row for key, row in self._rows(agent, root).items() if key not in present]
        if gone:
            self.db.execute("begin immediate")
            for row in gone:
                self._drop_documents(row)
                self.db.execute("delete from indexed where row = ?", (row,))
            self.db.execute("commit")
        return len(gone)

    def _drop_documents(self, row: int) -> None:
        from agents_registry.sessions.words import indexable

        # An index without content of its own must be told what it is to forget.
        for number, body in self.db.execute("select id, body from documents where row = ?", (row,)).fetchall():
            self.db.execute("insert into words(words, rowid, body) values('delete', ?, ?)", (number, indexable(body)))
        self.db.execute("delete from documents where row = ?", (row,))

    def _rows(self, agent: str, root: Path) -> dict[tuple[str, str], _Row]:
        rows = self.db.execute(f"select {_COLUMNS} from indexed where agent = ? and store_root = ?", (agent, str(root)))
        return {(row[1], row[2]): _Row(*row) for row in rows}


class _Row(NamedTuple):
    """In the order of `_COLUMNS`; the listing's own form is made only of those that are shown."""

    row: int
    path: str
    id: str
    agent: str
    store_root: str
    fingerprint: str
    cwd: str
    title: str
    first_prompt: str
    parent_id: str
    aliases: str
    cwds: str
    updated_at: float
    read: str

    @property
    def info(self) -> SessionInfo:
        _, path, session, agent, root, _, cwd, title, first, parent, aliases, cwds, at, _ = self
        return SessionInfo(
            *(agent, session, cwd, title, at, Path(path), Path(root), parent, first),
            aliases=tuple(json.loads(aliases)) if aliases != "[]" else (),
            cwds=tuple(json.loads(cwds)) if cwds != "[]" else (),
        )


def fingerprint_of(info: SessionInfo) -> str:
    """What tells that a session in a database changed: its own time, since the file changes with every session in it."""
    return f"{info.updated_at!r}"


def _by_file(one: SessionStore) -> bool:
    """Whether each session of the store is a file of its own, so that a stat tells whether it changed."""
    return hasattr(one, "files") and hasattr(one, "describe")


def _stats(one: SessionStore, root: Path, cwd: str | None) -> list[tuple[str, os.stat_result]]:
    """The store's files, newest first."""
    if hasattr(one, "stats"):
        found: list[tuple[str, os.stat_result]] = one.stats(root, cwd)
        return sorted(found, key=lambda pair: (-pair[1].st_mtime_ns, pair[0]))
    return [(str(path), stat) for path, stat in newest(one.files(root))]  # type: ignore[attr-defined]


def _describe(one: SessionStore, path: Path, root: Path) -> SessionInfo | None:
    made: SessionInfo | None = one.describe(path, root)  # type: ignore[attr-defined]
    return made


def _no_session(agent: str, path: Path, root: Path) -> SessionInfo:
    """Remembers that a file holds no session, so that it is not opened again until it changes; never listed."""
    return SessionInfo(agent, path.stem, "", "", 0.0, path, root, parent_id="(no session)")


def _never(path: Path) -> bool:
    del path
    return False


def _bodies(info: SessionInfo, conversation: Conversation) -> Iterator[str]:
    """What is searched, cut between blocks into documents of about `CHUNK` characters."""
    held: list[str] = []
    size = 0
    for piece in _pieces(info, conversation):
        for start in range(0, len(piece), CHUNK):
            part = piece[start : start + CHUNK]
            if size + len(part) > CHUNK and held:
                yield "\n".join(held)
                held, size = [], 0
            held.append(part)
            size += len(part)
    if held:
        yield "\n".join(held)


def _pieces(info: SessionInfo, conversation: Conversation) -> Iterable[str]:
    """Title, prose, and what tools were asked to do; not what they answered."""
    from agents_registry.sessions.neutral import Text, ToolCall
    from agents_registry.sessions.vocabulary import command_of, touched_paths

    yield conversation.title or info.title
    if conversation.compaction is not None:
        yield conversation.compaction.summary
    for turn in conversation.turns:
        for block in turn.blocks:
            if isinstance(block, Text):
                yield block.text
            elif isinstance(block, ToolCall):
                asked = command_of(block.input) or " ".join(touched_paths(block.tool, block.input))
                if asked:
                    yield asked[:2000]
