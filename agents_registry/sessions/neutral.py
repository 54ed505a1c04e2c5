"""The neutral form of a conversation, which every store reads into and every writer and export starts from.

A conversation is a list of turns in the order of the agent's own tree. There are two kinds of turns: what the human
said (`USER`), and everything the agent did until the human spoke again (`AGENT`): its texts, thoughts, tool calls and
their results, in order. Harness text, hooks and injected context are in neither. Each block knows the line of the
store it came from (0 where a store has no lines) and its time.

Adapters build it with `Builder`, which keeps this canonical shape whatever the store's records look like.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from agents_registry.sessions.plain import clean as clean
from agents_registry.sessions.plain import flat_text as flat_text
from agents_registry.sessions.port import Skipped
from agents_registry.sessions.vocabulary import Tool, classify

Role = Literal["user", "agent"]
USER: Role = "user"
AGENT: Role = "agent"


@dataclass(frozen=True, slots=True)
class Text:
    """Words of the human (in a user turn) or of the agent, as stored."""

    text: str
    line: int = 0
    at: float | None = None
    """Seconds since the epoch, None where the store does not say; the same in every block."""


@dataclass(frozen=True, slots=True)
class Thinking:
    """What the agent thought, where its store keeps that readable."""

    text: str
    line: int = 0
    at: float | None = None


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call: `name` and `input` as the agent recorded them, `tool` the neutral kind."""

    id: str
    name: str
    input: Mapping[str, Any]
    tool: Tool
    line: int = 0
    at: float | None = None

    @classmethod
    def of(
        cls, agent: str, call_id: str, name: str, arguments: Any, limit: int = 0, line: int = 0, at: float | None = None
    ) -> ToolCall:
        """A call as recorded: arguments may be a JSON text, what is no object is kept under "raw"; texts in it are
        clipped to `limit` characters (0: kept whole)."""
        given = {clean(str(key)): _scrub(value, limit) for key, value in as_object(arguments).items()}
        return cls(clean(call_id), clean(name), given, classify(agent, name), line, at)


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of the call `call_id`. `omitted` counts characters that were cut out of the middle while reading."""

    call_id: str
    text: str
    is_error: bool = False
    omitted: int = 0
    line: int = 0
    at: float | None = None


@dataclass(frozen=True, slots=True)
class ImageRef:
    """An image that the store holds or points at; its bytes are never carried. `source` is a path, an address, or "inline"."""

    media_type: str
    source: str
    size: int = 0
    """Bytes where known, else 0."""
    line: int = 0
    at: float | None = None


@dataclass(frozen=True, slots=True)
class FileRef:
    """A file or document attached to a message. `source` is a path, an address, or "inline"."""

    source: str
    media_type: str = ""
    line: int = 0
    at: float | None = None


Block = Text | Thinking | ToolCall | ToolResult | ImageRef | FileRef


@dataclass(slots=True)
class Turn:
    """One turn. `cwd` and `model` are those at its begin, "" where the store does not say."""

    role: Role
    blocks: list[Block] = field(default_factory=list)
    at: float | None = None
    cwd: str = ""
    model: str = ""
    line: int = 0
    file: str = ""
    """Set when the turn comes from another file than the conversation's own (a fork's parent)."""

    @property
    def text(self) -> str:
        """All text blocks, joined with LF."""
        return "\n".join(block.text for block in self.blocks if isinstance(block, Text))


@dataclass(frozen=True, slots=True)
class Compaction:
    """The last compaction of the session: what stands in for everything before `Conversation.turns`."""

    summary: str
    line: int = 0
    at: float | None = None
    turns_before: int = 0
    """User turns that the summary replaced, as far as the store still shows them."""


@dataclass(slots=True)
class Conversation:
    """A session in neutral form."""

    agent: str
    id: str
    turns: list[Turn] = field(default_factory=list)
    cwd: str = ""
    """First recorded working directory, "" when the store does not say."""
    last_cwd: str = ""
    title: str = ""
    model: str = ""
    """The last model named."""
    branch: str = ""
    created_at: float | None = None
    updated_at: float | None = None
    path: Path | None = None
    store_root: Path | None = None
    parent_id: str = ""
    """The session this one was forked from, or whose sub-agent it is."""
    compaction: Compaction | None = None
    skipped: tuple[Skipped, ...] = ()
    skipped_count: int = 0
    """All records that could not be used; `skipped` names the first of them."""
    unknown: dict[str, int] = field(default_factory=dict)
    """Kinds of records this version does not know, with how many."""

    def user_turns(self) -> list[Turn]:
        return [turn for turn in self.turns if turn.role == USER]

    def calls(self) -> Iterator[ToolCall]:
        for turn in self.turns:
            for block in turn.blocks:
                if isinstance(block, ToolCall):
                    yield block

    def results(self) -> dict[str, ToolResult]:
        """Result by call id; the first one counts."""
        found: dict[str, ToolResult] = {}
        for turn in self.turns:
            for block in turn.blocks:
                if isinstance(block, ToolResult):
                    found.setdefault(block.call_id, block)
        return found

    def rounds(self) -> Iterator[list[Turn]]:
        """A human turn with all that follows until the next one; the first round may open with the agent."""
        current: list[Turn] = []
        for turn in self.turns:
            if turn.role == USER and current:
                yield current
                current = []
            current.append(turn)
        if current:
            yield current


_clip: ContextVar[int] = ContextVar("clip_results", default=0)


@contextmanager
def clipped_results(limit: int) -> Iterator[None]:
    """While this is entered, builders keep at most `limit` characters of a tool result or of one input text.

    The middle goes, and the result says how much. For readers that want the gist of a huge session in little memory.
    """
    token = _clip.set(limit)
    try:
        yield
    finally:
        _clip.reset(token)


def clip_setting() -> int:
    """The limit that `clipped_results` set, 0 without one."""
    return _clip.get()


def clip(text: str, limit: int) -> tuple[str, int]:
    """(text of about `limit` characters with the middle cut out, characters omitted); limit 0 keeps everything."""
    if limit <= 0 or len(text) <= limit:
        return text, 0
    front = limit * 2 // 3
    back = limit - front
    omitted = len(text) - front - back
    return f"{text[:front]}\n[… {omitted} characters omitted …]\n{text[-back:]}", omitted


class Builder:
    """Collects records, in the order of the agent's tree, into the canonical shape.

    `cwd`, `model`, `file` are set by the adapter when they change and apply to the turns that follow. A result whose
    call was never seen is kept; a text that is empty is not. `agent` is the registry id.
    """

    def __init__(self, agent: str, session_id: str) -> None:
        self.conversation = Conversation(agent, session_id)
        self.cwd = ""
        self.model = ""
        self.file = ""
        self._limit = _clip.get()

    def user(self, blocks: str | list[Block], *, line: int = 0, at: float | None = None) -> None:
        """A human turn; a plain string becomes one text block."""
        parts: list[Block] = [Text(blocks, line, at)] if isinstance(blocks, str) else list(blocks)
        parts = [Text(clean(part.text), part.line, part.at) if isinstance(part, Text) else part for part in parts]
        if parts:
            self._open(USER, line, at, fresh=True).blocks.extend(parts)

    def text(self, text: str, *, line: int = 0, at: float | None = None) -> None:
        """Words of the agent."""
        if text.strip():
            self._open(AGENT, line, at).blocks.append(Text(clean(text), line, at))

    def thinking(self, text: str, *, line: int = 0, at: float | None = None) -> None:
        if text.strip():
            self._open(AGENT, line, at).blocks.append(Thinking(clean(text), line, at))

    def call(self, call_id: str, name: str, arguments: Any, *, line: int = 0, at: float | None = None, tool: Tool | None = None) -> None:
        """A tool call; arguments that are a JSON text are parsed, what is no object is kept under "raw"."""
        made = ToolCall.of(self.conversation.agent, call_id, name, arguments, self._limit, line, at)
        self._open(AGENT, line, at).blocks.append(made if tool is None else replace(made, tool=tool))

    def result(self, call_id: str, text: str, *, is_error: bool = False, line: int = 0, at: float | None = None) -> None:
        kept, omitted = clip(clean(text), self._limit)
        self._open(AGENT, line, at).blocks.append(ToolResult(clean(call_id), kept, is_error, omitted, line, at))

    def attach(self, block: ImageRef | FileRef) -> None:
        """An image or file the agent produced or was shown by a tool."""
        self._open(AGENT, block.line, block.at).blocks.append(block)

    def take(self, role: Role, blocks: Sequence[Block], line: int) -> None:
        """Blocks that are clean and clipped already; those of the human are a turn of their own."""
        self._open(role, line, blocks[0].at, fresh=role == USER).blocks.extend(blocks)

    def compact(self, summary: str, *, line: int = 0, at: float | None = None) -> None:
        """The session was compacted here: turns so far are replaced by `summary`."""
        made = self.conversation
        before = len(made.user_turns()) + (made.compaction.turns_before if made.compaction else 0)
        made.turns.clear()
        made.compaction = Compaction(clean(summary), line, at, before)

    def done(self) -> Conversation:
        """The conversation, with cwd, model and times filled in from the turns where the adapter set none."""
        made = self.conversation
        cwds = [turn.cwd for turn in made.turns if turn.cwd]
        made.cwd = made.cwd or (cwds[0] if cwds else self.cwd)
        made.last_cwd = made.last_cwd or (self.cwd or (cwds[-1] if cwds else made.cwd))
        made.model = made.model or self.model
        times = [turn.at for turn in made.turns if turn.at is not None]
        if times:
            made.created_at = made.created_at if made.created_at is not None else times[0]
            last = max((block.at for block in made.turns[-1].blocks if block.at is not None), default=times[-1])
            made.updated_at = made.updated_at if made.updated_at is not None else last
        return made

    def _open(self, role: Role, line: int, at: float | None, *, fresh: bool = False) -> Turn:
        turns = self.conversation.turns
        if fresh or not turns or turns[-1].role != role:
            turns.append(Turn(role, [], at, clean(self.cwd), clean(self.model), line, self.file))
        return turns[-1]


def as_object(arguments: Any) -> dict[str, Any]:
    """Tool arguments as an object: a JSON text of one is parsed, anything else is kept under "raw"; None is empty."""
    if isinstance(arguments, dict):
        return arguments
    if isinstance(arguments, str):
        if not arguments.strip():
            return {}
        try:
            value = json.loads(arguments)
        except (ValueError, RecursionError):
            return {"raw": arguments}
        return value if isinstance(value, dict) else {"raw": arguments}
    return {} if arguments is None else {"raw": arguments}


_DEPTH = 60
"""Levels of a tool's input that are kept; what lies deeper than any real tool goes is named, not carried."""


def _scrub(value: Any, limit: int, depth: int = 0) -> Any:
    if isinstance(value, str):
        return clip(clean(value), limit)[0]
    if isinstance(value, dict):
        if depth >= _DEPTH:
            return "[nested too deeply]"
        return {clean(str(key)): _scrub(item, limit, depth + 1) for key, item in value.items()}
    if isinstance(value, list):
        if depth >= _DEPTH:
            return "[nested too deeply]"
        return [_scrub(item, limit, depth + 1) for item in value]
    if isinstance(value, float) and value - value != 0:
        return None  # NaN and infinities are no JSON, and no store of another agent takes them
    return value
