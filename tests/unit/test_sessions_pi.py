"""Pi's and OpenClaw's trees: branches, versions, compaction, gaps, and telling the two apart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agents_registry.errors import NotFoundError
from agents_registry.sessions import catalog
from agents_registry.sessions.openclaw import STORE as OPENCLAW
from agents_registry.sessions.pi import STORE
from tests.unit.session_files import info, lines, results, said

HEADER = {"type": "session", "version": 3, "id": "0190-pi-session", "timestamp": "2026-05-01T00:00:00Z", "cwd": "/w/app"}


def entry(key: str, parent: str | None, kind: str = "message", **more: Any) -> dict[str, Any]:
    return {"type": kind, "id": key, "parentId": parent, "timestamp": "2026-05-01T00:00:01Z", **more}


def user(name: str, parent: str | None, words: Any) -> dict[str, Any]:
    return entry(name, parent, message={"role": "user", "content": words})


def agent(name: str, parent: str, *blocks: Any) -> dict[str, Any]:
    content = [{"type": "text", "text": block} if isinstance(block, str) else block for block in blocks]
    return entry(name, parent, message={"role": "assistant", "content": content, "model": "m"})


def call(name: str) -> dict[str, Any]:
    return {"type": "toolCall", "id": name, "name": "read", "arguments": {"path": "a"}}


def result(name: str, parent: str, of: str, words: str) -> dict[str, Any]:
    return entry(name, parent, message={"role": "toolResult", "toolCallId": of, "content": [{"type": "text", "text": words}]})


def read(path: Path) -> list[str]:
    return said(STORE.read(info("pi", path, path.parent)))


def test_the_conversation_is_the_path_from_the_last_entry_to_the_root(tmp_path: Path) -> None:
    path = lines(
        tmp_path / "a.jsonl",
        HEADER,
        user("1", None, "begin"),
        agent("2", "1", "left branch"),
        user("3", "2", "left"),
        agent("4", "1", "right branch"),
        user("5", "4", "right"),
    )
    assert read(path) == ["user: begin", "agent: right branch", "user: right"]
    assert STORE.inspect(path).user_turns == 3


def test_results_on_twigs_beside_the_path_are_taken_along(tmp_path: Path) -> None:
    path = lines(
        tmp_path / "a.jsonl",
        HEADER,
        user("1", None, "go"),
        agent("2", "1", call("x"), call("y")),
        result("3", "2", "x", "X"),
        result("4", "2", "y", "Y"),
        agent("5", "4", "done"),
    )
    assert results(STORE.read(info("pi", path, tmp_path))) == {"x": "X", "y": "Y"}


def test_a_cycle_of_parents_ends_and_a_gap_is_bridged(tmp_path: Path) -> None:
    path = lines(tmp_path / "a.jsonl", HEADER, user("1", "3", "one"), agent("2", "1", "two"), user("3", "2", "three"))
    assert read(path) == ["user: one", "agent: two", "user: three"]
    path = lines(tmp_path / "b.jsonl", HEADER, user("1", None, "one"), '{"torn', user("3", "lost", "three"))
    assert read(path) == ["user: one", "user: three"]


def test_what_a_compaction_kept_follows_its_summary(tmp_path: Path) -> None:
    path = lines(
        tmp_path / "a.jsonl",
        HEADER,
        user("1", None, "old"),
        agent("2", "1", "older"),
        user("3", "2", "kept"),
        agent("4", "3", "kept answer"),
        entry("5", "4", "compaction", summary="what was", firstKeptEntryId="3"),
        user("6", "5", "new"),
    )
    conversation = STORE.read(info("pi", path, tmp_path))
    assert conversation.compaction is not None
    assert (conversation.compaction.summary, conversation.compaction.turns_before) == ("what was", 1)
    assert said(conversation) == ["user: kept", "agent: kept answer", "user: new"]


def test_version_1_is_linear_and_counts_kept_entries_by_number(tmp_path: Path) -> None:
    old = {key: value for key, value in HEADER.items() if key != "version"}
    bare = [
        {"type": "message", "message": {"role": role, "content": [{"type": "text", "text": words}]}}
        for role, words in (("user", "one"), ("assistant", "two"), ("user", "three"))
    ]
    path = lines(tmp_path / "a.jsonl", old, *bare)
    assert read(path) == ["user: one", "agent: two", "user: three"]
    path = lines(tmp_path / "b.jsonl", old, *bare, {"type": "compaction", "summary": "s", "firstKeptEntryIndex": 3})
    assert read(path) == ["user: three"]


def test_a_shell_line_of_the_human_is_no_turn_but_its_output_is_known(tmp_path: Path) -> None:
    shell = {"role": "bashExecution", "command": "make", "output": "no rule", "exitCode": 2}
    path = lines(
        tmp_path / "a.jsonl",
        HEADER,
        user("1", None, "go"),
        entry("2", "1", message=shell),
        entry("3", "2", message={**shell, "command": "cat key", "excludeFromContext": True}),
    )
    conversation = STORE.read(info("pi", path, tmp_path))
    assert [dict(made.input) for made in conversation.calls()] == [{"command": "make"}]
    assert [made.is_error for made in conversation.results().values()] == [True]
    counts = STORE.inspect(path)
    assert (counts.user_turns, counts.tool_calls) == (1, 0)


def test_sessions_are_listed_with_the_last_name_and_found_by_it(tmp_path: Path) -> None:
    folder = tmp_path / "sessions" / "--w-app--"
    named = [entry(f"n{number}", "1", "session_info", name=name) for number, name in enumerate(("First", "Second"))]
    lines(folder / "2026_0190-pi-session.jsonl", HEADER, user("1", None, "hello"), *named, mtime=10)
    lines(folder / "2026_other.jsonl", {**HEADER, "id": "other", "cwd": "/w/b"}, user("1", None, "ho"), mtime=20)
    assert [(found.id, found.title) for found in STORE.list(tmp_path)] == [("other", "ho"), ("0190-pi-session", "Second")]
    assert [found.id for found in STORE.list(tmp_path, cwd="/w/app/")] == ["0190-pi-session"]
    assert [found.id for found in STORE.resolve(tmp_path, "second")] == ["0190-pi-session"]
    assert [found.id for found in STORE.resolve(tmp_path, "0190")] == ["0190-pi-session"]


def test_a_session_that_has_only_a_header_is_not_listed(tmp_path: Path) -> None:
    lines(tmp_path / "sessions" / "x" / "a.jsonl", HEADER)
    assert list(STORE.list(tmp_path)) == []


def test_what_pi_prints_to_its_output_is_no_file_of_its_store(tmp_path: Path) -> None:
    path = lines(tmp_path / "out.jsonl", HEADER, {"type": "agent_start"}, {"type": "turn_start"})
    assert not STORE.recognises(path)
    with pytest.raises(NotFoundError):
        STORE.inspect(path)


def test_openclaw_parents_name_the_call_or_the_header_and_both_are_followed(tmp_path: Path) -> None:
    path = lines(
        tmp_path / ".openclaw" / "agents" / "main" / "sessions" / "a.jsonl",
        HEADER,
        user("1", HEADER["id"], "go"),
        agent("2", "1", call("t1")),
        result("3", "t1", "t1", "found"),
    )
    conversation = OPENCLAW.read(info("openclaw", path, tmp_path))
    assert said(conversation) == ["user: go", "agent:"]
    assert results(conversation) == {"t1": "found"}
    assert catalog.recognise(path) == "openclaw"
    (listed,) = OPENCLAW.list(tmp_path / ".openclaw")
    assert listed.id == HEADER["id"]


def test_the_session_directory_can_be_moved() -> None:
    assert STORE.roots({"HOME": "/h"}) == [Path("/h/.pi/agent")]
    assert STORE.roots({"HOME": "/h", "PI_CODING_AGENT_DIR": "/p"}) == [Path("/p")]
    assert STORE.roots({"HOME": "/h", "PI_CODING_AGENT_SESSION_DIR": "/s"}) == [Path("/s")]
