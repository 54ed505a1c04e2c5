"""Cursor's transcripts and databases: who typed what, the order of the root node, two logs of one session."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from pathlib import Path
from typing import Any

from agents_registry.sessions.cursor import STORE
from tests.unit.session_files import document, info, lines, results, said

SID = "a1b2c3d4-0000-4000-8000-000000000001"


def turn(role: str, *blocks: Any) -> dict[str, Any]:
    return {"role": role, "message": {"content": [{"type": "text", "text": b} if isinstance(b, str) else b for b in blocks]}}


def database(path: Path, *messages: dict[str, Any], order: list[int] | None = None, **about: Any) -> Path:
    """A store.db; `order` is that of the root node, rows are written in the order given."""
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path)
    connection.executescript("CREATE TABLE blobs(id TEXT PRIMARY KEY, data BLOB); CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT);")
    names = []
    for message in messages:
        data = json.dumps(message).encode()
        names.append(hashlib.sha256(data).digest())
        connection.execute("INSERT INTO blobs VALUES(?,?)", (names[-1].hex(), data))
    root = b"".join(b"\x0a\x20" + names[index] for index in order or range(len(names))) + b"\x10\x01"
    connection.execute("INSERT INTO blobs VALUES('rootnode', ?)", (root,))
    head = {"agentId": SID, "name": "From the database", "latestRootBlobId": "rootnode", **about}
    connection.execute("INSERT INTO meta VALUES('0', ?)", (json.dumps(head).encode().hex(),))
    connection.commit()
    connection.close()
    return path


def test_the_query_is_unwrapped_and_injected_blocks_are_no_turns(tmp_path: Path) -> None:
    path = lines(
        tmp_path / f"{SID}.jsonl",
        turn("user", "<user_info>\nOS: linux\n</user_info>"),
        turn("user", "<attached_files>x</attached_files>", "<user_query>\nrun ls\n</user_query>"),
        turn("assistant", "running", {"type": "tool_use", "name": "Shell", "input": {"command": "ls"}}),
        {"type": "turn_ended", "status": "success"},
    )
    counts = STORE.inspect(path)
    assert (counts.user_turns, counts.tool_calls) == (1, 1)
    assert counts.first_user_sha256 == hashlib.sha256(b"run ls").hexdigest()
    assert said(STORE.read(info("cursor", path, tmp_path))) == ["user: run ls", "agent: running"]


def test_results_without_ids_answer_the_calls_before_them_in_order(tmp_path: Path) -> None:
    path = lines(
        tmp_path / f"{SID}.jsonl",
        turn("user", "go"),
        turn("assistant", {"type": "tool_use", "name": "Read", "input": {"path": "a"}}),
        turn("user", {"type": "tool_result", "content": "A"}),
        turn("assistant", {"type": "tool_use", "name": "Read", "input": {"path": "b"}}),
        turn("user", {"type": "tool_result", "content": "B"}),
    )
    conversation = STORE.read(info("cursor", path, tmp_path))
    calls = [call.id for call in conversation.calls()]
    assert len(set(calls)) == 2
    assert results(conversation) == dict(zip(calls, ["A", "B"], strict=True))


MESSAGES = (
    {"role": "assistant", "id": "3", "content": [{"type": "text", "text": "two files"}]},
    {"role": "user", "id": "1", "content": "<user_query>\nlist\n</user_query>"},
    {"role": "tool", "id": "t", "content": [{"type": "tool-result", "toolCallId": "c", "toolName": "ls", "result": "a b"}]},
    {"role": "assistant", "id": "2", "content": [{"type": "tool-call", "toolCallId": "c", "toolName": "ls", "args": {"path": "."}}]},
)


def test_the_database_is_read_in_the_order_of_its_root(tmp_path: Path) -> None:
    path = database(tmp_path / "chats" / "h" / SID / "store.db", *MESSAGES, order=[1, 3, 2, 0])
    conversation = STORE.read(info("cursor", path, tmp_path))
    assert said(conversation) == ["user: list", "agent: two files"]
    assert results(conversation) == {"c": "a b"}
    assert STORE.recognises(path)
    counts = STORE.inspect(path)
    assert (counts.id, counts.user_turns, counts.tool_calls, counts.tool_results) == (SID, 1, 1, 1)


def test_a_session_with_both_logs_comes_once_with_the_databases_results_and_directory(tmp_path: Path) -> None:
    path = database(tmp_path / "chats" / "h" / SID / "store.db", *MESSAGES, order=[1, 3, 2, 0])
    document(path.with_name("meta.json"), {"title": "Listing", "cwd": "/w/app"})
    transcript = tmp_path / "projects" / "w-app" / "agent-transcripts" / SID / f"{SID}.jsonl"
    lines(transcript, turn("user", "<user_query>\nlist\n</user_query>"), turn("assistant", "two files"))
    lines(transcript.parent / "subagents" / "kid.jsonl", turn("user", "count"), turn("assistant", "1"), mtime=9e9)
    (found,) = STORE.list(tmp_path)
    assert (found.id, found.title, found.cwd, found.path) == (SID, "Listing", "/w/app", transcript)
    assert results(STORE.read(found)) == {"c": "a b"}
    assert [one.parent_id for one in STORE.resolve(tmp_path, "kid")] == [SID]


def test_a_database_that_is_behind_its_transcript_is_not_preferred(tmp_path: Path) -> None:
    database(tmp_path / "chats" / "h" / SID / "store.db", MESSAGES[1])
    transcript = tmp_path / "projects" / "p" / "agent-transcripts" / SID / f"{SID}.jsonl"
    lines(transcript, turn("user", "list"), turn("assistant", "two"), turn("user", "and then?"))
    (found,) = STORE.list(tmp_path)
    assert said(STORE.read(found)) == ["user: list", "agent: two", "user: and then?"]
    assert found.cwd == ""


def test_a_root_node_that_is_no_protobuf_harms_nothing(tmp_path: Path) -> None:
    path = database(tmp_path / "acp-sessions" / SID / "store.db", MESSAGES[1], MESSAGES[0])
    connection = sqlite3.connect(path)
    connection.execute("UPDATE blobs SET data = ? WHERE id = 'rootnode'", (b"\xff" * 40,))
    connection.commit()
    connection.close()
    (found,) = STORE.list(tmp_path)
    assert said(STORE.read(found)) == ["user: list", "agent: two files"]
