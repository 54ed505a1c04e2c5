"""Hermes, Vibe, Aider, Goose and Crush."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

from agents_registry.sessions import catalog
from agents_registry.sessions.aider import STORE as AIDER
from agents_registry.sessions.crush import STORE as CRUSH
from agents_registry.sessions.goose import STORE as GOOSE
from agents_registry.sessions.hermes import STORE as HERMES
from agents_registry.sessions.vibe import STORE as VIBE
from tests.unit.session_files import document, lines, results, said


def database(path: Path, script: str, **rows: list[tuple[Any, ...]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path)
    connection.executescript(script)
    for table, values in rows.items():
        for value in values:
            connection.execute(f"INSERT INTO {table} VALUES({','.join('?' * len(value))})", value)
    connection.commit()
    connection.close()
    return path


CALL = {"id": "c", "type": "function", "function": {"name": "bash", "arguments": '{"command": "ls"}'}}

HERMES_TABLES = """
CREATE TABLE sessions(id TEXT PRIMARY KEY, source TEXT, model TEXT, parent_session_id TEXT, started_at REAL, title TEXT);
CREATE TABLE messages(id INTEGER PRIMARY KEY, session_id TEXT, role TEXT, content TEXT, tool_call_id TEXT, tool_calls TEXT,
  tool_name TEXT, timestamp REAL);
"""


def test_hermes_goes_on_in_a_child_session_and_keeps_old_documents(tmp_path: Path) -> None:
    database(
        tmp_path / "state.db",
        HERMES_TABLES,
        sessions=[("h1", "cli", "m", None, 100.0, "Old"), ("h2", "cli", "m", "h1", 200.0, "Live"), ("h3", "subagent", "m", "h1", 300.0, "")],
        messages=[
            (1, "h2", "user", "list", None, None, None, 201.0),
            (2, "h2", "assistant", "", None, json.dumps([CALL]), None, 202.0),
            (3, "h2", "tool", "a b", "c", None, "bash", 203.0),
            (4, "h2", "assistant", "two", None, None, None, 204.0),
        ],
    )
    message = [{"role": "user", "content": "hi"}, {"role": "session_meta"}]
    document(tmp_path / "sessions" / "session_h0.json", {"session_id": "h0", "platform": "cli", "session_start": "1970-01-01T00:00:10", "cwd": "/w", "messages": message}, mtime=10)
    document(tmp_path / "sessions" / "session_h1.json", {"session_id": "h1", "platform": "cli", "messages": message}, mtime=11)
    found = list(HERMES.list(tmp_path))
    assert [one.id for one in found] == ["h2", "h1", "h0"]
    assert [one.path.name for one in found] == ["state.db", "state.db", "session_h0.json"]
    conversation = HERMES.read(found[0])
    assert said(conversation) == ["user: list", "agent: two"]
    assert results(conversation) == {"c": "a b"}
    assert said(HERMES.read(found[2])) == ["user: hi"]


def test_vibe_messages_are_known_by_the_meta_beside_them(tmp_path: Path) -> None:
    folder = tmp_path / "logs" / "session" / "session_20260101_000000_abcd1234"
    path = lines(
        folder / "messages.jsonl",
        {"role": "user", "content": "fix"},
        {"role": "assistant", "content": "looking", "tool_calls": [CALL]},
        {"role": "tool", "content": "a.ts", "name": "bash", "tool_call_id": "c"},
    )
    assert not VIBE.recognises(path)
    document(folder / "meta.json", {"session_id": "abcd1234-1", "title": "Fix", "git_branch": "dev", "environment": {"working_directory": "/w/app"}})
    assert catalog.recognise(path) == "vibe"
    (found,) = VIBE.resolve(tmp_path, "abcd1234-1")
    assert (found.cwd, found.title) == ("/w/app", "Fix")
    conversation = VIBE.read(found)
    assert (said(conversation), conversation.branch) == (["user: fix", "agent: looking"], "dev")


def test_vibe_3_is_read_through_its_current_generation(tmp_path: Path) -> None:
    folder = tmp_path / "logs" / "session" / "unified" / "abcd1234-2"
    chunk = "a" * 64
    document(folder / "chunks" / f"{chunk}.json", {"entries": [{"type": "message", "role": "user", "content": "fix", "createdAt": 1_780_000_000_000}]})
    document(folder / "generations" / "7" / "projection-state.json", {"chunks": [f"sha256:{chunk}", "b" * 64]})
    document(folder / "meta.json", {"session_id": "abcd1234-2", "environment": {"working_directory": "/w"}})
    (folder / "CURRENT").write_text("7\n")
    (found,) = VIBE.list(tmp_path)
    assert (found.id, found.cwd, said(VIBE.read(found))) == ("abcd1234-2", "/w", ["user: fix"])
    (folder / "CURRENT").write_text("../../../etc\n")
    assert VIBE.read(found).turns == []


AIDER_TEXT = """
# aider chat started at 2026-01-01 10:00:00

> Aider v0.86

#### fix the bug··
#### in two lines

I will.

# A heading of the model

> Applied edit to a.py

#### /add b.py

# aider chat started at 2026-01-02 09:00:00

#### again\x0b\u2028still this line

Yes.
""".replace("·", " ")  # Aider ends its lines with two spaces


def test_aider_reads_prompts_answers_and_commands_and_carries_the_last_session(tmp_path: Path) -> None:
    path = tmp_path / ".aider.chat.history.md"
    path.write_text(AIDER_TEXT, "utf-8")
    counts = AIDER.inspect(path)
    assert (counts.user_turns, counts.assistant_texts, counts.cwd, counts.id) == (2, 2, "", "")
    (found,) = AIDER.list(AIDER.roots({"PWD": str(tmp_path)})[0])
    assert found.cwd == str(tmp_path)
    assert said(AIDER.read(found)) == ["user: again\x0b\u2028still this line", "agent: Yes."]
    assert [one.id for one in AIDER.resolve(tmp_path, found.id)] == [found.id]
    assert catalog.recognise(path) == "aider"


GOOSE_TABLES = """
CREATE TABLE sessions(id TEXT PRIMARY KEY, name TEXT, description TEXT, session_type TEXT, working_dir TEXT, updated_at TEXT);
CREATE TABLE messages(id INTEGER PRIMARY KEY, session_id TEXT, role TEXT, content_json TEXT, created_timestamp INTEGER, metadata_json TEXT);
"""


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def test_goose_results_ride_on_user_rows_and_a_summary_replaces_what_the_agent_no_longer_sees(tmp_path: Path) -> None:
    request = {"type": "toolRequest", "id": "t", "toolCall": {"status": "success", "value": {"name": "shell", "arguments": {"command": "ls"}}}}
    response = {"type": "toolResponse", "id": "t", "toolResult": {"status": "success", "value": [text("a b")]}}
    hidden, summary = '{"userVisible": true, "agentVisible": false}', '{"userVisible": false, "agentVisible": true}'
    contents = [("user", [text("old")], hidden), ("user", [text("so far")], summary), ("user", [text("list")], None), ("assistant", [request], None), ("user", [response], None)]
    database(
        tmp_path / "sessions" / "sessions.db",
        GOOSE_TABLES,
        sessions=[
            ("20260101_1", "List", "", "user", "/w/app", "2026-01-01 00:01:00"),
            ("20260101_2", "", "kid", "sub_agent", "/w/app", "2026-01-01 00:02:00"),
            ("20260101_3", "", "", "hidden", "/w/app", "2026-01-01 00:03:00"),
        ],
        messages=[(number, "20260101_1", role, json.dumps(parts), 1_767_225_600 + number, flags) for number, (role, parts, flags) in enumerate(contents)],
    )
    (found,) = GOOSE.list(tmp_path)
    assert (found.id, found.cwd, found.title) == ("20260101_1", "/w/app", "List")
    conversation = GOOSE.read(found)
    assert conversation.compaction is not None and conversation.compaction.summary == "so far"
    assert (said(conversation), results(conversation)) == (["user: list", "agent:"], {"t": "a b"})
    counts = GOOSE.inspect(found.path)
    assert (counts.user_turns, counts.tool_calls, counts.tool_results) == (2, 1, 1)


def test_goose_files_of_before_the_database_are_still_read(tmp_path: Path) -> None:
    path = lines(
        tmp_path / "sessions" / "20250101_000000.jsonl",
        {"working_dir": "/w/app", "description": "Old", "message_count": 1},
        {"role": "user", "created": 1_700_000_000, "content": [text("hi")]},
    )
    assert [(one.id, one.cwd, one.title) for one in GOOSE.list(tmp_path)] == [("20250101_000000", "/w/app", "Old")]
    assert catalog.recognise(path) == "goose"


CRUSH_TABLES = """
CREATE TABLE sessions(id TEXT PRIMARY KEY, parent_session_id TEXT, title TEXT, updated_at INTEGER, created_at INTEGER, summary_message_id TEXT);
CREATE TABLE messages(id TEXT PRIMARY KEY, session_id TEXT, role TEXT, parts TEXT, model TEXT, created_at INTEGER, updated_at INTEGER);
"""


def part(kind: str, **data: Any) -> dict[str, Any]:
    return {"type": kind, "data": data}


def test_crush_starts_after_its_summary_and_belongs_to_the_directory_it_lies_in(tmp_path: Path) -> None:
    rows = [
        ("m1", "user", [part("text", text="old")]),
        ("m2", "assistant", [part("text", text="so far")]),
        ("m3", "user", [part("text", text="list")]),
        ("m4", "assistant", [part("tool_call", id="c", name="bash", input='{"command": "ls"}'), part("finish", reason="tool_use")]),
        ("m5", "tool", [part("tool_result", tool_call_id="c", content="a b", is_error=False)]),
    ]
    database(
        tmp_path / "app" / ".crush" / "crush.db",
        CRUSH_TABLES,
        sessions=[("s1", None, "List", 1_767_225_700, 1, "m2"), ("m4$$c", "s1", "kid", 1_767_225_800, 1, None)],
        messages=[(name, "s1", role, json.dumps(parts), "x", 1_767_225_600 + number, 1) for number, (name, role, parts) in enumerate(rows)],
    )
    (root,) = CRUSH.roots({"PWD": str(tmp_path / "app"), "HOME": "/h"})
    (found,) = CRUSH.list(root)
    assert (found.id, found.cwd) == ("s1", str(tmp_path / "app"))
    conversation = CRUSH.read(found)
    assert conversation.compaction is not None and conversation.compaction.summary == "so far"
    assert (said(conversation), results(conversation)) == (["user: list", "agent:"], {"c": "a b"})
    assert [dict(call.input) for call in conversation.calls()] == [{"command": "ls"}]
