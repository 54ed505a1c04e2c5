"""The brief: a Markdown record of a session for another agent, made by rules within a budget of tokens.

Sections have shares of the budget. What a section does not use goes to the others; what does not fit goes from the
least valuable section first, and each cut says how much is omitted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from agents_registry.relay import wording
from agents_registry.relay.budget import cut_to_tokens, estimate, shorten
from agents_registry.relay.drift import FileState
from agents_registry.relay.facts import ITEM, Facts
from agents_registry.relay.redact import Redactor
from agents_registry.sessions.neutral import Conversation

SHARES: dict[str, int] = {
    "next": 14, "goal": 18, "todos": 12, "decisions": 16, "constraints": 10, "summary": 14, "changed": 8, "errors": 4, "commands": 3, "read": 1,
}  # fmt: skip
"""Percent of the budget that a section may count on, most valuable first."""
_SHOWN = ("summary", "goal", "constraints", "decisions", "todos", "changed", "read", "commands", "errors", "next")
"""The order in the text."""
_KEEP_LAST = ("decisions", "constraints", "changed", "read", "commands", "errors")
"""Of these the latest items are kept when not all fit."""


@dataclass(slots=True)
class Section:
    """A heading with a text or with items."""

    key: str
    heading: str
    items: list[str] = field(default_factory=list)
    text: str = ""

    def tokens(self) -> int:
        return estimate(self.heading) + 3 + estimate(self.text) + sum(estimate(item) + 1 for item in self.items)


@dataclass(frozen=True, slots=True)
class Brief:
    """The Markdown text, its tokens, and what was dropped: section to number of items, or to characters of a text."""

    text: str
    tokens: int
    dropped: dict[str, str]
    language: str


def write_brief(
    conversation: Conversation,
    facts: Facts,
    files: Sequence[FileState],
    *,
    tokens: int,
    redactor: Redactor,
    language: str = "",
    next_step: str = "",
) -> Brief:
    """The brief of at most about `tokens` tokens. `files` are the states of the changed and read files now."""
    chosen = language or wording.language_of(turn.text for turn in conversation.user_turns())
    words = wording.LANGUAGES.get(chosen, wording.ENGLISH)
    head = _head(conversation, words, redactor)
    sections = [one for one in _sections(conversation, facts, files, words, next_step) if one.items or one.text]
    for one in sections:
        place = f"brief, {one.key}"
        one.items = [redactor.text(item, place) for item in one.items]
        one.text = redactor.text(one.text, place)
    dropped = _fit(sections, tokens - estimate(head), words)
    by_key = {one.key: one for one in sections}
    parts = [head]
    for key in _SHOWN:
        if key in by_key and (by_key[key].items or by_key[key].text):
            section = by_key[key]
            parts.append("\n".join([f"## {section.heading}", "", *([section.text] if section.text else []), *section.items]))
    text = redactor.text("\n\n".join(parts) + "\n", "brief")
    return Brief(text, estimate(text), dropped, chosen)


def _head(made: Conversation, words: wording.Words, redactor: Redactor) -> str:
    rows = [(words.agent, made.agent), (words.session, made.id), (words.time, _span(made)), (words.directory, made.last_cwd or made.cwd)]
    rows += [(words.branch, made.branch), (words.model, made.model)]
    if made.skipped_count:
        rows.append((words.skipped, str(made.skipped_count)))
    title = shorten(redactor.text(made.title, "brief, title"), 100)
    lines = [f"# {words.title}{': ' + title if title else ''}", "", f"## {words.came_from}", ""]
    return "\n".join(lines + [f"- {name}: {shorten(value, 300)}" for name, value in rows if value])


def _span(made: Conversation) -> str:
    times = [at for at in (made.created_at, made.updated_at) if at is not None]
    return " – ".join(dict.fromkeys(f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M} UTC" for at in times if 0 <= at < 2**37))


def _sections(
    made: Conversation, facts: Facts, files: Sequence[FileState], words: wording.Words, next_step: str
) -> list[Section]:
    marks = {state.path: state.mark for state in files}
    summary = made.compaction.summary.strip() if made.compaction is not None else ""
    return [
        Section("summary", words.summary, text=summary),
        Section("goal", words.goal, text=facts.goal),
        Section("constraints", words.constraints, [f"- {_item(one)}" for one in facts.constraints]),
        Section("decisions", words.decisions, [f"- {_item(one)}" for one in facts.decisions]),
        Section("todos", words.todos, [f"- [{_box(status)}] {_item(text)}" for text, status in _open_first(facts)]),
        Section("changed", words.changed, [_changed(one.path, one.added, one.removed, marks, words) for one in facts.changed.values()]),
        Section("read", words.read, [_read(path, marks, words) for path in facts.read if path not in facts.changed]),
        Section(
            "commands",
            words.commands,
            [f"- `{_item(one.line)}`{f' (×{one.times})' if one.times > 1 else ''}: {_outcome(one.outcome, words)}" for one in facts.commands.values()],
        ),
        Section(
            "errors",
            words.errors,
            [f"- `{one.what}`: {one.why} → {words.ended_well if one.recovered else words.ended_open}" for one in facts.failures],
        ),
        Section("next", words.next, _next(facts, words, made.agent, next_step)),
    ]


def _next(facts: Facts, words: wording.Words, agent: str, next_step: str) -> list[str]:
    found = [f"- {next_step.strip()}"] if next_step.strip() else []
    if facts.unanswered:
        found.append("- " + words.unanswered.format(text=shorten(facts.unanswered, 600)))
    found += [f"- {_item(text)}" for text, status in facts.open_todos() if status == "in_progress"]
    found += [f"- {_item(one)}" for one in facts.open_words]
    if not found and facts.last_words:
        found.append("- " + words.last_words.format(agent=agent, text=shorten(facts.last_words[-1200:], 500)))
    return list(dict.fromkeys(found)) or [f"- {words.no_next}"]


def _open_first(facts: Facts) -> list[tuple[str, str]]:
    still = facts.open_todos()
    return still + [one for one in facts.todos if one not in still]


def _changed(path: str, added: int, removed: int, marks: dict[str, str], words: wording.Words) -> str:
    size = f" +{added} −{removed}" if added or removed else ""
    return f"- `{path}`{size}{_mark(marks.get(path, ''), words)}"


def _read(path: str, marks: dict[str, str], words: wording.Words) -> str:
    return f"- `{path}`{_mark(marks.get(path, ''), words)}"


def _mark(mark: str, words: wording.Words) -> str:
    if len(mark) == 64:
        return f", sha256 {mark}"
    return f", {words.gone}" if mark == "missing" else ""


def _outcome(outcome: str, words: wording.Words) -> str:
    return {"ok": words.succeeded, "failed": words.failed}.get(outcome, words.no_outcome)


def _box(status: str) -> str:
    return {"completed": "x", "done": "x", "in_progress": "~"}.get(status.lower(), " ")


def _item(text: str) -> str:
    return shorten(text, ITEM)


def _fit(sections: list[Section], tokens: int, words: wording.Words) -> dict[str, str]:
    """Cut the sections down to `tokens` in all; what was dropped, by section."""
    dropped: dict[str, str] = {}
    if sum(one.tokens() for one in sections) <= tokens:
        return dropped
    by_value = sorted(sections, key=lambda one: list(SHARES).index(one.key))
    granted = {one.key: min(one.tokens(), tokens * SHARES[one.key] // 100) for one in by_value}
    spare = tokens - sum(granted.values())
    for one in by_value:  # the rest goes to the most valuable first
        more = min(spare, one.tokens() - granted[one.key])
        granted[one.key] += more
        spare -= more
    for one in by_value:
        what = _cut_section(one, granted[one.key], words)
        if what:
            dropped[one.key] = what
    return dropped


def _cut_section(one: Section, tokens: int, words: wording.Words) -> str:
    if one.tokens() <= tokens:
        return ""
    room = tokens - estimate(one.heading) - 3
    if one.text:
        one.text, omitted = cut_to_tokens(one.text, room)
        return f"{omitted} characters"
    kept: list[str] = []
    room -= 6  # for the line that says how many are omitted
    last = one.key in _KEEP_LAST
    for item in reversed(one.items) if last else one.items:
        room -= estimate(item) + 1
        if room < 0:
            break
        kept.append(item)
    omitted = len(one.items) - len(kept)
    mark = words.omitted.format(n=omitted)
    one.items = [mark, *reversed(kept)] if last else [*kept, mark]
    return f"{omitted} items"
