"""Kimi Code's wire and kimi-cli's context: what is human, undo and clear, compaction, directories, sub-agents."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from agents_registry.sessions.kimi import STORE
from tests.unit.session_files import document, info, lines, results, said

META = {"type": "metadata", "protocol_version": "1.4", "created_at": 1_780_000_000_000}


def user(words: str, kind: str | None = "user") -> dict[str, Any]:
    message: dict[str, Any] = {"role": "user", "content": [{"type": "text", "text": words}], "toolCalls": []}
    if kind is not None:
        message["origin"] = {"kind": kind}
    return {"type": "context.append_message", "message": message, "time": 1_780_000_000_500}


def event(kind: str, **more: Any) -> dict[str, Any]:
    return {"type": "context.append_loop_event", "event": {"type": kind, **more}}


def words(text: str) -> dict[str, Any]:
    return event("content.part", part={"type": "text", "text": text})


def read(path: Path) -> list[str]:
    return said(STORE.read(info("kimi", path, path.parent)))


def test_a_prompt_counts_once_and_injections_never(tmp_path: Path) -> None:
    path = lines(
        tmp_path / "wire.jsonl",
        META,
        {"type": "turn.prompt", "input": [{"type": "text", "text": "hi"}], "origin": {"kind": "user"}},
        user("hi"),
        user("<system-reminder>plan mode</system-reminder>", "injection"),
        user("child, count", "system_trigger"),
        words("hello"),
    )
    counts = STORE.inspect(path)
    assert (counts.user_turns, counts.assistant_texts) == (1, 1)
    assert read(path) == ["user: hi", "agent: hello"]


def test_a_reminder_inside_a_prompt_is_stored_and_not_carried(tmp_path: Path) -> None:
    prompt = user("hi")
    prompt["message"]["content"].insert(0, {"type": "text", "text": "<system-reminder>today</system-reminder>"})
    path = lines(tmp_path / "wire.jsonl", META, prompt)
    assert read(path) == ["user: hi"]


def test_undo_takes_back_prompts_and_clear_takes_back_all(tmp_path: Path) -> None:
    turns = [user("one"), words("1"), user("two"), words("2"), user("three"), words("3")]
    path = lines(tmp_path / "wire.jsonl", META, *turns, {"type": "context.undo", "count": 2}, user("four"))
    assert read(path) == ["user: one", "agent: 1", "user: four"]
    assert STORE.inspect(path).user_turns == 4
    path = lines(tmp_path / "wire.jsonl", META, *turns, {"type": "context.clear"}, user("four"))
    assert read(path) == ["user: four"]


def test_undo_does_not_reach_behind_a_compaction(tmp_path: Path) -> None:
    compaction = {"type": "context.apply_compaction", "summary": "so far", "compactedCount": 2}
    path = lines(tmp_path / "wire.jsonl", META, user("one"), compaction, user("two"), {"type": "context.undo", "count": 9})
    conversation = STORE.read(info("kimi", path, tmp_path))
    assert conversation.compaction is not None and conversation.compaction.summary == "so far"
    assert said(conversation) == []


def test_calls_and_results_of_both_protocols_pair(tmp_path: Path) -> None:
    old_call = {"id": "old", "type": "function", "function": {"name": "Shell", "arguments": '{"command": "ls"}'}}
    path = lines(
        tmp_path / "wire.jsonl",
        META,
        user("go"),
        event("tool.call", toolCallId="new", name="Read", args={"path": "a"}),
        event("tool.result", toolCallId="new", result={"output": [{"type": "text", "text": "A"}]}),
        {"type": "context.append_message", "message": {"role": "assistant", "content": [], "toolCalls": [old_call]}},
        {"type": "context.append_message", "message": {"role": "tool", "toolCallId": "old", "content": [{"type": "text", "text": "B"}]}},
    )
    conversation = STORE.read(info("kimi", path, tmp_path))
    assert results(conversation) == {"new": "A", "old": "B"}
    assert [dict(call.input) for call in conversation.calls()] == [{"path": "a"}, {"command": "ls"}]


def code_session(root: Path, name: str, agent: str = "main", mtime: float = 10, **state: Any) -> Path:
    folder = root / "sessions" / "wd_app_0123456789ab" / name
    if state:
        document(folder / "state.json", state)
    return lines(folder / "agents" / agent / "wire.jsonl", META, user(f"hello {name}"), words("hi"), mtime=mtime)


def test_sessions_are_known_by_their_folder_and_their_directory_by_state_or_index(tmp_path: Path) -> None:
    code_session(tmp_path, "session_aaaa1111", mtime=30, cwd="/w/app", title="Counting")
    code_session(tmp_path, "session_bbbb2222", mtime=20)
    code_session(tmp_path, "session_cccc3333", mtime=10)
    lines(tmp_path / "session_index.jsonl", {"sessionId": "session_bbbb2222", "workDir": "/w/b"})
    found = [(one.id, one.cwd, one.title) for one in STORE.list(tmp_path)]
    assert found == [
        ("session_aaaa1111", "/w/app", "Counting"),
        ("session_bbbb2222", "/w/b", "hello session_bbbb2222"),
        ("session_cccc3333", "", "hello session_cccc3333"),
    ]


def test_a_sub_agent_is_hidden_and_hangs_under_its_session(tmp_path: Path) -> None:
    code_session(tmp_path, "session_aaaa1111", title="Main")
    code_session(tmp_path, "session_aaaa1111", agent="agent-0", mtime=99)
    assert [one.id for one in STORE.list(tmp_path)] == ["session_aaaa1111"]
    newest = next(STORE.list(tmp_path, subagents=True))
    assert (newest.id, newest.parent_id, newest.title) == ("session_aaaa1111/agent-0", "session_aaaa1111", "hello session_aaaa1111")
    assert [one.id for one in STORE.resolve(tmp_path, "session_aaaa")] == ["session_aaaa1111"]


def test_the_context_of_kimi_cli_is_read_by_role_and_its_directory_is_proven_by_hash(tmp_path: Path) -> None:
    digest = hashlib.md5(b"/w/app", usedforsecurity=False).hexdigest()
    folder = tmp_path / "sessions" / digest / "0190aaaa"
    path = lines(
        folder / "context.jsonl",
        {"role": "_system_prompt", "content": "You are Kimi"},
        {"role": "_checkpoint", "id": 0},
        {"role": "user", "content": [{"type": "text", "text": "<system>CHECKPOINT 0</system>"}]},
        {"role": "user", "content": "list"},
        {"role": "assistant", "content": [{"type": "think", "think": "hm"}], "tool_calls": [{"id": "t", "type": "function", "function": {"name": "Shell", "arguments": "{}"}}]},
        b'{"role": "tool", "tool_call_id": "t", "content": "\xff broken"}',
        {"role": "tool", "tool_call_id": "t", "content": "a.py"},
        {"role": "_usage", "token_count": 3},
        {"role": "assistant", "content": "one file"},
    )
    lines(folder / "wire.jsonl", {"type": "metadata", "protocol_version": "1"})
    document(folder / "state.json", {"custom_title": "Listing"})
    document(tmp_path / "kimi.json", {"work_dirs": [{"path": "/w/other"}, {"path": "/w/app"}]})
    (found,) = STORE.list(tmp_path)
    assert (found.id, found.cwd, found.title) == ("0190aaaa", "/w/app", "Listing")
    conversation = STORE.read(found)
    assert said(conversation) == ["user: list", "agent: one file"]
    assert results(conversation) == {"t": "a.py"}
    assert STORE.inspect(path).malformed == 1
    (tmp_path / "kimi.json").unlink()
    assert [one.id for one in STORE.list(tmp_path, cwd="/w/app")] == ["0190aaaa"]


def test_a_compacted_context_of_kimi_cli_says_its_summary(tmp_path: Path) -> None:
    path = lines(
        tmp_path / "context.jsonl",
        {"role": "_checkpoint", "id": 0},
        {"role": "user", "content": "<system>Previous context has been compacted. Here is the output:</system>\nWe did X."},
        {"role": "user", "content": "go on"},
    )
    conversation = STORE.read(info("kimi", path, tmp_path))
    assert conversation.compaction is not None and conversation.compaction.summary == "We did X."
    assert said(conversation) == ["user: go on"]


def test_both_homes_can_be_moved() -> None:
    assert STORE.roots({"HOME": "/h"}) == [Path("/h/.kimi-code"), Path("/h/.kimi")]
    assert STORE.roots({"HOME": "/h", "KIMI_CODE_HOME": "/k", "KIMI_SHARE_DIR": "~/s"}) == [Path("/k"), Path("/h/s")]
