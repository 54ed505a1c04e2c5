"""Claude Code's transcripts: listed, resolved and read as the agent itself would resume them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agents_registry.sessions import turns
from agents_registry.sessions.claude import ClaudeStore, slug
from agents_registry.sessions.neutral import AGENT, USER, Text, ToolCall, ToolResult
from agents_registry.sessions.port import SessionInfo

STORE = ClaudeStore()
ID = "1af7fc5e-8455-4414-9ccd-011d40f70b2a"


class Transcript:
    """Writes records as Claude Code does: a chain unless told otherwise."""

    def __init__(self, root: Path, cwd: str, session: str = ID) -> None:
        self.cwd, self.session, self.last, self.count = cwd, session, None, 0
        self.path = root / "projects" / slug(cwd) / f"{session}.jsonl"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.touch()

    def add(self, kind: str, message: dict[str, Any] | None, *, parent: str | None = "last", **more: Any) -> str:
        self.count += 1
        uuid = f"u{self.count}"
        record = {
            "parentUuid": self.last if parent == "last" else parent,
            "isSidechain": False,
            "cwd": self.cwd,
            "sessionId": self.session,
            "type": kind,
            "uuid": uuid,
            "timestamp": f"2026-05-01T00:00:{self.count % 60:02d}.000Z",
            **({"message": message} if message is not None else {}),
            **more,
        }
        self.raw(record)
        self.last = uuid
        return uuid

    def user(self, content: Any, **more: Any) -> str:
        return self.add("user", {"role": "user", "content": content}, **more)

    def says(self, text: str, message: str = "", **more: Any) -> str:
        return self.block({"type": "text", "text": text}, message, **more)

    def call(self, call: str, name: str = "Bash", message: str = "", **more: Any) -> str:
        return self.block({"type": "tool_use", "id": call, "name": name, "input": {"command": "ls"}}, message, **more)

    def result(self, call: str, text: str = "ok", **more: Any) -> str:
        return self.user([{"type": "tool_result", "tool_use_id": call, "content": text}], **more)

    def block(self, block: dict[str, Any], message: str = "", **more: Any) -> str:
        body = {"id": message or f"m{self.count}", "role": "assistant", "model": "opus", "content": [block], "stop_reason": None}
        return self.add("assistant", body, **more)

    def raw(self, record: dict[str, Any]) -> None:
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")

    def info(self, root: Path) -> SessionInfo:
        found = STORE.describe(self.path, root)
        assert found is not None
        return found


def texts(root: Path, transcript: Transcript) -> list[str]:
    conversation = STORE.read(transcript.info(root))
    return [f"{turn.role[0]}:{block.text}" for turn in conversation.turns for block in turn.blocks if isinstance(block, Text)]


@pytest.mark.parametrize(
    ("cwd", "expected"),
    [
        ("/home/u/my_项目", "-home-u-my---"),
        ("/w/😀", "-w---"),
        ("/a.b/c d", "-a-b-c-d"),
        ("/w/中文目录", "-w-----"),
    ],
)
def test_every_character_outside_ascii_letters_and_digits_becomes_a_dash_per_utf16_unit(cwd: str, expected: str) -> None:
    assert slug(cwd) == expected


def test_a_long_directory_gets_a_hash() -> None:
    assert slug("/" + "a" * 300).startswith("-" + "a" * 199 + "-")
    assert slug("/" + "a" * 300) != slug("/" + "a" * 301)


def test_the_root_is_where_the_environment_places_it() -> None:
    assert list(STORE.roots({"HOME": "/h"})) == [Path("/h/.claude")]
    assert list(STORE.roots({"HOME": "/h", "CLAUDE_CONFIG_DIR": "/x"})) == [Path("/x")]


def test_siblings_that_share_a_folder_name_do_not_list_one_another(tmp_path: Path) -> None:
    for cwd, session in (("/w/新聞", "a" * 8), ("/w/暫存", "b" * 8)):
        Transcript(tmp_path, cwd, session).user("hello")
    assert slug("/w/新聞") == slug("/w/暫存")
    assert [info.id for info in STORE.list(tmp_path, cwd="/w/新聞")] == ["a" * 8]
    assert [info.id for info in STORE.list(tmp_path, cwd="/w/暫存")] == ["b" * 8]


def test_listing_is_newest_first_and_opens_no_more_than_it_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(50):
        transcript = Transcript(tmp_path, f"/w/{number % 3}", f"session-{number:02d}")
        transcript.user(f"prompt {number}")
        os.utime(transcript.path, (1000 + number, 1000 + number))
    opened: list[Path] = []
    real = STORE._look

    def counted(path: Path, *rest: Any) -> SessionInfo | None:
        opened.append(path)
        return real(path, *rest)

    monkeypatch.setattr(STORE, "_look", counted)
    assert [info.id for info in STORE.list(tmp_path, limit=5)] == [f"session-{n}" for n in range(49, 44, -1)]
    assert len(opened) == 5


def test_the_directory_of_a_session_is_that_in_which_it_can_be_resumed(tmp_path: Path) -> None:
    transcript = Transcript(tmp_path, "/w/project")
    transcript.cwd = "/w/project/sub"
    transcript.user("hello")
    transcript.cwd = "/w/project"
    transcript.says("hi")
    transcript.cwd = "/elsewhere"
    transcript.user("more")
    info = transcript.info(tmp_path)
    assert info.cwd == "/w/project"
    assert info.cwds == ("/w/project/sub", "/w/project", "/elsewhere")
    conversation = STORE.read(info)
    assert (conversation.cwd, conversation.last_cwd) == ("/w/project/sub", "/elsewhere")


def test_a_name_the_user_gave_is_the_title_then_a_generated_one_then_the_prompt(tmp_path: Path) -> None:
    transcript = Transcript(tmp_path, "/w")
    transcript.user("the first prompt")
    assert transcript.info(tmp_path).title == "the first prompt"
    transcript.raw({"type": "ai-title", "aiTitle": "generated", "sessionId": ID})
    assert transcript.info(tmp_path).title == "generated"
    transcript.raw({"type": "custom-title", "customTitle": "mine", "sessionId": ID})
    transcript.raw({"type": "ai-title", "aiTitle": "later", "sessionId": ID})
    info = transcript.info(tmp_path)
    assert info.title == "mine"
    assert info.first_prompt == "the first prompt"


def test_sub_agents_are_hidden_and_are_never_the_newest(tmp_path: Path) -> None:
    transcript = Transcript(tmp_path, "/w")
    transcript.user("hello")
    os.utime(transcript.path, (1, 1))
    beside = transcript.path.parent / "agent-x.jsonl"
    below = transcript.path.with_suffix("") / "subagents" / "agent-y.jsonl"
    below.parent.mkdir(parents=True)
    for path in (beside, below):
        path.write_text(json.dumps({"type": "user", "uuid": "s", "isSidechain": True, "sessionId": ID, "message": {"content": "sub"}}) + "\n")
    assert [info.id for info in STORE.list(tmp_path)] == [ID]
    shown = {info.id: info.parent_id for info in STORE.list(tmp_path, subagents=True)}
    assert shown == {ID: "", "agent-x": ID, "agent-y": ID}
    assert list(STORE.subagents(transcript.info(tmp_path))) == [below]


def test_one_unreadable_file_does_not_hide_the_others(tmp_path: Path) -> None:
    Transcript(tmp_path, "/w", "good-session").user("hello")
    (tmp_path / "projects" / slug("/w") / "bad.jsonl").write_bytes(b"\0" * 4096)
    assert [info.id for info in STORE.list(tmp_path)] == ["good-session"]


def test_an_exact_id_beats_prefixes_and_a_short_prefix_means_nothing(tmp_path: Path) -> None:
    for session in ("abcd", "abcd-1", "abcd-2", "other"):
        Transcript(tmp_path, "/w", session).user("hello")
    assert [info.id for info in STORE.resolve(tmp_path, "abcd")] == ["abcd"]
    assert {info.id for info in STORE.resolve(tmp_path, "abcd-")} == {"abcd-1", "abcd-2"}
    assert [info.id for info in STORE.resolve(tmp_path, "abcd-1")] == ["abcd-1"]
    assert list(STORE.resolve(tmp_path, "oth")) == []
    assert list(STORE.resolve(tmp_path, "")) == []
    assert list(STORE.resolve(tmp_path, "../../etc/passwd")) == []


def test_the_same_id_in_two_directories_is_an_ambiguity_that_a_directory_settles(tmp_path: Path) -> None:
    for cwd in ("/w/a", "/w/b"):
        Transcript(tmp_path, cwd).user("hello")
    assert len(STORE.resolve(tmp_path, ID)) == 2
    assert [info.cwd for info in STORE.resolve(tmp_path, ID, cwd="/w/b")] == ["/w/b"]


def test_a_session_is_found_by_its_title_and_by_an_earlier_id(tmp_path: Path) -> None:
    transcript = Transcript(tmp_path, "/w")
    transcript.user("hello", sessionId="the-old-id")
    transcript.raw({"type": "custom-title", "customTitle": "My Plan", "sessionId": ID})
    assert [info.id for info in STORE.resolve(tmp_path, "my plan")] == [ID]
    assert [info.id for info in STORE.resolve(tmp_path, "the-old-id")] == [ID]


def test_only_human_prose_is_a_user_turn(tmp_path: Path) -> None:
    transcript = Transcript(tmp_path, "/w")
    for noise in (
        "<command-name>/clear</command-name>",
        "<local-command-stdout>x</local-command-stdout>",
        "Caveat: The messages below were generated by the user while running local commands",
        "<task-notification>done</task-notification>",
        "[Request interrupted by user for tool use]",
        "<system-reminder>be good</system-reminder>",
    ):
        transcript.user(noise)
    transcript.user("injected", isMeta=True)
    transcript.user("told", origin={"kind": "task-notification"})
    transcript.user("system", promptSource="system")
    transcript.user([{"type": "text", "text": "<system-reminder>x</system-reminder>"}, {"type": "image", "source": {"data": "QUJD"}}])
    transcript.user("the only prose")
    assert texts(tmp_path, transcript) == ["u:the only prose"]
    assert STORE.inspect(transcript.path).user_turns == 1


def test_a_rewound_branch_is_not_part_of_the_conversation(tmp_path: Path) -> None:
    transcript = Transcript(tmp_path, "/w")
    transcript.user("one")
    fork = transcript.says("answer")
    transcript.user("abandoned")
    transcript.says("abandoned answer")
    transcript.user("taken", parent=fork)
    transcript.says("final")
    assert texts(tmp_path, transcript) == ["u:one", "a:answer", "u:taken", "a:final"]
    assert STORE.inspect(transcript.path).user_turns == 3, "inspection counts in file order"


def test_all_results_of_parallel_calls_are_kept_in_file_order(tmp_path: Path) -> None:
    transcript = Transcript(tmp_path, "/w")
    transcript.user("go")
    calls = [transcript.call(f"t{n}", message="same") for n in range(3)]
    for n, parent in enumerate(calls):
        transcript.result(f"t{n}", f"result {n}", parent=parent)
    transcript.says("done")
    conversation = STORE.read(transcript.info(tmp_path))
    blocks = conversation.turns[1].blocks
    assert [block.id for block in blocks if isinstance(block, ToolCall)] == ["t0", "t1", "t2"]
    assert [block.text for block in blocks if isinstance(block, ToolResult)] == ["result 0", "result 1", "result 2"]
    assert [turn.role for turn in conversation.turns] == [USER, AGENT]


def test_a_parent_that_is_not_in_the_file_does_not_cut_the_conversation_off(tmp_path: Path) -> None:
    transcript = Transcript(tmp_path, "/w")
    transcript.user("early")
    transcript.says("answer")
    transcript.user("late", parent="phantom")
    transcript.says("end")
    assert texts(tmp_path, transcript) == ["u:early", "a:answer", "u:late", "a:end"]


def test_after_a_compaction_the_summary_stands_for_what_was_before(tmp_path: Path) -> None:
    transcript = Transcript(tmp_path, "/w")
    transcript.user("old one")
    transcript.says("old answer")
    transcript.user("old two")
    transcript.add("system", None, parent=None, subtype="compact_boundary", logicalParentUuid=transcript.last)
    transcript.user("This session is being continued … SUMMARY", isCompactSummary=True)
    transcript.user("new")
    transcript.says("new answer")
    conversation = STORE.read(transcript.info(tmp_path))
    assert [turn.text for turn in conversation.turns] == ["new", "new answer"]
    assert conversation.compaction is not None
    assert "SUMMARY" in conversation.compaction.summary
    assert conversation.compaction.turns_before == 2


def test_a_power_cut_costs_the_last_line_only(tmp_path: Path) -> None:
    transcript = Transcript(tmp_path, "/w")
    for number in range(100):
        transcript.user(f"question {number}")
        transcript.says(f"answer {number}")
    transcript.path.write_bytes(transcript.path.read_bytes()[:-37])
    conversation = STORE.read(transcript.info(tmp_path))
    assert len(conversation.user_turns()) == 100
    assert conversation.skipped_count == 1
    assert conversation.skipped[0].line == 200


def test_unknown_records_are_counted_and_progress_is_not_carried(tmp_path: Path) -> None:
    transcript = Transcript(tmp_path, "/w")
    transcript.user("go")
    for _ in range(20):
        transcript.add("progress", None, data={"x": "y" * 100})
    transcript.add("brand-new-kind", None)
    transcript.says("done")
    conversation = STORE.read(transcript.info(tmp_path))
    assert conversation.unknown == {"brand-new-kind": 1}
    assert [turn.text for turn in conversation.turns] == ["go", "done"]


def test_reading_clipped_keeps_both_ends_of_a_result_and_says_what_is_missing(tmp_path: Path) -> None:
    transcript = Transcript(tmp_path, "/w")
    transcript.user("go")
    transcript.call("t")
    transcript.result("t", "BEGIN" + "x" * 100_000 + "END")
    result = STORE.read(transcript.info(tmp_path), clip=300).results()["t"]
    assert len(result.text) < 400
    assert result.text.startswith("BEGIN")
    assert result.text.endswith("END")
    assert "characters omitted" in result.text


def test_the_tail_changes_when_somebody_else_writes_and_not_for_bookkeeping_leaves(tmp_path: Path) -> None:
    transcript = Transcript(tmp_path, "/w")
    transcript.user("one")
    leaf = transcript.says("two")
    before = STORE.tail(transcript.info(tmp_path))
    assert before.leaf == leaf
    assert before.size == transcript.path.stat().st_size
    transcript.raw({"type": "last-prompt", "lastPrompt": "one", "sessionId": ID})
    assert STORE.tail(transcript.info(tmp_path)).leaf == leaf
    transcript.user("three")
    assert STORE.tail(transcript.info(tmp_path)).leaf != leaf


def test_a_prompt_behind_large_context_is_still_found(tmp_path: Path) -> None:
    transcript = Transcript(tmp_path, "/w")
    transcript.add("attachment", None, attachment={"type": "skill_listing", "text": "x" * 100_000})
    transcript.user("the real prompt")
    transcript.add("attachment", None, attachment={"type": "environment", "text": "x" * 100_000})
    info = transcript.info(tmp_path)
    assert (info.cwd, info.first_prompt) == ("/w", "the real prompt")


def _register(root: Path, pid: int, status: str) -> None:
    (root / "sessions").mkdir(exist_ok=True)
    (root / "sessions" / f"{pid}.json").write_text(json.dumps({"pid": pid, "sessionId": ID, "cwd": "/w", "status": status}))


def test_a_session_is_live_while_its_process_lives(tmp_path: Path) -> None:
    transcript = Transcript(tmp_path, "/w")
    transcript.user("hello")
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        _register(tmp_path, process.pid, "busy")
        assert [info.live for info in STORE.list(tmp_path)] == [True]
        assert turns.turn_running(transcript.info(tmp_path)) is True
        _register(tmp_path, process.pid, "idle")
        assert turns.turn_running(transcript.info(tmp_path)) is False
    finally:
        process.communicate(b"\n", timeout=10)
    assert [info.live for info in STORE.list(tmp_path)] == [False]


def test_a_pid_given_to_a_later_process_does_not_make_a_session_live(tmp_path: Path) -> None:
    if not Path("/proc/self/stat").exists():
        pytest.skip("start times of processes are not known here")
    Transcript(tmp_path, "/w").user("hello")
    _register(tmp_path, os.getpid(), "busy")
    os.utime(tmp_path / "sessions" / f"{os.getpid()}.json", (1000, 1000))
    assert [info.live for info in STORE.list(tmp_path)] == [False]


def test_without_a_register_an_unfinished_turn_runs_only_while_the_file_is_fresh(tmp_path: Path) -> None:
    transcript = Transcript(tmp_path, "/w")
    transcript.user("go")
    changed = transcript.path.stat().st_mtime
    info = transcript.info(tmp_path)
    assert turns.turn_running(info, now=lambda: changed + 1) is True
    assert turns.turn_running(info, now=lambda: changed + 3600) is False
    transcript.call("t")
    assert turns.turn_running(info, now=lambda: transcript.path.stat().st_mtime) is True
    transcript.result("t")
    transcript.says("done")
    assert turns.turn_running(info, now=lambda: transcript.path.stat().st_mtime) is False
