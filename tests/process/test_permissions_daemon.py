"""Permissions with every process real: three in one turn; one that outlives a killed supervisor and reaches a chat that joins."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.daemon import needs_va
from tests.process.fake_hosted import fake_daemon

pytestmark = needs_va


@pytest.fixture
def work(tmp_path: Path) -> Path:
    place = tmp_path.resolve() / "work"
    place.mkdir()
    return place


@pytest.mark.requires("M3.three-in-one-turn")
def test_three_permissions_of_one_turn_are_asked_and_answered_one_by_one(tmp_path: Path, work: Path) -> None:
    with fake_daemon(tmp_path) as daemon:
        turn = daemon.start_send("askmany 3", chat="a", workspace=work)
        seen: list[str] = []
        for option in ("o-yes", "o-no", "o-ever"):
            permission = turn.wait("permission", lambda e: e["id"] not in seen)
            seen.append(permission["id"])
            daemon.answer("a", permission["id"], option)
            assert daemon.answer("a", permission["id"], "o-yes", check=False).code == 5
        done = turn.finish()
    assert done.text.split() == ["answered", "o-yes", "answered", "o-no", "answered", "o-ever"]
    assert len(set(seen)) == 3


@pytest.mark.requires("M3.survives-restart")
def test_an_open_permission_is_answered_after_the_supervisor_was_killed_and_the_agent_heard_it_once(
    tmp_path: Path, work: Path
) -> None:
    log = tmp_path / "log"
    with fake_daemon(tmp_path, {"log": str(log)}) as daemon:
        turn = daemon.start_send("ask; say after", chat="a", workspace=work)
        permission = turn.wait("permission")
        (host,) = daemon.status()["hosts"]
        daemon.kill()
        turn.end()
        daemon.start()
        listener = daemon.listen("a")
        assert listener.wait("permission")["id"] == permission["id"]
        daemon.answer("a", permission["id"], "o-yes")
        listener.wait("text", lambda e: e["final"] and "after" in e["text"])
        listener.wait("done")
        assert daemon.status()["hosts"][0]["pid"] == host["pid"]
        late = daemon.answer("a", permission["id"], "o-no", check=False)
        assert late.code == 5
        assert "already" in late.err
    answers = [line for line in log.read_bytes().splitlines() if b'"outcome"' in line]
    assert [json.loads(line)["result"]["outcome"]["optionId"] for line in answers] == ["o-yes"]
