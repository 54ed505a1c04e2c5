"""The one table of chat commands: when each runs, who may give it, what it does. Pure.

`allowed` is the whole answer to "who may do what" by a command word; a test walks every role × command. Roles:
viewer < member < owner for people, and `agent` for a process below one of our hosts, which may look, and hand over.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Form = Literal["", "list", "switch", "pass", "search"]
Role = Literal["viewer", "member", "owner", "agent"]
When = Literal["at_once", "claimed", "in_order"]

_RANK = {"viewer": 1, "member": 2, "owner": 3}
ROLES: tuple[str, ...] = ("viewer", "member", "owner", "agent")


@dataclass(frozen=True, slots=True)
class Rule:
    """One row: a command in one of its forms.

    `when`: at_once (out of order, creates nothing), claimed (at receipt; effective in order), in_order (like prompts).
    `role`: the least that may give it. `agent`: an agent may give it too. `changes_binding`: changes thread, agent,
    workspace or session of the route, so that it asks while the route's own turn runs.
    """

    when: When
    role: Role
    changes_binding: bool = False
    agent: bool = False


@dataclass(frozen=True, slots=True)
class Entry:
    """One command: its forms, and the line of /help."""

    usage: str
    help: str
    rules: dict[str, Rule]


_LOOK = Rule("at_once", "owner", agent=True)
_BIND = Rule("in_order", "owner", changes_binding=True)

COMMANDS: dict[str, Entry] = {
    "help": Entry("/help", "this list", {"": Rule("at_once", "viewer", agent=True)}),
    "status": Entry(
        "/status", "workspace, thread, agent, session, what is going on", {"": Rule("at_once", "viewer", agent=True)}
    ),
    "new": Entry("/new", "a new thread in the same workspace with the same agent", {"": _BIND}),
    "close": Entry("/close", "leave the thread; the last chat on it closes it", {"": _BIND}),
    "stop": Entry(
        "/stop", "stop the running turn, and drop what this chat has waiting", {"": Rule("at_once", "member")}
    ),
    "pickup": Entry(
        "/pickup CODE", "go on here with a conversation that was handed over", {"": Rule("claimed", "member")}
    ),
    "handover": Entry("/handover", "a code that moves this conversation elsewhere", {"": _LOOK}),
    "workspace": Entry(
        "/workspace [list|ID|PATH]",
        "list the workspaces, or go to one (a new thread)",
        {"list": _LOOK, "switch": _BIND},
    ),
    "agent": Entry(
        "/agent [list|ID|/CMD …]",
        "list the agents, change the agent (a new thread), or give the agent its own /CMD",
        {"list": _LOOK, "switch": _BIND, "pass": Rule("in_order", "owner")},
    ),
    "profile": Entry(
        "/profile [list|ID]", "list the profiles, or change it (same session)", {"list": _LOOK, "switch": _BIND}
    ),
    "session": Entry(
        "/session [list|ID|search WORDS]",
        "list the agent's sessions here, go on in one, or find sessions by what was said",
        {"list": _LOOK, "switch": _BIND, "search": Rule("at_once", "owner")},
    ),
    "relay": Entry("/relay AGENT [PROFILE]", "go on with this conversation in another agent", {"": _BIND}),
    "switch": Entry(
        "/switch host AGENT [PROFILE] [--relay], /switch workspace W",
        "long forms of /agent ID, /relay AGENT and /workspace ID",
        {"": _BIND},
    ),
    "mode": Entry(
        "/mode [ID]", "list the agent's modes, or set one", {"list": _LOOK, "switch": Rule("in_order", "owner")}
    ),
    "plan": Entry("/plan", "set the agent's plan mode", {"": Rule("in_order", "owner")}),
    "route": Entry("/route", "the address of this chat", {"": _LOOK}),
}

ALIASES: dict[str, str] = {
    "commands": "help",
    "cancel": "stop",
    "workspaces": "workspace",
    "agents": "agent",
    "sessions": "session",
    "profiles": "profile",
    "modes": "mode",
}
"""Other words for the same; they are accepted, and not shown."""

DEEDS: dict[str, Rule] = {
    "prompt": Rule("in_order", "member"),
    "answer_once": Rule("at_once", "member"),
    "answer_lasting": Rule("at_once", "owner"),
    "approve": Rule("at_once", "owner"),
}
"""What people do without a command word. A member stops and answers only his own turns: the thread compares the sender."""


def rule(command: str, form: str = "") -> Rule:
    """The row of a command in a form. Raises KeyError for what the table does not hold."""
    if command in DEEDS:
        return DEEDS[command]
    return COMMANDS[ALIASES.get(command, command)].rules[form]


def allowed(role: str, command: str, arg: str = "", form: str | None = None) -> bool:
    """Whether `role` may give `command` (or do a deed of DEEDS) with this argument. Unknown roles may do nothing.

    `form` as the parser found it; when it is None, it follows from `arg`: the list form without one, else switch or
    pass.
    """
    if command not in DEEDS and ALIASES.get(command, command) not in COMMANDS:
        return False
    row = rule(command, form if form is not None else _form_of(command, arg))
    if role == "agent":
        return row.agent
    return _RANK.get(role, 0) >= _RANK[row.role]


def _form_of(command: str, arg: str) -> str:
    if command in DEEDS:
        return ""
    rules = COMMANDS[ALIASES.get(command, command)].rules
    if "" in rules:
        return ""
    if not arg or arg in ("list", "--list"):
        return "list"
    if "search" in rules and arg.partition(" ")[0].casefold() == "search":
        return "search"
    return "pass" if arg.startswith("/") and "pass" in rules else "switch"
