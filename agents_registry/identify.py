"""Whose session is it? A pure decision over evidence, most current first.

A call that asks for a handover comes from a process; several things say which session that process is in, and some
of them go stale: the environment of an MCP server keeps the first session's id after `/clear`, the newest session of
a directory may be the other terminal's. So each piece of evidence has a kind and a rank (per agent, from the
registry), the first one that says something decides, and where two that describe *this call* disagree nothing is
issued at all. The functions that gather evidence stand in `evidence`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from agents_registry.errors import NotFoundError, RefusedError
from agents_registry.model import EVIDENCE

WORDS: Mapping[str, str] = {
    "hosted": "the chat that hosts this agent",
    "call_meta": "the metadata of this call",
    "live_registry": "the agent's own list of live sessions",
    "caller_word": "the id that the caller gave",
    "launch_env": "the variables of the agent's start",
    "newest_of_cwd": "the newest session of this directory",
}
"""Each kind in words, for messages to people."""

_MUST_AGREE = ("call_meta", "live_registry", "caller_word")


@dataclass(frozen=True, slots=True)
class Evidence:
    """One thing that names a session.

    `confirmed` matters for two kinds. caller_word: the store has that session. launch_env: the store shows no later
    session of that process. `candidates` is for newest_of_cwd: how many sessions of that directory could be meant.
    """

    kind: str
    session_id: str
    confirmed: bool = True
    candidates: int = 1
    detail: str = ""
    """Where it was seen ("sessions/4711.json", "CLAUDE_CODE_SESSION_ID"), for the message."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The session, the kind of evidence that decided, and a sentence for the user where it is not beyond doubt."""

    session_id: str
    source: str
    note: str = ""


def decide(evidence: Iterable[Evidence], order: Sequence[str] = EVIDENCE, *, agent: str = "the agent") -> Decision:
    """Choose the session.

    `order` is the registry's list for the agent; kinds that it does not name count for nothing, apart from the
    caller's word, which is always heard.

    Raises:
        RefusedError (code `identity_disagreement`): two of metadata, live registry and the caller's word differ.
        NotFoundError (code `unknown_session`): the caller named a session that the store does not have, or nothing
            says which session it is; the hint says what to do.
    """
    ranks = {kind: rank for rank, kind in enumerate(order)}
    ranks.setdefault("caller_word", len(ranks))
    known = sorted((item for item in evidence if item.session_id and item.kind in ranks), key=lambda item: ranks[item.kind])
    word = next((item for item in known if item.kind == "caller_word"), None)
    hosted = next((item for item in known if item.kind == "hosted"), None)
    of_this_call = [item for item in known if item.kind in _MUST_AGREE]
    if hosted is not None:
        # The host owns the agent: its current session is a fact. A caller that means another one is told so.
        of_this_call = [hosted, *([word] if word is not None else [])]
    first = of_this_call[0] if of_this_call else None
    for item in of_this_call[1:]:
        if first is not None and not _same(first.session_id, item.session_id):
            raise _disagreement(first, item)
    if word is not None and not word.confirmed and all(item is word for item in of_this_call):
        raise NotFoundError(
            f"{agent} has no session '{word.session_id}'.",
            hint="List the sessions of this directory with va launch sessions, or leave the id out.",
            code="unknown_session",
        )
    for item in known:
        if item.kind == "caller_word" and not item.confirmed:
            continue
        if item.kind == "launch_env" and not item.confirmed:
            continue
        if item.kind == "newest_of_cwd":
            return Decision(item.session_id, item.kind, _newest_note(item))
        return Decision(item.session_id, item.kind)
    raise NotFoundError(
        f"It is not known which session of {agent} this is.",
        hint="Say which one: va handover --agent AGENT --session ID --cwd DIR (va launch sessions lists them).",
        code="unknown_session",
    )


def _same(one: str, other: str) -> bool:
    return one.strip().lower() == other.strip().lower()


def _disagreement(one: Evidence, other: Evidence) -> RefusedError:
    return RefusedError(
        f"It is not clear whose session this is: {_told(one)} says {one.session_id}, {_told(other)} says {other.session_id}. "
        "No code was issued.",
        hint="Leave the session id out, or give the one of the window you are in.",
        code="identity_disagreement",
    )


def _told(item: Evidence) -> str:
    return WORDS[item.kind] + (f" ({item.detail})" if item.detail else "")


def _newest_note(item: Evidence) -> str:
    others = f"; {item.candidates - 1} more could be meant" if item.candidates > 1 else ""
    return f"Session {item.session_id} was taken because it is the newest of this directory{others}. Check that it is yours."
