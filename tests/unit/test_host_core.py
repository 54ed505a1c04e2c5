"""The host's promises, without a process: assembling, fencing, adoption, lease, permissions."""

from __future__ import annotations

from pathlib import Path

import pytest

from agents_registry.errors import AgentError
from tests.unit.host_rig import World, ready_of
from transports.acp import updates
from transports.acp.errors import AgentGone
from transports.bus.vocabulary.conversation import Failed, Ok
from transports.bus.vocabulary.hosting import (
    HostAck,
    HostAnswer,
    HostCancel,
    HostReload,
    HostSetMode,
    HostStop,
    HostWelcome,
)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_the_agent_is_not_spoken_to_before_the_supervisor_has_welcomed_the_host(world: World) -> None:
    world.core.link_up()
    assert world.hellos()[0].agent_pid == 11 and world.agent.calls == []
    world.tell(HostWelcome(0))
    assert world.agent.calls == [("open", None)]


def test_an_unanswered_hello_is_said_again(world: World) -> None:
    world.core.link_up()
    world.later(6)
    assert len(world.hellos()) == 2
    world.tell(HostWelcome(0))
    world.later(6)
    assert len(world.hellos()) == 2


def test_text_goes_out_at_once_then_merged_for_twenty_milliseconds(world: World) -> None:
    world.start().prompt("t")
    for word in ("a", "b", "c"):
        world.says(word)
    assert [d.text for d in world.deltas()] == ["a"]
    world.later(0.020)
    assert [(d.offset, d.text) for d in world.deltas()] == [(0, "a"), (1, "bc")]
    world.says("x" * 20_000)
    assert [d.text for d in world.deltas()][2:] == ["x" * (16 << 10), "x" * (20_000 - (16 << 10))]


def test_blocks_are_cut_by_what_interrupts_them_and_counted_per_turn(world: World) -> None:
    world.start().prompt("t")
    world.core.update("s-1", updates.Thought("hm"))
    world.says("one")
    world.core.update("s-1", updates.Tool("x", title="Look", status="completed", begins=True))
    world.says("two")
    world.over("t")
    world.prompt("u")
    world.says("three")
    world.over("u")
    blocks = [(e.turn, e.kind, e.body.get("block")) for e in world.events("thought", "text", "tool")]
    assert blocks == [("t", "thought", 1), ("t", "text", 2), ("t", "tool", None), ("t", "text", 3), ("u", "text", 1)]


def test_a_turn_key_is_never_run_twice(world: World) -> None:
    world.start().prompt("t")
    world.over("t")
    assert world.prompt("t") == Ok({"duplicate": True})
    assert world.agent.did("prompt") == ["t"]


def test_prompts_wait_for_the_turn_before_them_and_for_the_agent(world: World) -> None:
    world.start(ready=False)
    world.prompt("a")
    world.prompt("b")
    assert world.agent.did("prompt") == []
    world.core.opened(ready_of("s-1"))
    assert world.agent.did("prompt") == ["a"]
    world.over("a")
    assert world.agent.did("prompt") == ["a", "b"]


def test_more_prompts_than_can_wait_are_refused_with_a_word(world: World) -> None:
    world.start().prompt("running")
    replies = [world.prompt(f"t{n}") for n in range(17)]
    assert all(isinstance(r, Ok) for r in replies[:16]) and isinstance(replies[16], Failed)


@pytest.mark.requires("H2.reliable")
def test_after_a_reconnect_come_the_unacked_events_the_open_block_and_the_keys(world: World) -> None:
    world.start().prompt("t")
    world.says("first")
    world.core.update("s-1", updates.Plan([]))
    world.says("second")
    world.tell(HostAck(1))
    world.core.link_down()
    world.says(" half")
    before = len(world.sent)
    world.core.link_up()
    hello = world.hellos()[-1]
    assert (hello.state, hello.turn, hello.turns, hello.last_seq) == ("busy", "t", ["t"], 3)
    world.tell(HostWelcome(2))
    after = world.sent[before + 1 :]
    assert [getattr(m, "seq", None) for m in after if hasattr(m, "seq")] == [3]
    snapshot = after[-1]
    assert (snapshot.offset, snapshot.text) == (0, "second half")


def test_a_supervisor_that_adopts_a_living_host_hears_its_modes_and_commands(world: World) -> None:
    world.start()
    world.core.update("s-1", updates.Commands([{"name": "review", "description": ""}]))
    world.tell(HostSetMode("plan"))
    world.core.link_down()
    world.core.link_up()
    info = world.hellos()[-1].info
    assert info["mode"] == "plan" and [m["id"] for m in info["modes"]] == ["ask", "plan"]
    assert info["commands"] == [{"name": "review", "description": ""}] and world.hellos()[0].info == {}


def test_while_nobody_listens_events_are_kept_and_nothing_is_sent(world: World) -> None:
    world.start().prompt("t")
    world.core.link_down()
    sent = len(world.sent)
    world.says("text")
    world.over("t")
    assert len(world.sent) == sent and not world.core.outbox.empty


def test_events_that_are_not_acked_for_long_are_sent_again(world: World) -> None:
    world.start()
    assert [e.seq for e in world.events()] == [1]
    world.later(11)
    assert [e.seq for e in world.events()] == [1, 1]
    world.tell(HostAck(1))
    world.later(11)
    assert [e.seq for e in world.events()] == [1, 1]


def test_only_a_window_of_events_is_under_way_and_each_ack_moves_it(world: World) -> None:
    world.start().prompt("t")
    for _ in range(600):
        world.core.update("s-1", updates.Plan([]))
    assert [e.seq for e in world.events()] == list(range(1, 257))
    world.tell(HostAck(100))
    assert [e.seq for e in world.events()] == list(range(1, 357))
    world.tell(HostAck(99_999))  # never given out: not believed
    assert len(world.core.outbox.rest()) == 501


def test_too_much_unacked_stops_the_reading_of_the_agent_until_it_is_acked(tmp_path: Path) -> None:
    world = World(tmp_path, limits={"unacked_bytes": 50_000}).start()
    world.prompt("t")
    assert world.core.wants_agent
    for _ in range(3):
        world.says("y" * 20_000)
        world.core.update("s-1", updates.Plan([]))
    assert not world.core.wants_agent
    world.tell(HostAck(world.core.outbox.last_seq))
    assert world.core.wants_agent


def test_a_welcome_that_says_end_stops_the_agent_and_spools_nothing(world: World) -> None:
    world.core.link_up()
    world.tell(HostWelcome(0, True))
    assert world.agent.calls == [("stop", None)]
    world.core.stopped(0, "", [])
    assert world.core.done and not world.core.must_spool


# --- permissions


def test_a_permission_is_answered_once_and_only_with_an_option_it_has(world: World) -> None:
    world.start().prompt("t")
    first, second = world.asks("p1"), world.asks("p2")
    world.tell(HostAnswer(first, "y"))
    world.tell(HostAnswer(first, "n"))
    world.tell(HostAnswer(second, "allow everything"))
    assert world.agent.answers == [("p1", "y"), ("p2", None)]
    done = [(e.body["id"], e.body["outcome"]) for e in world.events("permission_done")]
    assert done == [(first, "selected"), (second, "cancelled")]


def test_what_is_still_open_at_a_turns_end_is_cancelled(world: World) -> None:
    world.start().prompt("t")
    request = world.asks("p1")
    world.over("t")
    kinds = [e.kind for e in world.events("permission", "permission_done", "turn_end")]
    assert kinds == ["permission", "permission_done", "turn_end"]
    assert world.tell(HostAnswer(request, "y")) == Ok({"applied": False})
    assert world.agent.answers == [("p1", None)]


@pytest.mark.requires("M4.orphan-limits")
def test_without_a_supervisor_a_permission_is_cancelled_after_the_lease_from_its_asking(world: World) -> None:
    world.start().prompt("t")
    world.core.link_down()
    world.later(6)
    world.asks("p1")  # while nobody listens: its own time counts
    world.later(6)
    assert world.agent.answers == []
    world.later(5)
    assert world.agent.answers == [("p1", None)]


def test_with_a_supervisor_a_permission_waits_without_end(world: World) -> None:
    world.start().prompt("t")
    world.asks("p1")
    world.later(1000)
    assert world.agent.answers == [] and world.agent.did("stop") == []


# --- the lease


@pytest.mark.requires("M4.orphan-limits")
def test_an_idle_host_without_a_supervisor_stops_after_the_lease(world: World) -> None:
    world.start()
    world.core.link_down()
    world.later(9)
    assert world.agent.did("stop") == []
    world.later(2)
    assert world.agent.did("stop") == [None]
    world.core.stopped(0, "", [])
    assert world.core.done and world.core.must_spool
    assert [e.kind for e in world.core.outbox.rest()] == ["ready", "agent_gone"]


@pytest.mark.requires("M4.orphan-limits")
def test_a_turn_goes_on_without_a_supervisor_until_the_orphan_limit(world: World) -> None:
    world.start().prompt("t")
    world.core.link_down()
    world.later(49)
    assert world.agent.did("cancel") == []
    world.later(2)
    assert world.agent.did("cancel") == ["s-1"]
    world.over("t", "cancelled")
    world.later(9)
    assert world.agent.did("stop") == []
    world.later(2)
    assert world.agent.did("stop") == [None]


def test_a_supervisor_that_comes_back_in_time_renews_the_lease(world: World) -> None:
    world.start()
    world.core.link_down()
    world.later(8)
    world.core.link_up()
    world.tell(HostWelcome(1))
    world.core.link_down()
    world.later(8)
    assert world.agent.did("stop") == []


# --- cancel, stop, gone


def test_a_cancel_twice_is_one_cancel(world: World) -> None:
    world.start().prompt("t")
    world.tell(HostCancel("t"))
    world.tell(HostCancel("t"))
    assert world.agent.did("cancel") == ["s-1"]


def test_a_waiting_prompt_is_cancelled_without_the_agent(world: World) -> None:
    world.start().prompt("a")
    world.prompt("b")
    world.tell(HostCancel("b"))
    ends = [(e.turn, e.body["stop_reason"]) for e in world.events("turn_end")]
    assert ends == [("b", "cancelled")] and world.agent.did("cancel") == []
    assert world.prompt("b") == Ok({"duplicate": True})


def test_an_agent_that_ignores_the_cancel_is_stopped_after_the_limit(world: World) -> None:
    world.start().prompt("t")
    world.tell(HostCancel("t"))
    world.later(6)
    assert world.agent.did("stop") == [None]
    world.core.turn_over("t", None, AgentGone(-15))
    assert world.events("turn_end")[0].body["stop_reason"] == "cancelled"
    assert world.events("turn_end")[0].body["host_ends"] is True


def test_a_cancelled_turn_shows_its_unfinished_tool_call_as_cancelled(world: World) -> None:
    world.start().prompt("t")
    world.core.update("s-1", updates.Tool("x", title="Build", status="in_progress", begins=True))
    world.tell(HostCancel("t"))
    world.over("t", "cancelled")
    assert [e.body["status"] for e in world.events("tool")] == ["in_progress", "cancelled"]


def test_commands_that_a_cancel_left_alive_are_ended_and_named_before_the_turn_is_over(tmp_path: Path) -> None:
    world = World(tmp_path, end_commands_on_cancel=True).start()
    world.prompt("t")
    world.tell(HostCancel("t"))
    world.over("t", "cancelled")
    assert world.events("turn_end") == [] and world.agent.did("end-commands") == ["t"]
    world.core.commands_ended("t", ["sleep 600 (pid 5)"])
    assert [e.kind for e in world.events("notice", "turn_end")] == ["notice", "turn_end"]


def test_an_agent_that_dies_fails_its_turn_and_the_waiting_ones_with_the_reason(world: World) -> None:
    world.start().prompt("a")
    world.prompt("b")
    world.core.gone(AgentGone(9, "boom"))
    ends = [(e.turn, e.body["error"]["code"]) for e in world.events("turn_end")]
    assert ends == [("a", "agent_gone"), ("b", "not_run")]
    assert world.events("turn_end")[0].body["host_ends"] is True
    world.core.stopped(9, "boom", ["x (pid 4)"])
    assert world.events("agent_gone")[0].body == {"exit_code": 9, "signal": None, "stderr_tail": "boom", "detached": ["x (pid 4)"]}
    assert not world.core.done
    world.tell(HostAck(world.core.outbox.last_seq))
    assert world.core.done


def test_a_stop_in_mid_turn_ends_the_turn_as_cancelled_before_the_agents_end(world: World) -> None:
    world.start().prompt("t")
    world.says("half")
    world.tell(HostStop("moved"))
    world.core.stopped(-9, "", [])
    kinds = [e.kind for e in world.events("text", "turn_end", "agent_gone")]
    assert kinds == ["text", "turn_end", "agent_gone"]
    assert world.events("turn_end")[0].body["stop_reason"] == "cancelled"
    assert isinstance(world.prompt("u"), Failed)


def test_a_failed_start_is_one_failed_event_with_what_to_do(world: World) -> None:
    world.start(ready=False)
    world.core.open_failed("load", AgentError("no", hint="try again", code="resume_refused"))
    failed = world.events("failed")[0].body
    assert (failed["phase"], failed["code"], failed["hint"], failed["exit_code"]) == ("load", "resume_refused", "try again", 7)
    assert world.agent.did("stop") == [None]


# --- mode, reload, odd content


def test_modes_are_checked_set_and_told_once(world: World) -> None:
    world.start()
    assert world.tell(HostSetMode("plan")) == Ok({"mode": "plan"})
    world.core.update("s-1", updates.Mode("plan"))
    assert [e.body for e in world.events("mode")] == [{"mode": "plan"}]
    assert isinstance(world.tell(HostSetMode("yolo")), Failed)


def test_a_reload_holds_prompts_back_and_a_failed_one_leaves_the_session_as_it_was(world: World) -> None:
    world.start()
    world.tell(HostReload(""))
    world.prompt("t")
    assert world.agent.did("prompt") == []
    world.core.reloaded(None, AgentError("no"))
    assert isinstance(world.replies[-1], Failed) and world.core.session == "s-1"
    assert world.agent.did("prompt") == ["t"]


def test_an_id_that_changes_on_reload_is_told_with_its_alias(world: World) -> None:
    world.start()
    world.tell(HostReload(""))
    world.core.reloaded(ready_of("s-2", "resumed"), None)
    assert world.events("session")[0].body == {"session": "s-2", "alias_of": "s-1"}
    assert world.replies[-1] == Ok({"session": "s-2"})


def test_half_a_character_never_reaches_the_bus(world: World) -> None:
    world.start().prompt("t")
    world.says("a\ud83d")
    world.says("\ude00 and \udfff alone")
    world.over("t")
    assert world.events("text")[0].body["text"] == "a😀 and � alone"


def test_an_event_of_many_small_parts_still_fits_the_bus(world: World) -> None:
    world.start().prompt("t")
    content = [{"type": "content", "content": {"type": "text", "text": "z" * 100}}] * 20_000
    world.core.update("s-1", updates.Tool("x", title="Big", status="completed", content=content, begins=True))
    body = world.events("tool")[0].body
    assert body["title"] == "Big" and body["content"]["ref"]["size"] > 2_000_000


def test_a_disk_that_takes_no_file_costs_the_content_not_the_event(tmp_path: Path) -> None:
    (tmp_path / "files").write_text("in the way")
    world = World(tmp_path).start()
    world.prompt("t")
    world.says("x" * 400_000)
    world.over("t")
    body = world.events("text")[0].body
    assert body["text"].startswith("xxx") and body["incomplete"]


def test_text_outside_of_a_turn_is_a_finished_block_after_a_silence(world: World) -> None:
    world.start().prompt("t")
    world.over("t")
    world.says("by the way")
    world.later(0.9)
    world.says(", done")
    assert world.events("text") == []
    world.later(1.1)
    assert [(e.turn, e.body["text"]) for e in world.events("text")] == [("", "by the way, done")]


def test_updates_of_other_sessions_are_not_mixed_in(world: World) -> None:
    world.start().prompt("t")
    world.core.update("someone-else", updates.Text("noise"))
    world.over("t")
    assert world.events("text") == []


def test_a_host_that_waits_for_its_agents_end_does_not_spin(world: World) -> None:
    world.start().prompt("t")
    world.tell(HostCancel("t"))
    world.later(6)
    assert world.agent.did("stop") == [None] and world.core.deadline() > world.now
