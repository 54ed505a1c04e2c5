"""Who may say what to whom: every message of the vocabulary to every kind of address, by every role."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from actors import policy
from transports.bus.api import Peer
from transports.bus.codec import known_tags

ADDRESSES = (
    "route/cli:local:a", "route/x:bot:1", "thread/wt_1", "thread/wt_2", "agent/wt_1/host", "handover", "attacher", "workspaces",
    "catalog", "journal", "history", "reader", "reader/1", "spawner", "supervisor", "hosts", "mcp", "peer/7", "bridges",
)
FILLERS: dict[str, Any] = {"str": "x", "int": 1, "float": 1.0, "bool": False, "bytes": b"", "list": [], "dict": {}}
MESSAGES = [cls for tag, cls in sorted(known_tags().items()) if cls.__module__.startswith("transports.bus.vocabulary.")]


def made(cls: type[Any]) -> Any:
    values = {}
    for f in dataclasses.fields(cls):
        if f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING:
            values[f.name] = FILLERS[str(f.type).split("[", maxsplit=1)[0]]
    return cls(**values)


def allowed(peer: Peer) -> set[tuple[str, str]]:
    return {(a, cls.TAG) for a in ADDRESSES for cls in MESSAGES if policy.allow(peer, a, made(cls)) is None}


def peer(role: str, name: str = "") -> Peer:
    return Peer("peer/1", 1, 0, role, name)


@pytest.mark.requires("H2.own-only")
def test_a_host_speaks_only_for_its_own_thread() -> None:
    assert allowed(peer("host", "agent/wt_1/host")) == {("thread/wt_1", tag) for tag in ("host_hello", "host_event", "host_delta")}


def test_a_reader_only_answers() -> None:
    assert allowed(peer("reader", "reader/1")) == set()


@pytest.mark.requires("H2.own-only", "S1.roles")
def test_a_bridge_speaks_only_for_its_own_routes_and_stops_nothing() -> None:
    may = allowed(peer("bridge", "bridge/x:bot"))
    assert {a for a, _ in may if a.startswith("route/")} == {"route/x:bot:1"}
    assert {a for a, _ in may} == {"route/x:bot:1", "bridges"}
    assert {tag for a, tag in may if a == "bridges"} == {"bridge_hello", "bridge_claim", "bridge_state", "bridge_knock"}
    page = allowed(peer("bridge", "bridge/web:local"))
    assert not {a for a, _ in page} & {"route/x:bot:1", "supervisor", "spawner", "journal", "reader", "thread/wt_1"}


@pytest.mark.requires("S1.roles")
def test_people_and_definitions_of_bridges_are_the_owners_alone() -> None:
    wanted = {"add_bridge", "list_bridges", "control_bridge", "remove_bridge", "approve_user", "revoke_user"}
    assert {tag for a, tag in allowed(peer("owner")) if a == "bridges"} == wanted
    for other in (peer("agent"), peer("reader", "reader/1"), peer("host", "agent/wt_1/host"), peer("bridge", "bridge/x:bot")):
        assert not {tag for a, tag in allowed(other) if a == "bridges"} & wanted


@pytest.mark.requires("H2.roles")
def test_an_agent_may_look_and_hand_over_and_nothing_else() -> None:
    assert {tag for _, tag in allowed(peer("agent"))} == {
        "submit", "get_status", "list_threads", "show_thread", "get_agents", "list_workspaces", "add_workspace", "find_workspace",
        "prepare_handover", "list_sessions",
    }


@pytest.mark.parametrize("tag", ["answer", "stop_turn", "pickup_terminal", "shutdown", "change_workspace", "listen", "end_session_host", "may_change"])
def test_what_an_agent_may_not_do_is_refused_with_exit_code_five_and_where_to_do_it(tag: str) -> None:
    message = made(known_tags()[tag])
    for address in ("route/cli:local:a", "attacher", "supervisor", "workspaces"):
        refusal = policy.allow(peer("agent"), address, message)
        assert refusal is not None
        assert refusal.exit_code == 5
        assert "terminal of your own" in refusal.hint


def test_a_person_reaches_no_address_behind_the_front_desks() -> None:
    inside = {"thread/wt_1", "thread/wt_2", "agent/wt_1/host", "handover", "journal", "history", "reader", "reader/1", "hosts", "mcp", "peer/7"}
    assert not {a for a, _ in allowed(peer("owner"))} & inside
