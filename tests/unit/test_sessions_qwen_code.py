"""Qwen Code's store: a tree with rewinds and parallel results, compression, hooks, titles, ids."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from agents_registry.sessions import catalog
from agents_registry.sessions.qwen_code import STORE
from tests.unit.session_files import info, lines, results, said

SID = "0190aaaa-1111-4222-8333-444455556666"


def record(uuid: str, parent: str | None, kind: str, *parts: Any, **more: Any) -> dict[str, Any]:
    role = "model" if kind == "assistant" else "user"
    made = {"uuid": uuid, "parentUuid": parent, "sessionId": SID, "timestamp": "2026-05-01T00:00:00Z", "type": kind, "cwd": "/w/app"}
    if parts or kind != "system":
        made["message"] = {"role": role, "parts": [{"text": part} if isinstance(part, str) else part for part in parts]}
    return {**made, **more}


def call(name: str) -> dict[str, Any]:
    return {"functionCall": {"id": name, "name": "read_file", "args": {"path": name}}}


def result(name: str, text: str) -> dict[str, Any]:
    return {"functionResponse": {"id": name, "name": "read_file", "response": {"output": text}}}


def write(tmp_path: Path, *records: Any, name: str = SID) -> Path:
    return lines(tmp_path / "projects" / "-w-app" / "chats" / f"{name}.jsonl", *records)


def read(path: Path) -> list[str]:
    return said(STORE.read(info("qwen-code", path, path.parents[3], SID)))


def test_what_was_rewound_is_counted_and_not_carried(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        record("1", None, "user", "begin"),
        record("2", "1", "assistant", "discarded"),
        record("3", "1", "system", subtype="rewind", systemPayload={"targetUuid": "1"}),
        record("4", "3", "user", "go on"),
        record("5", "4", "assistant", "kept"),
    )
    assert STORE.inspect(path).assistant_texts == 2
    assert read(path) == ["user: begin", "user: go on", "agent: kept"]


def test_all_results_of_parallel_calls_are_kept_though_each_hangs_on_its_own_twig(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        record("1", None, "user", "read three"),
        record("2", "1", "assistant", call("a"), call("b"), call("c")),
        record("3", "2", "tool_result", result("a", "A")),
        record("4", "2", "tool_result", result("b", "B")),
        record("5", "2", "tool_result", result("c", "C")),
        record("6", "5", "assistant", "done"),
    )
    conversation = STORE.read(info("qwen-code", path, tmp_path, SID))
    assert results(conversation) == {"a": "A", "b": "B", "c": "C"}


def test_a_parent_that_is_missing_costs_only_itself(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        record("1", None, "user", "one"),
        '{"uuid": "2", "parentUuid": "1", "type": "assis',
        record("3", "2", "user", "three"),
        record("4", "3", "assistant", "four"),
    )
    assert read(path) == ["user: one", "user: three", "agent: four"]


def test_a_snapshot_outside_the_tree_is_no_leaf(tmp_path: Path) -> None:
    loose = record("9", None, "system", subtype="session_artifact_snapshot")
    del loose["parentUuid"]
    path = write(tmp_path, record("1", None, "user", "one"), record("2", "1", "assistant", "two"), loose)
    assert read(path) == ["user: one", "agent: two"]


def test_pieces_of_one_message_share_a_uuid_and_stay_together(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        record("1", None, "user", "one"),
        record("2", "1", "assistant", {"text": "hm", "thought": True}),
        record("2", "1", "assistant", call("a"), "words"),
    )
    conversation = STORE.read(info("qwen-code", path, tmp_path, SID))
    assert [type(block).__name__ for block in conversation.turns[1].blocks] == ["Thinking", "ToolCall", "Text"]


def test_hook_text_is_part_of_what_is_stored_and_no_part_of_what_is_carried(tmp_path: Path) -> None:
    hook = "<qwen:user-prompt-submit-context>\nsecret\n</qwen:user-prompt-submit-context>"
    path = write(tmp_path, record("1", None, "user", "typed", hook))
    assert STORE.inspect(path).first_user_sha256 == hashlib.sha256(f"typed\n{hook}".encode()).hexdigest()
    assert read(path) == ["user: typed"]


def test_notifications_cron_commands_and_sidechains_are_no_turns(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        record("1", None, "user", "one"),
        record("2", "1", "user", "build ended", subtype="notification"),
        record("3", "2", "user", "every hour", subtype="cron"),
        record("4", "3", "user", "/compress"),
        record("5", "4", "user", "sub", isSidechain=True),
    )
    assert STORE.inspect(path).user_turns == 1
    assert read(path) == ["user: one"]


def test_compression_replaces_all_before_and_keeps_what_it_says(tmp_path: Path) -> None:
    history = [
        {"role": "user", "parts": [{"text": "summary of old things"}]},
        {"role": "model", "parts": [{"text": "Got it."}]},
        {"role": "user", "parts": [{"text": "kept question"}]},
        {"role": "model", "parts": [{"text": "kept answer"}]},
    ]
    path = write(
        tmp_path,
        record("1", None, "user", "old"),
        record("2", "1", "assistant", "older"),
        record("3", "2", "system", subtype="chat_compression", systemPayload={"compressedHistory": history}),
        record("4", "3", "user", "new"),
    )
    conversation = STORE.read(info("qwen-code", path, tmp_path, SID))
    assert conversation.compaction is not None and conversation.compaction.summary == "summary of old things"
    assert said(conversation) == ["user: kept question", "agent: kept answer", "user: new"]
    assert STORE.inspect(path).user_turns == 2


def test_the_file_name_is_the_id_and_a_differing_one_inside_is_an_alias(tmp_path: Path) -> None:
    other = "0190bbbb-1111-4222-8333-444455556666"
    write(tmp_path, record("1", None, "user", "hi"), name=other)
    (found,) = STORE.list(tmp_path)
    assert (found.id, found.aliases, found.cwd) == (other, (SID,), "/w/app")
    assert [one.id for one in STORE.resolve(tmp_path, SID)] == [other]


def test_the_last_title_wins_even_far_behind_the_head(tmp_path: Path) -> None:
    filler = [record(f"f{number}", "1", "assistant", "x" * 1000) for number in range(100)]
    title = [record("t", "1", "system", subtype="custom_title", systemPayload={"customTitle": name}) for name in ("First", "Last")]
    write(tmp_path, record("1", None, "user", "hi"), title[0], *filler, title[1])
    assert [found.title for found in STORE.list(tmp_path)] == ["Last"]


def test_claude_code_and_qwen_code_records_are_told_apart(tmp_path: Path) -> None:
    claude = lines(
        tmp_path / "c.jsonl",
        {"uuid": "1", "parentUuid": None, "sessionId": "s", "type": "user", "cwd": "/w", "message": {"role": "user", "content": "hi"}},
    )
    qwen = write(tmp_path, record("1", None, "user", "hi"))
    assert not STORE.recognises(claude)
    assert catalog.recognise(claude) == "claude"
    assert catalog.recognise(qwen) == "qwen-code"


def test_the_runtime_directory_goes_before_the_home_of_qwen() -> None:
    assert STORE.roots({"HOME": "/h"}) == [Path("/h/.qwen")]
    assert STORE.roots({"HOME": "/h", "QWEN_HOME": "~/q"}) == [Path("/h/q")]
    assert STORE.roots({"HOME": "/h", "QWEN_HOME": "/q", "QWEN_RUNTIME_DIR": "/r"}) == [Path("/r")]


def test_a_command_that_failed_is_an_error_though_the_call_went_well(tmp_path: Path) -> None:
    def shell(name: str, code: int) -> dict[str, Any]:
        output = f"Command: x\nOutput: y\nError: (none)\nExit Code: {code}\nSignal: 0"
        return {"functionResponse": {"id": name, "name": "run_shell_command", "response": {"output": output}}}

    path = write(
        tmp_path,
        record("1", None, "user", "run"),
        record("2", "1", "assistant", call("a"), call("b")),
        record("3", "2", "tool_result", shell("a", 0)),
        record("4", "3", "tool_result", shell("b", 2)),
    )
    conversation = STORE.read(info("qwen-code", path, tmp_path, SID))
    assert {name: block.is_error for name, block in conversation.results().items()} == {"a": False, "b": True}
