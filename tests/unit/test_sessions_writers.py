"""What is written as a session of another agent reads back as what it was; what the target cannot hold is named."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

import pytest

from agents_registry.errors import RefusedError, UsageError
from agents_registry.sessions import catalog, handing
from agents_registry.sessions.claude_write import ClaudeWriter
from agents_registry.sessions.codex_write import CodexWriter, new_thread_id
from agents_registry.sessions.neutral import Builder, Conversation, ImageRef, Text, ToolCall
from agents_registry.sessions.port import SessionWriter

NOW = 1_800_000_000.0
WRITERS = {
    "claude": ClaudeWriter(clock=lambda: NOW),
    "codex": CodexWriter(clock=lambda: NOW),
    "codex legacy": CodexWriter(paginated=False, cli_version="0.137.0", clock=lambda: NOW),
}


def sample(agent: str = "claude", cwd: str = "/w/项目") -> Conversation:
    made = Builder(agent, "source")
    made.cwd, made.model = cwd, "some-model"
    made.user("first 请求 👩‍💻\u2028line", at=NOW - 100)
    made.text("I look.", at=NOW - 99)
    made.call("call:1", "Bash", {"command": "ls -l"})
    made.call("call:2", "Read", {"file_path": "/w/a.py"})
    made.result("call:1", "total 0")
    made.result("call:2", "no such file", is_error=True)
    made.call("call:3", "mcp__srv__ask", {"q": ["a", 1, None, {"b": True}]})
    made.result("call:3", "")
    made.text("done")
    made.user("second")
    made.text("answer")
    made.user("third, not answered")
    made.user("fourth")
    made.text("end")
    return made.done()


def written(name: str, conversation: Conversation, root: Path) -> tuple[Conversation, tuple[str, ...]]:
    done = WRITERS[name].write(conversation, root, session_id=str(uuid.uuid4()), env={})
    store = catalog.need(WRITERS[name].agent)
    assert [info.id for info in store.resolve(root, done.info.id)] == [done.info.id]
    return store.read(done.info), done.lost


@pytest.mark.parametrize("name", WRITERS)
def test_a_session_of_its_own_agent_reads_back_the_same(name: str, tmp_path: Path) -> None:
    agent = WRITERS[name].agent
    conversation = sample(agent)
    again, lost = written(name, conversation, tmp_path)
    assert handing.essence(again) == handing.essence(conversation)
    assert again.cwd == conversation.cwd
    assert lost == ("1 names of models",)


@pytest.mark.parametrize("name", WRITERS)
def test_a_foreign_session_keeps_every_word_and_its_commands_in_the_targets_own_tools(name: str, tmp_path: Path) -> None:
    conversation = sample("gemini")
    again, _ = written(name, conversation, tmp_path)

    def without_calls(one: Conversation) -> list[tuple[str, ...]]:
        return [entry for entry in handing.essence(one) if entry[1] != "call"]

    assert without_calls(again) == without_calls(conversation)
    shell = next(again.calls())
    assert (shell.name, shell.tool) == (("Bash" if name == "claude" else "exec_command"), "shell")
    assert "ls -l" in json.dumps(shell.input)
    assert [call.tool for call in again.calls()] == [call.tool for call in conversation.calls()]


@pytest.mark.parametrize("name", WRITERS)
def test_four_hops_in_a_circle_keep_all(name: str, tmp_path: Path) -> None:
    conversation = sample("claude")
    one = conversation
    for hop, target in enumerate(("codex", "claude", name, "claude")):
        again, _ = written(target, one, tmp_path / str(hop))
        one = again
    kept = [entry if entry[1] != "call" else entry[:3] for entry in handing.essence(one)]
    assert kept == [entry if entry[1] != "call" else entry[:3] for entry in handing.essence(conversation)]


@pytest.mark.parametrize("name", WRITERS)
def test_an_interrupted_call_gets_a_result_and_a_stray_result_is_named(name: str, tmp_path: Path) -> None:
    made = Builder("claude", "source")
    made.cwd = "/w"
    made.user("go")
    made.call("a", "Bash", {"command": "sleep 9"})
    made.result("stray", "from nowhere")
    again, lost = written(name, made.done(), tmp_path)
    (call,) = again.calls()
    assert again.results()[call.id].text == handing.INTERRUPTED
    assert again.results()[call.id].is_error
    assert "1 results without a recorded call" in lost


@pytest.mark.parametrize("name", WRITERS)
def test_results_follow_their_calls_even_where_the_source_had_words_between(name: str, tmp_path: Path) -> None:
    made = Builder("claude", "source")
    made.cwd = "/w"
    made.user("go")
    made.call("a", "Bash", {"command": "1"})
    made.call("b", "Bash", {"command": "2"})
    made.result("a", "one")
    made.text("between")
    made.result("b", "two")
    again, _ = written(name, made.done(), tmp_path)
    kinds = [entry[1:4] if entry[1] == "result" else entry[1:3] for entry in handing.essence(again)][1:]
    assert kinds == [("call", "0"), ("call", "1"), ("result", "0", "one"), ("result", "1", "two"), ("text", "between")]


@pytest.mark.parametrize("name", WRITERS)
def test_the_summary_of_a_compaction_stays_a_summary(name: str, tmp_path: Path) -> None:
    conversation = sample(WRITERS[name].agent)
    made = Builder(WRITERS[name].agent, "source")
    made.cwd = "/w"
    made.compact("what was before")
    made.user("now")
    made.text("yes")
    conversation = made.done()
    again, _ = written(name, conversation, tmp_path)
    assert handing.essence(again) == handing.essence(conversation)
    assert again.compaction is not None
    assert again.compaction.summary == "what was before"


@pytest.mark.parametrize("name", WRITERS)
def test_images_become_references_and_ids_that_repeat_become_unique(name: str, tmp_path: Path) -> None:
    made = Builder("claude", "source")
    made.cwd = "/w"
    made.user([Text("see"), ImageRef("image/png", "/tmp/a.png")])
    for _ in range(2):
        made.call("same", "Bash", {"command": "x"})
        made.result("same", "y")
    again, lost = written(name, made.done(), tmp_path)
    assert again.turns[0].text == "see\n[image image/png: /tmp/a.png]"
    assert len({call.id for call in again.calls()}) == 2
    assert len(again.results()) == 2
    assert "1 images or files as references" in lost


@pytest.mark.parametrize("name", WRITERS)
def test_an_existing_session_is_never_written(name: str, tmp_path: Path) -> None:
    session = str(uuid.uuid4())
    writer: SessionWriter = WRITERS[name]
    done = writer.write(sample(), tmp_path, session_id=session, env={})
    before = done.info.path.read_bytes()
    with pytest.raises(RefusedError):
        writer.write(sample(), tmp_path, session_id=session, env={})
    assert done.info.path.read_bytes() == before
    assert before.endswith(b"\n")
    assert [path.name for path in done.info.path.parent.iterdir()] == [done.info.path.name], "no temporary file stays"
    assert done.info.path.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("name", WRITERS)
def test_a_conversation_without_a_directory_or_a_strange_id_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="directory"):
        WRITERS[name].write(sample(cwd=""), tmp_path, session_id=str(uuid.uuid4()), env={})
    with pytest.raises(UsageError, match="id"):
        WRITERS[name].write(sample(), tmp_path, session_id="../x", env={})
    assert list(tmp_path.rglob("*.jsonl")) == []


def test_what_claude_code_demands_of_each_record_is_there(tmp_path: Path) -> None:
    done = WRITERS["claude"].write(sample("codex"), tmp_path, session_id=str(uuid.uuid4()), env={})
    records = [json.loads(line) for line in done.info.path.read_text().splitlines()]
    chain = [record for record in records if "uuid" in record]
    parent = None
    for record in chain:
        assert record["parentUuid"] == parent
        parent = record["uuid"]
        assert record["timestamp"]
        if record["type"] == "assistant":
            assert isinstance(record["message"]["content"], list)
            assert record["message"]["model"] == "<synthetic>"
    open_calls: set[str] = set()
    for record in chain:
        content: Any = record["message"]["content"]
        blocks = content if isinstance(content, list) else []
        if record["type"] == "user":
            open_calls -= {block["tool_use_id"] for block in blocks if block["type"] == "tool_result"}
            if isinstance(content, str):
                assert not open_calls
        open_calls |= {block["id"] for block in blocks if block["type"] == "tool_use"}
    assert not open_calls


def test_codex_lines_carry_ordinals_and_the_provider_of_the_configuration(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text('model_provider = "mine"\n')
    done = WRITERS["codex"].write(sample("codex"), tmp_path, session_id=new_thread_id(NOW), env={})
    records = [json.loads(line) for line in done.info.path.read_text().splitlines()]
    assert [record["ordinal"] for record in records] == list(range(len(records)))
    assert records[0]["payload"]["model_provider"] == "mine"
    assert records[0]["payload"]["history_mode"] == "paginated"
    legacy = WRITERS["codex legacy"].write(sample("codex"), tmp_path, session_id=new_thread_id(NOW), env={})
    assert all("ordinal" not in json.loads(line) for line in legacy.info.path.read_text().splitlines())


def test_thoughts_are_shown_by_codex_and_dropped_for_claude(tmp_path: Path) -> None:
    made = Builder("gemini", "source")
    made.cwd = "/w"
    made.user("go")
    made.thinking("hm")
    made.text("ok")
    conversation = made.done()
    again, _ = written("codex", conversation, tmp_path / "a")
    assert handing.essence(again) == handing.essence(conversation)
    again, lost = written("claude", conversation, tmp_path / "b")
    assert handing.essence(again) == handing.essence(conversation, thinking=False)
    assert any("thoughts" in line for line in lost)


def test_native_tool_calls_keep_their_own_names(tmp_path: Path) -> None:
    made = Builder("codex", "source")
    made.cwd = "/w"
    made.user("go")
    made.call("p", "apply_patch", {"input": "*** Begin Patch\n*** Update File: a.py\n*** End Patch"})
    made.result("p", "Success")
    conversation = made.done()
    again, _ = written("codex", conversation, tmp_path)
    (call,) = again.calls()
    assert isinstance(call, ToolCall)
    assert handing.essence(again) == handing.essence(conversation)
