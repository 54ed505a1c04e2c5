"""Cline, Roo Code and Kilo Code: what was shown and what the model saw, told apart by place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from agents_registry.sessions import catalog
from agents_registry.sessions.cline import STORE
from agents_registry.sessions.roo_code import STORE as ROO
from tests.unit.session_files import document, results, said

ENVIRONMENT = "<environment_details>\n# Current Workspace Directory (/w/app) Files\na.ts\n</environment_details>"


def say(kind: str, words: str, **more: Any) -> dict[str, Any]:
    return {"ts": 1_780_000_000_000, "type": "say", "say": kind, "text": words, **more}


SHOWN = [
    say("text", "build a page"),
    say("api_req_started", '{"request": "..."}'),
    say("text", "I will", partial=True),
    say("text", "I will build", partial=True),
    say("tool", '{"tool": "readFile", "path": "a.ts"}'),
    say("user_feedback", "in blue"),
    say("completion_result", "done"),
]


def task(tmp_path: Path, extension: str = "saoudrizwan.claude-dev") -> Path:
    return tmp_path / "Code" / "User" / "globalStorage" / extension


def test_a_run_of_streamed_texts_is_one_and_feedback_is_human(tmp_path: Path) -> None:
    path = document(task(tmp_path) / "tasks" / "17" / "ui_messages.json", SHOWN)
    counts = STORE.inspect(path)
    assert (counts.user_turns, counts.assistant_texts) == (2, 2)
    root = STORE.roots({"XDG_CONFIG_HOME": str(tmp_path), "HOME": "/h"})[0]
    (found,) = STORE.list(root)
    assert found.id == "17"
    assert said(STORE.read(found)) == ["user: build a page", "agent: I will build", "user: in blue", "agent: done"]


def test_the_models_log_is_carried_where_it_lies_beside(tmp_path: Path) -> None:
    folder = task(tmp_path) / "tasks" / "17"
    document(folder / "ui_messages.json", SHOWN)
    document(
        folder / "api_conversation_history.json",
        [
            {"role": "user", "content": [{"type": "text", "text": "<task>\nbuild a page\n</task>"}, {"type": "text", "text": ENVIRONMENT}]},
            {"role": "assistant", "content": [{"type": "text", "text": "reading"}, {"type": "tool_use", "id": "t", "name": "read_file", "input": {"path": "a.ts"}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "code"}, {"type": "text", "text": ENVIRONMENT}]},
            {"role": "user", "content": [{"type": "text", "text": "[execute_command for 'make'] Result:\nok"}]},
            {"role": "user", "content": "<feedback>\nin blue\n</feedback>"},
        ],
    )
    document(task(tmp_path) / "state" / "taskHistory.json", [{"id": "17", "task": "build a page", "cwdOnTaskInitialization": "/w/app"}])
    (found,) = STORE.list(task(tmp_path))
    assert (found.cwd, found.title) == ("/w/app", "build a page")
    conversation = STORE.read(found)
    assert said(conversation) == ["user: build a page", "agent: reading", "user: in blue"]
    assert sorted(results(conversation).values()) == ["code", "ok"]


def test_what_roo_condensed_is_replaced_by_its_summary(tmp_path: Path) -> None:
    folder = task(tmp_path, "rooveterinaryinc.roo-cline") / "tasks" / "ab"
    document(
        folder / "api_conversation_history.json",
        [
            {"role": "user", "content": "<task>old</task>", "condenseParent": "c1"},
            {"role": "assistant", "content": "older", "condenseParent": "c1"},
            {"role": "user", "content": "what was", "isSummary": True, "condenseId": "c1"},
            {"role": "user", "content": "<user_message>new</user_message>"},
        ],
    )
    document(folder / "history_item.json", {"id": "ab", "task": "old", "workspace": "/w/roo"})
    (found,) = ROO.list(task(tmp_path, "rooveterinaryinc.roo-cline"))
    conversation = ROO.read(found)
    assert conversation.compaction is not None and conversation.compaction.summary == "what was"
    assert (said(conversation), conversation.cwd) == (["user: new"], "/w/roo")


def test_the_place_of_a_file_tells_the_three_apart(tmp_path: Path) -> None:
    names = {"saoudrizwan.claude-dev": "cline", "rooveterinaryinc.roo-cline": "roo-code", "kilocode.kilo-code": "kilo-code"}
    for extension, agent in names.items():
        path = document(task(tmp_path, extension) / "tasks" / "1" / "ui_messages.json", SHOWN)
        assert catalog.recognise(path) == agent


def test_the_command_lines_own_sessions_are_read_beside_the_editors(tmp_path: Path) -> None:
    folder = tmp_path / ".cline" / "data" / "sessions" / "1784520521_ab"
    messages = [
        {"role": "user", "ts": 1_784_520_521_694, "content": [{"type": "text", "text": '<user_input mode="act">old</user_input>'}]},
        {"role": "user", "content": "Context summary:\nwe began", "metadata": {"kind": "compaction_summary"}},
        {"role": "user", "content": [{"type": "text", "text": '<user_input mode="plan">go on</user_input>'}]},
        {"role": "assistant", "content": [{"type": "text", "text": "reading"}, {"type": "tool_use", "id": "t", "name": "read_files", "input": {"path": "a"}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "code"}]},
    ]
    path = document(folder / "1784520521_ab.messages.json", {"version": 1, "sessionId": "1784520521_ab", "messages": messages})
    document(folder / "1784520521_ab.json", {"version": 1, "session_id": "1784520521_ab", "cwd": "/w/app", "metadata": {"title": "Reading"}})
    (root,) = [place for place in STORE.roots({"HOME": str(tmp_path)}) if place.name == ".cline"]
    (found,) = STORE.list(root)
    assert (found.id, found.cwd, found.title) == ("1784520521_ab", "/w/app", "Reading")
    conversation = STORE.read(found)
    assert conversation.compaction is not None and "we began" in conversation.compaction.summary
    assert said(conversation) == ["user: go on", "agent: reading"]
    assert results(conversation) == {"t": "code"}
    assert catalog.recognise(path) == "cline"
    assert STORE.inspect(path).user_turns == 2
