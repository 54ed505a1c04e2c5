"""The ACP client against a real process that misbehaves on demand."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.unit.acp_rig import LIMIT_S, Driven, fake
from transports.acp import updates
from transports.acp.errors import AgentGone, AgentRefused, AgentSilent
from transports.acp.permission import choose

Make = Callable[..., Driven]


@pytest.fixture
def agent() -> Iterator[Make]:
    made: list[Driven] = []

    def make(knobs: dict[str, Any] | None = None, **more: Any) -> Driven:
        made.append(fake(knobs, **more))
        return made[-1]

    yield make
    for driven in made:
        driven.close()


@pytest.mark.requires("H3.acp-advertises")
def test_neither_file_system_nor_terminal_is_advertised(agent: Make, tmp_path: Path) -> None:
    log = tmp_path / "log"
    driven = agent({"log": str(log)})
    info = driven.client.initialize(LIMIT_S)
    sent = json.loads(log.read_bytes().splitlines()[0])["params"]
    assert sent["clientCapabilities"] == {"fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False}
    assert sent["protocolVersion"] == 1
    assert info.can("load") and info.can("resume") and not info.can("close") and info.capabilities["novel"] is True


@pytest.mark.requires("H3.acp-order")
def test_updates_come_in_wire_order_and_before_the_answer_of_their_turn(agent: Make) -> None:
    driven = agent()
    driven.client.initialize(LIMIT_S)
    session = driven.client.new("/", [], LIMIT_S).session
    at_the_end: list[int] = []
    turn = driven.prompt(session, "chunks 2000")
    turn.add_done_callback(lambda _: at_the_end.append(len(driven.texts())))
    assert turn.result(LIMIT_S)["stopReason"] == "end_turn"
    assert driven.texts() == [f"{n} " for n in range(2000)]
    assert at_the_end == [2000]


@pytest.mark.requires("H3.acp-order")
def test_unknown_kinds_of_update_pass_through_whole(agent: Make) -> None:
    driven = agent()
    driven.client.initialize(LIMIT_S)
    session = driven.client.new("/", [], LIMIT_S).session
    driven.prompt(session, "unknown").result(LIMIT_S)
    others = [e for _, e in driven.heard if isinstance(e, updates.Other)]
    assert others == [updates.Other("brand_new_kind", {"sessionUpdate": "brand_new_kind", "novelty": {"a": 1}})]


def test_lines_that_are_no_messages_are_told_and_harm_nothing(agent: Make) -> None:
    driven = agent({"garbage": True})
    driven.client.initialize(LIMIT_S)
    assert driven.client.skipped_lines == 3
    assert "Welcome to the agent!" in driven.noise[-1]


@pytest.mark.requires("H3.acp-lines")
def test_a_line_over_the_limit_is_skipped_and_counted_and_the_next_one_is_read(agent: Make) -> None:
    driven = agent(max_line=1 << 20)
    driven.client.initialize(LIMIT_S)
    session = driven.client.new("/", [], LIMIT_S).session
    driven.prompt(session, "line 3000000; say after; big 900000").result(LIMIT_S)
    assert [len(t) for t in driven.texts()] == [5, 900000]
    assert driven.client.skipped_lines == 1 and "3000000 bytes" in driven.noise[0]


@pytest.mark.requires("H3.acp-lines")
def test_a_line_of_sixty_mebibytes_is_read(agent: Make) -> None:
    driven = agent()
    driven.client.initialize(LIMIT_S)
    session = driven.client.new("/", [], LIMIT_S).session
    driven.prompt(session, f"big {60 << 20}").result(30)
    assert [len(t) for t in driven.texts()] == [60 << 20]


@pytest.mark.parametrize("method", ["initialize", "session/new", "session/load", "session/resume", "session/fork"])
def test_every_handshake_call_has_a_limit(agent: Make, method: str) -> None:
    driven = agent({"hang": [method]})
    calls: dict[str, Callable[[], object]] = {
        "initialize": lambda: driven.client.initialize(0.2),
        "session/new": lambda: driven.client.new("/", [], 0.2),
        "session/load": lambda: driven.client.load("s", "/", [], 0.2),
        "session/resume": lambda: driven.client.resume("s", "/", [], 0.2),
        "session/fork": lambda: driven.client.fork("s", "/", [], 0.2),
    }
    with pytest.raises(AgentSilent) as silent:
        calls[method]()
    assert method in silent.value.message


def test_a_refusal_keeps_the_code_and_the_words(agent: Make) -> None:
    driven = agent({"refuse": {"session/load": [-32002, "Resource not found"]}})
    with pytest.raises(AgentRefused) as refused:
        driven.client.load("s", "/", [], LIMIT_S)
    assert (refused.value.rpc_code, refused.value.rpc_message) == (-32002, "Resource not found")


def test_an_agent_that_ends_fails_every_open_request_with_its_code_and_last_words(agent: Make) -> None:
    driven = agent({"hang": ["session/list"]})
    driven.client.initialize(LIMIT_S)
    session = driven.client.new("/", [], LIMIT_S).session
    listing = driven.client.request("session/list", {})
    turn = driven.prompt(session, "say half; exit 7")
    for open_request in (listing, turn):
        gone = open_request.exception(LIMIT_S)
        assert isinstance(gone, AgentGone) and gone.returncode == 7 and "the last words" in gone.hint
    assert driven.gone.get(timeout=LIMIT_S).returncode == 7
    with pytest.raises(AgentGone):
        driven.client.call("session/list", {}, LIMIT_S)


def test_an_agent_that_reads_nothing_holds_up_nobody_who_writes(agent: Make) -> None:
    driven = agent({"start": "mute"})
    turn = driven.prompt("s", "x" * (4 << 20))
    assert not turn.done()
    with pytest.raises(AgentSilent):
        driven.client.initialize(0.2)


def test_a_permission_is_answered_exactly_once(agent: Make, tmp_path: Path) -> None:
    log = tmp_path / "log"
    driven = agent({"log": str(log)})
    driven.client.initialize(LIMIT_S)
    session = driven.client.new("/", [], LIMIT_S).session
    turn = driven.prompt(session, "ask")
    permission = driven.asked.get(timeout=LIMIT_S)
    option = choose(permission, "reject_once")
    assert option is not None and option.id == "o-no"
    assert driven.client.answer(permission, option.id) is True
    assert driven.client.answer(permission, "o-yes") is False
    turn.result(LIMIT_S)
    assert driven.texts() == ["answered o-no"]
    assert log.read_bytes().count(b'"outcome":"selected"') == 1


def test_a_cancel_answers_open_permissions_and_those_that_come_after_it(agent: Make, tmp_path: Path) -> None:
    log = tmp_path / "log"
    driven = agent({"log": str(log)})
    driven.client.initialize(LIMIT_S)
    session = driven.client.new("/", [], LIMIT_S).session
    turn = driven.prompt(session, "askmany 3")
    first = driven.asked.get(timeout=LIMIT_S)
    assert driven.client.cancel(session) == [first]
    assert turn.result(LIMIT_S)["stopReason"] == "cancelled"
    assert driven.asked.empty()
    sent = [json.loads(line) for line in log.read_bytes().splitlines()]
    assert [m["result"]["outcome"] for m in sent if "result" in m] == [{"outcome": "cancelled"}] * 3


def test_a_withdrawn_permission_is_answered_with_cancelled_and_told(agent: Make) -> None:
    driven = agent()
    driven.client.initialize(LIMIT_S)
    session = driven.client.new("/", [], LIMIT_S).session
    driven.prompt(session, "withdraw").result(LIMIT_S)
    assert driven.texts() == ["withdrawn cancelled"]
    assert driven.withdrawn == [driven.asked.get(timeout=LIMIT_S)]


@pytest.mark.requires("H3.acp-advertises")
def test_a_request_for_what_was_not_offered_is_refused_and_the_turn_goes_on(agent: Make) -> None:
    driven = agent()
    driven.client.initialize(LIMIT_S)
    session = driven.client.new("/", [], LIMIT_S).session
    assert driven.prompt(session, "fs").result(LIMIT_S)["stopReason"] == "end_turn"
    assert driven.texts() == ["refused -32601"] and "fs/write_text_file" in driven.noise[0]


@pytest.mark.requires("H3.replay-hidden")
def test_a_replay_is_kept_from_the_listener_also_when_it_comes_after_the_answer(agent: Make) -> None:
    driven = agent({"replay": 50, "late": 25})
    driven.client.initialize(LIMIT_S)
    back = driven.client.load("s-1", "/", [], LIMIT_S)
    driven.client.settle(0.1, 5.0, time.monotonic)
    assert back.session == "s-1" and back.replayed >= 50
    assert driven.client.replayed == 75 and driven.texts() == []
    driven.prompt("s-1", "say now").result(LIMIT_S)
    assert driven.texts() == ["now"]


def test_a_replay_goes_to_whoever_asks_for_the_history(agent: Make) -> None:
    driven = agent({"replay": 4})
    history: list[updates.Event] = []
    driven.client.load("s-1", "/", [], LIMIT_S, history=history.append)
    assert history == [updates.UserEcho("old 0"), updates.Text("old 1"), updates.UserEcho("old 2"), updates.Text("old 3")]
    assert driven.heard == []


def test_a_load_that_answers_with_another_id_gives_that_id(agent: Make) -> None:
    driven = agent({"new_id": "s-2"})
    assert driven.client.load("s-1", "/", [], LIMIT_S).session == "s-2"


def test_modes_are_read_from_either_dialect(agent: Make, tmp_path: Path) -> None:
    log = tmp_path / "log"
    driven = agent({"mode_option": True, "modes": ["a", "b"], "log": str(log)})
    opened = driven.client.new("/", [], LIMIT_S)
    assert (opened.modes, opened.mode, opened.mode_option) == ((("a", "A"), ("b", "B")), "b", "m")
    driven.client.set_mode(opened.session, "a", LIMIT_S, option=opened.mode_option)
    sent = json.loads(log.read_bytes().splitlines()[-1])
    assert sent["method"] == "session/set_config_option" and sent["params"]["value"] == "a"
