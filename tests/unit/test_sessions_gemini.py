"""Gemini CLI's store: replayed files, where the directory comes from, sub-agents, and the documents of older versions."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from agents_registry.errors import NotFoundError
from agents_registry.sessions.gemini import STORE
from tests.unit.session_files import document, info, lines, opened_files, results, said

SID = "11112222-aaaa-4bbb-8ccc-0123456789ab"


def header(session_id: str = SID, cwd: str = "/w/app", **more: Any) -> dict[str, Any]:
    digest = hashlib.sha256(cwd.encode()).hexdigest()
    return {"sessionId": session_id, "projectHash": digest, "startTime": "2026-05-01T00:00:00Z", "kind": "main", **more}


def user(name: str, text: str, **more: Any) -> dict[str, Any]:
    return {"id": name, "timestamp": "2026-05-01T00:00:01Z", "type": "user", "content": [{"text": text}], **more}


def model(name: str, text: str, *calls: dict[str, Any]) -> dict[str, Any]:
    return {"id": name, "timestamp": "2026-05-01T00:00:02Z", "type": "gemini", "content": text, "toolCalls": list(calls)}


def read(path: Path) -> list[str]:
    return said(STORE.read(info("gemini", path, path.parent, SID)))


def test_a_record_with_an_id_seen_before_takes_the_earlier_ones_place(tmp_path: Path) -> None:
    path = lines(
        tmp_path / "session-a.jsonl", header(), user("1", "one"), model("2", "draft"), user("3", "two"), model("2", "final")
    )
    assert read(path) == ["user: one", "agent: final", "user: two"]


def test_a_rewind_drops_the_named_message_and_all_after_it(tmp_path: Path) -> None:
    path = lines(
        tmp_path / "session-a.jsonl",
        header(),
        user("1", "one"),
        model("2", "yes"),
        user("3", "wrong"),
        model("4", "bad"),
        {"$rewindTo": "3"},
        user("5", "right"),
    )
    assert read(path) == ["user: one", "agent: yes", "user: right"]
    assert STORE.inspect(path).user_turns == 2


def test_a_rewind_to_an_unknown_message_clears_everything(tmp_path: Path) -> None:
    path = lines(tmp_path / "session-a.jsonl", header(), user("1", "one"), {"$rewindTo": "nobody"}, user("2", "two"))
    assert read(path) == ["user: two"]


def test_a_checkpoint_of_messages_replaces_all_and_bare_records_go_on_after_it(tmp_path: Path) -> None:
    path = lines(
        tmp_path / "session-a.jsonl",
        header(),
        user("1", "old"),
        {"$set": {"messages": [user("2", "kept"), model("3", "answer")], "summary": "A title"}},
        user("4", "new"),
    )
    assert read(path) == ["user: kept", "agent: answer", "user: new"]


def test_context_commands_and_results_are_no_human_turns(tmp_path: Path) -> None:
    response = {"functionResponse": {"id": "t", "name": "ls", "response": {"output": "a"}}}
    path = lines(
        tmp_path / "session-a.jsonl",
        header(),
        user("1", "<session_context>\ntoday is Monday\n</session_context>"),
        user("2", "/help"),
        user("3", "?"),
        {**user("4", ""), "content": [response]},
        user("5", "look", displayContent="look"),
    )
    counts = STORE.inspect(path)
    assert (counts.user_turns, counts.tool_results) == (1, 1)
    assert counts.first_user_sha256 == hashlib.sha256(b"look").hexdigest()


def test_what_the_human_typed_is_carried_without_the_files_that_were_pasted_behind_it(tmp_path: Path) -> None:
    sent = user("1", "see @a.py\n--- Content from referenced files ---\nx = 1", displayContent="see @a.py")
    path = lines(tmp_path / "session-a.jsonl", header(), sent)
    assert read(path) == ["user: see @a.py"]
    assert STORE.inspect(path).first_user_sha256 == hashlib.sha256(sent["content"][0]["text"].encode()).hexdigest()


def test_a_failed_and_a_cancelled_call_have_results_and_a_running_one_has_none(tmp_path: Path) -> None:
    calls = [
        {"id": "a", "name": "x", "args": {}, "status": "error", "resultDisplay": "no such file"},
        {"id": "b", "name": "x", "args": {}, "status": "cancelled"},
        {"id": "c", "name": "x", "args": {}, "status": "executing"},
    ]
    path = lines(tmp_path / "session-a.jsonl", header(), user("1", "go"), model("2", "", *calls))
    conversation = STORE.read(info("gemini", path, tmp_path, SID))
    assert results(conversation) == {"a": "no such file", "b": ""}
    assert len(list(conversation.calls())) == 3


def store(tmp_path: Path, slug: str, cwd: str, session_id: str, mtime: float) -> Path:
    path = tmp_path / "tmp" / slug / "chats" / f"session-2026-05-01T00-00-{session_id[:8]}.jsonl"
    return lines(path, header(session_id, cwd), user("1", f"hello from {slug}"), model("2", "hi"), mtime=mtime)


def test_the_directory_comes_from_the_marker_the_registry_or_the_hash_and_never_from_the_folder(tmp_path: Path) -> None:
    store(tmp_path, "app", "/w/app", "aaaaaaaa-1", 40)
    (tmp_path / "tmp" / "app" / ".project_root").write_text("/w/app\n")
    store(tmp_path, "project", "/w/暫存", "bbbbbbbb-1", 30)
    document(tmp_path / "projects.json", {"projects": {"/w/暫存": "project"}})
    store(tmp_path, "f00d", "/w/hashed", "cccccccc-1", 20)
    store(tmp_path, "w-gone", "/w/gone", "dddddddd-1", 10)
    assert [found.cwd for found in STORE.list(tmp_path)] == ["/w/app", "/w/暫存", "", ""]
    assert [found.id for found in STORE.list(tmp_path, cwd="/w/hashed")] == ["cccccccc-1"]


def test_a_list_is_newest_first_and_opens_no_more_transcripts_than_it_shows(tmp_path: Path) -> None:
    for number in range(5):
        store(tmp_path, f"p{number}", f"/w/p{number}", f"{number}aaaaaaa-1", 100 + number)
    with opened_files() as opened:
        assert [found.first_prompt for found in STORE.list(tmp_path, limit=2)] == ["hello from p4", "hello from p3"]
    assert {Path(name).name for name in opened if "session-" in name} == {
        "session-2026-05-01T00-00-4aaaaaaa.jsonl",
        "session-2026-05-01T00-00-3aaaaaaa.jsonl",
    }


def test_sub_agents_are_hidden_and_name_their_parent(tmp_path: Path) -> None:
    store(tmp_path, "app", "/w/app", "aaaaaaaa-1", 10)
    child = tmp_path / "tmp" / "app" / "chats" / "aaaaaaaa-1" / "kid.jsonl"
    lines(child, header("kid", kind="subagent"), user("1", "count"), model("2", "3"), mtime=50)
    assert [found.id for found in STORE.list(tmp_path)] == ["aaaaaaaa-1"]
    assert next((found.id, found.parent_id) for found in STORE.list(tmp_path, subagents=True)) == ("kid", "aaaaaaaa-1")


def test_an_id_is_found_whole_by_prefix_and_by_title(tmp_path: Path) -> None:
    one = tmp_path / "tmp" / "a" / "chats" / f"session-x-{SID[:8]}.jsonl"
    lines(one, header(), user("1", "hi"), {"$set": {"summary": "Fix the parser"}})
    two = tmp_path / "tmp" / "b" / "chats" / "session-x-11112222.jsonl"
    lines(two, header("11112222-bbbb"), user("1", "ho"))
    assert [found.path for found in STORE.resolve(tmp_path, SID)] == [one]
    assert len(STORE.resolve(tmp_path, "11112222")) == 2
    assert [found.path for found in STORE.resolve(tmp_path, "11112222-b")] == [two]
    assert [found.path for found in STORE.resolve(tmp_path, "fix the parser")] == [one]
    assert STORE.resolve(tmp_path, "111") == []


def test_documents_of_older_versions_are_read_beside_the_newer_files(tmp_path: Path) -> None:
    chats = tmp_path / "tmp" / "abc" / "chats"
    document(chats / "session-old.json", {**header("old-1"), "messages": [user("1", "before"), model("2", "ok")]}, mtime=5)
    store(tmp_path, "abc", "/w/app", "newnewne-1", 10)
    assert [found.id for found in STORE.list(tmp_path)] == ["newnewne-1", "old-1"]


def test_a_torn_document_is_listed_as_unreadable_and_hides_nothing(tmp_path: Path) -> None:
    chats = tmp_path / "tmp" / "abc" / "chats"
    store(tmp_path, "abc", "/w/app", "newnewne-1", 10)
    (chats / "session-torn.json").write_text('{"sessionId": "t", "projectHash": "x", "messages": [')
    titles = {found.title for found in STORE.list(tmp_path)}
    assert titles == {"(unreadable)", "hello from abc"}
    assert STORE.inspect(chats / "session-torn.json").malformed == 1


def test_a_damaged_line_costs_only_itself_and_is_named(tmp_path: Path) -> None:
    path = lines(tmp_path / "session-a.jsonl", header(), user("1", "one"), '{"id": "2", "ty', user("3", "three"))
    counts = STORE.inspect(path)
    assert (counts.user_turns, counts.malformed, counts.skipped[0].line) == (2, 1, 3)


def test_another_agents_file_is_refused(tmp_path: Path) -> None:
    path = lines(tmp_path / "session-a.jsonl", {"type": "session", "id": "x", "cwd": "/w"})
    assert not STORE.recognises(path)
    with pytest.raises(NotFoundError):
        STORE.inspect(path)


def test_the_tail_changes_when_a_record_is_appended_and_not_before(tmp_path: Path) -> None:
    path = lines(tmp_path / "session-a.jsonl", header(), user("1", "one"))
    about = info("gemini", path, tmp_path)
    before = STORE.tail(about)
    assert STORE.tail(about) == before
    with open(path, "a") as stream:
        stream.write('{"id":"2","type":"gemini","content":"x"}\n')
    after = STORE.tail(about)
    assert after != before and after.leaf == "2"


def test_the_home_can_be_moved(tmp_path: Path) -> None:
    assert STORE.roots({"HOME": "/h"}) == [Path("/h/.gemini")]
    assert STORE.roots({"HOME": "/h", "GEMINI_CLI_HOME": str(tmp_path)}) == [tmp_path / ".gemini"]
