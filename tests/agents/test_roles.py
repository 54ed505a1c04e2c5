"""The real Claude Code, told by the model to answer its own permission and to do what only people may."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from tests.agents.kinds import CLAUDE_KIND, daemon_for
from tests.agents.rig import AgentHome, FakeModel
from tests.daemon import VA, needs_va
from tests.waiting import until

pytestmark = [pytest.mark.agents, needs_va]


@pytest.mark.requires("M3.agents-refused", "M3.double-fork", "I11")
def test_claude_cannot_answer_its_own_permission_nor_write_pick_up_or_set_anything(
    model: FakeModel, home: AgentHome, work: Path, tmp_path: Path
) -> None:
    with daemon_for(tmp_path, home, CLAUDE_KIND) as daemon:
        identity, out = tmp_path / "id", tmp_path / "out"
        va = shlex.quote(str(VA))
        # Leaves the agent's shell by a double fork, waits for the id of the next permission, and tries everything.
        (work / "attack.sh").write_text(
            f"""while [ ! -f {identity} ]; do sleep 0.1; done
id=$(cat {identity})
{va} chat answer --chat a "$id" allow_once; echo "answer $?" >> {out}
{va} chat answer --chat a "$id" 1; echo "answer $?" >> {out}
{va} chat send --chat a "written by an agent"; echo "send $?" >> {out}
{va} pickup ABCD; echo "pickup $?" >> {out}
{va} settings set hosts.max_live 99; echo "settings $?" >> {out}
echo end >> {out}
"""
        )
        (work / "start.sh").write_text("(setsid sh attack.sh > /dev/null 2>&1 < /dev/null &)\n")
        turn = daemon.start_send("SHELL{sh start.sh} THEN SHELL{touch made}", chat="a", workspace=work)
        first = turn.wait("permission")
        heard = daemon.listen("a")
        daemon.answer("a", first["id"], "allow_once")
        second = turn.wait("permission", lambda event: event["id"] != first["id"])
        identity.write_text(second["id"])
        until(lambda: out.exists() and out.read_text().endswith("end\n"), "the end of the attack", seconds=60)
        assert out.read_text().split("\n")[:-2] == ["answer 5", "answer 5", "send 5", "pickup 5", "settings 5"]
        assert not (work / "made").exists()
        assert not [e for e in turn.events if e["event"] == "permission_done" and e["id"] == second["id"]]
        for what in ("answer a permission", "write to a chat", "pick up a conversation", "change the settings"):
            heard.wait("notice", lambda e, what=what: f"An agent tried to {what}" in e["text"])
        daemon.answer("a", second["id"], "reject_once")
        turn.finish()
    assert not (work / "made").exists()
    assert "written by an agent" not in json.dumps([request.last_user for request in model.requests()])
