"""The rig drives the terminal forms of Claude Code and Codex in tmux."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.agents.rig import AgentHome, FakeModel, claude_tui, codex_tui, run_claude, run_codex

pytestmark = pytest.mark.agents


def test_claude_in_a_terminal_goes_on_with_an_earlier_session(model: FakeModel, home: AgentHome, work: Path) -> None:
    earlier = run_claude(home, "remember banana", cwd=work)
    with claude_tui(home, work, "--resume", earlier.session) as tui:
        tui.type("what was it")
        tui.wait_for("ECHO#2: what was it")
        live = json.loads((home.claude_config / "sessions" / f"{tui.pid}.json").read_text())
    assert live["sessionId"] == earlier.session
    assert model.wait_text("what was it").holds("remember banana")


def test_codex_in_a_terminal_goes_on_with_an_earlier_session(model: FakeModel, home: AgentHome, work: Path) -> None:
    earlier = run_codex(home, "remember banana", cwd=work)
    with codex_tui(home, work, "resume", earlier.session) as tui:
        tui.type("what was it")
        tui.wait_for("ECHO#2: what was it")
    assert model.wait_text("what was it").holds("remember banana")


def test_claude_asks_in_the_terminal_before_it_runs_a_command(model: FakeModel, home: AgentHome, work: Path) -> None:
    with claude_tui(home, work) as tui:
        tui.type("SHELL{touch made}")
        tui.wait_for("Do you want to proceed")
        assert not (work / "made").exists()
        tui.decide("Enter", dialog="Do you want to proceed")
        tui.wait_for("TOOL-RESULT#1")
    assert (work / "made").exists()


def test_codex_asks_in_the_terminal_before_it_runs_a_command(model: FakeModel, home: AgentHome, work: Path) -> None:
    with codex_tui(home, work) as tui:
        tui.type("SHELL{touch made}")
        tui.wait_for("Would you like to run")
        assert not (work / "made").exists()
        tui.decide("Enter", dialog="Would you like to run")
        tui.wait_for("TOOL-RESULT#1")
    assert (work / "made").exists()
