"""Writing a conversation as a new Codex thread that `codex resume` and session/load take.

Shapes tested against 0.137, 0.166, 0.171 and codex-acp: what the model sees are `response_item` lines, what the window
shows are events (legacy) or completed items (paginated, from 0.166), so both are written. `model_provider` must be the
one that the user's configuration names, else Codex refuses to go on. The picker shows a new file only after one resume
by its id.
"""

from __future__ import annotations

import json
import os
import re
import time
import tomllib
import uuid as uuids
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from agents_registry.errors import RefusedError, UsageError
from agents_registry.sessions import handing
from agents_registry.sessions.codex import CodexStore, find_rollout
from agents_registry.sessions.neutral import USER, Conversation, Text, Thinking, ToolCall, Turn, clip
from agents_registry.sessions.port import SessionInfo, Written
from agents_registry.sessions.times import iso
from agents_registry.sessions.vocabulary import Tool, command_of, todo_items

_MCP = re.compile(r"(mcp__.+?)__(.+)")
_NAME = re.compile(r"[^a-zA-Z0-9_-]")
_WINDOW = 258_400
"""Tokens; what Codex 0.166 writes for its default model. Only shown."""

_SHOWN = 1500
"""Characters of a result in the window's log. The model's log has all of it."""


def new_thread_id(now: float) -> str:
    """A UUID of version 7, as Codex makes them: sorted by time."""
    data = bytearray(int(now * 1000).to_bytes(6, "big") + os.urandom(10))
    data[6], data[8] = (data[6] & 0x0F) | 0x70, (data[8] & 0x3F) | 0x80
    return str(uuids.UUID(bytes=bytes(data)))


class CodexWriter:
    """Writes new threads into a Codex home. `paginated` is for 0.166 and later, the legacy form for older ones."""

    agent = "codex"

    def __init__(self, *, paginated: bool = True, cli_version: str = "0.166.0", clock: Callable[[], float] = time.time) -> None:
        self._paginated = paginated
        self._version = cli_version
        self._clock = clock

    def write(self, conversation: Conversation, root: Path, *, session_id: str, env: Mapping[str, str]) -> Written:
        """See `SessionWriter`. Raises `UsageError` for a conversation without a directory or an id that is no UUID,
        `RefusedError` when the thread exists, `AgentError` when the home cannot be written.
        """
        del env  # the root says where
        if not conversation.cwd:
            raise UsageError("The conversation has no directory.", hint="Give one with --cwd.")
        try:
            uuids.UUID(session_id)
        except ValueError:
            raise UsageError(f"{session_id!r} cannot be the id of a Codex thread.", hint="Give a UUID.") from None
        if find_rollout(root, session_id) is not None:
            raise RefusedError(f"Codex has a thread {session_id}; an existing session is never written.", hint="Use another id.")
        now = self._clock()
        losses = handing.Losses()
        local = datetime.fromtimestamp(now).astimezone()  # Codex names files by local time
        name = f"rollout-{local:%Y-%m-%dT%H-%M-%S}-{session_id}.jsonl"
        path = root / "sessions" / f"{local:%Y}" / f"{local:%m}" / f"{local:%d}" / name
        with handing.placing(path, "Codex") as put:
            lines = _Lines(conversation, session_id, now, put, paginated=self._paginated)
            lines.begin(self._version, model_provider(root))
            self._fill(lines, conversation, losses)
        info = CodexStore().describe(path, root) or SessionInfo(self.agent, session_id, conversation.cwd, conversation.title, now, path, root)
        losses.add("turns in another directory", handing.differing_cwds(conversation))
        losses.add("names of models", len({turn.model for turn in conversation.turns if turn.model}))
        if conversation.title and info.title != conversation.title:
            losses.add("title")
        return Written(info, losses.lines())

    def _fill(self, lines: _Lines, conversation: Conversation, losses: handing.Losses) -> None:
        order = handing.Sequence(conversation, losses)
        if conversation.compaction is not None:
            lines.user(handing.SUMMARY_MARK + conversation.compaction.summary)
        for turn in conversation.turns:
            if turn.role == USER:
                text = handing.words(turn.blocks, losses)
                if text:
                    lines.user(text)
            else:
                self._answer(lines, order, turn, conversation.agent)
        lines.end_turn()
        order.end()

    def _answer(self, lines: _Lines, order: handing.Sequence, turn: Turn, agent: str) -> None:
        for part in order.parts(turn):
            if isinstance(part, Text):
                lines.says(part.text)
            elif isinstance(part, Thinking):
                lines.thinks(part.text)
            else:
                for one in part:
                    lines.call(one.call, agent)
                for one in part:
                    lines.result(one, agent)


class _Lines:
    """Lines in order, each in both of the logs."""

    def __init__(
        self, conversation: Conversation, thread: str, now: float, put: Callable[[Mapping[str, Any]], None], *, paginated: bool
    ) -> None:
        self._put, self._count = put, 0
        self._conversation, self._thread, self._paginated, self._now = conversation, thread, paginated, now
        self._times = handing.moments(conversation, now)
        self._turn = ""
        self._last = ""

    def begin(self, version: str, provider: str) -> None:
        at = iso(self._now)
        made = self._conversation
        meta: dict[str, Any] = {
            "id": self._thread,
            "timestamp": at,
            "cwd": made.cwd,
            "originator": "vibearound",
            "cli_version": version,
            "source": "cli",
            "model_provider": provider,
        }
        if made.branch:
            meta["git"] = {"branch": made.branch}
        if self._paginated:
            meta |= {"session_id": self._thread, "history_mode": "paginated"}
        self._add("session_meta", meta)

    def user(self, text: str) -> None:
        self.end_turn()
        self._open()
        self._response({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]})
        if self._paginated:
            self._item({"type": "UserMessage", "id": self._fresh(), "content": [{"type": "text", "text": text, "text_elements": []}]})
        else:
            self._event({"type": "user_message", "message": text, "images": [], "local_images": [], "text_elements": []})

    def says(self, text: str) -> None:
        self._open()
        self._last = text
        if self._paginated:
            self._item({"type": "AgentMessage", "id": f"msg_{self._fresh()}", "content": [{"type": "Text", "text": text}]})
        else:
            self._event({"type": "agent_message", "message": text})
        self._response({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]})

    def thinks(self, text: str) -> None:
        """Only shown: the model takes no thoughts that it did not sign."""
        self._open()
        if self._paginated:
            self._item({"type": "Reasoning", "id": f"rs_{self._fresh()}", "summary_text": [text], "raw_content": []})
        else:
            self._event({"type": "agent_reasoning", "text": text})

    def call(self, call: ToolCall, agent: str) -> None:
        self._open()
        name, arguments, space = native_call(call, agent)
        if name == "apply_patch" and set(arguments) == {"input"}:
            self._response({"type": "custom_tool_call", "name": name, "input": arguments["input"], "call_id": call.id})
            return
        item = {"type": "function_call", "name": name, "arguments": json.dumps(arguments, ensure_ascii=False), "call_id": call.id}
        self._response({**item, "namespace": space} if space else item)

    def result(self, one: handing.Answered, agent: str) -> None:
        name, arguments, space = native_call(one.call, agent)
        text, failed = one.result.text, one.result.is_error
        shown = clip(text, _SHOWN)[0]
        if name == "exec_command":
            self._command(one.call.id, command_of(arguments), shown, failed)
        else:
            self._tool(one.call.id, (space or "mcp__relay").removeprefix("mcp__"), name, arguments, shown, failed)
        custom = name == "apply_patch" and set(arguments) == {"input"}
        kind = "custom_tool_call_output" if custom else "function_call_output"
        self._response({"type": kind, "call_id": one.call.id, "output": text})

    def _command(self, call: str, command: str, text: str, failed: bool) -> None:
        done = {
            "command": ["/bin/bash", "-lc", command],
            "cwd": self._conversation.cwd,
            "parsed_cmd": [{"type": "unknown", "cmd": command}],
            "source": "agent",
            "status": "failed" if failed else "completed",
            "stdout": text,
            "stderr": "",
            "aggregated_output": text,
            "exit_code": 1 if failed else 0,
            "duration": {"secs": 0, "nanos": 0},
            "formatted_output": text,
        }
        if self._paginated:
            self._item({"type": "CommandExecution", "id": call, **done, "cwd": "file://" + quote(self._conversation.cwd)})
        else:
            self._event({"type": "exec_command_end", "call_id": call, "turn_id": self._turn, **done})

    def _tool(self, call: str, server: str, name: str, arguments: dict[str, Any], text: str, failed: bool) -> None:
        content = [{"type": "text", "text": text}]
        if self._paginated:
            status = "failed" if failed else "completed"
            item = {"type": "McpToolCall", "id": call, "server": server, "tool": name, "arguments": arguments, "status": status}
            self._item({**item, "result": {"content": content}, "duration": {"secs": 0, "nanos": 0}})
        else:
            invocation = {"server": server, "tool": name, "arguments": arguments}
            outcome = {"Ok": {"content": content, "isError": failed}}
            done = {"call_id": call, "invocation": invocation, "duration": {"secs": 0, "nanos": 0}, "result": outcome}
            self._event({"type": "mcp_tool_call_end", **done})

    def end_turn(self) -> None:
        if self._turn:
            done = {"turn_id": self._turn, "last_agent_message": self._last or None, "completed_at": int(self._now), "duration_ms": 1}
            self._event({"type": "task_complete", **done})
        self._turn, self._last = "", ""

    def _open(self) -> None:
        if not self._turn:
            self._turn = self._fresh()
            begun = {"turn_id": self._turn, "started_at": int(self._now), "model_context_window": _WINDOW}
            self._event({"type": "task_started", **begun, "collaboration_mode_kind": "default"})

    def _fresh(self) -> str:
        return new_thread_id(self._now)

    def _item(self, item: dict[str, Any]) -> None:
        done = {"thread_id": self._thread, "turn_id": self._turn, "item": item, "completed_at_ms": int(self._now * 1000)}
        self._event({"type": "item_completed", **done})

    def _event(self, payload: dict[str, Any]) -> None:
        self._add("event_msg", payload)

    def _response(self, payload: dict[str, Any]) -> None:
        self._add("response_item", payload)

    def _add(self, kind: str, payload: dict[str, Any]) -> None:
        record: dict[str, Any] = {"timestamp": iso(next(self._times))}
        if self._paginated:
            record["ordinal"] = self._count
        self._count += 1
        self._put({**record, "type": kind, "payload": payload})


def native_call(call: ToolCall, agent: str) -> tuple[str, dict[str, Any], str]:
    """(name, arguments, namespace) of a call in Codex's own words where it has them; its own calls stay as they are."""
    arguments = dict(call.input)
    found = _MCP.fullmatch(call.name)
    if found:
        return found.group(2), arguments, found.group(1)
    if agent == "codex":
        return call.name, arguments, ""
    if call.tool is Tool.SHELL and command_of(arguments):
        return "exec_command", {"cmd": command_of(arguments)}, ""
    items = list(todo_items(arguments)) if call.tool is Tool.TODO else []
    if items:
        return "update_plan", {"plan": [{"step": text, "status": status} for text, status in items]}, ""
    return _NAME.sub("_", call.name)[:64] or "tool", arguments, ""


def model_provider(root: Path) -> str:
    """The provider that the home's configuration names; Codex's default without one."""
    try:
        with open(root / "config.toml", "rb") as file:
            named = tomllib.load(file).get("model_provider")
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError):
        return "openai"
    return named if isinstance(named, str) and named else "openai"
