"""What is carried to another agent: goal, constraints, decisions, todos, files, commands, errors, next; within a budget."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from agents_registry.errors import RefusedError
from agents_registry.relay import Carried, Options, carry
from agents_registry.relay.budget import border, cut, cut_to_tokens, estimate
from agents_registry.relay.facts import gather
from agents_registry.sessions.neutral import Builder, Conversation, Text, ToolResult


def planned(cwd: str = "/w") -> Conversation:
    made = Builder("claude", "source-1")
    made.cwd, made.model = cwd, "some-model"
    made.user("Build a parser for the banana format.")
    made.text("Looking first.")
    made.call("r1", "Read", {"file_path": f"{cwd}/spec.md"})
    made.result("r1", "the spec")
    made.call("b1", "Bash", {"command": "make test"})
    made.result("b1", "collected 3\nERROR: no rule to make target", is_error=True)
    made.user("You must not add dependencies. Keep it small.")
    made.text("We decided to write a recursive descent parser. The rest is detail.")
    made.call("e1", "Edit", {"file_path": f"{cwd}/parser.py", "old_string": "a\nb", "new_string": "c"})
    made.result("e1", "ok")
    made.call("b2", "Bash", {"command": "make test"})
    made.result("b2", "3 passed")
    todos = [{"content": "lexer", "status": "completed"}, {"content": "error messages", "status": "in_progress"}]
    made.call("t1", "TodoWrite", {"todos": todos})
    made.result("t1", "ok")
    for number in range(6):
        made.user(f"small question {number}")
        made.text(f"small answer {number}")
    return made.done()


def sections(carried: Carried) -> dict[str, str]:
    return {part.split("\n")[0]: part for part in carried.brief.split("\n## ")}


@pytest.mark.requires("R4.brief")
def test_a_brief_names_goal_constraints_decisions_todos_files_commands_errors_and_what_is_next(tmp_path: Path) -> None:
    (tmp_path / "parser.py").write_text("c\n")
    carried = carry(planned(str(tmp_path)), "codex")
    told = sections(carried)
    assert "Build a parser for the banana format." in told["Goal (the first request)"]
    assert "You must not add dependencies." in told["Constraints named later"]
    assert "- We decided to write a recursive descent parser.\n" in told["Decisions and conclusions"] + "\n"
    assert told["Todo list"].split("\n")[2:] == ["- [~] error messages", "- [x] lexer", ""]
    digest = hashlib.sha256(b"c\n").hexdigest()
    assert f"- `{tmp_path}/parser.py` +1 −2, sha256 {digest}" in told["Files changed"]
    assert f"- `{tmp_path}/spec.md`, missing now" in told["Files read"]
    assert "- `make test` (×2): ok" in told["Commands run"]
    assert "- `make test`: ERROR: no rule to make target → later succeeded" in told["Errors met"]
    assert "- error messages" in told["What is next"]
    assert "- Agent: claude\n- Session: source-1" in told["Where it comes from"]
    assert [turn.text for turn in carried.turns][::2] == [f"small question {number}" for number in range(6)]


def test_the_same_session_gives_the_same_brief() -> None:
    assert carry(planned(), "codex").as_text() == carry(planned(), "codex").as_text()


def test_chinese_words_make_a_chinese_brief_and_are_found_as_decisions() -> None:
    made = Builder("codex", "s")
    made.cwd = "/w"
    made.user("请写一个香蕉解析器。")
    made.text("好的。我们决定采用递归下降。其他以后再说。")
    made.user("注意：不要增加依赖。")
    made.text("明白。")
    made.user("继续")
    made.text("完成。")
    carried = carry(made.done(), "claude", Options(recent=1))
    told = sections(carried)
    assert "请写一个香蕉解析器。" in told["目标（第一个请求）"]
    assert told["决定与结论"].split("\n")[2:] == ["- 我们决定采用递归下降。", ""]
    assert "- 注意：不要增加依赖。" in told["后来提出的约束"]
    assert carried.as_text().rstrip().endswith("然后等待下一个请求。")


def test_a_brief_as_text_opens_as_a_record_and_ends_with_the_next_step_or_asks_to_wait() -> None:
    text = carry(planned(), "kimi").as_text()
    assert text.startswith("Record of earlier work with another tool, not a new request.\n")
    assert text.endswith("and wait for the next request.\n")
    assert carry(planned(), "kimi", Options(next_step="Write the lexer.")).as_text().endswith("\n\nWrite the lexer.\n")
    assert "ask before assuming" in text


@pytest.mark.requires("R4.brief")
def test_everything_stays_within_the_budget_and_what_goes_is_named() -> None:
    made = Builder("claude", "s")
    made.cwd = "/w"
    made.user("The goal is banana. " * 200)
    for number in range(300):
        made.user(f"You must always do thing {number} with great care and patience, whatever it costs.")
        made.text(f"We decided on the answer number {number}, after a long thought about it.")
        made.call(f"c{number}", "Bash", {"command": f"run --number {number}"})
        made.result(f"c{number}", "output " * 3000)
    made.user("the very last request")
    for budget in (1000, 3000, 16000):
        carried = carry(made.done(), "codex", Options(budget=budget))
        assert carried.report.tokens <= budget
        assert estimate(carried.as_text()) <= budget * 1.1 + 60
        assert carried.turns[-1].text == "the very last request"
        assert "omitted" in carried.brief or budget == 16000
        assert budget == 16000 or carried.report.dropped["decisions"].endswith(" items")
    assert "decided on the answer number 28" in carried.brief, "the latest are kept"


def test_what_the_whole_session_needs_is_compared_with_half_of_the_window() -> None:
    made = Builder("claude", "s")
    made.user("x " * 300_000)
    with pytest.raises(RefusedError) as caught:
        carry(made.done(), "codex", Options(full=True))
    assert "150" in caught.value.message
    assert caught.value.code == "too_large"
    carried = carry(made.done(), "codex", Options(full=True, force=True))
    assert carried.brief == ""
    assert [turn.text[:4] for turn in carried.as_conversation().turns] == ["x x ", "## W"]


def test_after_a_compaction_its_summary_is_carried() -> None:
    made = Builder("claude", "s")
    made.user("lost")
    made.compact("The summary speaks of cherries.")
    made.user("go on")
    told = carry(made.done(), "codex")
    assert "The summary speaks of cherries." in told.brief
    full = carry(made.done(), "codex", Options(full=True)).as_conversation()
    assert full.compaction is not None
    assert "cherries" in full.compaction.summary


def test_a_short_session_or_one_with_nothing_open_is_better_begun_anew() -> None:
    made = Builder("claude", "s")
    made.user("only one")
    assert carry(made.done(), "codex").report.advice == "The session has only 1 request"
    assert carry(planned(), "codex").report.advice == ""
    closed = Builder("claude", "s")
    for number in range(6):
        closed.user(f"request {number}")
        closed.call("t", "TodoWrite", {"todos": [{"content": "a", "status": "completed"}]})
        closed.text("all good")
    assert "every todo is done" in carry(closed.done(), "codex").report.advice


def test_a_session_that_came_from_a_relay_keeps_its_goal_on_the_next_one() -> None:
    first = carry(planned(), "codex").as_conversation()
    first.agent = "codex"
    told = sections(carry(first, "claude"))
    assert "Build a parser for the banana format." in told["Goal (the first request)"]
    assert "recursive descent" in carry(first, "claude").brief
    turns = carry(first, "claude").turns
    assert not any("Where this record ends" in turn.text for turn in turns)


@pytest.mark.parametrize("whole", ["👩‍💻", "🇯🇵", "e\u0301", "👍🏽", "한", "\r\n", "☎️"])
def test_no_cut_parts_what_is_seen_as_one_character(whole: str) -> None:
    text = "ab" + whole * 3 + "cd"
    allowed = {0, 1, 2, *(2 + len(whole) * n for n in range(1, 4)), len(text) - 1, len(text)}
    assert {border(text, at) for at in range(len(text) + 1)} <= allowed


def test_a_cut_says_how_much_is_gone_and_fits() -> None:
    text, omitted = cut("a" * 100 + "b" * 100, 60)
    assert (text, omitted) == ("a" * 40 + "\n[… 140 characters omitted …]\n" + "b" * 20, 140)
    made, gone = cut_to_tokens("决定" * 1000, 100)
    assert estimate(made) <= 100
    assert gone > 1800


def test_failed_commands_without_an_error_mark_are_known_by_their_exit_code() -> None:
    made = Builder("codex", "s")
    made.user("go")
    made.call("a", "exec_command", {"cmd": "false"})
    made.result("a", "Process exited with code 1\nOutput:\nboom error")
    facts = gather(made.done())
    assert [(one.line, one.outcome) for one in facts.commands.values()] == [("false", "failed")]
    assert facts.failures[0].recovered is False


def test_tool_output_of_the_last_turns_is_shortened_before_whole_turns_go() -> None:
    made = Builder("claude", "s")
    for number in range(6):
        made.user(f"request {number}")
        made.call(f"c{number}", "Bash", {"command": "cat big"})
        made.result(f"c{number}", "line\n" * 5000)
        made.text(f"answer {number}")
    carried = carry(made.done(), "codex", Options(budget=4000))
    assert carried.report.recent == 6
    results = [block for turn in carried.turns for block in turn.blocks if isinstance(block, ToolResult)]
    assert len(results) == 6
    assert all("characters omitted" in block.text for block in results)
    assert [block.text for turn in carried.turns for block in turn.blocks if isinstance(block, Text)][-1] == "answer 5"
