"""The common part of stores that keep one session in one file (with or without files beside it).

A store says where its files are and what its records mean (`steps`); listing, resolving, reading, counting and
recognising follow from that, so that every agent is treated alike.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

from agents_registry.errors import NotFoundError
from agents_registry.sessions.finding import find
from agents_registry.sessions.jsonl import EDGE, LINE_LIMIT, JsonLines, NotJson, Record, decode, head, tail, tail_bytes
from agents_registry.sessions.neutral import Builder, Conversation
from agents_registry.sessions.paths import newest
from agents_registry.sessions.places import same_place
from agents_registry.sessions.port import Inspection, SessionInfo, Skipped, Tail
from agents_registry.sessions.steps import Kind, Step, Tally, carry

TITLE_CHARS = 200
"""Characters of a title or first prompt that a listing shows."""
_FIRST_RECORDS = 40
"""Records looked at when the first line alone is longer than `EDGE`."""


@dataclass(slots=True)
class Meta:
    """What the records (and files beside them) say about the session as a whole."""

    id: str = ""
    cwd: str = ""
    title: str = ""
    model: str = ""
    branch: str = ""
    parent_id: str = ""
    aliases: tuple[str, ...] = ()
    created_at: float | None = None
    updated_at: float | None = None
    project: str = ""
    """A hash of the directory, where the records hold only that."""
    hints: list[str] = field(default_factory=list)
    """Directories that texts of the records name; true only when something else proves it."""
    ours: int = 0
    """Records that are of this agent's form."""
    objects: int = 0
    malformed: int = 0
    skipped: list[Skipped] = field(default_factory=list)
    unknown: dict[str, int] = field(default_factory=dict)

    def strange(self, kind: str) -> None:
        """Count a record of a kind that is not known here."""
        if len(self.unknown) < 200 or kind in self.unknown:  # a hostile file has as many kinds as lines
            self.unknown[kind] = self.unknown.get(kind, 0) + 1

    def reject(self, line: int, why: str) -> None:
        """Count something that is no record at all."""
        self.malformed += 1
        self.skipped.append(Skipped(line, why))


class FileStore(ABC):
    """A store of transcript files. Subclasses implement `roots`, `files` and `steps`; the rest has good defaults."""

    agent: str
    id_in_name: ClassVar[bool] = True
    """Whether a session's id always occurs in its file's path, so that resolving one opens only what may match."""
    leaf_keys: ClassVar[tuple[str, ...]] = ("uuid", "id")

    @abstractmethod
    def roots(self, env: Mapping[str, str]) -> list[Path]: ...

    @abstractmethod
    def files(self, root: Path) -> Iterator[Path]:
        """Transcripts below a root, in any order, sub-agents' included; opens none of them."""

    @abstractmethod
    def steps(self, records: Iterable[tuple[int, Record]], meta: Meta) -> Iterator[Step]:
        """Interpret records in file order: yields steps, fills `meta`, counts `meta.ours`. Never raises on content."""

    def is_subagent(self, path: Path) -> bool:
        """Whether the path alone tells that this is a sub-agent's transcript."""
        return False

    def beside(self, path: Path, root: Path | None, meta: Meta) -> None:  # noqa: B027 - most have nothing beside
        """Fill `meta` from files beside the transcript."""

    def late(self, record: Record, meta: Meta) -> None:  # noqa: B027 - most titles come early
        """Take from a record near the end of a file what a listing shows (a title)."""

    def live(self, steps: Iterable[Step]) -> Iterable[Step]:
        """The steps of the agent's own tree; file order by default."""
        return steps

    def in_file_order(self, steps: Iterable[Step]) -> Iterable[Step]:
        """The steps that an inspection counts."""
        return steps

    def is_document(self, path: Path) -> bool:
        """Whether the file is one JSON document (then it is one record, on line 1) and not one record a line."""
        return False

    def records(self, path: Path, meta: Meta) -> Iterator[tuple[int, Record]]:
        """Records of a whole file."""
        if self.is_document(path):
            document = read_document(path, meta)
            if isinstance(document, dict):
                meta.objects += 1
                yield 1, document
            return
        lines = JsonLines(path)
        try:
            for number, record in lines:
                meta.objects += 1
                yield number, record
        finally:
            meta.malformed += lines.malformed
            meta.skipped.extend(lines.skipped)

    def first_records(self, path: Path, meta: Meta) -> Iterator[tuple[int, Record]]:
        """Records of the file's beginning: within `EDGE` bytes, or the first few where one line is longer."""
        if self.is_document(path):
            return self.records(path, meta)
        found = head(path)
        if not found:
            found = list(islice(JsonLines(path), _FIRST_RECORDS))
        meta.objects += len(found)
        return iter(found)

    def list(
        self, root: Path, *, cwd: str | None = None, limit: int = 20, subagents: bool = False
    ) -> Iterator[SessionInfo]:
        """Newest first; see `SessionStore.list`."""
        left = limit
        for path, stat in newest([*self.files(root)]):
            if left <= 0:
                return
            if not subagents and self.is_subagent(path):
                continue
            info = self.describe(path, root, stat.st_mtime, cwd=cwd)
            if info is None or (info.parent_id and not subagents):
                continue
            if cwd is not None and not same_place(info.cwd, cwd):
                continue
            left -= 1
            yield info

    def resolve(self, root: Path, wanted: str, *, cwd: str | None = None) -> Sequence[SessionInfo]:
        """See `SessionStore.resolve`."""
        wanted = wanted.strip()
        if not wanted:
            return []
        paths = newest([*self.files(root)])
        if self.id_in_name:
            part = self.name_part(wanted).casefold()
            near = (self.describe(path, root, stat.st_mtime) for path, stat in paths if part in self.name(path, root).casefold())
            found = find((info for info in near if info is not None), wanted, cwd=cwd)
            if found and found[0].id.casefold().startswith(wanted.casefold()):
                return found
        every = (self.describe(path, root, stat.st_mtime) for path, stat in paths)
        return find((info for info in every if info is not None), wanted, cwd=cwd)

    def name(self, path: Path, root: Path) -> str:
        """The part of the path in which an id is looked for."""
        try:
            return str(path.relative_to(root))
        except ValueError:
            return str(path)

    def name_part(self, wanted: str) -> str:
        """The part of an id that occurs in the path."""
        return wanted

    def describe(
        self, path: Path, root: Path, modified: float | None = None, *, cwd: str | None = None
    ) -> SessionInfo | None:
        """What a listing shows of one file, None when it holds no conversation (yet) or cannot be opened.

        A damaged file of which nothing can be used is shown as unreadable rather than left out.
        """
        meta = Meta()
        first, spoken = "", False
        cwds: dict[str, None] = {}
        try:
            size = path.stat().st_size
            for step in self.steps(self.first_records(path, meta), meta):
                spoken = spoken or step.kind in (Kind.USER, Kind.AGENT)
                if step.cwd:
                    cwds[step.cwd] = None
                if step.kind is Kind.USER and step.carried and not first:
                    first = step.text.strip()[:TITLE_CHARS]
            if size > EDGE and not self.is_document(path):
                spoken = True
                for record in tail(path):
                    self.late(record, meta)
                    if isinstance(record.get("cwd"), str):
                        cwds[record["cwd"]] = None
        except OSError:
            return None  # vanished, or not ours to read
        if meta.objects and not meta.ours:
            return None
        self.beside(path, root, meta)
        if not meta.objects and size:
            meta.title = "(unreadable)"
        elif not spoken:
            return None
        self.place(meta, cwd)
        return SessionInfo(
            agent=self.agent,
            id=meta.id or path.stem,
            cwd=meta.cwd,
            title=meta.title[:TITLE_CHARS] or first.partition("\n")[0],
            updated_at=modified if modified is not None else path.stat().st_mtime,
            path=path,
            store_root=root,
            parent_id=meta.parent_id,
            first_prompt=first,
            aliases=meta.aliases,
            cwds=tuple(dict.fromkeys([meta.cwd, *cwds])) if meta.cwd else tuple(cwds),
        )

    def place(self, meta: Meta, cwd: str | None) -> None:  # noqa: B027 - most know by now
        """A last chance to know `meta.cwd`, given the directory a caller asked for."""

    def read(self, info: SessionInfo) -> Conversation:
        """See `SessionStore.read`. Raises `NotFoundError` when the file is gone."""
        meta = Meta()
        builder = Builder(self.agent, info.id)
        try:
            carry(builder, self.live(self.steps(self.records(info.path, meta), meta)))
        except OSError as error:
            raise NotFoundError(
                f"The session file {info.path} cannot be read: {error.strerror or error}.",
                hint="List the sessions again: va sessions list.",
            ) from None
        return self.finish(builder, meta, info)

    def finish(self, builder: Builder, meta: Meta, info: SessionInfo) -> Conversation:
        """The conversation with all that belongs to the session as a whole."""
        self.beside(info.path, info.store_root, meta)
        made = finished(builder, meta, info)
        made.cwd = meta.cwd or made.cwd
        return made

    def inspect(self, path: Path) -> Inspection:
        """See `SessionStore.inspect`: counts in file order. Raises `NotFoundError`, or OSError when unreadable."""
        meta = Meta()
        tally = Tally()
        for step in self.in_file_order(self.steps(self.records(path, meta), meta)):
            tally.add(step)
        if not meta.ours and (meta.objects or not self.torn(path)):
            raise no_session(path, self.agent)
        return counted(self.agent, meta, tally, session_id=meta.id, cwd=meta.cwd)

    def recognises(self, path: Path) -> bool:
        """See `SessionStore.recognises`."""
        meta = Meta()
        try:
            if not self.is_document(path):
                found = head(path)
            elif path.stat().st_size > EDGE:
                return self.torn(path)  # the first 64 KiB of a longer document are a torn one
            else:
                found = list(self.records(path, meta))
            for _ in self.steps(iter(found), meta):
                pass
        except OSError:
            return False
        return meta.ours > 0 if found else self.torn(path)

    def torn(self, path: Path) -> bool:
        """Whether bytes of which no record can be read look like a damaged session of this agent."""
        return False

    def tail(self, info: SessionInfo) -> Tail:
        """See `SessionStore.tail`."""
        return file_tail(info.path, self.leaf_keys)


def counted(agent: str, meta: Meta, tally: Tally, *, session_id: str, cwd: str) -> Inspection:
    """The inspection that belongs to these counts."""
    return Inspection(
        agent=agent,
        id=session_id,
        cwd=cwd,
        user_turns=tally.user_turns,
        assistant_texts=tally.assistant_texts,
        assistant_messages=tally.assistant_messages,
        tool_calls=tally.tool_calls,
        tool_results=tally.tool_results,
        malformed=meta.malformed,
        first_user_sha256=tally.first_user,
        skipped=tuple(meta.skipped),
    )


def finished(builder: Builder, meta: Meta, info: SessionInfo) -> Conversation:
    """The conversation with all that belongs to the session as a whole."""
    made = builder.done()
    made.cwd = info.cwd or meta.cwd or made.cwd
    made.last_cwd = made.last_cwd or made.cwd
    made.title = info.title or meta.title
    made.model = made.model or meta.model
    made.branch = meta.branch
    made.parent_id = info.parent_id or meta.parent_id
    made.created_at = made.created_at if made.created_at is not None else meta.created_at
    made.updated_at = made.updated_at if made.updated_at is not None else (meta.updated_at or info.updated_at)
    made.path, made.store_root = info.path, info.store_root
    made.skipped = tuple(meta.skipped)
    made.skipped_count = meta.malformed
    made.unknown = meta.unknown
    return made


def read_document(path: Path, meta: Meta) -> Any:
    """The JSON value of a whole file, None (and a line in `meta.skipped`) when there is none. Raises OSError."""
    size = path.stat().st_size
    if size > LINE_LIMIT:
        meta.reject(1, f"a document of {size} bytes, longer than the limit of {LINE_LIMIT}")
        return None
    data = path.read_bytes().removeprefix(b"\xef\xbb\xbf")
    if not data.strip():
        return None
    try:
        return decode(data)
    except NotJson as error:
        meta.reject(1, str(error))
        return None


def sidecar(path: Path) -> Record:
    """The object in a small JSON file beside a transcript, empty when there is none that can be read."""
    try:
        value = read_document(path, Meta())
    except OSError:
        return {}
    return value if isinstance(value, dict) else {}


def file_tail(path: Path, keys: tuple[str, ...] = ()) -> Tail:
    """The fingerprint of a file's end: the id of its last record, else a digest of its last bytes."""
    try:
        stat = path.stat()
        records = tail(path) if keys else []
        leaf = next((str(record[key]) for record in reversed(records) for key in keys if record.get(key)), "")
        if not leaf:
            leaf = hashlib.sha256(tail_bytes(path)).hexdigest()[:16]
    except OSError:
        return Tail("", 0, 0)
    return Tail(leaf, stat.st_size, stat.st_mtime_ns)


def raw_head(path: Path) -> bytes:
    """The first 64 KiB of a file, empty when it cannot be read."""
    try:
        with open(path, "rb") as stream:
            return stream.read(EDGE)
    except OSError:
        return b""


def no_session(path: Path, agent: str) -> NotFoundError:
    """The error for a file that holds something else."""
    return NotFoundError(
        f"{path} is no session of {agent}.", hint="Leave --agent out to have the agent recognised from the content."
    )


def text_of(record: Mapping[str, Any], key: str) -> str:
    """A field that should be a text, "" when it is anything else."""
    value = record.get(key)
    return value if isinstance(value, str) else ""


def object_of(record: Mapping[str, Any], key: str) -> Record:
    """A field that should be an object, an empty one when it is anything else."""
    value = record.get(key)
    return value if isinstance(value, dict) else {}


def list_of(record: Mapping[str, Any], key: str) -> list[Any]:
    """A field that should be a list, an empty one when it is anything else."""
    value = record.get(key)
    return value if isinstance(value, list) else []


def objects_in(record: Mapping[str, Any], key: str) -> list[Record]:
    """The objects of a field that should be a list of them."""
    return [item for item in list_of(record, key) if isinstance(item, dict)]
