"""A Claude Code session that two wrote at once: its two ends, each brought into a session of its own.

Claude Code has no lock. Two processes that write on the same old state make two branches of one transcript; a resume
follows the one that was written last, and the other is out of reach. The transcript itself is never touched: copies
without the other's branch are written beside it.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any, NamedTuple

from agents_registry.sessions import claude_records as records
from agents_registry.sessions import jsonl
from agents_registry.sessions.handing import placing
from agents_registry.sessions.port import SessionInfo
from agents_registry.sessions.times import seconds

Record = dict[str, Any]
_SLACK_S = 0.5
"""The agent stamps a prompt with its own clock reading, a moment from ours."""


class Ends(NamedTuple):
    """Session ids of the two ends; `theirs` is the old id where a resume of it leads there."""

    ours: str
    theirs: str


def split_ends(
    info: SessionInfo, since: float, prompt: str, *, new_id: Callable[[], str] = lambda: str(uuid.uuid4())
) -> Ends | None:
    """None where all that people wrote since `since` (seconds since the epoch) stands on one branch with `prompt`.

    Raises OSError when the store cannot be read or written.
    """
    fresh = list(_prompts_since(info, since - _SLACK_S))
    if len(fresh) < 2:
        return None
    parents: dict[str, str] = {}
    leaf = ""
    for _, record in jsonl.JsonLines(info.path):
        mine, parent = record.get("uuid"), record.get("parentUuid")
        if isinstance(mine, str) and not record.get("isSidechain"):
            parents[mine] = parent if isinstance(parent, str) else ""
            leaf = mine if record.get("type") in records.CONVERSATION else leaf
    wanted = " ".join(prompt.split())
    ours = next((u for u, text in reversed(fresh) if " ".join(text.split()).startswith(wanted[:2000])), "")
    if not ours:
        return None
    above = set(_chain(parents, ours))
    apart = [u for u, _ in fresh if u not in above and ours not in _chain(parents, u)]
    if not apart:
        return None
    their_root = next(u for u in reversed(_chain(parents, apart[-1])) if u not in above)
    our_root = next(u for u in reversed(_chain(parents, ours)) if u not in set(_chain(parents, apart[-1])))
    kept = _copy(info, parents, their_root, new_id())
    if their_root in _chain(parents, leaf):
        return Ends(kept, info.id)
    return Ends(kept, _copy(info, parents, our_root, new_id()))


def _prompts_since(info: SessionInfo, since: float) -> list[tuple[str, str]]:
    """(uuid, text) of what people wrote, oldest first."""
    found = []
    for record in jsonl.backwards(info.path):
        at = seconds(record.get("timestamp"))
        if record.get("type") not in records.CONVERSATION or record.get("isSidechain"):
            continue
        if at is not None and at < since:
            break
        content = records.content_of(record)
        mine = record.get("uuid")
        if record["type"] == "user" and isinstance(mine, str) and records.user_kind(record, content) == "human":
            found.append((mine, records.prose(content)))
    return found[::-1]


def _chain(parents: dict[str, str], start: str) -> list[str]:
    """`start` and all above it, nearest first; a circle in a damaged file ends it."""
    chain: list[str] = []
    seen: set[str] = set()
    while start and start not in seen:
        seen.add(start)
        chain.append(start)
        start = parents.get(start, "")
    return chain


def _copy(info: SessionInfo, parents: dict[str, str], without: str, session: str) -> str:
    """The transcript as the session `session`, without the branch that begins at `without`."""
    dropped = {without}
    for one, parent in parents.items():  # in file order: a parent comes first
        if parent in dropped:
            dropped.add(one)
    with placing(info.path.with_name(f"{session}.jsonl"), "claude") as put:
        for _, record in jsonl.JsonLines(info.path):
            mine = record.get("uuid")
            if isinstance(mine, str) and mine not in dropped:
                put({**record, "sessionId": session} if "sessionId" in record else record)
    return session
