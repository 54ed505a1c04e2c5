"""What one native record says, before it has its place in the conversation.

An adapter turns its records into `Step`s in file order. From the same steps come the counts of an inspection
(`Tally`, file order) and the conversation (`carry`, in the order of the agent's own tree), so that the two cannot
disagree about what a record means.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple

from agents_registry.sessions.neutral import Builder, FileRef, ImageRef, Text, Thinking, ToolResult


class Kind(Enum):
    """Who speaks in a record."""

    USER = "user"
    """A human's own prose."""
    COMMAND = "command"
    """A human act that is no prose: a slash command, a shell line of his own."""
    AGENT = "agent"
    """The agent, or the results that its tools gave."""
    COMPACT = "compact"
    """All before is replaced by the text of this step."""
    NOTE = "note"
    """Nothing that is carried; it has a place in the agent's tree."""


class Call(NamedTuple):
    """A tool call as recorded: arguments are an object, or the JSON text of one."""

    id: str
    name: str
    arguments: Any


Part = Text | Thinking | Call | ToolResult | ImageRef | FileRef


@dataclass(slots=True)
class Step:
    """One record. `id` and `parent` are the agent's own, for its tree; `message_id` ties records of one message."""

    kind: Kind
    parts: list[Part] = field(default_factory=list)
    line: int = 0
    at: float | None = None
    id: str = ""
    parent: str | None = None
    message_id: str = ""
    cwd: str = ""
    model: str = ""
    stored: str | None = None
    """A human turn's text exactly as stored, where what is carried leaves out what a harness wrapped round it."""
    kept_from: str = ""
    """Of a COMPACT step: id of the first step before it that the agent still sees after the summary."""
    counted: bool = True
    """False: an inspection passes over it (a sub-agent's record)."""
    carried: bool = True
    """False: the conversation passes over it."""

    @property
    def text(self) -> str:
        """All text parts, joined with LF."""
        return "\n".join(part.text for part in self.parts if isinstance(part, Text))

    @property
    def only_results(self) -> bool:
        return bool(self.parts) and all(isinstance(part, ToolResult) for part in self.parts)


class Tally:
    """Counts as an inspection shows them: human turns, agent texts, distinct messages, calls and results."""

    def __init__(self) -> None:
        self.user_turns = 0
        self.user_commands = 0
        self.assistant_texts = 0
        self.first_user = ""
        """SHA-256 of the first human turn's text as stored, "" without one."""
        self._messages: set[str] = set()
        self._calls: set[str] = set()
        self._results: set[str] = set()
        self._nameless = [0, 0, 0]

    @property
    def assistant_messages(self) -> int:
        return len(self._messages) + self._nameless[0]

    @property
    def tool_calls(self) -> int:
        return len(self._calls) + self._nameless[1]

    @property
    def tool_results(self) -> int:
        return len(self._results) + self._nameless[2]

    def add(self, step: Step) -> None:
        """Count one step."""
        if not step.counted:
            return
        if step.kind is Kind.USER:
            if not self.user_turns:
                text = step.text if step.stored is None else step.stored
                self.first_user = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
            self.user_turns += 1
        elif step.kind is Kind.COMMAND:
            self.user_commands += 1
        elif step.kind is Kind.AGENT:
            self._add_agent(step)

    def _add_agent(self, step: Step) -> None:
        if any(isinstance(part, Text) and part.text.strip() for part in step.parts):
            self.assistant_texts += 1
            self._distinct(self._messages, 0, step.message_id)
        for part in step.parts:
            if isinstance(part, Call):
                self._distinct(self._calls, 1, part.id)
            elif isinstance(part, ToolResult):
                self._distinct(self._results, 2, part.call_id)

    def _distinct(self, seen: set[str], slot: int, name: str) -> None:
        if name:
            seen.add(name)
        else:
            self._nameless[slot] += 1


def carry(builder: Builder, steps: Iterable[Step]) -> None:
    """Put steps, already in the order of the agent's tree, into a conversation.

    A call that several records repeat is carried once, and so is its result; calls without an id get one of their own
    and the results that follow are paired with them in order.
    """
    seen_calls: set[str] = set()
    seen_results: set[str] = set()
    open_calls: list[str] = []
    for step in steps:
        if not step.carried:
            continue
        builder.cwd = step.cwd or builder.cwd
        builder.model = step.model or builder.model
        line, at = step.line, step.at
        if step.kind is Kind.USER:
            builder.user([part for part in step.parts if not isinstance(part, Call)], line=line, at=at)
            continue
        if step.kind is Kind.COMPACT:
            builder.compact(step.text, line=line, at=at)
            continue
        for part in step.parts:
            if isinstance(part, Text):
                if step.kind is Kind.AGENT:
                    builder.text(part.text, line=line, at=at)
            elif isinstance(part, Thinking):
                builder.thinking(part.text, line=line, at=at)
            elif isinstance(part, Call):
                name = part.id or f"call-{line}-{len(seen_calls)}"
                if name in seen_calls:
                    continue
                seen_calls.add(name)
                open_calls.append(name)
                builder.call(name, part.name, part.arguments, line=line, at=at)
            elif isinstance(part, ToolResult):
                name = part.call_id or (open_calls[0] if open_calls else f"result-{line}-{len(seen_results)}")
                if name in seen_results:
                    continue
                seen_results.add(name)
                if name in open_calls:
                    open_calls.remove(name)
                builder.result(name, part.text, is_error=part.is_error, line=line, at=at)
            elif step.kind is Kind.AGENT:
                builder.attach(part)


def live_path(steps: list[Step]) -> list[Step]:
    """The branch that ends in the last step which is part of the tree (it has an id), from its root on.

    A parent that no step has is a gap: the walk goes on with the step before it in the file, so that one lost record
    costs no more than itself. Several records with one id are one node. Results that hang beside the branch, because
    parallel calls were each answered on a twig of their own, are taken along in file order.
    """
    places: dict[str, list[int]] = {}
    answered: dict[str, str] = {}  # a tool call's id also names the record that made the call
    for index, step in enumerate(steps):
        if step.id:
            places.setdefault(step.id, []).append(index)
            for part in step.parts:
                if isinstance(part, Call) and part.id:
                    answered.setdefault(part.id, step.id)
    if not places:
        return steps
    leaf = next(step for step in reversed(steps) if step.id)
    kept: set[int] = set()
    walked: set[str] = set()
    node = leaf.id
    while node and node not in walked:
        walked.add(node)
        kept.update(places[node])
        first = places[node][0]
        parent = next((steps[i].parent for i in places[node] if steps[i].parent), None)
        if parent is None or parent == node:
            break
        if parent not in places:
            parent = answered.get(parent, parent)
        if parent not in places:
            parent = next((steps[i].id for i in range(first - 1, -1, -1) if steps[i].id), "")
        node = parent
    called = {part.id for i in kept for part in steps[i].parts if isinstance(part, Call)}
    for index, step in enumerate(steps):
        if index not in kept and step.only_results and step.parent in walked:
            ids = {part.call_id for part in step.parts if isinstance(part, ToolResult)}
            if ids <= called:
                kept.add(index)
    return [step for index, step in enumerate(steps) if index in kept]


def keep_after_summary(steps: list[Step]) -> list[Step]:
    """Move the steps that the last compaction kept (`kept_from`) behind its summary, where the agent sees them."""
    last = next((index for index in range(len(steps) - 1, -1, -1) if steps[index].kind is Kind.COMPACT), None)
    if last is None or not steps[last].kept_from:
        return steps
    first = next((index for index in range(last) if steps[index].id == steps[last].kept_from), None)
    if first is None:
        return steps
    kept = [step for step in steps[first:last] if step.kind is not Kind.COMPACT]
    return [*steps[:first], steps[last], *kept, *steps[last + 1 :]]
