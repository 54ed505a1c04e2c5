"""Is a turn under way in a session, as far as its store shows?

Best effort, from the end of the file only: an agent that was killed in the middle of a turn leaves the same last record
as one that is thinking. So a turn counts as running only while something shows a living writer: the agent's register,
its lock, or a file that changed a moment ago.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import islice

from agents_registry.sessions import claude_live, claude_records, codex_live, jsonl
from agents_registry.sessions.port import SessionInfo

_RECENT_S = 20.0
"""Without a register: how long after its last change an unfinished turn is still taken for a running one."""
_LOOKED_AT = 400
"""Records from the end that are looked at for the turn's begin or end."""


def turn_running(info: SessionInfo, *, now: Callable[[], float] = time.time) -> bool | None:
    """True: a turn is under way; False: none is; None: the store does not say (or cannot be read)."""
    try:
        if info.agent == "claude":
            return _claude(info, now())
        if info.agent == "codex":
            return _codex(info, now())
    except OSError:
        return None
    return None


def _claude(info: SessionInfo, now: float) -> bool:
    for entry in claude_live.register(info.store_root):
        if entry.session_id == info.id and entry.status:
            return entry.status != "idle"
    return _claude_open(info) and _recent(info, now)


def _claude_open(info: SessionInfo) -> bool:
    """Whether the last record of the conversation is not the end of a turn."""
    for record in islice(jsonl.backwards(info.path), _LOOKED_AT):
        kind = record.get("type")
        if kind not in claude_records.CONVERSATION or record.get("isSidechain"):
            continue
        if kind == "user":
            content = claude_records.content_of(record)
            text = claude_records.prose(content).lstrip()
            if text.startswith("[Request interrupted by user"):
                return False
            return claude_records.user_kind(record, content) in ("human", "results")
        if record.get("isApiErrorMessage") or record.get("isAbortedMidStream"):
            return False
        message = record.get("message")
        reason = message.get("stop_reason") if isinstance(message, dict) else None
        if reason is not None:
            return bool(reason == "tool_use")
        # Older versions write the text block before the reason is known; a tool call is then what shows an open turn.
        return any(isinstance(block, dict) and block.get("type") == "tool_use" for block in claude_records.content_of(record))
    return False


def _codex(info: SessionInfo, now: float) -> bool | None:
    for record in islice(jsonl.backwards(info.path), _LOOKED_AT * 4):
        payload = record.get("payload")
        kind = payload.get("type") if record.get("type") == "event_msg" and isinstance(payload, dict) else ""
        if kind in ("task_complete", "turn_aborted", "turn_complete"):
            return False
        if kind in ("task_started", "turn_started"):
            return info.id in codex_live.live_threads(info.store_root) or _recent(info, now)
    return None


def _recent(info: SessionInfo, now: float) -> bool:
    return now - info.path.stat().st_mtime < _RECENT_S
