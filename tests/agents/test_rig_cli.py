"""The rig drives the plain command lines of Claude Code and Codex against the fake model."""

from __future__ import annotations

import sys
import uuid
from pathlib import Path

import pytest

from tests.agents.rig import ROOT, AgentHome, FakeModel, run_claude, run_codex

pytestmark = pytest.mark.agents


def test_claude_resumes_a_session_and_the_model_is_sent_its_earlier_turn(
    model: FakeModel, home: AgentHome, work: Path
) -> None:
    chosen = str(uuid.uuid4())
    first = run_claude(home, "remember banana", cwd=work, session_id=chosen)
    second = run_claude(home, "and now", cwd=work, resume=chosen)
    assert (first.code, first.session, first.text) == (0, chosen, "ECHO#1: remember banana")
    assert (second.code, second.session, second.text) == (0, chosen, "ECHO#2: and now")
    assert model.wait_text("and now").holds("remember banana", "ECHO#1: remember banana")
    assert [path.stem for path in home.claude_sessions()] == [chosen]


def test_codex_resumes_a_session_and_the_model_is_sent_its_earlier_turn(
    model: FakeModel, home: AgentHome, work: Path
) -> None:
    first = run_codex(home, "remember banana", cwd=work)
    second = run_codex(home, "and now", cwd=work, resume=first.session)
    assert (first.code, first.text) == (0, "ECHO#1: remember banana")
    assert (second.code, second.session, second.text) == (0, first.session, "ECHO#2: and now")
    assert model.wait_text("and now").holds("remember banana", "ECHO#1: remember banana")
    assert [path.stem.endswith(first.session) for path in home.codex_sessions()] == [True]


def test_claude_runs_three_tool_calls_of_one_answer_in_steps(model: FakeModel, home: AgentHome, work: Path) -> None:
    text = "RUN{echo one} RUN{echo two} THEN WRITE{%s|three} THEN SAY{finished}" % (work / "file.txt")
    run = run_claude(home, text, cwd=work, allow=("Bash", "Write"))
    assert run.text == "finished"
    assert (work / "file.txt").read_text() == "three"
    last = model.requests()[-1]
    # parallel calls come back in the order in which they ended
    assert {text for role, text in last.turns if role == "result"} >= {"one", "two"}


def test_codex_runs_a_command_in_its_sandbox(model: FakeModel, home: AgentHome, work: Path) -> None:
    run = run_codex(home, "RUN{echo made > made.txt; cat made.txt}", cwd=work)
    assert run.text.startswith("TOOL-RESULT#1:") and "made" in run.text
    assert (work / "made.txt").read_text() == "made\n"


@pytest.mark.parametrize("run", [run_claude, run_codex])
def test_an_mcp_server_of_the_home_is_called_by_the_agent(model: FakeModel, home: AgentHome, work: Path, run) -> None:  # type: ignore[no-untyped-def]
    home.add_mcp_server("probe", [sys.executable, str(ROOT / "tests/fakes/mcp_server.py")])
    assert "42" in run(home, 'MCP{add|{"a": 40, "b": 2}}', cwd=work).text


def test_an_error_of_the_model_is_the_failure_of_the_run(model: FakeModel, home: AgentHome, work: Path) -> None:
    assert run_claude(home, "ERR{400}", cwd=work).code != 0
    assert run_codex(home, "ERR{400}", cwd=work).code != 0
