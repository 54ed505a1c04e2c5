"""Droid's two dialects and Amp's documents."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from agents_registry.sessions.amp import STORE as AMP
from agents_registry.sessions.droid import STORE as DROID
from tests.unit.session_files import document, info, lines, results, said

REMINDER = "<system-reminder>\nbe brief\n</system-reminder>\n\n"


def stored(role: str, *blocks: dict[str, Any]) -> dict[str, Any]:
    return {"type": "message", "id": "m", "timestamp": "2026-05-01T00:00:00Z", "message": {"role": role, "content": list(blocks)}}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def test_droid_words_behind_a_reminder_are_carried_without_it(tmp_path: Path) -> None:
    path = lines(
        tmp_path / "sessions" / "-w-app" / "d1.jsonl",
        {"type": "session_start", "id": "d1", "cwd": "/w/app", "sessionTitle": "Work"},
        stored("user", text(REMINDER + "do it")),
        stored("assistant", {"type": "tool_use", "id": "t", "name": "Execute", "input": {"command": "ls"}}),
        stored("user", {"type": "tool_result", "tool_use_id": "t", "content": "none", "is_error": True}),
        stored("user", text(REMINDER)),
        {"type": "todo_state", "todos": []},
    )
    (found,) = DROID.list(tmp_path)
    assert (found.id, found.cwd, found.title) == ("d1", "/w/app", "Work")
    conversation = DROID.read(found)
    assert said(conversation) == ["user: do it", "agent:"]
    assert results(conversation) == {"t": "none"} and conversation.results()["t"].is_error
    assert DROID.inspect(path).tool_results == 1


def test_droid_stream_records_pair_in_either_spelling(tmp_path: Path) -> None:
    path = lines(
        tmp_path / "s.jsonl",
        {"type": "system", "session_id": "s", "cwd": "/w", "model": "m"},
        {"type": "message", "session_id": "s", "role": "user", "text": REMINDER + "list"},
        {"type": "tool_call", "sessionId": "s", "id": "c1", "toolName": "Shell", "parameters": {"command": "ls"}},
        {"type": "tool_result", "session_id": "s", "toolCallId": "c1", "value": {"stdout": "a", "exitCode": 3}},
        {"type": "completion", "session_id": "s", "finalText": "one file"},
    )
    counts = DROID.inspect(path)
    assert (counts.user_turns, counts.assistant_texts, counts.tool_calls, counts.tool_results) == (1, 0, 1, 1)
    assert counts.first_user_sha256 == hashlib.sha256((REMINDER + "list").encode()).hexdigest()
    conversation = DROID.read(info("droid", path, tmp_path))
    assert said(conversation) == ["user: list", "agent: one file"]
    assert conversation.results()["c1"].is_error


def test_amp_directory_comes_from_its_trees_and_results_from_runs(tmp_path: Path) -> None:
    thread = {
        "v": 1,
        "id": "T-1",
        "title": "Login form",
        "created": 1_780_000_000_000,
        "env": {"initial": {"trees": [{"uri": "file:///w/my%20app", "repository": {"ref": "refs/heads/dev"}}]}},
        "messages": [
            {"role": "user", "messageId": 0, "content": [text("make a form")]},
            {"role": "assistant", "messageId": 1, "content": [text("writing"), {"type": "tool_use", "id": "t", "name": "create_file", "input": {"path": "f"}}]},
            {"role": "user", "messageId": 2, "content": [{"type": "tool_result", "toolUseID": "t", "run": {"status": "error", "error": "denied"}}]},
        ],
    }
    document(tmp_path / "threads" / "T-1.json", thread)
    (found,) = AMP.list(tmp_path)
    assert (found.id, found.cwd, found.title) == ("T-1", "/w/my app", "Login form")
    conversation = AMP.read(found)
    assert said(conversation) == ["user: make a form", "agent: writing"]
    assert results(conversation) == {"t": "denied"} and conversation.results()["t"].is_error
    assert conversation.branch == "dev"


def test_droid_and_amp_homes_can_be_moved() -> None:
    assert AMP.roots({"HOME": "/h", "XDG_DATA_HOME": "/d"}) == [Path("/d/amp")]
    assert DROID.roots({"HOME": "/h"}) == [Path("/h/.factory")]
