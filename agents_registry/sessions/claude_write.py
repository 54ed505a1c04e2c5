"""Writing a conversation as a new Claude Code session that `claude --resume` and session/load take.

The shape was tested field by field against 2.1.185 to 2.1.332: a chain of uuid and parentUuid from null, timestamps,
message content of an assistant always a list, every call answered in the next user message, consecutive assistant
records under one message id, the model "<synthetic>" (each version then takes the user's own default), a final newline.
"""

from __future__ import annotations

import re
import time
import uuid as uuids
from collections.abc import Callable, Mapping
from os import path as os_path
from pathlib import Path
from typing import Any

from agents_registry.errors import RefusedError, UsageError
from agents_registry.sessions import claude_records as records
from agents_registry.sessions import handing
from agents_registry.sessions.claude import ClaudeStore, slug
from agents_registry.sessions.neutral import USER, Conversation, Text, Thinking, ToolCall
from agents_registry.sessions.port import SessionInfo, Written
from agents_registry.sessions.times import iso
from agents_registry.sessions.vocabulary import Tool, command_of, todo_items, touched_paths

_VERSION = "2.1.100"
_NAME = re.compile(r"[^a-zA-Z0-9_-]")
_BEGIN = "[The record begins in the middle of a turn.]"


class ClaudeWriter:
    """Writes new sessions into a Claude Code store. `clock` gives seconds since the epoch, `new_id` fresh UUIDs."""

    agent = "claude"

    def __init__(self, *, clock: Callable[[], float] = time.time, new_id: Callable[[], str] = lambda: str(uuids.uuid4())) -> None:
        self._clock = clock
        self._new_id = new_id

    def write(self, conversation: Conversation, root: Path, *, session_id: str, env: Mapping[str, str]) -> Written:
        """See `SessionWriter`. Raises `UsageError` for a conversation without a directory or an id that is no UUID,
        `RefusedError` when a session of that id exists anywhere in the store, `AgentError` when it cannot be written.
        """
        del env  # the root says where
        if not conversation.cwd:
            raise UsageError("The conversation has no directory, and Claude Code keeps sessions by directory.", hint="Give one with --cwd.")
        try:
            uuids.UUID(session_id)
        except ValueError:
            raise UsageError(f"{session_id!r} cannot be the id of a Claude Code session.", hint="Give a UUID.") from None
        store = ClaudeStore()
        if any(path.stem == session_id for path in store.files(root)):
            raise RefusedError(f"Claude Code has a session {session_id}; an existing session is never written.", hint="Use another id.")
        losses = handing.Losses()
        path = root / "projects" / slug(os_path.realpath(conversation.cwd)) / f"{session_id}.jsonl"
        with handing.placing(path, "Claude Code") as put:
            self._fill(_Lines(conversation, session_id, self._clock(), self._new_id, put), conversation, losses)
        info = store.describe(path, root) or SessionInfo(
            self.agent, session_id, conversation.cwd, conversation.title, self._clock(), path, root
        )
        losses.add("turns in another directory", handing.differing_cwds(conversation))
        losses.add("names of models", len({turn.model for turn in conversation.turns if turn.model}))
        return Written(info, losses.lines())

    def _fill(self, lines: _Lines, conversation: Conversation, losses: handing.Losses) -> None:
        order = handing.Sequence(conversation, losses)
        if conversation.compaction is not None:
            lines.user(conversation.compaction.summary, isCompactSummary=True, isVisibleInTranscriptOnly=True)
        elif conversation.turns and conversation.turns[0].role != USER:
            lines.user(_BEGIN, isMeta=True)  # model APIs want a user first; a meta record is not shown and is no turn
        for turn in conversation.turns:
            if turn.role == USER:
                text = handing.words(turn.blocks, losses)
                if text:
                    lines.user(text)
                continue
            for part in order.parts(turn):
                if isinstance(part, Text):
                    lines.answer({"type": "text", "text": part.text}, "end_turn")
                elif isinstance(part, Thinking):
                    losses.add("thoughts (another vendor's are not accepted)")
                else:
                    self._group(lines, part, conversation.agent)
        order.end()
        if conversation.title:
            lines.put({"type": "custom-title", "customTitle": conversation.title, "sessionId": lines.session})

    def _group(self, lines: _Lines, group: list[handing.Answered], agent: str) -> None:
        for one in group:
            name, arguments = native_call(one.call, agent)
            lines.answer({"type": "tool_use", "id": one.call.id, "name": name, "input": arguments}, "tool_use")
        for one in group:
            block = {"type": "tool_result", "tool_use_id": one.call.id, "content": one.result.text, "is_error": one.result.is_error}
            told = {"stdout": one.result.text, "stderr": "", "interrupted": one.result.text == handing.INTERRUPTED, "isImage": False}
            lines.user([block], toolUseResult=told)


class _Lines:
    """Records in a chain."""

    def __init__(
        self,
        conversation: Conversation,
        session: str,
        now: float,
        new_id: Callable[[], str],
        put: Callable[[Mapping[str, Any]], None],
    ) -> None:
        self.put = put
        self.session = session
        self._cwd, self._branch = conversation.cwd, conversation.branch
        self._times = handing.moments(conversation, now)
        self._new_id = new_id
        self._parent: str | None = None
        self._message = ""

    def user(self, content: str | list[dict[str, Any]], **more: Any) -> None:
        self._message = ""
        self._add("user", {"role": "user", "content": content}, more)

    def answer(self, block: dict[str, Any], reason: str) -> None:
        # Blocks up to the next user record share a message id: Claude Code then takes them for one message.
        self._message = self._message or records.INJECTED_ID + self._new_id().replace("-", "")[:16]
        message = {
            "id": self._message,
            "type": "message",
            "role": "assistant",
            "model": "<synthetic>",
            "content": [block],
            "stop_reason": reason,
            "stop_sequence": None,
            "usage": {"input_tokens": 0, "output_tokens": 0},
        }
        self._add("assistant", message, {})

    def _add(self, kind: str, message: dict[str, Any], more: dict[str, Any]) -> None:
        mine = self._new_id()
        self.put(
            {
                "parentUuid": self._parent,
                "isSidechain": False,
                "userType": "external",
                "cwd": self._cwd,
                "sessionId": self.session,
                "version": _VERSION,
                "gitBranch": self._branch,
                "type": kind,
                "message": message,
                "uuid": mine,
                "timestamp": iso(next(self._times)),
                **more,
            }
        )
        self._parent = mine


def native_call(call: ToolCall, agent: str) -> tuple[str, dict[str, Any]]:
    """(name, input) of a call in Claude Code's own words where it has them; its own calls stay as they are."""
    arguments = dict(call.input)
    if agent == "claude":
        return call.name, arguments
    if call.tool is Tool.SHELL and command_of(arguments):
        why = arguments.get("description") or arguments.get("justification") or "command run earlier by another agent"
        return "Bash", {"command": command_of(arguments), "description": str(why)}
    paths = touched_paths(call.tool, arguments)
    if call.tool is Tool.READ and len(paths) == 1:
        return "Read", {"file_path": paths[0]}
    content = arguments.get("content", arguments.get("file_text"))
    if call.tool is Tool.WRITE and len(paths) == 1 and isinstance(content, str):
        return "Write", {"file_path": paths[0], "content": content}
    old, new = (arguments.get(f"{which}_string", arguments.get(f"{which}String")) for which in ("old", "new"))
    if call.tool is Tool.EDIT and len(paths) == 1 and isinstance(old, str) and isinstance(new, str):
        return "Edit", {"file_path": paths[0], "old_string": old, "new_string": new}
    items = list(todo_items(arguments)) if call.tool is Tool.TODO else []
    if items:
        return "TodoWrite", {"todos": [{"content": text, "status": status, "activeForm": text} for text, status in items]}
    return _NAME.sub("_", call.name)[:128] or "tool", arguments
