"""OpenCode's JSON store of before version 1.2: storage/{session,message,part}, one file per record."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from agents_registry.sessions.filestore import (
    FileStore,
    Meta,
    counted,
    file_tail,
    finished,
    no_session,
    object_of,
    read_document,
    text_of,
)
from agents_registry.sessions.jsonl import Record
from agents_registry.sessions.neutral import Builder, Conversation
from agents_registry.sessions.opencode_parts import as_counted, in_order, message_step
from agents_registry.sessions.paths import newest
from agents_registry.sessions.port import Inspection, SessionInfo, Tail
from agents_registry.sessions.steps import Step, Tally, carry, keep_after_summary
from agents_registry.sessions.times import seconds


class OpenCodeTree:
    """Sessions below a `storage` directory, found by their files storage/session/<project>/<id>.json."""

    agent: str = "opencode"

    def every(self, storage: Path, root: Path) -> Iterator[SessionInfo]:
        """Sessions, latest first; files that are no session are passed over."""
        for path, _ in newest([*(storage / "session").glob("*/*.json")]):
            if (info := self.describe(path, root)) is not None:
                yield info

    def describe(self, path: Path, root: Path) -> SessionInfo | None:
        """One session's file, or None when it is none, archived, or cannot be read."""
        try:
            record = _object(path, Meta())
            modified = path.stat().st_mtime
        except OSError:
            return None
        time = object_of(record, "time")
        if not _is_session(record) or time.get("archived"):
            return None
        updated = seconds(time.get("updated"))
        return SessionInfo(
            agent=self.agent,
            id=text_of(record, "id"),
            cwd=text_of(record, "directory"),
            title=text_of(record, "title"),
            updated_at=updated if updated is not None else modified,
            path=path,
            store_root=root,
            parent_id=text_of(record, "parentID"),
        )

    def steps(self, path: Path, meta: Meta, *, exact: bool = False) -> Iterator[Step]:
        """Messages of the session in `path`, by time and id, with their parts."""
        storage = path.parents[2]
        session = _object(path, meta)
        flat: dict[str, list[tuple[str, Record]]] | None = None
        messages: list[tuple[float, str, Path, Record]] = []
        for file in sorted((storage / "message" / text_of(session, "id")).glob("*.json")):
            if message := _object(file, meta):
                at = seconds(object_of(message, "time").get("created"))
                messages.append((at if at is not None else 0.0, text_of(message, "id") or file.stem, file, message))
        messages.sort(key=lambda item: item[:2])
        for _, message_id, file, message in messages:
            names = dict.fromkeys((message_id, file.stem, f"msg_{message_id}"))
            folders = [storage / "part" / name for name in names]
            parts = [(part.stem, _object(part, meta)) for folder in folders for part in sorted(folder.glob("*.json"))]
            if not parts:
                flat = _flat_parts(storage, meta) if flat is None else flat
                parts = flat.get(message_id, [])
            if (step := message_step(message_id, message, parts, meta, exact=exact)) is not None:
                yield step

    def read(self, info: SessionInfo) -> Conversation:
        """The conversation. Raises `NotFoundError` when the session's file is gone."""
        meta = Meta()
        builder = Builder(self.agent, info.id)
        try:
            session = _object(info.path, Meta())
            carry(builder, keep_after_summary(list(in_order(self.steps(info.path, meta), object_of(session, "revert")))))
        except OSError:
            raise no_session(info.path, self.agent) from None
        return finished(builder, meta, info)

    def inspect(self, path: Path) -> Inspection:
        """Counts of one session. Raises `NotFoundError` when the file is none."""
        if not self.recognises(path):
            raise no_session(path, self.agent)
        meta, tally = Meta(), Tally()
        for step in as_counted(self.steps(path, meta, exact=True)):
            tally.add(step)
        record = _object(path, Meta())
        return counted(self.agent, meta, tally, session_id=text_of(record, "id"), cwd=text_of(record, "directory"))

    def recognises(self, path: Path) -> bool:
        """Whether the file is one session's record."""
        try:
            return path.suffix == ".json" and path.stat().st_size <= 65536 and _is_session(_object(path, Meta()))
        except OSError:
            return False

    def tail(self, info: SessionInfo) -> Tail:
        """The newest message file and how many there are."""
        folder = info.path.parents[2] / "message" / info.id
        found = newest([*folder.glob("*.json")])
        if not found:
            return file_tail(info.path, FileStore.leaf_keys)
        latest, stat = found[0]
        parts = newest([*(folder.parents[1] / "part" / latest.stem).glob("*.json")])
        modified = max([stat.st_mtime_ns, *(part.st_mtime_ns for _, part in parts)])
        return Tail(f"{latest.stem}:{len(found)}:{len(parts)}", stat.st_size, modified)


def _flat_parts(storage: Path, meta: Meta) -> dict[str, list[tuple[str, Record]]]:
    """Parts of the oldest layout, where all lie in one folder and name their message."""
    found: dict[str, list[tuple[str, Record]]] = {}
    for file in sorted((storage / "part").glob("*.json")):
        part = _object(file, meta)
        if message := text_of(part, "messageID"):
            found.setdefault(message, []).append((file.stem, part))
    return found


def _is_session(record: Record) -> bool:
    return bool(
        text_of(record, "id") and "directory" in record and isinstance(record.get("time"), dict) and "role" not in record
    )


def _object(path: Path, meta: Meta) -> Record:
    value = read_document(path, meta)
    return value if isinstance(value, dict) else {}
