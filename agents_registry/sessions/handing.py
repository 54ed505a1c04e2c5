"""What every writer does to a conversation before it writes: calls and results put in an order that model APIs accept,
ids made clean, and a name of what was lost on the way. And the file itself, put in its place atomically.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

from agents_registry.errors import AgentError, RefusedError
from agents_registry.sessions.neutral import (
    Block,
    Conversation,
    FileRef,
    ImageRef,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Turn,
)

INTERRUPTED = "[Tool call interrupted: no result was recorded]"
SUMMARY_MARK = "[Summary of the conversation before this point]\n"
"""Opens the user message that carries a compaction into a store whose own form of it is not for others to write."""
_UNCLEAN = re.compile(r"[^a-zA-Z0-9_-]")
_SEPARATORS = ((b"\xe2\x80\xa8", b"\\u2028"), (b"\xe2\x80\xa9", b"\\u2029"), (b"\xc2\x85", b"\\u0085"))
_fast: Callable[[Any], bytes] | None
try:
    from orjson import dumps as _fast
except ImportError:  # an accelerator, not a need
    _fast = None


class Losses:
    """Counts of what a target cannot hold, in the order first met."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def add(self, what: str, count: int = 1) -> None:
        if count:
            self._counts[what] += count

    def lines(self) -> tuple[str, ...]:
        """Sentences such as `3 thoughts`."""
        return tuple(f"{count} {what}" for what, count in self._counts.items())


@dataclass(frozen=True, slots=True)
class Answered:
    """A tool call with its result; never without one."""

    call: ToolCall
    result: ToolResult


class Sequence:
    """Puts the agent's turns of one conversation into the order that model APIs accept.

    Calls come in groups that are answered together, at once. A call without a result anywhere gets one that says it was
    interrupted; a result without a call is lost. Ids become [A-Za-z0-9_-] and unique. Images become words.
    """

    def __init__(self, conversation: Conversation, losses: Losses) -> None:
        self._losses = losses
        self._given: set[str] = set()
        self._results: dict[str, list[ToolResult]] = {}
        for turn in conversation.turns:
            for block in turn.blocks:
                if isinstance(block, ToolResult):
                    self._results.setdefault(block.call_id, []).append(block)

    def parts(self, turn: Turn) -> Iterator[Text | Thinking | list[Answered]]:
        """The parts of one agent's turn."""
        group: list[Answered] = []
        for block in turn.blocks:
            if isinstance(block, ToolCall):
                group.append(self._answered(block))
                continue
            if group:
                # The answers of a group come right behind it, whatever stood between.
                yield group
                group = []
            if isinstance(block, (Text, Thinking)):
                yield block
            elif not isinstance(block, ToolResult):
                self._losses.add("images or files as references")
                yield Text(reference_text(block), block.line, block.at)
        if group:
            yield group

    def end(self) -> None:
        """Counts what was never asked for."""
        self._losses.add("results without a recorded call", sum(len(left) for left in self._results.values()))

    def _answered(self, call: ToolCall) -> Answered:
        found = self._results.get(call.id)
        result = found.pop(0) if found else ToolResult(call.id, INTERRUPTED, True, 0, call.line, call.at)
        base = _UNCLEAN.sub("_", call.id)[:64] or "call"
        made, number = base, 1
        while made in self._given:
            number += 1
            made = f"{base}_{number}"
        self._given.add(made)
        return Answered(replace(call, id=made), replace(result, call_id=made))


def reference_text(block: ImageRef | FileRef) -> str:
    """An image or file as words."""
    if isinstance(block, ImageRef):
        return f"[image {block.media_type}: {block.source}]"
    return f"[file: {block.source}]"


def words(blocks: list[Block], losses: Losses) -> str:
    """The text of a human turn, with references for what is no text."""
    parts = []
    for block in blocks:
        if isinstance(block, Text):
            parts.append(block.text)
        elif isinstance(block, (ImageRef, FileRef)):
            losses.add("images or files as references")
            parts.append(reference_text(block))
    return "\n".join(parts)


def moments(conversation: Conversation, now: float) -> Iterator[float]:
    """Rising times for records, one millisecond apart, from the conversation's own begin where it is known."""
    at = conversation.created_at if conversation.created_at is not None and conversation.created_at <= now else now
    while True:
        yield at
        at += 0.001


def json_line(record: Mapping[str, Any]) -> bytes:
    """A record as one line with its newline. Line and paragraph separators are escaped: they are legal inside JSON
    strings, but there are readers that split lines at them.
    """
    try:
        made = _fast(record) if _fast is not None else b""
    except TypeError:
        made = b""  # an integer or a text that the accelerator refuses; the standard library takes it
    made = made or json.dumps(record, ensure_ascii=False, default=str, separators=(",", ":")).encode("utf-8", "replace")
    for raw, escaped in _SEPARATORS:
        if raw in made:
            made = made.replace(raw, escaped)
    return made + b"\n"


@contextlib.contextmanager
def placing(path: Path, agent: str) -> Iterator[Callable[[Mapping[str, Any]], None]]:
    """Takes records and creates the file of exactly these, or nothing: temporary file beside it, fsync, link. Mode 0600.

    Raises `RefusedError` when the file exists (it is left as it is), `AgentError` when the store cannot be written.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with open(descriptor, "wb", buffering=1024 * 1024) as file:
                yield lambda record: _write(file, record)
                file.flush()
                os.fsync(file.fileno())
            os.link(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # some file systems cannot sync a directory; the file itself is safe
            directory = os.open(path.parent, os.O_RDONLY)
            try:
                os.fsync(directory)
            finally:
                os.close(directory)
    except FileExistsError:
        raise RefusedError(f"{path} exists; an existing session is never written.", hint="Use another session id.") from None
    except OSError as error:
        raise AgentError(
            f"The store of {agent} cannot be written: {error.strerror or error} ({path}).", hint="Check the rights of that directory."
        ) from error


def _write(file: IO[bytes], record: Mapping[str, Any]) -> None:
    file.write(json_line(record))


def differing_cwds(conversation: Conversation) -> int:
    """Turns whose directory is another than the conversation's."""
    return sum(1 for turn in conversation.turns if turn.cwd and turn.cwd != conversation.cwd)


def essence(conversation: Conversation, *, names: Mapping[str, str] | None = None, thinking: bool = True) -> list[tuple[str, ...]]:
    """What must be equal after writing and reading back: roles, texts, calls with their inputs, results, in order.

    Call ids are replaced by their ordinal, since stores demand different shapes of them.
    """
    numbers: dict[str, str] = {}
    found: list[tuple[str, ...]] = []
    if conversation.compaction is not None:
        found.append(("summary", conversation.compaction.summary))
    for turn in conversation.turns:
        for block in turn.blocks:
            if isinstance(block, Text):
                found.append((turn.role, "text", block.text))
            elif isinstance(block, Thinking):
                if thinking:
                    found.append((turn.role, "thinking", block.text))
            elif isinstance(block, ToolCall):
                numbers[block.id] = str(len(numbers))
                name = (names or {}).get(block.name, block.name)
                found.append((turn.role, "call", numbers[block.id], name, json.dumps(block.input, sort_keys=True, ensure_ascii=False)))
            elif isinstance(block, ToolResult):
                found.append((turn.role, "result", numbers.get(block.call_id, "?"), block.text, str(block.is_error)))
            else:
                found.append((turn.role, "reference", reference_text(block)))
    return found
