"""Records of earlier relays inside a session, and what of a session is new since a relay."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass, replace

from agents_registry.relay import wording
from agents_registry.sessions.handing import essence
from agents_registry.sessions.neutral import USER, Compaction, Conversation, Turn

_OPENINGS = tuple(words.opening for words in wording.LANGUAGES.values())
_AGAIN = tuple(words.again for words in wording.LANGUAGES.values())
_ENDS = tuple(f"## {words.boundary_title}" for words in wording.LANGUAGES.values())
_GOALS = re.compile(
    r"^## (?:" + "|".join(re.escape(words.goal) for words in wording.LANGUAGES.values()) + r")\n\n(.*?)(?=\n\n## |\Z)", re.MULTILINE | re.DOTALL
)


@dataclass(frozen=True, slots=True)
class Seen:
    """How far a session has been read: its requests so far, and a hash of the last round."""

    requests: int
    mark: str


def is_record(turn: Turn) -> bool:
    """A request that is a record of an earlier relay, not the human's words."""
    return turn.role == USER and turn.text.lstrip().startswith(_OPENINGS + _AGAIN)


def is_boundary(turn: Turn) -> bool:
    return turn.role == USER and turn.text.lstrip().startswith(_ENDS)


def unrelayed(conversation: Conversation) -> tuple[Conversation, str]:
    """(the conversation without boundaries, a leading record as its summary; the goal that this record names, or "").

    So a session that came from a relay is carried on as if it had been compacted there.
    """
    turns = [turn for turn in conversation.turns if not is_boundary(turn)]
    if not turns or not is_record(turns[0]) or conversation.compaction is not None:
        return (conversation if len(turns) == len(conversation.turns) else replace(conversation, turns=turns)), ""
    text = turns[0].text
    goal = _GOALS.search(text)
    for opening in (*_AGAIN, *_OPENINGS):
        text = text.replace(opening, "", 1)
    summary = _GOALS.sub("", text).strip()
    made = replace(conversation, turns=turns[1:], compaction=Compaction(summary, turns[0].line, turns[0].at, 0))
    return made, goal[1].strip() if goal else ""


def seen(conversation: Conversation) -> Seen:
    """How far the session goes now."""
    rounds = list(conversation.rounds())
    before = conversation.compaction.turns_before if conversation.compaction else 0
    return Seen(before + len(conversation.user_turns()), _mark(rounds[-1]) if rounds else "")


def new_since(conversation: Conversation, before: Seen) -> Conversation:
    """Only what came after `before`: whole rounds, the last one seen again if it went on. Records and boundaries are left
    out, what the agent did on them is kept. A session that was rewound or compacted past that point is given whole.
    """
    skipped = conversation.compaction.turns_before if conversation.compaction else 0
    rounds = list(conversation.rounds())
    lead = 1 if rounds and rounds[0][0].role != USER else 0
    count = before.requests - skipped + lead
    if count < 0 or count > len(rounds):
        return conversation
    new = rounds[count:]
    if count and _mark(rounds[count - 1]) != before.mark:
        new = [rounds[count - 1], *new]
    turns = [turn for one in new for turn in one if not is_boundary(turn) and not is_record(turn)]
    return replace(conversation, turns=turns, compaction=None)


def _mark(turns: list[Turn]) -> str:
    told = json.dumps(essence(Conversation("", "", turns), thinking=False), ensure_ascii=False).encode("utf-8", "replace")
    return hashlib.sha256(told).hexdigest()[:32]
