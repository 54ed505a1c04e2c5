"""Copilot CLI's event log: calls announced twice, sub-agents between, rewinds, damage, titles."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from agents_registry.sessions.copilot import STORE
from tests.unit.session_files import info, lines, results, said

SID = "aaaa0000-1111-4222-8333-444455556666"


def event(key: str, kind: str, **data: Any) -> dict[str, Any]:
    return {"type": kind, "data": data, "id": key, "timestamp": "2026-05-01T00:00:00Z", "parentId": None}


START = event("s", "session.start", sessionId=SID, copilotVersion="1.0.80", context={"cwd": "/w/app", "branch": "main"})


def user(key: str, words: str) -> dict[str, Any]:
    return event(key, "user.message", content=words, transformedContent=f"<x>{words}</x>", attachments=[])


def agent(key: str, words: str, *calls: str, **more: Any) -> dict[str, Any]:
    requests = [{"toolCallId": call, "name": "bash", "arguments": '{"command": "ls"}'} for call in calls]
    return event(key, "assistant.message", messageId=key, content=words, toolRequests=requests, **more)


def done(key: str, call: str, words: str, success: bool = True, **more: Any) -> dict[str, Any]:
    return event(key, "tool.execution_complete", toolCallId=call, success=success, result={"content": words}, **more)


def test_a_call_that_is_announced_and_started_is_one_call(tmp_path: Path) -> None:
    start = event("4", "tool.execution_start", toolCallId="c", toolName="bash", arguments={"command": "ls"})
    path = lines(tmp_path / "events.jsonl", START, user("1", "list"), agent("2", "listing", "c"), start, done("5", "c", "a b"))
    assert STORE.inspect(path).tool_calls == 1
    conversation = STORE.read(info("copilot", path, tmp_path))
    assert [dict(call.input) for call in conversation.calls()] == [{"command": "ls"}]
    assert results(conversation) == {"c": "a b"}
    assert (conversation.cwd, conversation.branch) == ("/w/app", "main")


def test_what_a_sub_agent_did_is_not_carried(tmp_path: Path) -> None:
    path = lines(
        tmp_path / "events.jsonl",
        START,
        user("1", "review"),
        agent("2", "delegating", "task"),
        agent("3", "inner words", "inner", parentToolCallId="task"),
        done("4", "inner", "x", parentToolCallId="task"),
        done("5", "task", "verdict"),
        agent("6", "all good"),
    )
    conversation = STORE.read(info("copilot", path, tmp_path))
    assert said(conversation) == ["user: review", "agent: delegating\nall good"]
    assert results(conversation) == {"task": "verdict"}


def test_a_rewind_takes_back_the_events_it_names_or_all_from_one_on(tmp_path: Path) -> None:
    turns = [user("1", "one"), agent("2", "1"), user("3", "two"), agent("4", "2")]
    named = event("r", "session.snapshot_rewind", eventIds=["3", "4"], upToEventId="1")
    path = lines(tmp_path / "events.jsonl", START, *turns, named, user("5", "three"))
    assert said(STORE.read(info("copilot", path, tmp_path))) == ["user: one", "agent: 1", "user: three"]
    path = lines(tmp_path / "events.jsonl", START, *turns, event("r", "session.snapshot_rewind", upToEventId="3"), user("5", "three"))
    assert said(STORE.read(info("copilot", path, tmp_path))) == ["user: one", "agent: 1", "user: three"]


def test_a_compaction_with_a_summary_stands_for_all_before(tmp_path: Path) -> None:
    compacted = event("c", "session.compaction_complete", success=True, summaryContent="we listed")
    path = lines(tmp_path / "events.jsonl", START, user("1", "list"), agent("2", "ok"), compacted, user("3", "go on"))
    conversation = STORE.read(info("copilot", path, tmp_path))
    assert conversation.compaction is not None and conversation.compaction.summary == "we listed"
    assert said(conversation) == ["user: go on"]


def test_nul_padding_glued_records_and_line_separators_cost_what_they_damage(tmp_path: Path) -> None:
    path = lines(
        tmp_path / "events.jsonl",
        START,
        user("1", "a\u2028b\u0085c"),
        b'{"type":"assistant.message","data":{"cont' + b'{"type":"abort","data":{}}',
        agent("2", "fine"),
        b"\0" * 64,
    )
    counts = STORE.inspect(path)
    assert (counts.user_turns, counts.assistant_texts, counts.malformed) == (1, 1, 2)
    assert [skipped.line for skipped in counts.skipped] == [3, 5]


def test_sessions_old_and_new_are_listed_with_the_workspaces_name(tmp_path: Path) -> None:
    new = lines(tmp_path / "session-state" / SID / "events.jsonl", START, user("1", "hello"), mtime=20)
    new.with_name("workspace.yaml").write_text("id: x\ncwd: /w/app\nsummary: 'Say hello'\n")
    lines(tmp_path / "session-state" / "old.jsonl", event("s", "session.start", sessionId="old"), user("1", "before"), mtime=10)
    assert [(one.id, one.title) for one in STORE.list(tmp_path)] == [(SID, "Say hello"), ("old", "before")]
    assert [one.id for one in STORE.resolve(tmp_path, "say hello")] == [SID]
