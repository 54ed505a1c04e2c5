"""Counting a Claude Code transcript in file order, without walking its tree."""

from __future__ import annotations

import hashlib
from pathlib import Path

from agents_registry.errors import NotFoundError
from agents_registry.sessions import claude_records as records
from agents_registry.sessions.jsonl import JsonLines
from agents_registry.sessions.port import Inspection


def inspect(path: Path) -> Inspection:
    """Counts of one file. A record whose uuid was seen before is a copy and counts nothing; sidechains do not count.

    Raises `NotFoundError` when the file holds records and none of them is Claude Code's, OSError when unreadable.
    """
    lines = JsonLines(path)
    seen: set[str] = set()
    session, cwd, first_user = "", "", ""
    users = texts = anonymous = without_id = 0
    messages: set[str] = set()
    calls: set[str] = set()
    results: set[str] = set()
    objects = ours = 0
    first_hash = ""
    for number, record in lines:
        objects += 1
        ours += records.is_ours(record)
        if not session and isinstance(record.get("sessionId"), str):
            session = record["sessionId"]
        if not cwd and isinstance(record.get("cwd"), str):
            cwd = record["cwd"]
        if record.get("type") in records.CONVERSATION and not isinstance(record.get("message"), dict):
            lines.note(number, "a message that is no object")
            continue
        uuid = record.get("uuid")
        if isinstance(uuid, str):
            if uuid in seen:
                lines.note(number, "a copy of an earlier record")
                continue
            seen.add(uuid)
        if record.get("isSidechain"):
            continue
        kind = record.get("type")
        content = records.content_of(record)
        if kind == "user":
            what = records.user_kind(record, content)
            if what == "results":
                for block in content:
                    if isinstance(block, dict) and block.get("type") == "tool_result":
                        without_id += _count(block.get("tool_use_id"), results)
            elif what == "human":
                users += 1
                if users == 1:
                    first_user = records.prose(content)
                    first_hash = hashlib.sha256(first_user.encode("utf-8", "surrogatepass")).hexdigest()
        elif kind == "assistant":
            for block in content:
                if isinstance(block, dict) and block.get("type") == "tool_use":
                    anonymous += _count(block.get("id"), calls)
            if records.is_model_text(record) and records.prose(content).strip():
                texts += 1
                message = records.message_id(record)
                messages.add(message or f"line {number}")
    if objects and not ours:
        raise NotFoundError(f"{path} is no Claude Code session: none of its {objects} records is one of its.")
    return Inspection(
        agent="claude",
        id=session,
        cwd=cwd,
        user_turns=users,
        assistant_texts=texts,
        assistant_messages=len(messages),
        tool_calls=len(calls) + anonymous,
        tool_results=len(results) + without_id,
        malformed=lines.malformed,
        first_user_sha256=first_hash,
        skipped=tuple(lines.skipped),
    )


def _count(call_id: object, known: set[str]) -> int:
    """Adds an id to the set; 1 for an entry that has none and so counts by itself."""
    if isinstance(call_id, str) and call_id:
        known.add(call_id)
        return 0
    return 1
