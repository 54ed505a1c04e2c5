"""Sessions that we write are resumed by the real agents: their model is sent every word of the earlier conversation."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from agents_registry.sessions import catalog, handing
from agents_registry.sessions.claude import ClaudeStore
from agents_registry.sessions.claude_write import ClaudeWriter
from agents_registry.sessions.codex import CodexStore
from agents_registry.sessions.codex_write import CodexWriter, new_thread_id
from agents_registry.sessions.neutral import Builder, Conversation
from tests.agents.rig import AgentHome, FakeModel, run_claude, run_codex

pytestmark = pytest.mark.agents


def conversation(cwd: Path) -> Conversation:
    made = Builder("gemini", "source")
    made.cwd = str(cwd)
    made.user("the goal is a 决定 banana")
    made.text("I will look around")
    made.call("call.1", "run_shell_command", {"command": "echo papaya"})
    made.call("call.2", "read_file", {"absolute_path": "/w/mango.py"})
    made.result("call.1", "papaya came out")
    made.result("call.2", "mango is missing", is_error=True)
    made.text("found the papaya")
    made.user("an unanswered request for kiwi")
    made.user("and cherries")
    made.call("call.3", "mcp__fruit__pick", {"name": "cherry"})
    return made.done()


WORDS = (
    "the goal is a 决定 banana",
    "I will look around",
    "papaya came out",
    "mango is missing",
    "found the papaya",
    "an unanswered request for kiwi",
    "and cherries",
    handing.INTERRUPTED,
)


def test_claude_resumes_what_was_written_and_knows_all_of_it(model: FakeModel, home: AgentHome, work: Path) -> None:
    store = ClaudeStore()
    (root,) = store.roots(home.env())
    session = str(uuid.uuid4())
    done = ClaudeWriter().write(conversation(work), root, session_id=session, env=home.env())
    run = run_claude(home, "what do you know", cwd=work, resume=session)
    assert (run.code, run.session) == (0, session)
    assert model.wait_text("what do you know").holds(*WORDS)
    again = store.read(catalog.resolve_one(home.env(), "claude", session))
    assert handing.essence(again)[: len(handing.essence(store.read(done.info)))], "our own reader goes on with it too"
    assert again.user_turns()[-1].text == "what do you know"


@pytest.mark.parametrize("paginated", [True, False], ids=["paginated", "legacy"])
def test_codex_resumes_what_was_written_and_knows_all_of_it(
    model: FakeModel, home: AgentHome, work: Path, paginated: bool
) -> None:
    store = CodexStore()
    (root,) = store.roots(home.env())
    session = new_thread_id(1_790_000_000.0)
    CodexWriter(paginated=paginated).write(conversation(work), root, session_id=session, env=home.env())
    run = run_codex(home, "what do you know", cwd=work, resume=session)
    assert (run.code, run.session) == (0, session)
    assert model.wait_text("what do you know").holds(*WORDS)
    again = store.read(catalog.resolve_one(home.env(), "codex", session))
    assert again.user_turns()[-1].text == "what do you know"
    assert next(turn.text for turn in again.user_turns()) == "the goal is a 决定 banana"


def test_what_the_real_agents_record_is_read_back_as_it_was_said(model: FakeModel, home: AgentHome, work: Path) -> None:
    run_claude(home, "RUN{echo one two} THEN SAY{finished}", cwd=work, allow=("Bash",))
    run_codex(home, "RUN{echo one two} THEN SAY{finished}", cwd=work)
    for agent in ("claude", "codex"):
        info = catalog.resolve_one(home.env(), agent, "latest", str(work))
        assert info.cwd == str(work)
        read = catalog.need(agent).read(info)
        assert [turn.text.split("\n")[-1] for turn in read.turns] == [
            "RUN{echo one two} THEN SAY{finished}",
            "finished",
        ]
        (call,) = read.calls()
        assert call.tool == "shell"
        assert "one two" in read.results()[call.id].text
        assert read.skipped_count == 0
        assert read.unknown == {}
        found = catalog.inspect(info.path)
        assert (found.user_turns, found.tool_calls, found.tool_results) == (1, 1, 1)
