"""Permissions and choices of one chat: how they are asked, which button means what, how they look when decided. Pure.

A button carries `q:<token>:<n>`: an opaque word bound to one question of one route, and the option's place. Without buttons
the options are numbered, over all open questions of the chat, so that a number means one option only.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

from transports.human import duration, shorten
from transports.im.content import Button, Content, Outgoing, Part, Rows
from transports.im.platform import Buttons
from transports.im.words import Language, meant, number, say

KEEP = 64
"""Decided questions that are remembered, so that a late press is told what was decided."""
MAX_DETAIL = 3000
"""Code points of a command or a diff shown in a question; what is longer is cut and says so."""
LASTING = ("allow_always", "reject_always")
_STYLES = {"allow_once": "success", "allow_always": "primary", "reject_once": "danger", "reject_always": "danger"}
_MARKS = {"allow_once": "✅ ", "allow_always": "✅ ", "reject_once": "❌ ", "reject_always": "❌ "}


@dataclass(slots=True)
class Question:
    """`options`: [id, name, kind] each. `base`: the number before its first option's. `message`: id on the platform, "" = not
    shown yet. `outcome`: what was decided, "" while open. `seq`: the item that brought it."""

    id: str
    token: str
    kind: str
    title: str
    options: list[list[str]]
    base: int = 0
    detail: list[list[str]] = field(default_factory=list)
    """[part kind, text, title] of the exact command or diff."""
    who: str = ""
    expires_at: float = 0.0
    harmless: str = ""
    message: str = ""
    outcome: str = ""
    by: str = ""
    shown_outcome: bool = False
    turn: str = ""


class Questions:
    """All questions of one route, oldest first. `new_token()`: eight random characters."""

    def __init__(self, new_token: Callable[[], str], saved: dict[str, Any] | None = None) -> None:
        self._new_token = new_token
        self._all: dict[str, Question] = {}
        for raw in (saved or {}).values():
            question = Question(**raw)
            self._all[question.id] = question

    def save(self) -> dict[str, Any]:
        return {question.id: asdict(question) for question in self._all.values()}

    def get(self, ident: str) -> Question | None:
        return self._all.get(ident)

    def open(self) -> list[Question]:
        return [q for q in self._all.values() if not q.outcome]

    def ask(self, event: dict[str, Any], now: float, turn: str = "") -> Question:
        """The question of a `permission` or `choice` event; the same one when it is shown again."""
        ident = str(event.get("id"))
        known = self._all.get(ident)
        if known is not None:
            return known
        base = max((q.base + len(q.options) for q in self.open()), default=0)
        options = [
            [str(o.get("id")), str(o.get("name") or o.get("id")), str(o.get("kind") or "")]
            for o in event.get("options") or []
            if isinstance(o, dict)
        ]
        limit, asked_at = event.get("expires_in_s"), event.get("asked_at")
        since = float(asked_at) if isinstance(asked_at, int | float) else now
        question = Question(
            ident, self._new_token(), str(event.get("event")), str(event.get("title") or ""), options, base,
            details(event.get("tool")), str(event.get("person") or event.get("by") or ""),
            since + float(limit) if isinstance(limit, int | float) and limit > 0 else 0.0, str(event.get("harmless") or ""), turn=turn,
        )  # fmt: skip
        self._all[ident] = question
        return question

    def decide(self, event: dict[str, Any]) -> Question | None:
        """What a `permission_done` or `choice_done` event settles; None for a question that was never shown here."""
        question = self._all.get(str(event.get("id")))
        if question is None:
            return None
        option = str(event.get("option") or "")
        name = next((o[1] for o in question.options if o[0] == option), "")
        words = name or str(event.get("why") or event.get("text") or event.get("outcome") or option or "cancelled")
        question.outcome = shorten(words, 120)
        question.by = str(event.get("by") or "")
        closed = [q for q in self._all.values() if q.outcome]
        for old in closed[: max(0, len(closed) - KEEP)]:
            del self._all[old.id]
        return question

    # --- answers ---

    def pressed(self, data: str) -> tuple[Question, str] | None:
        """The question and option id that a button means; None for a button that is not of this chat."""
        pieces = data.split(":")
        if len(pieces) != 3 or pieces[0] != "q" or not pieces[2].isdigit():
            return None
        question = next((q for q in self._all.values() if q.token == pieces[1]), None)
        place = int(pieces[2])
        if question is None or not 0 <= place < len(question.options):
            return None
        return question, question.options[place][0]

    def typed(self, text: str) -> tuple[Question, str] | None:
        """The open question and option that a line answers: a number, an option's name, or (with one open question) a plain
        word of yes, no, always, cancel in English or Chinese. None: it is no answer."""
        still_open = self.open()
        if not still_open or len(text) > 80 or "\n" in text.strip():
            return None
        value = number(text)
        if value:
            for question in still_open:
                if question.base < value <= question.base + len(question.options):
                    return question, question.options[value - question.base - 1][0]
            return None
        word = " ".join(text.casefold().split())
        for question in still_open:
            for option in question.options:
                if word in (option[0].casefold(), option[1].casefold()):
                    return question, option[0]
        if len(still_open) != 1:
            return None
        question, meaning = still_open[0], meant(text)
        if meaning == "cancel":
            return question, ""
        return next(((question, o[0]) for o in question.options if meaning and o[2] == meaning), None)

    # --- how it looks ---

    def shown(self, question: Question, language: Language, buttons: Buttons | None, now: float, at: str = "") -> Outgoing:
        """The question's message: open with its buttons or numbers, decided with its outcome. `at`: the time for people."""
        parts: list[Part] = []
        if question.kind == "permission":
            parts.append(Part("plain", f"🔐 {say(language, 'question')}: {shorten(question.title, 300)}"))
        else:
            parts.append(Part("plain", f"❓ {shorten(question.title, 1000)}"))
        parts.extend(_part(row) for row in question.detail)
        if question.outcome:
            word = "decided" if question.by else "decided_nobody"
            mark = "✅" if self._allows(question) else "⛔" if question.kind == "permission" else "☑"
            parts.append(Part("plain", f"{mark} {say(language, word, outcome=question.outcome, who=question.by, at=at)}"))
            return Outgoing(Content(tuple(parts)), silent=True)
        rows = self._rows(question, language, buttons)
        if not rows and question.options:
            lines = [f"{question.base + n}. {self._label(o, language, marks=False)}" for n, o in enumerate(question.options, 1)]
            tail = [say(language, "or_cancel")] if len(self.open()) == 1 else []
            parts.append(Part("plain", "\n".join([say(language, "reply_number"), *lines, *tail])))
        notes = []
        if question.kind == "permission":
            notes.append(say(language, "who_turn", who=question.who) if question.who else say(language, "who"))
        if question.expires_at > now:
            notes.append(say(language, "expires", time=duration(question.expires_at - now)))
        if question.harmless:
            name = next((o[1] for o in question.options if o[0] == question.harmless), question.harmless)
            notes.append(say(language, "unanswered", option=name))
        if notes:
            parts.append(Part("status", " ".join(notes)))
        return Outgoing(Content(tuple(parts)), rows)

    def _rows(self, question: Question, language: Language, buttons: Buttons | None) -> Rows:
        if buttons is None or len(question.options) > buttons.count or buttons.data_bytes < len(question.token) + 5:
            return ()
        made = [
            Button(self._button_label(o, language, buttons.label), f"q:{question.token}:{n}", _STYLES.get(o[2], ""))
            for n, o in enumerate(question.options)
        ]
        # A label that a phone shows whole has a row of two; longer ones a row each.
        width = 1 if any(len(b.label) > 18 for b in made) else min(2, buttons.per_row)
        return tuple(tuple(made[n : n + width]) for n in range(0, len(made), width))

    @classmethod
    def _button_label(cls, option: list[str], language: Language, limit: int) -> str:
        """What lasts says so even where its name is too long for a button."""
        whole = cls._label(option, language, marks=True)
        if len(whole) <= limit or option[2] not in LASTING:
            return shorten(whole, limit)
        tail = f" ({say(language, 'lasting')})"
        return shorten(whole.removesuffix(tail), max(1, limit - len(tail))) + tail

    @staticmethod
    def _label(option: list[str], language: Language, *, marks: bool) -> str:
        mark = _MARKS.get(option[2], "") if marks else ""
        return f"{mark}{option[1]}" + (f" ({say(language, 'lasting')})" if option[2] in LASTING else "")

    @staticmethod
    def _allows(question: Question) -> bool:
        return any(o[1] == question.outcome and o[2].startswith("allow") for o in question.options)


def details(tool: Any) -> list[list[str]]:
    """The exact command or diff of an ACP tool call, as rows [part kind, text, title]; never more than MAX_DETAIL each."""
    if not isinstance(tool, dict):
        return []
    rows: list[list[str]] = []
    raw = tool.get("rawInput", tool.get("input"))
    if isinstance(raw, dict):
        command = raw.get("command")
        if isinstance(command, list):
            command = " ".join(str(word) for word in command)
        if isinstance(command, str) and command.strip():
            rows.append(["code", _clip(command), ""])
        where = raw.get("cwd") or raw.get("workdir")
        if rows and isinstance(where, str):
            rows.append(["plain", shorten(where, 200), ""])
    for block in tool.get("content") or []:
        if not isinstance(block, dict):
            continue
        if block.get("type") == "diff":
            rows.append(["diff", _clip(diff(block)), str(block.get("path") or "")])
        elif block.get("type") == "content" and isinstance(block.get("content"), dict):
            text = block["content"].get("text")
            if isinstance(text, str) and text.strip() and not rows:
                rows.append(["code", _clip(text), ""])
    if not rows and isinstance(raw, dict) and raw:
        rows.append(["code", _clip(json.dumps(raw, ensure_ascii=False, indent=1)), ""])
    return rows[:6]


def diff(block: dict[str, Any]) -> str:
    """An ACP diff block as a unified diff."""
    import difflib

    old, new = block.get("oldText"), block.get("newText")
    path = str(block.get("path") or "")
    before = old.splitlines(keepends=True) if isinstance(old, str) else []
    after = new.splitlines(keepends=True) if isinstance(new, str) else []
    if len(before) + len(after) > 4000:  # too much to be compared while others wait
        return f"{path}: -{len(before)} +{len(after)}"
    lines = difflib.unified_diff(before, after, path, path, n=2)
    return "".join(line if line.endswith("\n") else line + "\n" for line in lines).rstrip("\n")


def _clip(text: str) -> str:
    return text if len(text) <= MAX_DETAIL else f"{text[: MAX_DETAIL - 40]}\n… ({len(text) - MAX_DETAIL + 40} more)"


def _part(row: list[str]) -> Part:
    kind = row[0]
    if kind == "diff":
        return Part("diff", row[1])
    return Part("code", row[1]) if kind == "code" else Part("plain", row[1])
