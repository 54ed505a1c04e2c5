"""What is carried of a session: the brief, the last rounds word by word, the boundary; and the report of all that.

The same for both ways of delivery: `as_conversation` is what is written into a store that can be resumed, `as_text` is
what is said to an agent as its first turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from agents_registry.errors import RefusedError
from agents_registry.relay import wording
from agents_registry.relay.brief import write_brief
from agents_registry.relay.budget import cut, cut_to_tokens, default_budget, estimate, window
from agents_registry.relay.drift import Change, FileState, look
from agents_registry.relay.earlier import unrelayed
from agents_registry.relay.facts import Facts, gather
from agents_registry.relay.redact import Detector, Redacted, Redactor
from agents_registry.sessions.handing import INTERRUPTED, reference_text
from agents_registry.sessions.markdown import fenced, headline
from agents_registry.sessions.neutral import (
    USER,
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
from agents_registry.sessions.vocabulary import Tool, command_of

RECENT = 6
"""Rounds (a request with its answer) that are carried word by word."""
FEWEST = 5
"""A session of fewer requests is better begun anew."""
_RECENT_SHARE = 60
"""Percent of the budget that the last rounds may take."""
_STEPS = (4000, 1500, 500, 200)
"""Characters that are left of a tool's input or result, step by step, until the last rounds fit."""


@dataclass(frozen=True, slots=True)
class Options:
    """How to carry. `budget` in tokens (0: the target's default); `recent` rounds word by word; `language` `en`, `zh` or
    "" (as the human writes); `cwd` replaces the recorded directory."""

    budget: int = 0
    recent: int = RECENT
    full: bool = False
    force: bool = False
    redact: bool = True
    language: str = ""
    next_step: str = ""
    cwd: str = ""
    decision_words: Mapping[str, tuple[str, ...]] | None = None
    detector: Detector | None = None


@dataclass(slots=True)
class Report:
    """What was carried, dropped and redacted, in numbers and names; never a secret."""

    source: str
    target: str
    language: str
    tokens: int
    budget: int
    user_turns: int
    recent: int
    """Rounds that are carried word by word."""
    dropped: dict[str, str] = field(default_factory=dict)
    redacted: tuple[Redacted, ...] = ()
    lost: tuple[str, ...] = ()
    files: list[FileState] = field(default_factory=list)
    drift: list[Change] = field(default_factory=list)
    advice: str = ""
    """Why a fresh session would be cleaner, "" when it would not."""
    skipped: int = 0

    def as_json(self) -> dict[str, Any]:
        return {
            "source": self.source, "target": self.target, "language": self.language, "tokens": self.tokens, "budget": self.budget,
            "user_turns": self.user_turns, "recent": self.recent, "dropped": self.dropped,
            "redacted": [{"kind": one.kind, "place": one.place, "count": one.count} for one in self.redacted],
            "lost": list(self.lost), "files": [{"path": one.path, "mark": one.mark} for one in self.files],
            "drift": [{"path": one.path, "what": one.what} for one in self.drift], "advice": self.advice or None, "skipped": self.skipped,
        }  # fmt: skip


@dataclass(slots=True)
class Carried:
    """The parts: `brief` (empty with `full`), the rounds as turns, the boundary, and what they came from."""

    source: Conversation
    words: wording.Words
    brief: str
    turns: list[Turn]
    boundary: str
    cwd: str
    report: Report
    next_step: str = ""
    again: bool = False
    """Only what is new since an earlier relay, for a session that knows the rest."""

    def as_conversation(self) -> Conversation:
        """What a store's writer writes: the record as a first user message, the turns, the boundary as the last message."""
        made: list[Turn] = []
        if self.brief:
            made.append(_said(f"{self.words.opening}\n\n{self.brief}"))
        made += self.turns
        made.append(_said(self._end()))
        compaction = self.source.compaction if not self.brief else None
        return replace(self.source, turns=made, cwd=self.cwd, last_cwd=self.cwd, compaction=compaction, skipped=(), skipped_count=0, unknown={})

    def as_text(self) -> str:
        """One message: the same, the turns written out."""
        parts = [self.words.again if self.again else "", self.words.opening, self.brief.strip()]
        if self.source.compaction is not None and not self.brief:
            parts.append(f"## {self.words.summary}\n\n{self.source.compaction.summary}")
        if self.turns:
            parts.append(f"## {self.words.recent}")
            parts += ["\n".join(_written(turn, self.words, self.source.agent)) for turn in self.turns]
        parts.append(self._end())
        parts.append(self.next_step.strip() or self.words.confirm)
        return "\n\n".join(part for part in parts if part) + "\n"

    def _end(self) -> str:
        return f"## {self.words.boundary_title}\n\n{self.boundary}"


def carry(
    conversation: Conversation,
    target: str,
    options: Options = Options(),
    *,
    states: Callable[[Iterable[str]], list[FileState]] = look,
    drift: Iterable[Change] = (),
    again: bool = False,
) -> Carried:
    """Decide what goes to the agent `target`. `states` looks at files; `drift` are known changes since an earlier relay;
    `again` marks that the receiver knows what was before (`conversation` then holds only what is new).

    Raises:
        RefusedError: `full` does not fit half the target's window (code `too_large`), with the figures; `force` overrides.
    """
    redactor = Redactor(active=options.redact, detector=options.detector)
    conversation, goal = unrelayed(conversation) if not options.full else (conversation, "")
    budget = options.budget or default_budget(target)
    users = conversation.user_turns()
    language = options.language or wording.language_of(turn.text for turn in users)
    words = wording.LANGUAGES.get(language, wording.ENGLISH)
    boundary = words.boundary.format(source=conversation.agent)
    rounds = list(conversation.rounds())
    taken = [turn for one in rounds[-options.recent :] for turn in one] if options.recent else []
    report = Report(
        f"{conversation.agent}:{conversation.id}", target, language, 0, budget, len(users), 0, skipped=conversation.skipped_count, drift=list(drift)
    )
    cwd = options.cwd or conversation.last_cwd or conversation.cwd
    decided = dict(options.decision_words) if options.decision_words is not None else None
    if options.full:
        facts = gather(conversation, earlier=0)
        turns = [_redacted(turn, number, redactor) for number, turn in enumerate(conversation.turns, 1)]
        brief = ""
        report.recent = len(rounds)
        summary = conversation.compaction
        if summary is not None:
            conversation = replace(conversation, compaction=replace(summary, summary=redactor.text(summary.summary, "summary")))
        report.files = states(_paths(facts))
    else:
        room = budget - estimate(boundary) - estimate(words.opening) - 60
        number = len(conversation.turns) - len(taken) + 1
        clean = [_redacted(turn, number + offset, redactor) for offset, turn in enumerate(taken)]
        turns, kept, dropped = _fitting(clean, room * _RECENT_SHARE // 100)
        report.recent, report.dropped = kept, dropped
        facts = gather(conversation, earlier=len(conversation.turns) - len(turns), decision_words=decided)
        facts.goal = goal or facts.goal
        report.files = states(_paths(facts))
        room -= _cost(turns)
        made = write_brief(conversation, facts, report.files, tokens=room, redactor=redactor, language=language, next_step=options.next_step)
        brief = made.text + _drifted(report.drift, words)
        report.dropped.update(made.dropped)
    result = Carried(conversation, words, brief, turns, boundary, cwd, report, redactor.text(options.next_step, "next step"), again)
    report.redacted = redactor.report()
    report.tokens = estimate(brief) + _cost(turns) + estimate(boundary) + estimate(words.opening)
    if options.full and conversation.compaction is not None:
        report.tokens += estimate(conversation.compaction.summary)
    half = window(target) // 2
    if options.full and report.tokens > half and not options.force:
        raise RefusedError(
            f"The whole session is about {report.tokens} tokens; half of what {target} takes is {half}.",
            hint="Leave --full away for a brief and the last turns, or add --force.",
            code="too_large",
        )
    report.advice = "" if again else advice(conversation, facts)
    return result


def advice(conversation: Conversation, facts: Facts) -> str:
    """Why a fresh session would be cleaner than a relay, "" when it would not."""
    before = conversation.compaction.turns_before if conversation.compaction else 0
    count = len(conversation.user_turns()) + before
    if count < FEWEST:
        return f"The session has only {count} request{'' if count == 1 else 's'}"
    if facts.todos and not facts.open_todos() and not facts.unanswered and not facts.open_words:
        return "Nothing is open in the session: every todo is done"
    return ""


def _paths(facts: Facts) -> list[str]:
    return [*facts.changed, *(path for path in facts.read if path not in facts.changed)]


def _drifted(changes: list[Change], words: wording.Words) -> str:
    if not changes:
        return ""
    return f"\n## {words.drift}\n\n" + "\n".join(f"- `{one.path}`: {one.what}" for one in changes[:100]) + "\n"


def _said(text: str) -> Turn:
    return Turn(USER, [Text(text)])


def _redacted(turn: Turn, number: int, redactor: Redactor) -> Turn:
    return replace(turn, blocks=[redactor.block(block, f"turn {number}") for block in turn.blocks if not isinstance(block, Thinking)])


def _fitting(turns: list[Turn], tokens: int) -> tuple[list[Turn], int, dict[str, str]]:
    """(turns that fit, rounds among them, what was dropped). First tool inputs and results get shorter, then the oldest
    rounds go, then the texts of the last one are cut."""
    dropped: dict[str, str] = {}
    made = turns
    for limit in (0, *_STEPS):
        made, omitted = _shortened(turns, limit) if limit else (turns, 0)
        if omitted:
            dropped["tool output of the last turns"] = f"{omitted} characters"
        if _cost(made) <= tokens:
            break
    rounds = list(Conversation("", "", made).rounds())
    gone = 0
    while len(rounds) > 1 and _cost([turn for one in rounds for turn in one]) > tokens:
        rounds.pop(0)
        gone += 1
    if gone:
        dropped["of the last turns"] = f"{gone} rounds (their facts are in the brief)"
    made = [turn for one in rounds for turn in one]
    if _cost(made) > tokens:
        made, omitted = _cut_last(made, tokens)
        dropped["text of the last turn"] = f"{omitted} characters"
    return made, len(rounds), dropped


def _shortened(turns: list[Turn], limit: int) -> tuple[list[Turn], int]:
    omitted = 0

    def shorter(text: str) -> str:
        nonlocal omitted
        made, gone = cut(text, limit)
        omitted += gone
        return made

    def value(given: Any) -> Any:
        if isinstance(given, str):
            return shorter(given)
        if isinstance(given, Mapping):
            return {key: value(item) for key, item in given.items()}
        if isinstance(given, list):
            return [value(item) for item in given]
        return given

    def block(one: Block) -> Block:
        if isinstance(one, ToolResult):
            return replace(one, text=shorter(one.text))
        if isinstance(one, ToolCall):
            return replace(one, input=value(one.input))
        return one

    return [replace(turn, blocks=[block(one) for one in turn.blocks]) for turn in turns], omitted


def _cut_last(turns: list[Turn], tokens: int) -> tuple[list[Turn], int]:
    """The round's texts get what remains beside the last 20 tool blocks, the request a third of it at least."""
    omitted = 0
    made: list[Turn] = []
    for turn in turns:
        share = max(tokens // 3, 20) if turn.role == USER else max(tokens - _cost(made), 20)
        blocks: list[Block] = []
        for block in reversed(turn.blocks):
            cost = _block_cost(block)
            if isinstance(block, Text) and cost > share:
                text, gone = cut_to_tokens(block.text, max(share, 20))
                omitted += gone
                block, cost = replace(block, text=text), min(cost, max(share, 20))
            elif cost > share:
                omitted += cost * 4
                continue
            share -= cost
            blocks.append(block)
        made.append(replace(turn, blocks=blocks[::-1]))
    return [turn for turn in made if turn.blocks], omitted


def _cost(turns: Iterable[Turn]) -> int:
    return sum(4 + sum(_block_cost(block) for block in turn.blocks) for turn in turns)


def _block_cost(block: Block) -> int:
    if isinstance(block, (Text, Thinking, ToolResult)):
        return estimate(block.text) + 2
    if isinstance(block, ToolCall):
        return 6 + sum(estimate(str(item)) + estimate(str(key)) for key, item in block.input.items())
    return 12


def _written(turn: Turn, words: wording.Words, agent: str) -> list[str]:
    out = [f"### {words.you if turn.role == USER else agent}", ""]
    answered = {block.call_id for block in turn.blocks if isinstance(block, ToolResult)}
    for block in turn.blocks:
        if isinstance(block, Text):
            out += [block.text, ""]
        elif isinstance(block, ToolCall):
            command = command_of(block.input) if block.tool is Tool.SHELL else ""
            out.append(f"[{block.name}] {headline(block)}".rstrip())
            out += list(fenced(command, "sh")) if command else [str(dict(block.input))] if block.input else []
            out += [*([] if block.id in answered else [INTERRUPTED]), ""]
        elif isinstance(block, ToolResult):
            out += [*fenced(block.text or "-"), ""]
        elif isinstance(block, (ImageRef, FileRef)):
            out += [reference_text(block), ""]
    return out[:-1]


