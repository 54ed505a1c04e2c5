"""What a session was about, read off its neutral form by rules: goal, constraints, decisions, todos, files, commands,
errors, and what is next. Deterministic; no model is asked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from agents_registry.relay import wording
from agents_registry.relay.budget import shorten
from agents_registry.relay.drift import absolute
from agents_registry.sessions.neutral import AGENT, USER, Conversation, Text, ToolCall, ToolResult, Turn
from agents_registry.sessions.vocabulary import Tool, command_of, todo_items, touched_paths

ITEM = 200
"""Characters of one item."""
_BORDER = re.compile(r"\n|(?<=[。！？])|(?<=[.!?])\s+")
_MOST = 400
"""Items kept of one kind; the budget then chooses among them."""
_BULLET = re.compile(r"^\s*(?:[-*+>#]+|\d+[.)])\s*")
_CHECKBOX = re.compile(r"^\s*[-*+]\s*\[( |x|X|~)\]\s*(.+)$", re.MULTILINE)
_DONE = ("completed", "done", "complete", "cancelled", "deleted", "finished")
_PROMPT_LIMIT = 20_000


@dataclass(slots=True)
class Changed:
    """One file that was written or edited: lines added and removed as the calls say, and how many calls."""

    path: str
    added: int = 0
    removed: int = 0
    calls: int = 0


@dataclass(slots=True)
class Command:
    """A shell command with its outcome: `ok`, `failed`, or "" where no result was recorded. `times` it ran in all."""

    line: str
    outcome: str
    times: int = 1


@dataclass(slots=True)
class Failure:
    """A failed tool call: what it was, the first telling line, and whether the same thing succeeded later."""

    what: str
    why: str
    recovered: bool = False


@dataclass(slots=True)
class Facts:
    """Everything in the order it happened. Texts are whole lines or sentences, not redacted yet."""

    goal: str = ""
    constraints: list[str] = field(default_factory=list)
    decisions: list[str] = field(default_factory=list)
    todos: list[tuple[str, str]] = field(default_factory=list)
    """(text, status), as the last todo list says."""
    changed: dict[str, Changed] = field(default_factory=dict)
    read: dict[str, int] = field(default_factory=dict)
    """Absolute path to number of reads."""
    commands: dict[str, Command] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)
    unanswered: str = ""
    """The last request, when nothing was said after it."""
    last_words: str = ""
    """The end of what the agent said last."""
    open_words: list[str] = field(default_factory=list)
    """Sentences of the agent that name something open."""

    def open_todos(self) -> list[tuple[str, str]]:
        return [(text, status) for text, status in self.todos if status.lower() not in _DONE]


def gather(
    conversation: Conversation,
    *,
    earlier: int | None = None,
    decision_words: dict[str, tuple[str, ...]] | None = None,
    constraint_words: dict[str, tuple[str, ...]] | None = None,
) -> Facts:
    """The facts of a conversation. Sentences (decisions, constraints, commands) come from the first `earlier` turns only,
    where the rest is carried word by word; goal, todos, files and what is next from all of it.
    """
    decides = wording.pattern(decision_words or wording.DECISIONS)
    binds = wording.pattern(constraint_words or wording.CONSTRAINTS)
    opens = wording.pattern(wording.OPEN)
    limit = len(conversation.turns) if earlier is None else earlier
    made = Facts()
    tools = _Tools(made, conversation)
    for number, turn in enumerate(conversation.turns):
        told = number < limit
        if turn.role == USER:
            words = turn.text.strip()
            if words and not made.goal:
                made.goal = words
            elif told:
                made.constraints += _sentences(words, binds)
            if told:
                made.decisions += [one for one in _sentences(words, decides) if one not in made.constraints]
        elif told:
            for block in turn.blocks:
                if isinstance(block, Text):
                    made.decisions += _sentences(block.text, decides)
        for block in turn.blocks:
            if isinstance(block, ToolCall):
                tools.call(block, told)
    if not made.todos:
        made.todos = _checkboxes(conversation.turns)
    _ending(made, conversation.turns, opens)
    if conversation.compaction is not None and not made.goal:
        made.goal = conversation.compaction.summary.strip().split("\n\n")[0]
    for name in ("constraints", "decisions", "open_words"):
        setattr(made, name, list(dict.fromkeys(getattr(made, name)))[-_MOST:])
    return made


class _Tools:
    def __init__(self, facts: Facts, conversation: Conversation) -> None:
        self._facts = facts
        self._cwd = conversation.last_cwd or conversation.cwd
        self._results: dict[str, ToolResult] = conversation.results()
        self._failed: dict[str, Failure] = {}

    def call(self, call: ToolCall, told: bool) -> None:
        result = self._results.get(call.id)
        failed = result is not None and failing(call, result)
        facts, key = self._facts, self._key(call)
        if key and result is not None:
            self._outcome(key, call, result, failed, told)
        if call.tool is Tool.TODO:
            items = list(todo_items(call.input))
            if items:
                facts.todos = items
        elif call.tool is Tool.SHELL:
            line = command_of(call.input).strip()
            if line and told:
                outcome = "" if result is None else "failed" if failed else "ok"
                known = facts.commands.pop(line, None)  # at the end again: the last run is what counts
                facts.commands[line] = Command(line, outcome, known.times + 1 if known else 1)
        elif not failed:
            for path in touched_paths(call.tool, call.input):
                self._touch(call, absolute(path, self._cwd))

    def _touch(self, call: ToolCall, path: str) -> None:
        if call.tool is Tool.READ:
            self._facts.read[path] = self._facts.read.get(path, 0) + 1
            return
        one = self._facts.changed.setdefault(path, Changed(path))
        added, removed = diff_size(call)
        one.added, one.removed, one.calls = one.added + added, one.removed + removed, one.calls + 1

    def _key(self, call: ToolCall) -> str:
        if call.tool is Tool.SHELL:
            return command_of(call.input).strip()
        paths = touched_paths(call.tool, call.input)
        return f"{call.name} {paths[0]}" if paths else call.name

    def _outcome(self, key: str, call: ToolCall, result: ToolResult, failed: bool, told: bool) -> None:
        earlier = self._failed.pop(key, None)
        if not failed:
            if earlier is not None:
                earlier.recovered = True
            return
        if earlier is not None:
            earlier.why = telling_line(result.text)
            self._failed[key] = earlier
        elif told and len(self._facts.failures) < _MOST:
            one = Failure(shorten(key, ITEM // 2), telling_line(result.text))
            self._facts.failures.append(one)
            self._failed[key] = one


def failing(call: ToolCall, result: ToolResult) -> bool:
    """Whether a result says that its call failed: its own mark, or the exit code that shells print."""
    if result.is_error:
        return True
    if call.tool is not Tool.SHELL:
        return False
    for pattern in _EXIT:
        found = pattern.search(result.text[:400]) or pattern.search(result.text[-400:])
        if found:
            return found[1] != "0"
    return False


_EXIT = tuple(
    re.compile(text, re.IGNORECASE)
    for text in (r"(?:process )?exited with code (-?\d+)", r"\bexit code:? (-?\d+)", r'"exit_code"\s*:\s*(-?\d+)', r"\bexit status:? (-?\d+)")
)
_TELLING = re.compile(r"error|fail|exception|denied|not found|no such|cannot|traceback|错误|失败", re.IGNORECASE)


def telling_line(text: str) -> str:
    """The line of an output that best says what went wrong: the last that speaks of an error, else the last."""
    lines = [line.strip() for line in text[-8000:].splitlines() if line.strip()]
    telling = [line for line in lines if _TELLING.search(line) and not line.startswith("Traceback")]
    return shorten((telling or lines or [""])[-1], ITEM)


def diff_size(call: ToolCall) -> tuple[int, int]:
    """(lines added, lines removed) as an edit or write call says; 0 where it does not."""
    added = removed = 0
    given = call.input
    listed = given.get("edits")
    edits: list[Mapping[str, object]] = [given, *(one for one in listed if isinstance(one, dict))] if isinstance(listed, list) else [given]
    for edit in edits:
        for old, new in (("old_string", "new_string"), ("oldString", "newString"), ("old_str", "new_str"), ("oldText", "newText")):
            removed += _lines(edit.get(old))
            added += _lines(edit.get(new))
    if call.tool is Tool.WRITE:
        added += _lines(given.get("content", given.get("file_text")))
    for key in ("input", "patch", "patchText"):
        patch = given.get(key)
        if isinstance(patch, str) and "*** " in patch:
            added += len(re.findall(r"(?m)^\+(?!\+\+ )", patch))
            removed += len(re.findall(r"(?m)^-(?!-- )", patch))
    return added, removed


def _lines(value: object) -> int:
    return len(value.splitlines()) if isinstance(value, str) else 0


def _sentences(text: str, marks: re.Pattern[str]) -> list[str]:
    if not marks.search(text):
        return []
    found = []
    for part in _BORDER.split(text[:_PROMPT_LIMIT]):
        sentence = _BULLET.sub("", part).strip()
        if len(sentence) > 3 and marks.search(sentence):
            found.append(sentence)
    return found[:20]


def _checkboxes(turns: Sequence[Turn]) -> list[tuple[str, str]]:
    """The last list with check boxes that the agent wrote."""
    for turn in reversed(turns):
        if turn.role == AGENT:
            found = _CHECKBOX.findall(turn.text)
            if found:
                return [(text.strip(), "completed" if mark in "xX" else "in_progress" if mark == "~" else "pending") for mark, text in found]
    return []


def _ending(made: Facts, turns: Sequence[Turn], opens: re.Pattern[str]) -> None:
    spoken = next((block.text for block in _agent_texts_back(turns)), "")
    made.last_words = spoken.strip()
    made.open_words = _sentences(spoken, opens)
    if turns and turns[-1].role == USER:
        made.unanswered = turns[-1].text.strip()


def _agent_texts_back(turns: Sequence[Turn]) -> Iterator[Text]:
    for turn in reversed(turns):
        if turn.role == AGENT:
            for block in reversed(turn.blocks):
                if isinstance(block, Text):
                    yield block
