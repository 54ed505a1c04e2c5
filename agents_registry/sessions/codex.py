"""Codex's store: `<root>/sessions/YYYY/MM/DD/rollout-<local time>-<thread id>.jsonl[.zst]`, root = $CODEX_HOME or ~/.codex.

Archived threads lie flat in `archived_sessions`; they are found by id, not listed. A plain file wins over its
compressed twin. Names that the user gave are in `session_index.jsonl` (append only, the last one counts). The
directory is in the records only: the first in the session's first line, the latest in its last turn context.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agents_registry.errors import UsageError
from agents_registry.sessions import codex_live, jsonl
from agents_registry.sessions.paths import newest, placed, same_dir
from agents_registry.sessions.plain import clean, one_line
from agents_registry.sessions.port import Inspection, SessionInfo, Tail

if TYPE_CHECKING:
    from agents_registry.sessions.neutral import Conversation

PREFIX = 4
_TITLES_LOOKED_AT = 200
_WIDER = 8
_NAME = re.compile(r"rollout-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-(.+)$")
_INDEX_LIMIT = 8 * 1024 * 1024
"""Bytes of the end of session_index.jsonl that are read for names."""

Record = dict[str, Any]


class CodexStore:
    """Reads Codex's rollouts."""

    agent = "codex"

    def roots(self, env: Mapping[str, str]) -> Sequence[Path]:
        return [placed(env, "CODEX_HOME", ".codex")]

    def list(self, root: Path, *, cwd: str | None = None, limit: int = 20, subagents: bool = False) -> Iterator[SessionInfo]:
        """Newest first by modification time; archived threads are left out, as in Codex's own picker."""
        names, live = _names(root), codex_live.live_threads(root)
        shown = 0
        for path, stat in newest(_rollouts(root / "sessions")):
            if shown >= limit:
                return
            info = self._look(path, stat, root, names, live)
            if info is None or (info.parent_id and not subagents):
                continue
            if cwd is not None and not any(same_dir(one, cwd) for one in (info.cwd, *info.cwds[:1])):
                continue
            shown += 1
            yield info

    def resolve(self, root: Path, wanted: str, *, cwd: str | None = None) -> Sequence[SessionInfo]:
        wanted = wanted.strip()
        if not wanted:
            return []
        names, live = _names(root), codex_live.live_threads(root)
        files = newest([*_rollouts(root / "sessions"), *_rollouts(root / "archived_sessions")])
        lowered = wanted.lower()

        def looked(chosen: Sequence[tuple[Path, os.stat_result]]) -> Sequence[SessionInfo]:
            found = [info for path, stat in chosen if (info := self._look(path, stat, root, names, live)) and not info.parent_id]
            here = [info for info in found if cwd is not None and any(same_dir(one, cwd) for one in (info.cwd, *info.cwds[:1]))]
            return here if len(found) > 1 and here else found

        exact = [pair for pair in files if thread_of(pair[0]).lower() == lowered]
        if exact:
            return looked(exact)
        if len(wanted) >= PREFIX:
            prefix = [pair for pair in files if thread_of(pair[0]).lower().startswith(lowered)]
            if prefix:
                return looked(prefix)
        named = {thread for thread, name in names.items() if name.casefold() == wanted.casefold()}
        by_name = [pair for pair in files if thread_of(pair[0]) in named]
        if by_name:
            return looked(by_name)
        return [i for i in looked(files[:_TITLES_LOOKED_AT]) if i.title.casefold() == wanted.casefold() or i.id.lower() == lowered]

    def read(self, info: SessionInfo, *, clip: int = 0) -> Conversation:
        from agents_registry.sessions import codex_read

        home = info.store_root

        def finder(thread: str) -> Path | None:
            return find_rollout(home, thread) or _beside(info.path, thread)

        conversation = codex_read.read(info.path, info.id, finder, clip_to=clip)
        conversation.store_root = home
        conversation.title = info.title or conversation.title
        conversation.cwd = conversation.cwd or info.cwd
        return conversation

    def inspect(self, path: Path) -> Inspection:
        from agents_registry.sessions import codex_inspect

        return codex_inspect.inspect(path)

    def recognises(self, path: Path) -> bool:
        from agents_registry.sessions import codex_records as records

        found = [record for _, record in jsonl.head(path)]
        return any(records.is_ours(record) for record in found)

    def tail(self, info: SessionInfo) -> Tail:
        """Its leaf is the last ordinal (paginated), or the last record's time and kind."""
        stat = info.path.stat()
        leaf = ""
        for record in jsonl.backwards(info.path):
            ordinal = record.get("ordinal")
            leaf = str(ordinal) if isinstance(ordinal, int) else f"{record.get('timestamp', '')} {record.get('type', '')}"
            break
        return Tail(leaf, stat.st_size, stat.st_mtime_ns)

    def describe(self, path: Path, root: Path) -> SessionInfo | None:
        """What a listing shows of one rollout, wherever it lies; None when it is none or cannot be read.

        Whether it is live is not looked at here.
        """
        try:
            return self._look(path, path.stat(), root, _names(root), frozenset())
        except OSError:
            return None  # vanished, or not ours to read

    def root_of(self, path: Path) -> Path:
        """The store root that a rollout lies in; its own directory when it lies in none."""
        return next((one.parent for one in path.parents if one.name in ("sessions", "archived_sessions")), path.parent)

    def files(self, root: Path, cwd: str | None = None) -> Sequence[Path]:
        """Rollouts that are not archived."""
        del cwd  # nothing in a name tells
        return _rollouts(root / "sessions")

    def live(self, root: Path) -> frozenset[str]:
        """Ids of the threads that are open now."""
        return codex_live.live_threads(root)

    def names(self, root: Path) -> Mapping[str, str]:
        """Titles that are kept beside the rollouts, by thread id."""
        return _names(root)

    def _look(
        self, path: Path, stat: os.stat_result, root: Path, names: Mapping[str, str], live: frozenset[str]
    ) -> SessionInfo | None:
        """What head and tail say; None for a file without a thread, or one that cannot be read."""
        from agents_registry.sessions import codex_records as records

        try:
            head = [record for _, record in jsonl.head(path)]
            if stat.st_size > jsonl.EDGE and not _first_prompt(head):
                head = [record for _, record in jsonl.head(path, jsonl.EDGE * _WIDER)]
            cold = path.suffix == ".zst"  # reading the end of a compressed file means reading all of it
            tail = jsonl.tail(path) if stat.st_size > jsonl.EDGE and not cold else head
        except (OSError, UsageError):
            return None  # unreadable, just removed, or compressed without a way to read it
        meta: Record = {}
        cwds: list[str] = []
        name = ""
        seen = head if tail is head else head + tail
        for record in seen:
            kind, payload = records.unwrap(record)
            if kind == "session_meta":
                meta = meta or payload
                if payload is meta and isinstance(payload.get("cwd"), str):
                    cwds.append(payload["cwd"])
            elif kind == "turn_context" and isinstance(payload.get("cwd"), str):
                cwds.append(payload["cwd"])
            elif kind == "response_item" and payload.get("role") == "user" and not cwds:
                cwds.append(records.context_cwd(records.message_text(payload)))
            elif kind == "event_msg" and payload.get("type") == "thread_name_updated":
                name = str(payload.get("thread_name") or name)
        if not any(records.is_ours(record) for record in seen):
            return None
        thread = meta.get("id")
        named = thread_of(path)
        session = thread if isinstance(thread, str) and thread else named
        cwds = [clean(cwd) for cwd in cwds if cwd]
        first = records.request(_first_prompt(head)).strip()
        title = names.get(session) or name or first
        return SessionInfo(
            agent=self.agent,
            id=session,
            cwd=cwds[-1] if cwds else "",
            title=one_line(title),
            updated_at=stat.st_mtime,
            path=path,
            store_root=root,
            parent_id=records.parent_of(meta),
            first_prompt=clean(first),
            aliases=(named,) if named != session else (),
            live=session in live,
            cwds=tuple(dict.fromkeys(cwds)),
        )


def thread_of(path: Path) -> str:
    """The thread id in a rollout's name; the bare stem for other names."""
    stem = path.name.removesuffix(".zst").removesuffix(".jsonl")
    found = _NAME.match(stem)
    return found.group(1) if found else stem


def find_rollout(root: Path, thread: str) -> Path | None:
    """The rollout of a thread of this home, archived ones too."""
    for place in ("sessions", "archived_sessions"):
        for path in _rollouts(root / place):
            if thread_of(path) == thread:
                return path
    return None


def _beside(path: Path, thread: str) -> Path | None:
    return next((one for one in _rollouts(path.parent) if thread_of(one) == thread), None)


def _rollouts(place: Path) -> Sequence[Path]:
    found: dict[str, Path] = {}
    for directory, _, files in os.walk(place):
        for name in files:
            if name.endswith(".jsonl"):
                found[f"{directory}/{name}"] = Path(directory, name)
            elif name.endswith(".jsonl.zst"):
                found.setdefault(f"{directory}/{name.removesuffix('.zst')}", Path(directory, name))
    return list(found.values())


def _names(root: Path) -> dict[str, str]:
    try:
        lines = jsonl.tail(root / "session_index.jsonl", _INDEX_LIMIT)
    except OSError:
        return {}
    return {str(r["id"]): r["thread_name"] for r in lines if r.get("id") and isinstance(r.get("thread_name"), str) and r["thread_name"]}


def _first_prompt(head: Sequence[Record]) -> str:
    from agents_registry.sessions import codex_records as records

    later = ""
    for record in head:
        kind, payload = records.unwrap(record)
        if kind == "event_msg":
            item = payload.get("item")
            if payload.get("type") == "user_message" and str(payload.get("message", "")).strip():
                return str(payload["message"])
            if payload.get("type") == "item_completed" and isinstance(item, dict) and item.get("type") == "UserMessage":
                return records.message_text(item)
        elif kind == "response_item" and payload.get("type") == "message" and payload.get("role") == "user" and not later:
            text = records.message_text(payload)
            later = "" if records.is_injected(text) else text
    return later
