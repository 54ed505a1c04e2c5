"""Claude Code's store: `<root>/projects/<slug of the directory>/<session id>.jsonl`, root = $CLAUDE_CONFIG_DIR or ~/.claude.

The slug is many-to-one (every character outside [A-Za-z0-9] becomes "-"), so a directory name is only ever a place to
look; which directory a session belongs to is what its records say. Sub-agents lie under
`<session id>/subagents/agent-*.jsonl`, in older versions beside the sessions; they are no sessions of their own.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agents_registry.sessions import claude_live, jsonl
from agents_registry.sessions.paths import newest, placed, real, same_dir
from agents_registry.sessions.plain import clean, one_line
from agents_registry.sessions.port import Inspection, SessionInfo, Tail

if TYPE_CHECKING:
    from agents_registry.sessions.neutral import Conversation

PREFIX = 4
"""Characters an id must at least be given with to be found by prefix."""
_WHOLE = 36
"""Characters of a whole id."""
_TITLES_LOOKED_AT = 200
_WIDER = 8
"""How much more than a look's usual size is read when a head holds no prompt (large context records come first)."""
_CWD = re.compile(rb'"cwd":"((?:[^"\\]|\\.)*)"')


def slug(cwd: str) -> str:
    """The name of the directory that holds the sessions of `cwd` (which should be a real path).

    Every UTF-16 unit outside [A-Za-z0-9] becomes "-"; beyond 200 characters the first 200, "-", and the base-36
    absolute value of Java's hash of the path. Verified against Claude Code 2.1.185 to 2.1.332.
    """
    name = "".join(c if c.isascii() and c.isalnum() else "-" * (2 if ord(c) > 0xFFFF else 1) for c in cwd)
    if len(name) <= 200:
        return name
    value = 0
    data = cwd.encode("utf-16-le", "surrogatepass")
    for index in range(0, len(data), 2):
        value = (value * 31 + int.from_bytes(data[index : index + 2], "little")) & 0xFFFFFFFF
    value = abs(value - (1 << 32)) if value >> 31 else value
    digits = ""
    while value:
        value, digit = divmod(value, 36)
        digits = "0123456789abcdefghijklmnopqrstuvwxyz"[digit] + digits
    return f"{name[:200]}-{digits or '0'}"


class ClaudeStore:
    """Reads Claude Code's transcripts."""

    agent = "claude"

    def roots(self, env: Mapping[str, str]) -> Sequence[Path]:
        return [placed(env, "CLAUDE_CONFIG_DIR", ".claude")]

    def list(self, root: Path, *, cwd: str | None = None, limit: int = 20, subagents: bool = False) -> Iterator[SessionInfo]:
        """Newest first by modification time. With `cwd`, its own directory is looked at first, others only if it is empty."""
        live = claude_live.live_sessions(root)
        shown = 0
        for files in self._places(root, cwd, subagents):
            for path, stat in newest(files):
                if shown >= limit:
                    return
                info = self._look(path, stat, root, live)
                if info is None or (info.parent_id and not subagents):
                    continue
                if cwd is not None and not _belongs(info, cwd):
                    continue
                shown += 1
                yield info
            if shown:
                return

    def resolve(self, root: Path, wanted: str, *, cwd: str | None = None) -> Sequence[SessionInfo]:
        wanted = wanted.strip()
        if not wanted:
            return []
        live = claude_live.live_sessions(root)
        files = self._files(root)
        lowered = wanted.lower()
        exact = [path for path in files if path.stem.lower() == lowered]
        if exact:
            return self._narrow([self._look(path, stat, root, live) for path, stat in newest(exact)], cwd)
        prefix = [path for path in files if len(wanted) >= PREFIX and path.stem.lower().startswith(lowered)]
        if prefix and len(wanted) < _WHOLE:  # too short to be the earlier id of another session
            return self._narrow([self._look(path, stat, root, live) for path, stat in newest(prefix)], cwd)
        looked = [info for path, stat in newest(files)[:_TITLES_LOOKED_AT] if (info := self._look(path, stat, root, live))]
        alias = [info for info in looked if wanted in info.aliases]
        if alias:
            return self._narrow(alias, cwd)
        if prefix:
            return self._narrow([self._look(path, stat, root, live) for path, stat in newest(prefix)], cwd)
        return self._narrow([info for info in looked if info.title and info.title.casefold() == wanted.casefold()], cwd)

    def read(self, info: SessionInfo, *, clip: int = 0) -> Conversation:
        from agents_registry.sessions import claude_tree

        conversation = claude_tree.read(info.path, info.id, clip=clip, sidechains=bool(info.parent_id))
        conversation.store_root = info.store_root
        conversation.title = conversation.title or info.title
        conversation.cwd = conversation.cwd or info.cwd
        conversation.parent_id = conversation.parent_id or info.parent_id
        return conversation

    def inspect(self, path: Path) -> Inspection:
        from agents_registry.sessions import claude_inspect

        return claude_inspect.inspect(path)

    def recognises(self, path: Path) -> bool:
        from agents_registry.sessions import claude_records as records

        found = [record for _, record in jsonl.head(path)]
        return any(records.is_ours(record) for record in found) and not any(records.is_foreign(record) for record in found)

    def tail(self, info: SessionInfo) -> Tail:
        from agents_registry.sessions import claude_records as records

        stat = info.path.stat()
        for record in jsonl.backwards(info.path):
            if record.get("type") in records.CONVERSATION and not record.get("isSidechain") and isinstance(record.get("uuid"), str):
                return Tail(record["uuid"], stat.st_size, stat.st_mtime_ns)
        return Tail("", stat.st_size, stat.st_mtime_ns)

    def describe(self, path: Path, root: Path) -> SessionInfo | None:
        """What a listing shows of one transcript, wherever it lies; None when it holds no conversation or cannot be read.

        Whether it is live is not looked at here.
        """
        try:
            return self._look(path, path.stat(), root, {})
        except OSError:
            return None  # vanished, or not ours to read

    def root_of(self, path: Path) -> Path:
        """The store root that a transcript lies in; its own directory when it lies in none."""
        return next((one.parent for one in path.parents if one.name == "projects"), path.parent)

    def files(self, root: Path, cwd: str | None = None) -> Sequence[Path]:
        """Transcripts of sessions; with `cwd` only those in its own directories, unless these are empty."""
        return next((files for files in self._places(root, cwd, False) if files), [])

    def stats(self, root: Path, cwd: str | None = None) -> Sequence[tuple[str, os.stat_result]]:
        """`files` as plain strings with their stat, for listings over thousands."""
        names = dict.fromkeys((slug(real(cwd)), slug(cwd))) if cwd is not None else {}
        own = [pair for name in names for pair in _stats(root / "projects" / name)]
        return own or [pair for project in _directories(root / "projects") for pair in _stats(project)]

    def live(self, root: Path) -> frozenset[str]:
        """Ids of the sessions that are open now."""
        return frozenset(claude_live.live_sessions(root))

    def subagents(self, info: SessionInfo) -> Sequence[Path]:
        """Transcripts of the sub-agents that this session started."""
        return sorted(info.path.with_suffix("").glob("subagents/agent-*.jsonl"))

    def _places(self, root: Path, cwd: str | None, subagents: bool) -> Iterator[Sequence[Path]]:
        if cwd is not None:
            names = dict.fromkeys((slug(real(cwd)), slug(cwd)))
            yield [path for name in names for path in _transcripts(root / "projects" / name)]
        yield self._files(root, subagents=subagents)

    def _files(self, root: Path, *, subagents: bool = False) -> Sequence[Path]:
        found: list[Path] = []
        for project in _directories(root / "projects"):
            found += _transcripts(project, subagents=subagents)
            if subagents:
                found += project.glob("*/subagents/agent-*.jsonl")
        return found

    def _narrow(self, found: Iterable[SessionInfo | None], cwd: str | None) -> Sequence[SessionInfo]:
        infos = [info for info in found if info is not None and not info.parent_id]
        if cwd is not None and len(infos) > 1:
            here = [info for info in infos if _belongs(info, cwd)]
            return here or infos
        return infos

    def _look(self, path: Path, stat: os.stat_result, root: Path, live: Mapping[str, int]) -> SessionInfo | None:
        """What head and tail say; None for a file without a conversation, or one that cannot be read."""
        from agents_registry.sessions import claude_records as records

        try:
            head = [record for _, record in jsonl.head(path)]
            if stat.st_size > jsonl.EDGE and not _first_prompt(head):
                head = [record for _, record in jsonl.head(path, jsonl.EDGE * _WIDER)]
            tail = jsonl.tail(path) if stat.st_size > jsonl.EDGE else head
        except OSError:
            return None  # unreadable or just removed: the others are listed all the same
        seen = head if tail is head else head + tail
        if not any(record.get("type") in records.CONVERSATION for record in seen):
            if stat.st_size <= jsonl.EDGE:
                return None
            return self._opaque(path, stat, root, live)
        cwds = [record["cwd"] for record in seen if isinstance(record.get("cwd"), str) and record["cwd"]]
        titles = dict(found for record in seen if (found := records.title_of(record)))
        first = _first_prompt(head)
        ids = dict.fromkeys(str(r["sessionId"]) for r in seen if isinstance(r.get("sessionId"), str))
        parent = ""
        if path.parent.name == "subagents":
            parent = path.parent.parent.name
        elif path.name.startswith("agent-") or all(r.get("isSidechain") for r in seen if r.get("type") in records.CONVERSATION):
            parent = next(iter(ids), path.stem)
        title = records.best_title(titles) or titles.get("last-prompt", "") or first
        return SessionInfo(
            agent=self.agent,
            id=path.stem,
            cwd=_home_of(path.parent.name, cwds),
            title=one_line(title),
            updated_at=stat.st_mtime,
            path=path,
            store_root=root,
            parent_id=parent,
            first_prompt=clean(first),
            aliases=tuple(one for one in ids if one != path.stem),
            live=path.stem in live,
            cwds=tuple(dict.fromkeys(clean(cwd) for cwd in cwds)),
        )

    def _opaque(self, path: Path, stat: os.stat_result, root: Path, live: Mapping[str, int]) -> SessionInfo | None:
        """A large file whose head and tail are single huge records: its cwd is looked for in the bytes."""
        with jsonl.open_bytes(path) as stream:
            found = _CWD.search(stream.read(jsonl.EDGE * _WIDER) or b"")
        if found is None:
            return None
        try:
            cwd: Any = jsonl.decode(b'"' + found.group(1) + b'"')
        except jsonl.NotJson:
            cwd = ""
        return SessionInfo(self.agent, path.stem, str(cwd), "", stat.st_mtime, path, root, live=path.stem in live)


def _directories(place: Path) -> Sequence[Path]:
    try:
        with os.scandir(place) as entries:
            return [Path(entry.path) for entry in entries if entry.is_dir()]
    except OSError:
        return []  # no store, or a directory that may not be read


def _transcripts(project: Path, *, subagents: bool = False) -> Sequence[Path]:
    try:
        with os.scandir(project) as entries:
            return [
                Path(entry.path)
                for entry in entries
                if entry.name.endswith(".jsonl") and (subagents or not entry.name.startswith("agent-")) and entry.is_file()
            ]
    except OSError:
        return []


def _stats(project: Path) -> Sequence[tuple[str, os.stat_result]]:
    found = []
    try:
        with os.scandir(project) as entries:
            for entry in entries:
                if entry.name.endswith(".jsonl") and not entry.name.startswith("agent-"):
                    found.append((entry.path, entry.stat()))
    except OSError:
        return found  # gone or not ours to read: what was seen so far counts
    return found


def _belongs(info: SessionInfo, cwd: str) -> bool:
    return same_dir(info.cwd, cwd)


def _home_of(name: str, cwds: Sequence[str]) -> str:
    """The recorded directory whose sessions lie in the directory `name`; there `claude --resume` finds this one."""
    for cwd in dict.fromkeys(cwds):
        if slug(cwd) == name or slug(real(cwd)) == name:
            return clean(cwd)
    return clean(cwds[0]) if cwds else ""


def _first_prompt(head: Sequence[Mapping[str, Any]]) -> str:
    from agents_registry.sessions import claude_records as records

    command = ""
    for record in head:
        if record.get("type") != "user":
            continue
        content = records.content_of(dict(record))
        what = records.user_kind(dict(record), content)
        if what == "human":
            text = records.prose(content).strip()
            if text:
                return text
        elif what == "command" and not command:
            command = records.command_text(records.prose(content))
    return command
