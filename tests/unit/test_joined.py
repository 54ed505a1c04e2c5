"""A joined thread: whose turn is it, what of it is told, which questions are ours; and how the chat's thread behaves."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.unit.world import World, kinds, words
from transports.codex.daemon import can_join, version_in
from transports.codex.proxy import Traffic


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.close()


class Line:
    def __init__(self) -> None:
        self.told: list[dict[str, str]] = []
        self.traffic = Traffic(self.told.append)

    def start(self, ident: int) -> None:
        self.traffic.up(json.dumps({"id": ident, "method": "turn/start", "params": {}}))

    def started(self, ident: int, turn: str) -> None:
        self.traffic.down(json.dumps({"id": ident, "result": {"turn": {"id": turn}}}))

    def down(self, method: str, turn: str, **more: Any) -> bool:
        return self.traffic.down(json.dumps({"method": method, "params": {"turn": {"id": turn}, "turnId": turn}, **more}))

    def asks(self, turn: str) -> bool:
        return self.down("item/commandExecution/requestApproval", turn, id=7)

    def types(self, turn: str, text: str) -> None:
        item = {"type": "userMessage", "content": [{"type": "text", "text": text}]}
        self.traffic.down(json.dumps({"method": "item/started", "params": {"turnId": turn, "item": item}}))


@pytest.mark.requires("M1.join-approvals")
def test_only_questions_of_turns_of_ours_reach_the_adapter() -> None:
    line = Line()
    line.start(1)
    line.started(1, "ours")
    assert line.asks("ours")
    line.down("turn/completed", "ours")
    line.down("turn/started", "theirs")
    assert not line.asks("theirs")
    assert not line.traffic.down(json.dumps({"id": 8, "method": "execCommandApproval", "params": {}}))


def test_a_turn_of_the_terminal_is_told_with_what_the_person_typed_and_one_of_ours_is_not() -> None:
    line = Line()
    line.down("turn/started", "theirs")
    line.types("theirs", "hello")
    line.down("turn/completed", "theirs")
    line.start(1)
    line.started(1, "ours")
    line.down("turn/started", "ours")
    line.types("ours", "from the phone")
    line.down("turn/completed", "ours")
    assert [(t["what"], t.get("text", "")) for t in line.told] == [("begin", ""), ("said", "hello"), ("end", "")]


def test_a_turn_that_begins_before_our_own_is_answered_is_decided_by_the_answer() -> None:
    line = Line()
    line.start(1)
    line.down("turn/started", "a")
    line.down("turn/started", "b")
    assert line.told == []
    line.started(1, "b")
    assert [(t["what"], t["turn"]) for t in line.told] == [("begin", "a")]


def test_a_refused_turn_of_ours_keeps_nothing_back() -> None:
    line = Line()
    line.start(1)
    line.down("turn/started", "theirs")
    line.traffic.down(json.dumps({"id": 1, "error": {"code": -32600, "message": "busy"}}))
    assert [t["what"] for t in line.told] == ["begin"]


def test_the_daemons_version_decides_and_a_dead_socket_is_not_joined(tmp_path: Path) -> None:
    assert version_in("codex-tui/0.166.0 (Debian 12.0.0; x86_64) xterm-256color (va; 1)") == "0.166.0"
    assert version_in("no version here") == ""
    assert not can_join(str(tmp_path / "nobody.sock"), ("0.166", "0.171"))
    assert not can_join(str(tmp_path / "nobody.sock"), ())


def joined(world: World) -> list[dict[str, Any]]:
    heard = world.listen("a")
    world.automatic = False
    world.write("a", "first")
    world.host.say_hello()
    world.host.state = "idle"
    world.host.event("ready", {"session": world.host.session, "start": "new", "modes": [], "joined": True})
    world.host.answer("one")
    world.host.state = "idle"
    return heard


@pytest.mark.requires("M1.join-busy")
def test_a_turn_in_the_terminal_makes_the_thread_busy_and_a_message_waits_with_a_word(world: World) -> None:
    heard = joined(world)
    world.host.event("foreign", {"what": "begin"})
    world.host.event("foreign", {"what": "said", "text": "typed there"})
    world.write("a", "second")
    assert len(world.host.prompts) == 1
    assert any("terminal: typed there" in e.get("text", "") for e in heard)
    assert sum("The terminal is at work" in e.get("text", "") for e in heard) == 1
    world.host.event("text", {"block": 1, "text": "answer to the terminal"})
    assert "answer to the terminal" in words(heard)
    world.loop.pass_time(world.settings.threads.idle_shutdown_s + 1)
    assert world.host.stopped == ""
    world.host.event("foreign", {"what": "end"})
    assert [b["text"] for b in world.host.prompts[-1].blocks] == ["second"]
    assert world.host.reloads == []


@pytest.mark.requires("M1.join-leaves")
def test_when_the_terminal_leaves_the_host_goes_when_its_turn_is_over_and_the_next_message_has_one_of_its_own(world: World) -> None:
    heard = joined(world)
    first = world.host
    world.write("a", "second")
    first.event("foreign", {"what": "left"})
    assert first.stopped == ""
    first.answer("two")
    assert first.stopped == "the terminal has left"
    assert any("The terminal has left" in e.get("text", "") for e in heard)
    world.automatic = True
    world.write("a", "third")
    assert world.host is not first
    assert (world.host.request.start, world.host.request.session) == ("resume", first.session)
    assert "error" not in kinds(heard)


@pytest.mark.requires("M1.join")
def test_without_the_extra_or_a_tested_version_nothing_is_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("transports.codex.daemon.daemon_version", lambda socket: "0.170.3")
    assert can_join("/s", ("0.166", "0.171"))
    assert not can_join("/s", ("0.166", "0.169"))
    assert not can_join("/s", ("0.171", "0.172"))
    monkeypatch.setattr("transports.codex.daemon.find_spec", lambda name: None)
    assert not can_join("/s", ("0.166", "0.171"))
