"""Counting a Codex rollout in file order."""

from __future__ import annotations

import hashlib
from pathlib import Path

from agents_registry.errors import NotFoundError
from agents_registry.sessions import codex_records as records
from agents_registry.sessions.codex_read import images
from agents_registry.sessions.jsonl import JsonLines
from agents_registry.sessions.port import Inspection


class _Said:
    """Texts of one role as one of the logs has them."""

    def __init__(self) -> None:
        self.count = 0
        self.first = ""

    def add(self, text: str) -> None:
        self.count += 1
        if self.count == 1:
            self.first = text


def inspect(path: Path) -> Inspection:
    """Counts of one file. Human turns come from user_message events if there are any, else from completed items, else
    from the model's own input; assistant texts from the model's output, else items, else events.

    Raises `NotFoundError` when the file holds records and none of them is a rollout's, OSError when unreadable.
    """
    lines = JsonLines(path)
    users = {source: _Said() for source in ("event", "item", "response")}
    texts = {source: _Said() for source in ("response", "item", "event")}
    calls: set[str] = set()
    results: set[str] = set()
    session, cwd = "", ""
    objects = ours = anonymous = without_id = 0
    for _, record in lines:
        objects += 1
        kind, payload = records.unwrap(record)
        ours += records.is_ours(record)
        what = payload.get("type")
        if kind == "session_meta" and not session and isinstance(payload.get("id"), str):
            session = payload["id"]
        if kind in ("session_meta", "turn_context") and not cwd and isinstance(payload.get("cwd"), str):
            cwd = payload["cwd"]
        if kind == "response_item" and isinstance(what, str):
            if what == "message":
                text = records.message_text(payload)
                if payload.get("role") == "user":
                    cwd = cwd or records.context_cwd(text)
                    if not records.is_injected(text) and (text.strip() or images(payload, 0, None)):
                        users["response"].add(text)
                elif payload.get("role") == "assistant" and text.strip():
                    texts["response"].add(text)
            elif what in records.CALLS:
                found = records.call_id(payload)
                anonymous += not found
                calls.add(found)
            elif what in records.OUTPUTS:
                found = records.call_id(payload)
                without_id += not found
                results.add(found)
        elif kind == "event_msg":
            item = payload.get("item")
            if what == "user_message":
                users["event"].add(str(payload.get("message", "")))
            elif what == "agent_message" and str(payload.get("message", "")).strip():
                texts["event"].add("")
            elif what == "item_completed" and isinstance(item, dict):
                text = records.message_text(item)
                if item.get("type") == "UserMessage":
                    users["item"].add(text)
                elif item.get("type") == "AgentMessage" and text.strip():
                    texts["item"].add("")
    if objects and not ours:
        raise NotFoundError(f"{path} is no Codex rollout: none of its {objects} records is one of its.")
    human = next((said for said in users.values() if said.count), _Said())
    spoken = next((said.count for said in texts.values() if said.count), 0)
    first = hashlib.sha256(human.first.encode("utf-8", "surrogatepass")).hexdigest() if human.count else ""
    return Inspection(
        agent="codex",
        id=session,
        cwd=cwd,
        user_turns=human.count,
        assistant_texts=spoken,
        assistant_messages=spoken,
        tool_calls=len(calls - {""}) + anonymous,
        tool_results=len(results - {""}) + without_id,
        malformed=lines.malformed,
        first_user_sha256=first,
        skipped=tuple(lines.skipped),
    )
