"""Our client against an agent on the official SDK: the oracle says whether the wire is right."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator

import pytest

from tests.unit.acp_rig import LIMIT_S, REPO, Driven
from transports.acp import updates

pytest.importorskip("acp", reason="the official ACP SDK is not installed (extra: oracle)")


@pytest.fixture
def driven() -> Iterator[Driven]:
    made = Driven([sys.executable, str(REPO / "tests" / "fakes" / "sdk_agent.py")])
    yield made
    made.close()


def test_the_handshake_in_all_its_forms_is_understood(driven: Driven) -> None:
    info = driven.client.initialize(30)
    assert (info.name, info.version) == ("oracle", "1")
    assert all(info.can(what) for what in ("load", "resume", "fork", "list"))
    fresh = driven.client.new("/", [{"name": "x", "command": "/bin/true", "args": [], "env": [{"name": "A", "value": "b"}]}], LIMIT_S)
    assert (fresh.session, fresh.mode, fresh.modes) == ("s-sdk", "b", (("a", "a"), ("b", "b")))
    driven.client.set_mode("s-sdk", "a", LIMIT_S)
    assert driven.client.load("s-1", "/", [], LIMIT_S).replayed == 2
    driven.client.settle(0.05, 2.0, time.monotonic)
    assert driven.client.resume("s-1", "/", [], LIMIT_S).session == "s-1"
    assert driven.client.fork("s-1", "/", [], LIMIT_S).session == "s-1-fork"
    assert driven.client.list_sessions(LIMIT_S, cwd="/")["sessions"][0]["sessionId"] == "s-sdk"
    assert driven.heard == []


@pytest.mark.requires("H3.acp-oracle")
def test_turns_permissions_and_cancels_are_understood(driven: Driven) -> None:
    driven.client.initialize(30)
    session = driven.client.new("/", [], LIMIT_S).session
    assert driven.prompt(session, "grüß dich 你好").result(LIMIT_S)["stopReason"] == "end_turn"
    turn = driven.prompt(session, "ask")
    permission = driven.asked.get(timeout=LIMIT_S)
    assert permission.title == "rm -rf /"
    driven.client.answer(permission, "n")
    turn.result(LIMIT_S)
    asking = driven.prompt(session, "ask")
    driven.asked.get(timeout=LIMIT_S)
    driven.client.cancel(session)
    asking.result(LIMIT_S)
    waiting = driven.prompt(session, "wait")
    driven.said("waiting")
    driven.client.cancel(session)
    assert waiting.result(LIMIT_S)["stopReason"] == "cancelled"
    assert driven.texts() == ["grüß dich 你好", "selected n", "cancelled ", "waiting"]
    assert any(isinstance(e, updates.Thought) for _, e in driven.heard)
