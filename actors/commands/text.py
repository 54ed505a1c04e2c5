"""The words of the commands' replies. Pure: plain data in, text out."""

from __future__ import annotations

from typing import Any, Protocol

from actors.commands.table import COMMANDS, allowed
from agents_registry.errors import NotFoundError, UsageError


class Bound(Protocol):
    """What an attach answers (`messages.Attached`)."""

    @property
    def thread(self) -> str: ...
    @property
    def agent(self) -> str: ...
    @property
    def session(self) -> str: ...
    @property
    def cwd(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def joined(self) -> bool: ...
    @property
    def others(self) -> list[str]: ...
    @property
    def note(self) -> str: ...


def help_text(role: str) -> str:
    """The commands that this role may give."""
    rows = [(e.usage, e.help) for name, e in COMMANDS.items() if any(allowed(role, name, form=form) for form in e.rules)]
    width = max((len(usage) for usage, _ in rows), default=0)
    lines = [f"{usage.ljust(width)}  {words}" for usage, words in rows]
    return "\n".join(["Anything that is no command goes to the agent.", *lines])


def human_age(seconds: float) -> str:
    """How long ago, in one unit."""
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{int(seconds // size)} {unit} ago"
    return "just now"


def short(identity: str) -> str:
    """An id as lists show it: enough to tell apart, any unique prefix selects."""
    head, mark, tail = identity.partition("_")
    return f"{head}_{tail[:8]}" if mark and len(head) <= 3 else identity[:8]


def status_text(status: dict[str, Any], route: str, waiting: int) -> str:
    """`status` = the thread's state, {} when the chat has none."""
    if not status:
        return f"No conversation yet in this chat ({route}). Write something, or /pickup CODE."
    what = "busy" if status["busy"] else {"dead": "asleep (the next message wakes it)"}.get(status["state"], status["state"])
    rows = [
        ("workspace", f"{status['cwd']} ({status['workspace']})"),
        ("thread", f"{status['id']}" + (f"  {status['title']}" if status.get("title") else "")),
        ("agent", status["agent"]), ("profile", status["profile"]), ("model", status.get("model") or "the agent's default"),
        ("mode", status.get("mode") or "-"), ("session", status.get("session") or "(not started)"), ("state", what),
        ("waiting", str(status["queue"] + waiting)), ("permissions", f"{status['permissions']} open"),
        ("chats", ", ".join(status["routes"]) or "none"),
    ]
    return "\n".join(f"{name.ljust(11)} {value}" for name, value in rows)


def workspace_list(rows: list[dict[str, Any]], cwd: str) -> str:
    lines = [f"{'*' if r['cwd'] == cwd else '-'} {short(r['id'])}  {r['name']}  {r['cwd']}" for r in rows]
    return "\n".join(["Workspaces (/workspace ID goes to one):", *lines])


def agent_list(rows: list[dict[str, Any]], current: str) -> str:
    lines = []
    for r in rows:
        state = "" if r["installed"] else f"  (not installed: {r['why']})"
        lines.append(f"{'*' if r['id'] == current else '-'} {r['id']}  {r['name']}{state}")
    return "\n".join(["Agents (/agent ID starts a conversation with one):", *lines])


def session_list(rows: list[dict[str, Any]], current: str, now: float) -> str:
    if not rows:
        return "The agent has no session in this directory yet."
    lines = [
        f"{'*' if r['id'] == current else '-'} {short(r['id'])}  {r['title'] or 'untitled'}  {human_age(now - r['updated_at'])}"
        + ("  live" if r.get("live") else "")
        for r in rows
    ]
    return "\n".join(["Sessions here (/session ID goes on in one):", *lines])


def mode_list(modes: list[dict[str, Any]], current: str) -> str:
    if not modes:
        return "The agent has not said which modes it has; send it a message first."
    lines = [f"{'*' if m['id'] == current else '-'} {m['id']}  {m.get('name') or ''}".rstrip() for m in modes]
    return "\n".join(["Modes (/mode ID sets one):", *lines])


def code_text(code: str, expires_in_s: float) -> str:
    return (
        f"/pickup {code}\n"
        f"Type that in another chat, or in a terminal: va pickup {code}\n"
        f"The code holds for {expires_in_s:.0f} seconds and works once. Nothing moves until then."
    )


def attached_text(attached: Bound) -> str:
    """Names what was picked up, where, who else is there, and the way back."""
    title = f" “{attached.title}”" if attached.title else ""
    lines = [f"Picked up {attached.agent}{title} in {attached.cwd}.", f"session {attached.session} · thread {attached.thread}"]
    if attached.others:
        lines.append("Also here: " + ", ".join(attached.others) + ".")
    if attached.note:
        lines.append(attached.note)
    lines.append("Write on here. Back to the terminal: /handover gives a code for `va pickup` (do not type on in the old window).")
    return "\n".join(lines)


def started_text(attached: Bound) -> str:
    return f"New conversation with {attached.agent} in {attached.cwd} (thread {attached.thread}). The earlier one was left as it is."


def select_session(rows: list[dict[str, Any]], wanted: str) -> dict[str, Any] | None:
    """By id, unique prefix or title; None when the list does not have it (an id of elsewhere). Raises UsageError when ambiguous."""
    wanted = wanted.strip()
    if not wanted:
        raise NotFoundError("Which session?", hint="/session lists them.")
    for found in (
        [r for r in rows if r["id"] == wanted],
        [r for r in rows if r["id"].startswith(wanted)],
        [r for r in rows if (r["title"] or "").casefold() == wanted.casefold()],
    ):
        if len(found) == 1:
            return found[0]
        if found:
            names = "; ".join(f"{short(r['id'])} {r['title']}" for r in found[:6])
            raise UsageError(f"{wanted!r} may mean several sessions: {names}.", hint="Give more of the id.")
    return None
