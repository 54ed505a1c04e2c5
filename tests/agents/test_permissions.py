"""Permissions of real agents: several in one turn, and one that outlives the supervisor that showed it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.agents.kinds import CLAUDE_KIND, CODEX_KIND, Kind, daemon_for
from tests.agents.rig import AgentHome, FakeModel
from tests.daemon import needs_va
from tests.waiting import until

pytestmark = [pytest.mark.agents, needs_va]
both = pytest.mark.parametrize("kind", [CLAUDE_KIND, CODEX_KIND], ids=lambda kind: kind.id)


@both
@pytest.mark.requires("M3.three-in-one-turn")
def test_three_permissions_of_one_turn_each_get_their_own_answer(
    model: FakeModel, home: AgentHome, work: Path, tmp_path: Path, kind: Kind
) -> None:
    with daemon_for(tmp_path, home, kind) as daemon:
        text = " THEN ".join(f"SHELL{{touch made-{n}}}" for n in range(3))
        turn = daemon.start_send(text, chat="a", workspace=work)
        seen: list[str] = []
        for number in range(3):
            asked = turn.wait("permission", lambda e: e["id"] not in seen)
            seen.append(asked["id"])
            assert not (work / f"made-{number}").exists()
            daemon.answer("a", asked["id"], "allow_once")
        assert turn.finish().code == 0
    assert sorted(path.name for path in work.glob("made-*")) == ["made-0", "made-1", "made-2"]


@both
@pytest.mark.requires("M3.survives-restart")
def test_a_permission_is_answered_under_the_next_supervisor(
    model: FakeModel, home: AgentHome, work: Path, tmp_path: Path, kind: Kind
) -> None:
    with daemon_for(tmp_path, home, kind) as daemon:
        turn = daemon.start_send("SHELL{touch made}", chat="a", workspace=work)
        asked = turn.wait("permission")
        daemon.kill()
        turn.end()
        daemon.start()
        listener = daemon.listen("a")
        assert listener.wait("permission")["id"] == asked["id"]
        assert not (work / "made").exists()
        daemon.answer("a", asked["id"], "allow_once")
        until(lambda: (work / "made").exists(), "the permitted command has run")
        listener.wait("done")
