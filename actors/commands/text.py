"""The words of the commands' replies. Pure: plain data in, text out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from actors.commands.table import COMMANDS, allowed
from agents_registry.errors import NotFoundError, UsageError
from transports.human import ago, bare, short_ids, shorten


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


def short(identity: str) -> str:
    """An id as lists show it when it stands alone; lists themselves use `short_ids`, which tells all of them apart."""
    return short_ids([identity], 8)[identity]


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
    names = short_ids((r["id"] for r in rows), 6)
    lines = [f"{'*' if r['cwd'] == cwd else '-'} {names[r['id']]}  {r['name']}  {r['cwd']}" for r in rows]
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
    names = short_ids((r["id"] for r in rows), 8)
    lines = [
        f"{'*' if r['id'] == current else '-'} {names[r['id']]}  {shorten(r['title'] or 'untitled')}  {ago(r['updated_at'], now)}"
        + ("  live" if r.get("live") else "")
        for r in rows
    ]
    return "\n".join(["Sessions here (/session ID goes on in one):", *lines])


def hit_list(rows: list[dict[str, Any]], words: str, now: float) -> str:
    if not rows:
        return f"No session holds {shorten(words, 60)!r}."
    lines = []
    for r in rows:
        lines.append(f"- {r['agent']} {r['id']}  {shorten(r['title'] or 'untitled')}  {ago(r['updated_at'], now)}")
        lines.append(f"  {r['cwd']}: {shorten(r['snippet'], 160)}")
    return "\n".join(["Found (newest first; /session ID goes on in one of this agent):", *lines])


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
    return f"New conversation with {attached.agent} in {attached.cwd} (thread {attached.thread})."


def rest_note(rest: str) -> str:
    """A word about the lines behind a command that the command does not use; "" when there are none."""
    return "" if not rest.strip() else "The lines after the command were not used; send them as a message of their own."


def select(rows: Sequence[dict[str, Any]], wanted: str, what: str = "entry", by: Sequence[str] = ("title",)) -> dict[str, Any] | None:
    """The one row that `wanted` names: by its exact id, by any unique beginning of it (with or without `ws_`, `wt_`), or by
    one of the fields `by`, exactly but for case. None when no row does. Raises UsageError when several do, naming them."""
    wanted = wanted.strip()
    if not wanted:
        raise NotFoundError(f"Which {what}?", hint=f"/{what} lists them.")
    folded = wanted.casefold()
    for found in (
        [r for r in rows if r["id"] == wanted],
        [r for r in rows if any((r.get(name) or "").casefold() == folded for name in by)],
        [r for r in rows if r["id"].casefold().startswith(folded) or bare(r["id"]).casefold().startswith(folded)],
    ):
        if len(found) == 1:
            return found[0]
        if found:
            short_forms = short_ids((r["id"] for r in found), 8)
            names = "; ".join(f"{short_forms[r['id']]} {shorten(next((r[n] for n in by if r.get(n)), ''), 40)}".strip() for r in found[:6])
            raise UsageError(f"{wanted!r} may mean several: {names}.", hint="Give more of the id.", code="ambiguous")
    return None


def select_session(rows: list[dict[str, Any]], wanted: str) -> dict[str, Any] | None:
    """`select` for sessions; None when the list does not have it (an id of elsewhere)."""
    return select(rows, wanted, "session")
