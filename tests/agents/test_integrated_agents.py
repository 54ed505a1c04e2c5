"""What `va integrate` wrote, as the real agents take it: the skill is offered and expanded, the server starts, its tools answer."""

from __future__ import annotations

import json
import uuid
from pathlib import Path

import pytest

from agents_registry.integrate import apply
from agents_registry.launch import shim_command
from agents_registry.loader import load_registry
from tests.agents.rig import ROOT, AgentHome, FakeModel, run_claude, run_codex

pytestmark = pytest.mark.agents


@pytest.fixture
def integrated(home: AgentHome, tmp_path: Path) -> AgentHome:
    """The home of this test, with both agents integrated; the data directory has no supervisor."""
    command = shim_command(ROOT / "transports" / "mcp" / "shim.py", tmp_path / "no supervisor")
    for agent in ("claude", "codex"):
        apply.integrate(load_registry(None).get(agent), command, home.env())
    return home


def test_claude_expands_the_skill_with_the_id_of_the_session_that_it_is_typed_in(
    model: FakeModel, integrated: AgentHome, work: Path
) -> None:
    chosen = str(uuid.uuid4())
    run_claude(integrated, "/vibearound handover", cwd=work, session_id=chosen)
    asked = json.dumps([request.body for request in model.requests()], ensure_ascii=False)
    assert "prepare_handover" in asked
    assert f"`session_id`: `{chosen}`" in asked
    assert "${CLAUDE_SESSION_ID}" not in asked


def test_claude_calls_the_entered_server(integrated: AgentHome, work: Path) -> None:
    call = json.dumps({"cwd": str(work), "agent_kind": "claude"})
    run = run_claude(integrated, f"MCP{{prepare_handover|{call}}}", cwd=work, allow=("mcp__vibearound",))
    assert "va up" in run.text


def test_codex_offers_the_skill_and_calls_the_entered_server_though_nobody_can_be_asked(
    model: FakeModel, integrated: AgentHome, work: Path
) -> None:
    call = json.dumps({"cwd": str(work), "agent_kind": "codex"})
    run = run_codex(integrated, f"MCP{{prepare_handover|{call}}}", cwd=work)
    assert "va up" in run.text
    asked = json.dumps([request.body for request in model.requests()], ensure_ascii=False)
    assert "Hand this conversation over to another chat" in asked


def test_codex_tells_its_commands_the_thread_that_the_skill_asks_for(integrated: AgentHome, work: Path) -> None:
    run = run_codex(integrated, "RUN{echo $CODEX_THREAD_ID}", cwd=work)
    assert run.session in run.text
