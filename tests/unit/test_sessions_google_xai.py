"""Antigravity's steps and Grok's chat history."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from agents_registry.sessions.antigravity import STORE as ANTIGRAVITY
from agents_registry.sessions.grok import STORE as GROK
from tests.unit.session_files import document, info, lines, results, said


def step(kind: str, content: str = "", **more: Any) -> dict[str, Any]:
    return {"step_index": 0, "source": "MODEL", "type": kind, "status": "DONE", "created_at": "2026-05-01T00:00:00Z", "content": content, **more}


def test_antigravity_results_answer_the_planners_calls_in_order(tmp_path: Path) -> None:
    calls = [{"name": "list_dir", "args": {"DirectoryPath": '"/w"'}}, {"name": "view_file", "args": {"AbsolutePath": '"/w/a"', "Lines": "[1, 2]"}}]
    path = lines(
        tmp_path / "brain" / "conv-1" / ".system_generated" / "logs" / "transcript.jsonl",
        step("USER_INPUT", "<USER_REQUEST>\nlook\n</USER_REQUEST>\n<USER_SETTINGS_CHANGE>x</USER_SETTINGS_CHANGE>"),
        step("CONVERSATION_HISTORY"),
        step("PLANNER_RESPONSE", "looking", thinking="hm", tool_calls=calls),
        step("LIST_DIRECTORY", "a b"),
        step("VIEW_FILE", "code", status="ERROR"),
        step("SYSTEM_MESSAGE", "not the user"),
        step("SOME_NEW_TOOL", "late"),
    )
    (found,) = ANTIGRAVITY.list(tmp_path)
    assert (found.id, found.cwd) == ("conv-1", "")
    conversation = ANTIGRAVITY.read(found)
    assert said(conversation) == ["user: look", "agent: looking"]
    made = list(conversation.calls())
    assert [dict(call.input) for call in made] == [{"DirectoryPath": "/w"}, {"AbsolutePath": "/w/a", "Lines": [1, 2]}]
    assert [results(conversation)[call.id] for call in made] == ["a b", "code"]
    assert conversation.results()[made[1].id].is_error
    counts = ANTIGRAVITY.inspect(path)
    assert (counts.tool_calls, counts.tool_results) == (2, 3)


def user(words: str, **more: Any) -> dict[str, Any]:
    return {"type": "user", "content": [{"type": "text", "text": words}], **more}


def agent(words: str, *calls: str) -> dict[str, Any]:
    made = [{"id": call, "name": "read_file", "arguments": '{"target_file": "a"}'} for call in calls]
    return {"type": "assistant", "content": words, "model_id": "grok", "tool_calls": made}


def grok(tmp_path: Path, name: str, *records: dict[str, Any], **summary: Any) -> Path:
    folder = tmp_path / "sessions" / "%2Fw%2Fapp" / name
    document(folder / "summary.json", {"info": {"id": name, "cwd": "/w/app"}, **summary})
    return lines(folder / "chat_history.jsonl", {"type": "system", "content": "You are Grok"}, *records)


def test_grok_carries_queries_without_wrapper_and_nothing_that_the_harness_put_in(tmp_path: Path) -> None:
    grok(
        tmp_path,
        "0190aaaa",
        user("<user_info>\nOS\n</user_info>"),
        user("<system-reminder>x</system-reminder>", synthetic_reason="system_reminder"),
        user("<user_query>\nread a\n</user_query>", prompt_index=0),
        agent("reading", "c"),
        {"type": "tool_result", "tool_call_id": "c", "content": "A"},
        generated_title="Reading",
        head_branch="main",
    )
    (found,) = GROK.list(tmp_path)
    assert (found.id, found.cwd, found.title) == ("0190aaaa", "/w/app", "Reading")
    conversation = GROK.read(found)
    assert said(conversation) == ["user: read a", "agent: reading"]
    assert (results(conversation), conversation.branch) == ({"c": "A"}, "main")


def test_grok_compaction_replaces_what_stands_before_it(tmp_path: Path) -> None:
    path = grok(
        tmp_path,
        "0190aaaa",
        user("<user_query>\nold\n</user_query>"),
        user("This session is being continued from a previous conversation. Summary: x", synthetic_reason="compaction_meta"),
        user("<user_query>\nnew\n</user_query>", prompt_index=2),
    )
    conversation = GROK.read(info("grok", path, tmp_path))
    assert conversation.compaction is not None and "Summary: x" in conversation.compaction.summary
    assert said(conversation) == ["user: new"]


def test_grok_children_are_hidden_and_found_under_their_parent(tmp_path: Path) -> None:
    grok(tmp_path, "0190aaaa", user("go", prompt_index=0))
    grok(tmp_path, "0190bbbb", user("count", prompt_index=0), session_kind="subagent")
    document(tmp_path / "sessions" / "%2Fw%2Fapp" / "0190aaaa" / "subagents" / "0190bbbb" / "meta.json", {})
    assert [one.id for one in GROK.list(tmp_path)] == ["0190aaaa"]
    assert [one.parent_id for one in GROK.resolve(tmp_path, "0190bbbb")] == ["0190aaaa"]
