"""Codex's rollouts in all their eras: listed, resolved and read as a resume would load them."""

from __future__ import annotations

import fcntl
import json
from pathlib import Path
from typing import Any

import pytest

from agents_registry.sessions import turns
from agents_registry.sessions.codex import CodexStore
from agents_registry.sessions.neutral import ImageRef, Text, ToolCall
from agents_registry.sessions.port import SessionInfo
from agents_registry.sessions.vocabulary import Tool

STORE = CodexStore()
ID = "019f0000-0000-7000-8000-00000000000{}"


class Rollout:
    def __init__(self, root: Path, number: int = 1, place: str = "sessions/2026/08/11", **meta: Any) -> None:
        self.id = ID.format(number)
        self.path = root / place / f"rollout-2026-08-11T00-00-0{number}-{self.id}.jsonl"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.ordinal: int | None = 0 if meta.get("history_mode") == "paginated" else None
        self.count = 0
        self.path.touch()
        self.line("session_meta", {"id": self.id, "cwd": "/w", "cli_version": "0.171.0", "source": "cli", **meta})

    def line(self, kind: str, payload: dict[str, Any]) -> None:
        record: dict[str, Any] = {"timestamp": f"2026-08-11T00:00:{self.count % 60:02d}.000Z", "type": kind, "payload": payload}
        if self.ordinal is not None:
            record["ordinal"] = self.ordinal
            self.ordinal += 1
        self.count += 1
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")

    def event(self, kind: str, **more: Any) -> None:
        self.line("event_msg", {"type": kind, **more})

    def message(self, role: str, text: str) -> None:
        self.line("response_item", {"type": "message", "role": role, "content": [{"type": f"{'in' if role == 'user' else 'out'}put_text", "text": text}]})

    def turn(self, question: str, answer: str) -> None:
        """Both logs, as the agent writes them."""
        self.event("task_started", turn_id="t")
        self.message("user", question)
        self.event("user_message", message=question)
        self.event("agent_message", message=answer)
        self.message("assistant", answer)
        self.event("task_complete", turn_id="t")

    def call(self, call: str, name: str, arguments: Any, output: Any, **more: Any) -> None:
        self.line("response_item", {"type": "function_call", "call_id": call, "name": name, "arguments": json.dumps(arguments), **more})
        self.line("response_item", {"type": "function_call_output", "call_id": call, "output": output})

    def item(self, **item: Any) -> None:
        self.event("item_completed", item=item)

    def info(self, root: Path) -> SessionInfo:
        found = STORE.describe(self.path, root)
        assert found is not None
        return found


def texts(root: Path, rollout: Rollout) -> list[str]:
    conversation = STORE.read(rollout.info(root))
    return [f"{turn.role[0]}:{block.text}" for turn in conversation.turns for block in turn.blocks if isinstance(block, Text)]


def test_two_logs_of_one_conversation_do_not_double_it(tmp_path: Path) -> None:
    rollout = Rollout(tmp_path)
    rollout.message("user", "<environment_context><cwd>/w</cwd></environment_context>")
    rollout.message("developer", "be good")
    rollout.turn("one", "first")
    rollout.turn("two", "second")
    assert texts(tmp_path, rollout) == ["u:one", "a:first", "u:two", "a:second"]
    found = STORE.inspect(rollout.path)
    assert (found.user_turns, found.assistant_texts) == (2, 2)


def test_a_paginated_rollout_is_read_from_its_items(tmp_path: Path) -> None:
    rollout = Rollout(tmp_path, history_mode="paginated")
    rollout.item(type="UserMessage", id="u", content=[{"type": "text", "text": "one"}])
    rollout.item(type="CommandExecution", id="c", command=["/bin/bash", "-lc", "ls -l"], exit_code=2, stdout="no such file")
    rollout.item(type="AgentMessage", id="a", content=[{"type": "Text", "text": "done"}])
    conversation = STORE.read(rollout.info(tmp_path))
    assert texts(tmp_path, rollout) == ["u:one", "a:done"]
    call = next(conversation.calls())
    assert call.tool is Tool.SHELL
    assert conversation.results()[call.id].is_error


def test_the_bare_era_is_read_and_its_directory_found_in_the_context(tmp_path: Path) -> None:
    path = tmp_path / "sessions" / "rollout-2025-08-01T00-00-00-old.jsonl"
    path.parent.mkdir(parents=True)
    records: list[dict[str, Any]] = [
        {"id": "old", "timestamp": "2025-08-01T00:00:00Z", "instructions": None, "git": {}},
        {"record_type": "state"},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "<environment_context>\n<cwd>/bare</cwd>"}]},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hello"}]},
        {"type": "function_call", "call_id": "c", "name": "shell", "arguments": '{"command":["ls"]}'},
        {"type": "function_call_output", "call_id": "c", "output": '{"output":"x","metadata":{"exit_code":1}}'},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "hi"}]},
    ]
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    (info,) = STORE.list(tmp_path)
    assert (info.id, info.cwd, info.title) == ("old", "/bare", "hello")
    conversation = STORE.read(info)
    assert [turn.text for turn in conversation.turns] == ["hello", "hi"]
    assert (conversation.results()["c"].text, conversation.results()["c"].is_error) == ("x", True)


def test_a_fork_reads_its_history_from_the_parents_file_up_to_where_it_left(tmp_path: Path) -> None:
    parent = Rollout(tmp_path, 1, history_mode="paginated")
    parent.turn("common", "shared")
    cut = parent.ordinal
    parent.turn("only in the parent", "lost")
    fork = Rollout(tmp_path, 2, history_mode="paginated", forked_from_id=parent.id,
                   history_base={"thread_id": parent.id, "end_ordinal_exclusive": cut})  # fmt: skip
    fork.turn("in the fork", "kept")
    assert texts(tmp_path, fork) == ["u:common", "a:shared", "u:in the fork", "a:kept"]
    conversation = STORE.read(fork.info(tmp_path))
    assert conversation.turns[0].file == str(parent.path)
    assert conversation.turns[-1].file == ""
    assert conversation.parent_id == parent.id
    assert {info.id for info in STORE.list(tmp_path)} == {parent.id, fork.id}, "a fork is a session of its own"


def test_a_fork_whose_parent_is_gone_says_so_and_shows_the_rest(tmp_path: Path) -> None:
    fork = Rollout(tmp_path, 2, history_base={"thread_id": ID.format(9), "end_ordinal_exclusive": 5})
    fork.turn("in the fork", "kept")
    conversation = STORE.read(fork.info(tmp_path))
    assert [turn.text for turn in conversation.turns] == ["in the fork", "kept"]
    assert conversation.skipped_count == 1
    assert ID.format(9) in conversation.skipped[0].why


def test_forks_in_a_circle_end(tmp_path: Path) -> None:
    one = Rollout(tmp_path, 1, history_base={"thread_id": ID.format(2)})
    two = Rollout(tmp_path, 2, history_base={"thread_id": ID.format(1)})
    one.turn("one", "1")
    two.turn("two", "2")
    assert texts(tmp_path, two)[-2:] == ["u:two", "a:2"]


def test_a_compaction_replaces_what_was_before_and_its_copies_do_not_count(tmp_path: Path) -> None:
    rollout = Rollout(tmp_path)
    rollout.turn("old", "gone")
    copy = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "old"}]}
    rollout.line("compacted", {"message": "what happened so far", "replacement_history": [copy]})
    rollout.turn("new", "now")
    conversation = STORE.read(rollout.info(tmp_path))
    assert [turn.text for turn in conversation.turns] == ["new", "now"]
    assert conversation.compaction is not None
    assert (conversation.compaction.summary, conversation.compaction.turns_before) == ("what happened so far", 1)
    assert STORE.inspect(rollout.path).user_turns == 2


def test_turns_that_were_rolled_back_are_gone(tmp_path: Path) -> None:
    rollout = Rollout(tmp_path)
    rollout.turn("one", "1")
    rollout.turn("two", "2")
    rollout.turn("three", "3")
    rollout.event("thread_rolled_back", num_turns=2)
    rollout.turn("instead", "4")
    assert texts(tmp_path, rollout) == ["u:one", "a:1", "u:instead", "a:4"]


def test_calls_keep_their_names_and_their_outcome(tmp_path: Path) -> None:
    rollout = Rollout(tmp_path)
    rollout.event("user_message", message="go")
    rollout.call("a", "exec_command", {"cmd": "false"}, "Process exited with code 1\n")
    rollout.call("b", "ask", {"q": 1}, [{"type": "text", "text": "blocks"}], namespace="mcp__srv")
    rollout.event("exec_command_end", call_id="c", exit_code=3)
    rollout.call("c", "shell", {"command": ["bash", "-lc", "x"]}, "boom")
    rollout.line("response_item", {"type": "function_call", "call_id": "d", "name": "broken", "arguments": "{no json"})
    conversation = STORE.read(rollout.info(tmp_path))
    calls = {call.id: call for call in conversation.calls()}
    results = conversation.results()
    assert (calls["b"].name, calls["b"].tool, results["b"].text) == ("mcp__srv__ask", Tool.MCP, "blocks")
    assert [results[one].is_error for one in "abc"] == [True, False, True]
    assert calls["d"].input == {"raw": "{no json"}
    assert isinstance(calls["a"], ToolCall)


def test_what_an_editor_wrapped_round_a_prompt_is_left_out_and_images_become_references(tmp_path: Path) -> None:
    rollout = Rollout(tmp_path)
    rollout.event("user_message", message="# Context from my IDE setup:\nx\n## My request for Codex:\nfix it\n", local_images=["/tmp/a.png"])
    (turn,) = STORE.read(rollout.info(tmp_path)).turns
    assert turn.text == "fix it"
    assert [block.source for block in turn.blocks if isinstance(block, ImageRef)] == ["/tmp/a.png"]
    assert rollout.info(tmp_path).title == "fix it"


def test_the_directory_is_that_of_the_last_turn_and_both_are_kept(tmp_path: Path) -> None:
    rollout = Rollout(tmp_path)
    rollout.line("turn_context", {"cwd": "/w", "model": "m1"})
    rollout.turn("one", "1")
    rollout.line("turn_context", {"cwd": "/moved", "model": "m2"})
    rollout.turn("two", "2")
    info = rollout.info(tmp_path)
    assert (info.cwd, info.cwds) == ("/moved", ("/w", "/moved"))
    conversation = STORE.read(info)
    assert (conversation.cwd, conversation.last_cwd, conversation.model) == ("/w", "/moved", "m2")
    assert [turn.cwd for turn in conversation.user_turns()] == ["/w", "/moved"]
    for cwd in ("/w", "/moved"):
        assert [found.id for found in STORE.list(tmp_path, cwd=cwd)] == [rollout.id]
    assert list(STORE.list(tmp_path, cwd="/other")) == []


def test_sub_agents_are_hidden_in_both_of_their_spellings(tmp_path: Path) -> None:
    main = Rollout(tmp_path, 1)
    main.turn("one", "1")
    Rollout(tmp_path, 2, thread_source="subagent", parent_thread_id=main.id).turn("sub", "s")
    Rollout(tmp_path, 3, source={"subagent": {"thread_spawn": {"parent_thread_id": main.id}}}).turn("sub", "s")
    assert [info.id for info in STORE.list(tmp_path)] == [main.id]
    assert {info.parent_id for info in STORE.list(tmp_path, subagents=True)} == {"", main.id}


def test_archived_threads_are_found_by_id_and_not_listed(tmp_path: Path) -> None:
    Rollout(tmp_path, 1).turn("one", "1")
    archived = Rollout(tmp_path, 2, place="archived_sessions")
    archived.turn("two", "2")
    assert [info.id for info in STORE.list(tmp_path)] == [ID.format(1)]
    assert [info.id for info in STORE.resolve(tmp_path, archived.id)] == [archived.id]
    assert len(STORE.resolve(tmp_path, ID.format(1)[:12])) == 2


def test_a_name_given_by_the_user_is_the_title_and_resolves(tmp_path: Path) -> None:
    rollout = Rollout(tmp_path)
    rollout.turn("one", "1")
    (tmp_path / "session_index.jsonl").write_text(
        json.dumps({"id": rollout.id, "thread_name": "first name"}) + "\n" + json.dumps({"id": rollout.id, "thread_name": "Second"}) + "\n"
    )
    assert [info.title for info in STORE.list(tmp_path)] == ["Second"]
    assert [info.id for info in STORE.resolve(tmp_path, "second")] == [rollout.id]


def test_a_compressed_rollout_is_listed_and_read_and_a_plain_twin_wins(tmp_path: Path) -> None:
    zstandard = pytest.importorskip("zstandard", reason="the extra for compressed rollouts is not installed")
    rollout = Rollout(tmp_path)
    rollout.turn("one", "1")
    cold = rollout.path.with_name(rollout.path.name + ".zst")
    cold.write_bytes(zstandard.ZstdCompressor().compress(rollout.path.read_bytes()))
    assert [info.path for info in STORE.list(tmp_path)] == [rollout.path]
    rollout.path.unlink()
    (info,) = STORE.list(tmp_path)
    assert (info.path, info.id) == (cold, rollout.id)
    assert [turn.text for turn in STORE.read(info).turns] == ["one", "1"]
    assert STORE.recognises(cold)
    assert STORE.inspect(cold).user_turns == 1


def test_a_cut_inside_a_character_costs_the_last_line_only(tmp_path: Path) -> None:
    rollout = Rollout(tmp_path)
    rollout.turn("eins", "zwei")
    data = rollout.path.read_bytes() + '{"timestamp":"x","type":"event_msg","payload":{"type":"user_message","message":"中'.encode()[:-1]
    rollout.path.write_bytes(data)
    conversation = STORE.read(rollout.info(tmp_path))
    assert len(conversation.turns) == 2
    assert conversation.skipped[0].why == "not valid UTF-8"


def test_a_thread_is_live_while_a_process_holds_its_lock_and_looking_takes_no_lock(tmp_path: Path) -> None:
    if not Path("/proc/locks").exists():
        pytest.skip("this system does not list locks")
    rollout = Rollout(tmp_path)
    rollout.turn("one", "1")
    lock = tmp_path / "thread-writer-locks" / f"{rollout.id}.lock"
    lock.parent.mkdir()
    with open(lock, "w") as file:
        assert [info.live for info in STORE.list(tmp_path)] == [False]
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if str(lock.stat().st_ino) not in Path("/proc/locks").read_text():
            pytest.skip("this system does not list the locks of this file system")
        assert [info.live for info in STORE.list(tmp_path)] == [True]
    assert [info.live for info in STORE.list(tmp_path)] == [False]


def test_a_turn_runs_between_its_begin_and_its_end(tmp_path: Path) -> None:
    rollout = Rollout(tmp_path)
    info = rollout.info(tmp_path)
    assert turns.turn_running(info) is None
    rollout.event("task_started", turn_id="t")
    rollout.message("user", "go")
    changed = rollout.path.stat().st_mtime
    assert turns.turn_running(info, now=lambda: changed) is True
    assert turns.turn_running(info, now=lambda: changed + 3600) is False
    rollout.event("turn_aborted", reason="interrupted")
    assert turns.turn_running(info, now=lambda: changed) is False


def test_the_tail_is_the_last_ordinal(tmp_path: Path) -> None:
    rollout = Rollout(tmp_path, history_mode="paginated")
    rollout.turn("one", "1")
    before = STORE.tail(rollout.info(tmp_path))
    assert before.leaf == str((rollout.ordinal or 0) - 1)
    rollout.turn("two", "2")
    assert STORE.tail(rollout.info(tmp_path)) != before
