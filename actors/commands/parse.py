"""The one grammar of chat commands: what is a command, what is a prompt, what is a mistake. Pure.

A command is a message whose first line is `/word` (letters only) followed by a space or the end of the line. All else
is a prompt for the agent: "va please fix it", "/etc/hosts is wrong", "/2 is half". `/va …` and `/vibearound …` are
prefixes for platforms that take plain slash words for themselves. An argument is the rest of the line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from actors.commands.table import ALIASES, COMMANDS, Form

_WORD = re.compile(r"/([^\W\d_]+)(?:[ \t\u00a0\u3000]+(.*))?\Z")
_PREFIXES = frozenset({"va", "vibearound"})
_MAX_WORD = 40
_LISTS = frozenset({"list", "--list", "-l"})
_FORMED = frozenset({"workspace", "agent", "profile", "session", "mode"})


@dataclass(frozen=True, slots=True)
class Prompt:
    """For the agent, unchanged."""

    text: str


@dataclass(frozen=True, slots=True)
class Command:
    """One of the table's commands.

    `form`: "" (takes no form), list, switch (arg = what to switch to), pass (`/agent /CMD …`: arg is the agent's own
    command with its slash, further lines included). `profile`: only of `/switch host AGENT PROFILE` and `/relay AGENT PROFILE`.
    `rest`: the lines after the first; `/relay` gives them to the agent as the next step, others do not use them (see
    text.rest_note).
    """

    name: str
    arg: str = ""
    form: Form = ""
    profile: str = ""
    rest: str = ""


@dataclass(frozen=True, slots=True)
class Unknown:
    """Looks like a command and is none, or is one used wrongly. `reply` is the whole answer to the person."""

    word: str
    nearest: str
    reply: str


def parse(text: str) -> Prompt | Command | Unknown:
    """What a message is. Never raises; a message without a command is a Prompt with the very text."""
    stripped = text.strip()
    first, _, rest = stripped.partition("\n")
    first, rest = first.rstrip(), rest.strip("\r\n")
    match = _WORD.match(first)
    if match is None:
        return Prompt(text)
    word, arg = match[1].casefold(), (match[2] or "").strip()
    if word in _PREFIXES:
        if not arg:
            return Command("help", rest=rest)
        inner = _WORD.match(arg if arg.startswith("/") else f"/{arg}")
        if inner is None:
            return _unknown(arg.split()[0])
        word, arg = inner[1].casefold(), (inner[2] or "").strip()
    return _command(word, arg, rest)


def _command(word: str, arg: str, rest: str) -> Command | Unknown:
    name = ALIASES.get(word, word)
    if name not in COMMANDS:
        return _unknown(word)
    if name == "switch":
        return _switch(arg, rest)
    if name == "pickup":
        return _pickup(arg, rest)
    if name == "relay":
        return _relay(arg, rest)
    if name in _FORMED:
        return _formed(name, arg, rest)
    return Command(name, arg, rest=rest)


def _formed(name: str, arg: str, rest: str) -> Command | Unknown:
    if not arg or arg.casefold() in _LISTS:
        return Command(name, form="list", rest=rest)
    head, _, tail = arg.partition(" ")
    if head.casefold() in ("--switch", "-s"):
        arg = tail.strip()
        if not arg:
            return _misused(name, f"{name} --switch ID", f"/{name} --switch needs what to switch to.")
    elif head.startswith("--switch="):
        arg = arg.removeprefix("--switch=").strip()
    elif name == "session" and head.casefold() == "search":
        if not tail.strip():
            return _misused(name, "session search WORDS", "/session search needs words to look for.")
        return Command(name, tail.strip(), "search", rest=rest)
    elif name == "agent" and arg.startswith("/"):
        if len(arg) == 1 or arg[1].isspace():
            return _misused(name, "agent /CMD", "/agent / needs the agent's own command, for example /agent /compact.")
        return Command(name, f"{arg}\n{rest}" if rest else arg, "pass")
    elif head.startswith("--"):
        return _misused(name, f"{name} --list", f"/{name} knows --list and --switch, not {head[:_MAX_WORD]}.")
    if not arg:
        return _misused(name, f"{name} --switch ID", f"/{name} --switch needs what to switch to.")
    return Command(name, arg, "switch", rest=rest)


def _switch(arg: str, rest: str) -> Command | Unknown:
    usage = "/switch host AGENT [PROFILE] [--relay] or /switch workspace W"
    kind, _, target = arg.partition(" ")
    target = target.strip()
    if kind.casefold() in ("workspace", "ws") and target:
        return Command("workspace", target, "switch", rest=rest)
    if kind.casefold() in ("host", "agent") and target:
        words = target.split()
        if "--relay" in words:
            words.remove("--relay")
            return _relay(" ".join(words), rest)
        agent, _, profile = target.partition(" ")
        profile = profile.strip()
        if " " not in profile:
            return Command("agent", agent, "switch", profile=profile, rest=rest)
    return _misused("switch", "switch host AGENT", f"Write {usage}.")


def _pickup(arg: str, rest: str) -> Command | Unknown:
    if not arg:
        return _misused(
            "pickup",
            "pickup CODE",
            'Write /pickup and the code, for example /pickup K7QM. Say "hand over" to the agent to get one.',
        )
    return Command("pickup", arg, rest=rest)


def _relay(arg: str, rest: str) -> Command | Unknown:
    words = arg.split()
    if not 1 <= len(words) <= 2 or words[0].startswith("-"):
        return _misused("relay", "relay AGENT", "Write /relay AGENT [PROFILE], for example /relay codex. /agent lists them.")
    return Command("relay", words[0], profile=words[1] if len(words) == 2 else "", rest=rest)


def _misused(name: str, usage: str, reply: str) -> Unknown:
    return Unknown(name, usage, reply)


def _unknown(word: str) -> Unknown:
    shown = word[:_MAX_WORD]
    nearest = nearest_command(shown)
    if nearest:
        reply = f"There is no command /{shown.lstrip('/')}. Did you mean /{nearest}?"
    else:
        reply = f"There is no command /{shown.lstrip('/')}. /help lists them."
    passed = shown.lstrip("/")
    if passed.isalpha():
        reply += f" To give it to the agent itself: /agent /{passed}"
    return Unknown(shown, nearest, reply)


def nearest_command(word: str) -> str:
    """The command that `word` most likely means, or "". A prefix of exactly one command counts most."""
    word = word.casefold().lstrip("/")
    if not word:
        return ""
    names = [*COMMANDS, *ALIASES]
    starts = {ALIASES.get(name, name) for name in names if name.startswith(word)}
    if len(starts) == 1:
        return starts.pop()
    best, best_distance = "", 3 if len(word) > 4 else 2
    for name in names:
        distance = _distance(word, name, best_distance)
        if distance < best_distance:
            best, best_distance = ALIASES.get(name, name), distance
    return best


def _distance(a: str, b: str, limit: int) -> int:
    """Edits (insert, delete, replace, swap of neighbours) from `a` to `b`; anything from `limit` on is `limit`."""
    if abs(len(a) - len(b)) >= limit:
        return limit
    before: list[int] = []
    above = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        row = [i]
        for j, y in enumerate(b, 1):
            cost = min(above[j] + 1, row[j - 1] + 1, above[j - 1] + (x != y))
            if i > 1 and j > 1 and x == b[j - 2] and a[i - 2] == y:
                cost = min(cost, before[j - 2] + 1)
            row.append(cost)
        before, above = above, row
    return min(above[-1], limit)
