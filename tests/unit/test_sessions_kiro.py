"""Kiro's three stores: journal with sidecar, database keyed by directory, the IDE's documents."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

from agents_registry.sessions import catalog
from agents_registry.sessions.kiro import STORE
from tests.unit.session_files import document, lines, results, said

SID = "0a5376f2-0000-4000-8000-00000000000a"


def journal(kind: str, message_id: str, *content: dict[str, Any]) -> dict[str, Any]:
    return {"version": "v1", "kind": kind, "data": {"message_id": message_id, "content": list(content)}}


def text(words: str) -> dict[str, Any]:
    return {"kind": "text", "data": words}


def test_a_journal_is_read_with_the_directory_and_title_of_its_sidecar(tmp_path: Path) -> None:
    folder = tmp_path / "sessions" / "cli"
    path = lines(
        folder / f"{SID}.jsonl",
        journal("Prompt", "1", text("fix")),
        journal("AssistantMessage", "2", text("looking"), {"kind": "toolUse", "data": {"toolUseId": "t", "name": "shell", "input": {"command": "ls"}}}),
        journal("ToolResults", "3", {"kind": "toolResult", "data": {"toolUseId": "t", "content": [text("a.ts")], "status": "error"}}),
        {"version": "v2", "kind": "Novelty", "data": {}},
        journal("AssistantMessage", "4", text("fixed")),
    )
    document(folder / f"{SID}.json", {"session_id": SID, "cwd": "/w/app", "title": "Fixing"})
    (found,) = STORE.list(tmp_path)
    assert (found.id, found.cwd, found.title) == (SID, "/w/app", "Fixing")
    conversation = STORE.read(found)
    assert said(conversation) == ["user: fix", "agent: looking\nfixed"]
    assert results(conversation) == {"t": "a.ts"} and conversation.results()["t"].is_error
    assert conversation.unknown == {"Novelty": 1}
    assert catalog.recognise(path) == "kiro"
    assert not STORE.recognises(folder / f"{SID}.json")


def test_a_child_of_another_session_is_hidden(tmp_path: Path) -> None:
    folder = tmp_path / "sessions" / "cli"
    lines(folder / "kid.jsonl", journal("Prompt", "1", text("count")))
    document(folder / "kid.json", {"session_id": "kid", "cwd": "/w", "parent_session_id": SID})
    assert list(STORE.list(tmp_path)) == []
    assert [one.parent_id for one in STORE.list(tmp_path, subagents=True)] == [SID]


def table(tmp_path: Path, *conversations: tuple[str, str, list[dict[str, Any]], int]) -> Path:
    path = tmp_path / "data.sqlite3"
    connection = sqlite3.connect(path)
    connection.executescript(
        "CREATE TABLE conversations(key TEXT PRIMARY KEY, value TEXT);"
        "CREATE TABLE conversations_v2(key TEXT, conversation_id TEXT, value TEXT, created_at INTEGER, updated_at INTEGER);"
    )
    for cwd, name, history, at in conversations:
        value = json.dumps({"conversation_id": name, "history": history})
        connection.execute("INSERT INTO conversations_v2 VALUES(?,?,?,?,?)", (cwd, name, value, at, at))
    connection.commit()
    connection.close()
    return path


def pair(user: dict[str, Any], assistant: dict[str, Any]) -> dict[str, Any]:
    return {"user": {"content": user}, "assistant": assistant}


HISTORY = [
    pair(
        {"Prompt": {"prompt": "fix"}},
        {"ToolUse": {"message_id": "m1", "content": "looking", "tool_uses": [{"id": "t", "name": "execute_bash", "args": {"command": "ls"}}]}},
    ),
    pair(
        {"ToolUseResults": {"tool_use_results": [{"tool_use_id": "t", "content": [{"Text": "a.ts"}], "status": "Success"}]}},
        {"Response": {"message_id": "m2", "content": "fixed"}},
    ),
    pair({"CancelledToolUses": {"prompt": "stop", "tool_use_results": []}}, {"Response": {"message_id": "m3", "content": "ok"}}),
]


def test_conversations_of_the_database_are_listed_by_their_directory(tmp_path: Path) -> None:
    path = table(tmp_path, ("/w/a", "conv-aaaa", HISTORY, 1_767_225_600_000), ("/w/b", "conv-bbbb", HISTORY[:1], 1_767_225_700_000))
    assert [(one.id, one.cwd) for one in STORE.list(tmp_path)] == [("conv-bbbb", "/w/b"), ("conv-aaaa", "/w/a")]
    (found,) = STORE.list(tmp_path, cwd="/w/a")
    conversation = STORE.read(found)
    assert said(conversation) == ["user: fix", "agent: looking\nfixed", "user: stop", "agent: ok"]
    assert results(conversation) == {"t": "a.ts"}
    assert catalog.recognise(path) == "kiro"


def test_the_tail_of_a_conversation_in_the_database_is_its_own(tmp_path: Path) -> None:
    path = table(tmp_path, ("/w/a", "conv-aaaa", HISTORY, 1), ("/w/b", "conv-bbbb", HISTORY, 2))
    (found,) = STORE.resolve(tmp_path, "conv-aaaa")
    before = STORE.tail(found)
    connection = sqlite3.connect(path)
    connection.execute("UPDATE conversations_v2 SET value = '{}' WHERE conversation_id = 'conv-bbbb'")
    connection.commit()
    assert STORE.tail(found) == before
    connection.execute("UPDATE conversations_v2 SET value = '{}' WHERE conversation_id = 'conv-aaaa'")
    connection.commit()
    connection.close()
    assert STORE.tail(found) != before


def test_a_document_of_the_ide_names_its_directory(tmp_path: Path) -> None:
    history = [{"message": {"role": "user", "content": "dark mode"}}, {"message": {"role": "assistant", "content": [{"type": "text", "text": "done"}]}}]
    document(tmp_path / "workspace-sessions" / "L3cvYXBw" / "s1.json", {"sessionId": "s1", "workspacePath": "/w/app", "title": "Theme", "history": history})
    document(tmp_path / "workspace-sessions" / "L3cvYXBw" / "sessions.json", [])
    (found,) = STORE.list(tmp_path)
    assert (found.id, found.cwd, found.title) == ("s1", "/w/app", "Theme")
    assert said(STORE.read(found)) == ["user: dark mode", "agent: done"]


def test_each_store_is_a_root_of_its_own() -> None:
    roots = STORE.roots({"HOME": "/h", "XDG_DATA_HOME": "/d", "XDG_CONFIG_HOME": "/c", "KIRO_HOME": "/k"})
    assert roots == [Path("/k"), Path("/c/Kiro/User/globalStorage/kiro.kiroagent"), Path("/d/kiro-cli"), Path("/d/amazon-q")]
