"""The rig drives the pinned ACP adapters against the fake model."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.agents.rig import AcpProbe, AcpRefusal, AgentHome, FakeModel, claude_acp, codex_acp, result_of

Adapter = Callable[..., AbstractContextManager[AcpProbe]]

pytestmark = [pytest.mark.agents, pytest.mark.parametrize("adapter", [claude_acp, codex_acp])]


def test_a_session_is_loaded_again_after_the_adapter_was_killed(
    model: FakeModel, home: AgentHome, work: Path, adapter: Adapter
) -> None:
    with adapter(home, work) as probe:
        session = probe.new_session(work)
        assert probe.prompt(session, "remember banana") == "end_turn"
        assert "ECHO#1: remember banana" in probe.text()
        home.wait_stored(session, "ECHO#1: remember banana")
        probe.kill()
    with adapter(home, work) as probe:
        probe.load_session(session, work)
        assert "remember banana" in probe.text("user_message_chunk")
        assert probe.prompt(session, "and now") == "end_turn"
    assert model.wait_text("and now").holds("remember banana", "ECHO#1: remember banana")


@pytest.mark.parametrize(("kind", "ran"), [("allow_once", True), ("reject_once", False)])
def test_a_command_runs_only_when_the_client_allows_it(
    model: FakeModel, home: AgentHome, work: Path, adapter: Adapter, kind: str, ran: bool
) -> None:
    with adapter(home, work, choose=kind) as probe:
        probe.prompt(probe.new_session(work), "SHELL{touch made}")
        assert len(probe.permissions) == 1
    assert (work / "made").exists() == ran


def test_a_turn_is_cancelled_in_mid_stream(model: FakeModel, home: AgentHome, work: Path, adapter: Adapter) -> None:
    with adapter(home, work) as probe:
        session = probe.new_session(work)
        answer = probe.start_prompt(session, "SLOW{6|0} GATE{never}")
        asked = model.wait_text("GATE{never}")
        probe.notify("session/cancel", {"sessionId": session})
        assert result_of(answer)["stopReason"] == "cancelled"
        assert model.wait_ended(asked) == "aborted"


def test_a_gate_holds_an_answer_until_it_is_released(
    model: FakeModel, home: AgentHome, work: Path, adapter: Adapter
) -> None:
    with adapter(home, work) as probe:
        answer = probe.start_prompt(probe.new_session(work), "SLOW{4|0} GATE{half}")
        asked = model.wait_text("GATE{half}")
        assert model.ended(asked) == ""
        model.release("half")
        assert result_of(answer)["stopReason"] == "end_turn"
        assert model.wait_ended(asked) == "done"
        assert "slow-0 slow-1 slow-2 slow-3" in probe.text()


def test_an_unknown_session_is_refused(model: FakeModel, home: AgentHome, work: Path, adapter: Adapter) -> None:
    with adapter(home, work) as probe, pytest.raises(AcpRefusal):
        probe.load_session("00000000-0000-4000-8000-000000000000", work)
