"""The port of a native session store: what each agent's adapter offers, and the plain data that crosses it.

One module per agent implements `SessionStore` (claude.py, codex.py, ...). Stores only read here; writing a new
session is the separate `SessionWriter`. Nothing in this package talks to a running agent, reads settings, or
raises on a damaged record: what was skipped is counted in `Skipped`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from agents_registry.sessions.neutral import Conversation


@dataclass(frozen=True, slots=True)
class Skipped:
    """One record that could not be used: 1-based line (0 where the store has no lines) and the reason."""

    line: int
    why: str


@dataclass(frozen=True, slots=True)
class SessionInfo:
    """What a listing shows. `cwd` is as the store records it, in its spelling, or "" when the store does not say."""

    agent: str
    id: str
    cwd: str
    title: str
    updated_at: float
    """Seconds since the epoch."""
    path: Path
    """The transcript file, or the database that holds it."""
    store_root: Path
    parent_id: str = ""
    """Set for a sub-agent's transcript; those are hidden from lists and never "latest"."""
    first_prompt: str = ""
    aliases: tuple[str, ...] = ()
    live: bool = False
    cwds: tuple[str, ...] = ()
    """Every working directory that was seen while looking, in file order; at least the first and the last one."""


@dataclass(frozen=True, slots=True)
class Inspection:
    """Counts of one file in file order, as `va sessions inspect` prints them."""

    agent: str
    id: str
    cwd: str
    user_turns: int
    assistant_texts: int
    assistant_messages: int
    tool_calls: int
    tool_results: int
    malformed: int
    first_user_sha256: str
    skipped: tuple[Skipped, ...] = ()


@dataclass(frozen=True, slots=True)
class Tail:
    """A fingerprint of the end of a session, to see whether somebody else wrote since.

    `leaf` is what the store itself orders by (Claude: uuid of the last leaf; Codex: last ordinal or record count;
    databases: row count); `size` in bytes; `mtime_ns` of the file. Equal tails mean: nobody wrote.
    """

    leaf: str
    size: int
    mtime_ns: int


class SessionStore(Protocol):
    """One agent's store. `env` is the environment that places it (CLAUDE_CONFIG_DIR, CODEX_HOME, XDG_*, HOME)."""

    agent: str

    def roots(self, env: Mapping[str, str]) -> list[Path]:
        """Store roots that `env` names; they need not exist."""

    def list(self, root: Path, *, cwd: str | None = None, limit: int = 20, subagents: bool = False) -> Iterator[SessionInfo]:
        """Newest first. Opens no more files than it yields (`cwd` filters by recorded cwd, real paths compared)."""

    def resolve(self, root: Path, wanted: str, *, cwd: str | None = None) -> Sequence[SessionInfo]:
        """Sessions that `wanted` may mean: exact id first and alone if it matches, else alias, else unique prefix
        (at least 4 characters), else native title. Several entries = ambiguous; empty = unknown."""

    def read(self, info: SessionInfo) -> Conversation:
        """The conversation as the agent's own tree has it (last leaf, rewinds, compaction)."""

    def inspect(self, path: Path) -> Inspection:
        """Counts of one file in file order. Raises `NotFoundError` when the file is no session of this agent."""

    def recognises(self, path: Path) -> bool:
        """Whether the content of `path` looks like this agent's session; reads at most the first 64 KiB."""

    def tail(self, info: SessionInfo) -> Tail:
        """The fingerprint of the session's end; reads only the end of the file."""


@dataclass(frozen=True, slots=True)
class Written:
    """A session that a writer created, and what the target's format could not hold."""

    info: SessionInfo
    lost: tuple[str, ...] = field(default=())


class SessionWriter(Protocol):
    """Writes a *new* session into an agent's store; an existing file is never touched."""

    agent: str

    def write(self, conversation: Conversation, root: Path, *, session_id: str, env: Mapping[str, str]) -> Written:
        """Create the session atomically (temporary file, fsync, link); refuse when the id exists."""
