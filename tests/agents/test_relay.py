"""A conversation moves to another agent: the real one resumes it, and its model is sent goal, decisions and last turns."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.agents.home import AgentHome
from tests.agents.kinds import CLAUDE_KIND, CODEX_KIND, Kind
from tests.agents.rig import FakeModel

pytestmark = pytest.mark.agents
KINDS = {"claude": CLAUDE_KIND, "codex": CODEX_KIND}


def va(home: AgentHome, data: Path, cwd: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "transports.cli.main", "--data-dir", str(data), *words]
    return subprocess.run(command, cwd=cwd, env={**home.env(), "PWD": str(cwd)}, capture_output=True, text=True, timeout=100, stdin=subprocess.DEVNULL)


def relayed(home: AgentHome, data: Path, cwd: Path, *words: str) -> dict[str, Any]:
    done = va(home, data, cwd, "relay", *words, "--json")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def talk(kind: Kind, home: AgentHome, work: Path, *prompts: str) -> str:
    session = ""
    for prompt in prompts:
        run = kind.run(home, prompt, cwd=work, **({"resume": session} if session else {}))
        assert run.code == 0, run.errors
        session = run.session
    return session


@pytest.mark.parametrize(("source", "target"), [("claude", "codex"), ("codex", "claude")])
def test_the_receiving_agent_goes_on_with_goal_decisions_and_last_turns_and_back_comes_what_is_new(
    source: str, target: str, model: FakeModel, home: AgentHome, work: Path, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    goal = "The goal is a banana parser."
    first = talk(KINDS[source], home, work, goal, "SAY{We decided to use recursive descent.}", "You must not add kiwi.", "third thing", "fourth thing")
    moved = relayed(home, data, work, f"{source}:latest", "--to", target, "--recent", "2")
    assert (moved["way"], moved["cwd"], moved["notes"]) == ("native", str(work), [])
    session = moved["session"]
    assert KINDS[target].run(home, "and now go on", cwd=work, resume=session).code == 0
    asked = model.wait_text("and now go on")
    assert asked.holds(
        "Record of earlier work with another tool, not a new request.", goal, "We decided to use recursive descent.", "You must not add kiwi.",
        "third thing", "fourth thing", "ask before assuming",
    )  # fmt: skip

    back = relayed(home, data, work, f"{target}:{session}", "--to", source)
    assert (back["way"], back["session"]) == ("resume", first)
    assert "and now go on" in back["text"]
    assert goal not in back["text"], "the earlier session knows that"
    again = va(home, data, work, "relay", f"{target}:{session}", "--to", source)
    assert again.returncode == 5
    assert "Nothing is new" in again.stderr
    shown = json.loads(va(home, data, work, "relay", "map", "--json").stdout)
    assert [{row["a"]["id"], row["b"]["id"]} for row in shown] == [{first, session}]


def test_a_source_is_left_as_it_is_and_full_carries_every_word_and_tool_call(
    model: FakeModel, home: AgentHome, work: Path, tmp_path: Path
) -> None:
    from agents_registry.sessions import catalog

    session = talk(CODEX_KIND, home, work, "remember mango", "RUN{echo one two} THEN SAY{finished}")
    path = catalog.resolve_one(home.env(), "codex", session).path
    before = path.read_bytes()
    refused = va(home, tmp_path / "data", work, "relay", f"codex:{session}", "--to", "claude", "--full")
    assert (refused.returncode, "only 2 requests" in refused.stderr) == (5, True)
    moved = relayed(home, tmp_path / "data", work, f"codex:{session}", "--to", "claude", "--full", "--force")
    assert path.read_bytes() == before
    assert CLAUDE_KIND.run(home, "what was it", cwd=work, resume=moved["session"]).code == 0
    assert model.wait_text("what was it").holds("remember mango", "ECHO#1: remember mango", "echo one two", "one two", "finished")
