"""No store falls over records of odd types, bombs, surrogates or torn files: each costs at most itself."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from agents_registry.errors import NotFoundError
from agents_registry.sessions import catalog
from agents_registry.sessions.neutral import Conversation
from tests.unit.session_files import document, info, lines

TEXT = [{"type": "text", "text": "words"}]
USE = {"type": "tool_use", "id": "t", "name": "bash", "input": {"command": "ls"}}
RESULT = {"type": "tool_result", "tool_use_id": "t", "content": TEXT}
AT = "2026-05-01T00:00:00Z"
CALL = {"id": "t", "type": "function", "function": {"name": "bash", "arguments": "{}"}}


def qwen(uuid: str, parent: str | None, kind: str, parts: Any) -> dict[str, Any]:
    message = {"role": "user", "parts": parts}
    return {"uuid": uuid, "parentUuid": parent, "sessionId": "s", "type": kind, "timestamp": AT, "cwd": "/w", "message": message}


SAMPLES: dict[str, tuple[str, Any]] = {
    "gemini": (
        "tmp/p/chats/session-a.jsonl",
        [
            {"sessionId": "s", "projectHash": "h", "startTime": AT},
            {"id": "1", "type": "user", "timestamp": AT, "content": [{"text": "hi"}, {"inlineData": {"mimeType": "image/png", "data": "AA"}}]},
            {"id": "2", "type": "gemini", "content": "yes", "thoughts": [{"subject": "a", "description": "b"}], "toolCalls": [{"id": "t", "name": "ls", "args": {}, "status": "success", "result": [{"functionResponse": {"id": "t", "response": {"output": "x"}}}]}]},
            {"$rewindTo": "2"},
            {"$set": {"summary": "t", "messages": [{"id": "1", "type": "user", "content": "hi"}]}},
        ],
    ),
    "qwen-code": (
        "projects/p/chats/0190aaaa-1111-4222-8333-444455556666.jsonl",
        [
            qwen("1", None, "user", [{"text": "hi"}]),
            qwen("2", "1", "assistant", [{"functionCall": {"id": "t", "name": "ls", "args": {}}}, {"text": "x", "thought": True}]),
            qwen("3", "2", "tool_result", [{"functionResponse": {"id": "t", "response": {"error": "x"}}}]),
            {**qwen("4", "3", "system", []), "subtype": "chat_compression", "systemPayload": {"compressedHistory": [{"role": "user", "parts": [{"text": "s"}]}]}},
        ],
    ),
    "pi": (
        "sessions/p/a.jsonl",
        [
            {"type": "session", "version": 3, "id": "s", "timestamp": AT, "cwd": "/w"},
            {"type": "message", "id": "1", "parentId": None, "message": {"role": "user", "content": TEXT}},
            {"type": "message", "id": "2", "parentId": "1", "message": {"role": "assistant", "content": [*TEXT, {"type": "toolCall", "id": "t", "name": "ls", "arguments": {}}]}},
            {"type": "message", "id": "3", "parentId": "2", "message": {"role": "toolResult", "toolCallId": "t", "content": TEXT}},
            {"type": "compaction", "id": "4", "parentId": "3", "summary": "s", "firstKeptEntryId": "2"},
        ],
    ),
    "kimi": (
        "sessions/p/s/agents/main/wire.jsonl",
        [
            {"type": "metadata", "protocol_version": "1.4", "created_at": 1},
            {"type": "context.append_message", "message": {"role": "user", "content": TEXT, "origin": {"kind": "user"}}},
            {"type": "context.append_loop_event", "event": {"type": "tool.call", "toolCallId": "t", "name": "ls", "args": {}}},
            {"type": "context.append_loop_event", "event": {"type": "tool.result", "toolCallId": "t", "result": {"output": "x"}}},
            {"type": "context.undo", "count": 1},
            {"type": "context.apply_compaction", "summary": "s"},
        ],
    ),
    "cursor": (
        "projects/p/agent-transcripts/s/s.jsonl",
        [{"role": "user", "message": {"content": TEXT}}, {"role": "assistant", "message": {"content": [*TEXT, USE]}}, {"role": "user", "message": {"content": [RESULT]}}],
    ),
    "kiro": (
        "sessions/cli/s.jsonl",
        [
            {"version": "v1", "kind": "Prompt", "data": {"content": [{"kind": "text", "data": "hi"}]}},
            {"version": "v1", "kind": "AssistantMessage", "data": {"message_id": "2", "content": [{"kind": "toolUse", "data": {"toolUseId": "t", "name": "ls", "input": {}}}]}},
            {"version": "v1", "kind": "ToolResults", "data": {"content": [{"kind": "toolResult", "data": {"toolUseId": "t", "content": [{"kind": "text", "data": "x"}]}}]}},
        ],
    ),
    "copilot": (
        "session-state/s/events.jsonl",
        [
            {"type": "session.start", "id": "1", "timestamp": AT, "data": {"sessionId": "s", "copilotVersion": "1", "context": {"cwd": "/w"}}},
            {"type": "user.message", "id": "2", "data": {"content": "hi", "attachments": [{"path": "a"}]}},
            {"type": "assistant.message", "id": "3", "data": {"messageId": "m", "content": "x", "toolRequests": [{"toolCallId": "t", "name": "ls", "arguments": {}}]}},
            {"type": "tool.execution_complete", "id": "4", "data": {"toolCallId": "t", "success": True, "result": {"content": "x"}}},
            {"type": "session.snapshot_rewind", "id": "5", "data": {"eventIds": ["2"], "upToEventId": "2"}},
        ],
    ),
    "droid": (
        "sessions/p/s.jsonl",
        [{"type": "session_start", "id": "s", "cwd": "/w"}, {"type": "message", "message": {"role": "user", "content": TEXT}}, {"type": "message", "message": {"role": "assistant", "content": [USE, RESULT]}}, {"type": "tool_result", "session_id": "s", "toolCallId": "t", "value": {"exitCode": 1}}],
    ),
    "amp": (
        "threads/T-1.json",
        {"id": "T-1", "created": 1, "env": {"initial": {"trees": [{"uri": "file:///w"}]}}, "messages": [{"role": "user", "messageId": 1, "content": TEXT}, {"role": "assistant", "messageId": 2, "content": [USE]}]},
    ),
    "cline": (
        "tasks/1/ui_messages.json",
        [{"ts": 1, "type": "say", "say": "text", "text": "hi", "images": ["data:x"]}, {"ts": 2, "type": "say", "say": "tool", "text": "{}"}, {"ts": 3, "type": "ask", "ask": "followup", "text": "?"}],
    ),
    "antigravity": (
        "brain/s/.system_generated/logs/transcript.jsonl",
        [
            {"step_index": 0, "type": "USER_INPUT", "created_at": AT, "content": "<USER_REQUEST>hi</USER_REQUEST>"},
            {"step_index": 1, "type": "PLANNER_RESPONSE", "content": "x", "tool_calls": [{"name": "ls", "args": {"a": "[1"}}]},
            {"step_index": 2, "type": "RUN_COMMAND", "content": "x"},
        ],
    ),
    "grok": (
        "sessions/p/s/chat_history.jsonl",
        [
            {"type": "user", "content": TEXT, "prompt_index": 0},
            {"type": "assistant", "content": "x", "model_id": "m", "tool_calls": [{"id": "t", "name": "ls", "arguments": "{"}]},
            {"type": "tool_result", "tool_call_id": "t", "content": "x"},
            {"type": "backend_tool_call", "kind": {"tool_type": "search", "action": {}, "id": "u"}},
        ],
    ),
    "hermes": (
        "sessions/session_s.json",
        {"session_id": "s", "platform": "cli", "session_start": AT, "messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": TEXT, "tool_calls": [CALL]}, {"role": "tool", "tool_call_id": "t", "content": "x"}]},
    ),
    "openclaw": (
        ".openclaw/agents/a/sessions/s.jsonl",
        [{"type": "session", "version": 3, "id": "openclaw-s", "timestamp": AT, "cwd": "/w"}, {"type": "message", "id": "1", "parentId": "openclaw-s", "message": {"role": "user", "content": "hi"}}],
    ),
    "goose": (
        "sessions/s.jsonl",
        [{"working_dir": "/w", "description": "d"}, {"role": "user", "created": 1, "content": TEXT, "metadata": {"userVisible": False}}, {"role": "assistant", "content": [{"type": "toolRequest", "id": "t", "toolCall": {"value": {"name": "ls", "arguments": {}}}}]}],
    ),
    "vibe": (
        "logs/session/session_20260101_000000_abcd1234/messages.jsonl",
        [{"role": "user", "content": "hi"}, {"role": "assistant", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}], "tool_calls": [CALL]}, {"role": "tool", "tool_call_id": "t", "content": "x"}],
    ),
    "opencode": ("storage/session/p/ses_1.json", {"id": "ses_1", "directory": "/w", "title": "t", "time": {"created": 1, "updated": 2}, "revert": {"messageID": "x"}}),
}

_DEEP: Any = json.loads("[" * 200 + "]" * 200)
ODD: list[Any] = [None, True, 0, -1, 3.5, 10**400, float("nan"), "", "\ud83d", "a\u2028b", [], {}, [None], {"a": None}, _DEEP, ["x", {"type": "text"}], {"text": {"text": [1, {"content": None}]}}, "2026-13-45"]


def mutated(value: Any, chance: random.Random) -> Any:
    if chance.random() < 0.1:
        return chance.choice(ODD)
    if isinstance(value, dict):
        return {key: mutated(item, chance) for key, item in value.items() if chance.random() > 0.03}
    if isinstance(value, list):
        return [mutated(item, chance) for item in value]
    return value


def write(path: Path, value: Any) -> None:
    if path.suffix == ".json":
        document(path, value)
    else:
        lines(path, *(json.dumps(record).encode() for record in value))


def assert_encodable(conversation: Conversation) -> None:
    for turn in conversation.turns:
        for block in turn.blocks:
            for name in ("text", "id", "name", "call_id"):
                str(getattr(block, name, "")).encode()


@pytest.mark.parametrize("agent", SAMPLES)
def test_a_sample_is_recognised_listed_and_read(agent: str, tmp_path: Path) -> None:
    """Without this the tests below could pass on files that nothing looks into."""
    place, value = SAMPLES[agent]
    path = tmp_path / place
    write(path, value)
    if agent == "vibe":
        document(path.with_name("meta.json"), {"session_id": "s", "environment": {}})
    assert catalog.need(agent).recognises(path)
    counts = catalog.need(agent).inspect(path)
    assert counts.malformed == 0
    assert counts.user_turns or agent in ("opencode", "goose")


@pytest.mark.parametrize("agent", SAMPLES)
def test_fields_of_odd_types_raise_nothing_and_what_is_read_can_be_encoded(agent: str, tmp_path: Path) -> None:
    place, value = SAMPLES[agent]
    store = catalog.need(agent)
    path = tmp_path / place
    for seed in range(60):
        chance = random.Random(f"{agent}{seed}")
        changed = [mutated(item, chance) for item in value] if isinstance(value, list) else mutated(value, chance)
        write(path, changed)
        store.recognises(path)
        try:
            store.inspect(path)
        except NotFoundError:
            pass  # nothing recognisable was left
        about = info(agent, path, tmp_path)
        assert_encodable(store.read(about))
        store.tail(about)
        list(store.list(tmp_path, subagents=True))


BOMBS = {
    "nested too deeply": b"[" * 100_000,
    "huge integer": b'{"type": "message", "n": ' + b"9" * 6000 + b"}",
    "nul bytes": b"\0" * 200,
    "cut inside a character": '{"a": "決'.encode()[:-1],
    "a bare value": b"17",
    "two records in one line": b'{"a": 1}{"b": 2}',
}


@pytest.mark.parametrize("bomb", BOMBS)
@pytest.mark.parametrize("agent", [agent for agent, (place, _) in SAMPLES.items() if place.endswith(".jsonl")])
def test_a_line_that_cannot_be_used_leaves_the_others_as_they_were(agent: str, bomb: str, tmp_path: Path) -> None:
    place, value = SAMPLES[agent]
    store = catalog.need(agent)
    path = tmp_path / place
    write(path, value)
    before = store.inspect(path)
    lines(path, value[0], BOMBS[bomb], *value[1:])
    after = store.inspect(path)
    assert len(after.skipped) == len(before.skipped) + 1 and after.skipped[0].line == 2
    assert (after.user_turns, after.tool_calls, after.tool_results) == (before.user_turns, before.tool_calls, before.tool_results)


@pytest.mark.parametrize("agent", SAMPLES)
def test_a_file_cut_anywhere_is_read_as_far_as_it_goes(agent: str, tmp_path: Path) -> None:
    place, value = SAMPLES[agent]
    store = catalog.need(agent)
    path = tmp_path / place
    write(path, value)
    whole = path.read_bytes()
    full = len(store.read(info(agent, path, tmp_path)).user_turns())
    for cut in range(0, len(whole), max(1, len(whole) // 40)):
        path.write_bytes(whole[:cut])
        store.recognises(path)
        assert len(store.read(info(agent, path, tmp_path)).user_turns()) <= max(full, 1)


@pytest.mark.parametrize("agent", SAMPLES)
def test_a_file_that_is_gone_is_said_to_be_gone(agent: str, tmp_path: Path) -> None:
    place, _ = SAMPLES[agent]
    path = tmp_path / place
    about = info(agent, path, tmp_path)
    assert not catalog.need(agent).recognises(path)
    with pytest.raises(NotFoundError):
        catalog.need(agent).read(about)
    assert catalog.need(agent).tail(about).size == 0
