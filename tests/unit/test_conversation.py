"""A conversation through routes, threads and the attacher: order, fan-out, stop, permissions, idle stop, restart."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from agents_registry.errors import AgentError
from tests.unit.support import OWNER
from tests.unit.world import World, kinds, words
from transports.bus.vocabulary.conversation import Failed, Ok
from transports.bus.vocabulary.handover import Attached
from transports.bus.vocabulary.hosting import HostDelta, HostEvent
from transports.bus.vocabulary.surface import Accepted, Answer, Listen
from transports.settings import Settings


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.close()


def test_a_first_message_makes_a_thread_in_the_given_directory_and_its_answer_comes_back(world: World) -> None:
    heard = world.listen("a")
    assert isinstance(world.write("a", "hello"), Accepted)
    world.host.delta("Hi ")
    world.host.answer("Hi there")
    assert kinds(heard) == ["session", "asked", "text", "text", "done"]
    assert heard[0]["cwd"] == "/w"
    assert heard[0]["start"] == "new"
    assert words(heard) == ["Hi there"]


@pytest.mark.requires("B13")
def test_a_second_message_waits_with_its_place_and_the_order_is_kept(world: World) -> None:
    heard = world.listen("a")
    for text in ("one", "two", "three"):
        world.write("a", text)
    assert [e["position"] for e in heard if e["event"] == "queued"] == [1, 2]
    for n in range(3):
        world.host.answer(f"answer {n}")
    assert [p.blocks[0]["text"] for p in world.host.prompts] == ["one", "two", "three"]


@pytest.mark.requires("B14", "B7")
def test_two_chats_on_one_thread_see_the_answer_and_who_asked(world: World) -> None:
    world.session("s1")
    heard_a = world.listen("a")
    world.write("a", f"/pickup {world.code('s1')}")
    heard_b = world.listen("b")
    world.write("b", f"/pickup {world.code('s1')}")
    assert any("joined" in e.get("text", "") for e in heard_a if e["event"] == "notice")
    world.write("b", "from b")
    world.host.answer("for all")
    for heard in (heard_a, heard_b):
        asked = [e for e in heard if e["event"] == "asked"]
        assert [(e["route"], e["text"]) for e in asked] == [("cli:local:b", "from b")]
        assert words(heard)[-1] == "for all"
    assert len(world.hosts) == 1


@pytest.mark.requires("B15")
def test_chats_on_different_threads_do_not_wait_for_each_other(world: World) -> None:
    world.write("a", "slow one")
    heard = world.listen("b")
    world.write("b", "quick one")
    world.host.answer("done already")
    assert words(heard) == ["done already"]
    assert len(world.hosts) == 2


def test_a_message_beyond_the_bound_is_refused_with_a_word_and_nothing_else_is_lost(world: World) -> None:
    answers = [world.write("a", f"m{n}") for n in range(20)]
    refused = [a for a in answers if isinstance(a, Failed)]
    accepted = [a for a in answers if isinstance(a, Accepted)]
    assert len(accepted) + len(refused) == 20
    assert {r.error[1] for r in refused} == {"queue_full"}
    for _ in accepted:
        world.host.answer("ok")
    assert len(world.host.prompts) == len(accepted)


def test_the_same_key_again_runs_nothing_and_shows_the_first_turn(world: World) -> None:
    world.write("a", "once", key="same")
    world.host.answer("only once")
    again = world.write("a", "once", key="same")
    assert isinstance(again, Accepted)
    assert again.duplicate
    assert len(world.host.prompts) == 1


@pytest.mark.requires("B16")
def test_stop_cancels_the_turn_drops_what_waits_here_and_says_how_many(world: World) -> None:
    heard = world.listen("a")
    world.write("a", "long")
    world.write("a", "waiting")
    reply = world.write("a", "/stop")
    assert isinstance(reply, Ok)
    assert "stopped" in reply.data["text"]
    assert "1 waiting message dropped" in reply.data["text"]
    assert world.host.cancelled == [world.host.prompts[0].turn]
    world.host.end("cancelled")
    assert [e["stop_reason"] for e in heard if e["event"] == "done"] == ["cancelled", "cancelled"]


@pytest.mark.requires("B17")
def test_stop_with_an_open_permission_closes_it_with_the_turn(world: World) -> None:
    heard = world.listen("a")
    world.write("a", "do it")
    world.host.ask()
    pid = next(e["id"] for e in heard if e["event"] == "permission")
    world.write("a", "/stop")
    world.host.end("cancelled")
    late = world.loop.ask("route/cli:local:a", Answer(pid, "yes"))
    assert isinstance(late, Failed)
    assert late.error[1] == "late"


def test_a_host_that_ignores_a_cancel_is_ended_and_the_turn_with_it(world: World) -> None:
    heard = world.listen("a")
    world.write("a", "stubborn")
    world.write("a", "/stop")
    world.loop.pass_time(world.settings.threads.cancel_s + world.settings.hosts.stop_s * 4 + 1)
    assert world.ended
    assert [e["stop_reason"] for e in heard if e["event"] == "done"] == ["cancelled"]


@pytest.mark.requires("B19")
def test_a_permission_is_answered_from_the_other_chat_and_the_first_reads_who(world: World) -> None:
    world.session("s1")
    heard_a, heard_b = world.listen("a"), world.listen("b")
    for name in ("a", "b"):
        world.write(name, f"/pickup {world.code('s1')}")
    world.write("a", "needs leave")
    world.host.ask()
    pid = next(e["id"] for e in heard_b if e["event"] == "permission")
    assert isinstance(world.loop.ask("route/cli:local:b", Answer(pid, "yes", {"id": "bob", "name": "Bob"})), Ok)
    assert [(a.request, a.option) for a in world.host.answers] == [("rq1", "yes")]
    done = next(e for e in heard_a if e["event"] == "permission_done")
    assert (done["outcome"], done["by"]) == ("Allow", "Bob")
    assert isinstance(world.loop.ask("route/cli:local:a", Answer(pid, "no")), Failed)
    assert len(world.host.answers) == 1


@pytest.mark.requires("B18")
def test_an_open_permission_in_one_chat_does_not_hold_up_another(world: World) -> None:
    world.write("a", "needs leave")
    world.host.ask()
    assert isinstance(world.write("b", "/status"), Ok)


@pytest.mark.requires("M3.lasting-owner-only")
def test_a_member_may_not_give_a_lasting_yes_nor_answer_for_another(world: World) -> None:
    world.write("a", "mine", role="member")
    heard = world.listen("a")
    world.host.ask()
    pid = next(e["id"] for e in heard if e["event"] == "permission")
    route = "route/cli:local:a"
    bridge = replace(OWNER, role="bridge", name="bridge/x")
    lasting = world.loop.ask(route, Answer(pid, "always", {"id": "member-1", "role": "member"}), peer=bridge)
    foreign = world.loop.ask(route, Answer(pid, "yes", {"id": "member-2", "role": "member"}), peer=bridge)
    viewer = world.loop.ask(route, Answer(pid, "yes", {"id": "member-1", "role": "viewer"}), peer=bridge)
    assert [lasting.error[0], foreign.error[0], viewer.error[0]] == [5, 5, 5]
    assert world.host.answers == []


def test_a_permission_that_nobody_answers_expires_as_cancelled(world: World) -> None:
    heard = world.listen("a")
    world.write("a", "needs leave")
    world.host.ask()
    world.loop.pass_time(world.settings.permissions.expire_s + 1)
    assert [(a.request, a.option) for a in world.host.answers] == [("rq1", "")]
    assert next(e for e in heard if e["event"] == "permission_done")["outcome"] == "expired"


@pytest.mark.requires("B10")
def test_after_ten_idle_minutes_the_host_stops_and_the_next_message_resumes_the_session(world: World) -> None:
    heard = world.listen("a")
    world.write("a", "first")
    world.host.answer("one")
    first = world.host
    world.loop.pass_time(599.0)
    assert first.stopped == ""
    world.loop.pass_time(2.0)
    assert first.stopped == "idle"
    world.write("a", "second")
    assert world.host is not first
    assert (world.host.request.start, world.host.request.session) == ("resume", first.session)
    world.host.answer("two")
    assert words(heard) == ["one", "two"]


def test_an_open_permission_keeps_the_host_from_stopping(world: World) -> None:
    world.write("a", "needs leave")
    world.host.ask()
    world.loop.pass_time(5000.0)
    assert world.host.stopped == ""


@pytest.mark.requires("B11")
def test_after_a_restart_a_message_reaches_the_same_thread_and_session(world: World) -> None:
    world.write("a", "before")
    world.host.answer("one")
    session = world.host.session
    world.restart()
    world.write("a", "after")
    assert (world.host.request.start, world.host.request.session) == ("resume", session)
    assert len(world.loop.query("threads", 10, True)["threads"]) == 1


@pytest.mark.requires("B12")
def test_after_a_restart_close_closes_the_old_thread(world: World) -> None:
    world.write("a", "before")
    world.host.answer("one")
    world.restart()
    world.write("a", "/close")
    assert [t["status"] for t in world.loop.query("threads", 10, True)["threads"]] == ["closed"]


def test_a_turn_that_goes_on_over_a_restart_ends_complete_and_nothing_is_spawned_twice(world: World) -> None:
    world.write("a", "long")
    host = world.host
    host.say("first half")
    world.alive_after_restart = True
    world.restart()
    heard = world.listen("a")
    world.wake(f"thread/{host.request.thread}")
    host.state = "busy"
    host.say_hello(turn=host.prompts[0].turn)
    host.say("second half", 1)
    host.end()
    assert words(heard)[-1:] == ["second half"]
    assert len(world.hosts) == 1
    assert len(host.prompts) == 1
    turns = world.loop.query("thread_detail", host.request.thread)["turns"]
    assert [(t["state"], t["text"]) for t in turns] == [("done", "first half\n\nsecond half")]


@pytest.mark.requires("H2.lost-turn", "M4.lost-turn")
def test_a_turn_that_the_living_host_never_saw_is_sent_again(world: World) -> None:
    world.write("a", "lost on the way")
    host = world.host
    lost = host.prompts.pop()
    host.turns.clear()
    world.alive_after_restart = True
    world.restart()
    world.wake(f"thread/{host.request.thread}")
    host.state = "idle"
    host.say_hello()
    assert [p.turn for p in host.prompts] == [lost.turn]


@pytest.mark.requires("M4.interrupted")
def test_a_turn_whose_host_died_with_the_supervisor_is_interrupted_and_offered_again_and_not_run_by_itself(world: World) -> None:
    world.write("a", "half done")
    host = world.host
    world.restart()
    heard = world.listen("a")
    world.wake(f"thread/{host.request.thread}")
    assert [e["code"] for e in heard if e["event"] == "error"] == ["interrupted"]
    assert len(world.hosts) == 1
    choice = next(e for e in heard if e["event"] == "choice")
    world.loop.ask("route/cli:local:a", Answer(choice["id"], "again"))
    assert [p.blocks[0]["text"] for p in world.host.prompts] == ["half done"]
    assert len(world.hosts) == 2


@pytest.mark.requires("M4.reclaiming")
def test_while_an_old_host_may_live_nothing_is_spawned_and_after_five_seconds_it_is_ended(world: World) -> None:
    world.write("a", "first")
    world.host.answer("one")
    host = world.host
    world.alive_after_restart = True
    world.restart()
    world.write("a", "second")
    assert len(world.hosts) == 1
    world.loop.pass_time(world.settings.hosts.reclaim_s + 0.1)
    assert [e.epoch for e in world.ended] == [host.request.epoch]
    assert len(world.hosts) == 2
    assert [p.blocks[0]["text"] for p in world.host.prompts] == ["second"]


@pytest.mark.requires("H2.epochs", "M4.epochs")
def test_a_host_of_an_older_epoch_is_told_to_end(world: World) -> None:
    world.write("a", "first")
    old = world.host
    old.answer("one")
    old.die()
    world.write("a", "second")
    old.say_hello()
    assert old.told_to_end
    assert not world.host.told_to_end


@pytest.mark.requires("B20")
def test_an_agent_killed_in_mid_turn_is_an_error_and_the_next_prompt_brings_it_back(world: World) -> None:
    heard = world.listen("a")
    world.write("a", "first")
    world.host.answer("one")
    session = world.host.session
    world.write("a", "second")
    world.host.say("part")
    world.host.die()
    assert [e["code"] for e in heard if e["event"] == "error"] == ["interrupted"]
    world.write("a", "third")
    assert (world.host.request.start, world.host.request.session) == ("resume", session)
    world.host.answer("back")
    assert words(heard)[-1] == "back"


@pytest.mark.requires("B21")
def test_a_missing_agent_is_an_error_with_the_install_hint_and_the_chat_goes_on(world: World) -> None:
    heard = world.listen("a")
    world.spawn_error = AgentError("Demo is not installed.", hint="va agents install demo")
    world.write("a", "hello")
    error = next(e for e in heard if e["event"] == "error")
    assert error["hint"] == "va agents install demo"
    assert error["exit_code"] == 7
    world.spawn_error = None
    world.write("a", "again")
    world.host.answer("here")
    assert words(heard)[-1] == "here"


@pytest.mark.requires("B22")
@pytest.mark.parametrize(("choice", "start", "session"), [("retry", "resume", True), ("fresh", "new", False)])
def test_a_refused_resume_is_told_with_a_choice_and_the_id_is_kept(world: World, choice: str, start: str, session: bool) -> None:
    world.session("s1")
    heard = world.listen("a")
    world.write("a", f"/pickup {world.code('s1')}")
    world.automatic = False
    world.write("a", "go on")
    host = world.host
    host.say_hello()
    host.event("failed", {"phase": "load", "code": "resume_refused", "message": "The agent refused to load it.", "hint": ""})
    host.die("exit 7")
    asked = next(e for e in heard if e["event"] == "choice")
    assert "s1" in asked["title"]
    world.automatic = True
    world.loop.ask("route/cli:local:a", Answer(asked["id"], choice))
    assert world.host.request.start == start
    assert (world.host.request.session == "s1") is session
    world.host.answer("here")
    assert words(heard)[-1] == "here"
    assert "s1" in [s["id"] for s in world.loop.query("thread_detail", world.host.request.thread)["sessions"]]


def test_a_refused_resume_without_an_answer_does_nothing_and_says_why(world: World) -> None:
    world.session("s1")
    heard = world.listen("a")
    world.write("a", f"/pickup {world.code('s1')}")
    world.automatic = False
    world.write("a", "go on")
    world.host.say_hello()
    world.host.event("failed", {"phase": "load", "code": "resume_refused", "message": "No.", "hint": ""})
    world.host.die("exit 7")
    world.loop.pass_time(world.settings.choices.expire_s + 1)
    assert [e["code"] for e in heard if e["event"] == "error"] == ["resume_refused"]
    assert len(world.hosts) == 1


def test_text_in_the_making_never_overtakes_what_came_before_it(world: World) -> None:
    heard = world.listen("a")
    world.write("a", "hello")
    world.host.delta("one", 0)
    world.host.say("one", 0)
    world.host.delta("two", 1)
    world.host.say("two", 1)
    texts = [(e["block"], e["final"]) for e in heard if e["event"] == "text"]
    assert texts == [(0, False), (0, True), (1, False), (1, True)]


def test_text_held_back_is_not_shown_again_behind_its_finished_block(world: World) -> None:
    heard = world.listen("a")
    world.write("a", "hello")
    host, switch = world.host, world.loop.switch
    turn, thread = host.prompts[-1].turn, f"thread/{host.request.thread}"
    # All three are there before the first is durable, as from an agent that answers at once after its tool.
    for seq, kind, body in ((1, "tool", {"id": "t1", "status": "completed"}), (2, "text", {"block": 1, "text": "hello"})):
        switch.send(thread, HostEvent(host.seq + seq, host.request.epoch, turn, kind, body), sender=host.address)
        if kind == "tool":
            switch.send(thread, HostDelta(host.request.epoch, turn, "text", 1, 0, "hello"), sender=host.address)
    world.loop.run()
    assert [(e["event"], e.get("final")) for e in heard if e["event"] in ("tool", "text")] == [("tool", None), ("text", True)]


def test_a_second_listener_on_one_chat_is_refused(world: World) -> None:
    world.listen("a")
    refused = world.loop.ask("route/cli:local:a", Listen(), sender="peer/other")
    assert isinstance(refused, Failed)
    assert refused.error[1] == "listener_taken"


def test_at_most_so_many_hosts_live_and_the_longest_idle_one_makes_room(tmp_path: Path) -> None:
    base = Settings()
    world = World(tmp_path, replace(base, hosts=replace(base.hosts, max_live=2)))
    for name in ("a", "b"):
        world.write(name, "hello")
        world.host.answer("hi")
        world.loop.pass_time(1.0)
    world.write("c", "hello")
    assert world.hosts[0].stopped
    assert not world.hosts[1].stopped
    assert len(world.hosts) == 3
    world.close()


def test_with_every_host_busy_a_further_one_waits_and_is_then_refused_with_a_word(tmp_path: Path) -> None:
    base = Settings()
    world = World(tmp_path, replace(base, hosts=replace(base.hosts, max_live=1)))
    world.write("a", "long")
    heard = world.listen("b")
    world.write("b", "no room")
    world.loop.pass_time(world.settings.hosts.start_s + 1)
    assert [e["code"] for e in heard if e["event"] == "error"] == ["hosts_busy"]
    world.close()


def test_mode_runs_in_order_behind_the_turn_before_it(world: World) -> None:
    heard = world.listen("a")
    world.write("a", "long")
    world.write("a", "/mode plan")
    assert words(heard) == []
    world.host.answer("done")
    assert words(heard) == ["done", "Mode is now plan."]


@pytest.mark.requires("B26")
def test_new_in_a_shared_chat_leaves_the_thread_and_tells_the_others(world: World) -> None:
    world.session("s1")
    heard_a = world.listen("a")
    for name in ("a", "b"):
        world.write(name, f"/pickup {world.code('s1')}")
    world.write("b", "/new")
    assert any("left" in e.get("text", "") for e in heard_a if e["event"] == "notice")
    open_ones = [t for t in world.loop.query("threads", 10, False)["threads"] if t["status"] == "open"]
    assert sorted(r for t in open_ones for r in t["routes"]) == ["cli:local:a", "cli:local:b"]
    assert len(open_ones) == 2


def test_a_binding_change_during_the_own_turn_asks_and_can_be_dropped(world: World) -> None:
    heard = world.listen("a")
    world.write("a", "long")
    world.write("a", "/new")
    choice = next(e for e in heard if e["event"] == "choice")
    assert [o["id"] for o in choice["options"]] == ["wait", "stop", "drop"]
    world.loop.pass_time(world.settings.choices.expire_s + 1)
    assert "Dropped /new" in words(heard)[-1]
    world.host.answer("done")
    assert words(heard)[-1] == "done"


def test_a_binding_change_can_stop_the_turn_and_then_happen(world: World) -> None:
    heard = world.listen("a")
    world.write("a", "long")
    world.write("a", "/new")
    choice = next(e for e in heard if e["event"] == "choice")
    world.loop.ask("route/cli:local:a", Answer(choice["id"], "stop"))
    assert world.host.cancelled
    world.host.end("cancelled")
    assert "New conversation" in words(heard)[-1]


def test_an_accepted_message_that_a_restart_caught_in_the_lane_is_still_answered(world: World) -> None:
    world.loop.record(["inbox_add", "cli:local:a", "k", "hello", {"role": "owner"}, [], "/w", 1.0])
    heard = world.listen("a")
    world.wake("route/cli:local:a")
    world.host.answer("here")
    assert words(heard)[-1] == "here"


def test_attaching_answers_with_what_was_attached(world: World) -> None:
    from transports.bus.vocabulary.handover import NewThread

    answer = world.loop.ask("attacher", NewThread("cli:local:z", cwd="/w"), peer=None)
    assert isinstance(answer, Attached)
    assert (answer.agent, answer.cwd) == ("demo", "/w")


@pytest.mark.parametrize(("modes", "said"), [(True, "Mode is now plan."), (False, "no plan mode")])
def test_plan_sets_the_plan_mode_or_lists_the_modes_there_are(world: World, modes: bool, said: str) -> None:
    heard = world.listen("a")
    world.write("a", "hello")
    world.host.answer("hi")
    if not modes:
        world.host.die()
        world.automatic = False
    world.write("a", "/plan")
    if not modes:
        world.host.say_hello()
        world.host.event("ready", {"session": "s", "start": "resumed", "modes": [{"id": "only", "name": "Only"}]})
    assert said in words(heard)[-1]


@pytest.mark.requires("B24")
def test_another_agent_is_a_new_thread_and_is_said_so(world: World) -> None:
    heard = world.listen("a")
    world.write("a", "hello")
    world.host.answer("hi")
    world.installed.append("claude")
    world.write("a", "/agent claude")
    assert "New conversation with claude" in words(heard)[-1]
    threads = world.loop.query("threads", 10, False)["threads"]
    assert sorted((t["host"]["agent"], t["routes"]) for t in threads) == [("claude", ["cli:local:a"]), ("demo", [])]


@pytest.mark.requires("B25")
def test_coming_back_to_a_workspace_offers_the_earlier_open_thread(world: World) -> None:
    heard = world.listen("a")
    world.write("a", "in the first")
    world.host.answer("hi")
    first = world.host.request.thread
    world.write("a", "/workspace /other")
    world.write("a", "in the other")
    world.host.answer("ho")
    world.write("a", "/workspace /w")
    choice = [e for e in heard if e["event"] == "choice"][-1]
    assert first in [o["id"] for o in choice["options"]]
    world.loop.ask("route/cli:local:a", Answer(choice["id"], first))
    world.write("a", "back again")
    assert world.hosts[-1].request.thread == first or world.hosts[0].prompts[-1].blocks[0]["text"] == "back again"


@pytest.mark.requires("I9", "B30")
def test_a_stranger_gets_one_line_and_nothing_else(world: World) -> None:
    for text in ("hello", "/pickup ABCD", "/status", "/session"):
        answer = world.write("a", text, role="stranger")
        assert isinstance(answer, Failed)
        assert (answer.error[0], answer.error[2]) == (5, "not authorised")
    assert world.hosts == []
    assert world.loop.query("threads", 10, True)["threads"] == []


@pytest.mark.requires("H2.projections")
def test_what_is_kept_of_each_thread_is_what_its_own_log_says(world: World) -> None:
    from actors.journal.projections import kept, rebuilt

    world.session("s1")
    for name in ("a", "b"):
        world.write(name, f"/pickup {world.code('s1')}")
    world.write("a", "hello")
    world.host.event("title", {"title": "A better title"})
    world.host.answer("hi")
    world.write("b", "/new")
    world.write("b", "another")
    world.host.answer("ho")
    world.write("b", "/close")
    world.write("c", "third")
    world.host.event("session", {"session": "changed", "alias_of": ""})
    connection = world.loop.journal._connection
    assert len(kept(connection)) == 3
    assert rebuilt(connection) == kept(connection)


@pytest.mark.requires("M2.join-mid-turn")
def test_a_chat_that_joins_in_mid_turn_sees_the_question_what_was_said_and_the_open_permission(world: World) -> None:
    world.session("s1")
    world.write("a", f"/pickup {world.code('s1')}")
    world.write("a", "the question")
    world.host.say("the first part")
    world.host.ask()
    heard = world.listen("b")
    world.write("b", f"/pickup {world.code('s1')}")
    assert [e["text"] for e in heard if e["event"] == "asked"] == ["the question"]
    assert "the first part" in words(heard)
    assert len([e for e in heard if e["event"] == "permission"]) == 1
    world.host.say("the second part", 1)
    world.host.end()
    assert words(heard)[-1] == "the second part"
    assert words(heard).count("the first part") == 1


def test_an_agent_that_is_not_installed_is_refused_with_the_way_to_install_it_and_nothing_changes(world: World) -> None:
    heard = world.listen("a")
    world.write("a", "hello")
    world.host.answer("hi")
    world.write("a", "/agent codex")
    error = next(e for e in heard if e["event"] == "error")
    assert "install" in error["hint"]
    assert len(world.loop.query("threads", 10, True)["threads"]) == 1


def test_a_question_that_the_end_of_the_turn_overtakes_is_taken_back(world: World) -> None:
    heard = world.listen("a")
    world.write("a", "long")
    world.write("a", "/close")
    choice = next(e for e in heard if e["event"] == "choice")
    world.host.answer("done")
    assert [e["id"] for e in heard if e["event"] == "choice_done"] == [choice["id"]]
    assert "closed" in words(heard)[-1]


def test_lines_behind_a_command_are_not_swallowed_in_silence(world: World) -> None:
    heard = world.listen("a")
    world.write("a", "/new\nand then do this")
    assert "not used" in words(heard)[-1]


@pytest.mark.requires("H2.prompt-meets-stopping", "M4.prompt-meets-stopping")
def test_a_prompt_that_meets_a_stopping_host_waits_for_its_end_and_then_a_new_one_starts(world: World) -> None:
    heard = world.listen("a")
    world.write("a", "first")
    world.host.answer("one")
    first = world.host
    first.obeys_stop = False
    world.loop.pass_time(601.0)
    assert first.stopped == "idle"
    world.write("a", "second")
    assert len(world.hosts) == 1
    first.die("exit 0")
    assert len(world.hosts) == 2
    world.host.answer("two")
    assert words(heard) == ["one", "two"]


@pytest.mark.requires("H2.credits")
def test_a_listener_gets_no_more_than_its_credit_until_it_acks_and_then_all_the_rest_in_order(world: World) -> None:
    from transports.bus.vocabulary.surface import ItemAck, RouteItem

    world.write("a", "hello")
    items: list[RouteItem] = []
    world.loop.switch.register("peer/slow", lambda d: items.append(d.message) if isinstance(d.message, RouteItem) else None)
    world.loop.ask("route/cli:local:a", Listen(credit=3), sender="peer/x")
    world.loop.switch.send("route/cli:local:a", Listen(credit=3, exclusive=False), sender="peer/slow", corr=5, peer=OWNER)
    world.loop.run()
    for n in range(20):
        world.host.say(f"block {n}", n)
    durable = [i for i in items if i.seq]
    assert len(durable) == 3
    while len(durable) < 20:
        world.loop.switch.send("route/cli:local:a", ItemAck(durable[-1].seq), sender="peer/slow", peer=OWNER)
        world.loop.run()
        durable = [i for i in items if i.seq]
    texts = [i.event["text"] for i in durable if i.event["event"] == "text"]
    assert texts == [f"block {n}" for n in range(len(texts))]
    assert [i.seq for i in durable] == sorted({i.seq for i in durable})


@pytest.mark.requires("H3.checked-first", "B22")
def test_a_session_that_was_deleted_is_found_missing_before_the_agent_is_asked_and_is_a_choice(world: World) -> None:
    heard = world.listen("a")
    world.write("a", "first")
    world.host.answer("one")
    world.host.die("exit 0")
    world.deleted.add(world.host.session)
    world.write("a", "second")
    assert len(world.hosts) == 1
    choice = next(e for e in heard if e["event"] == "choice")
    assert [o["id"] for o in choice["options"]] == ["retry", "fresh", "cancel"]
    world.loop.ask("route/cli:local:a", Answer(choice["id"], "fresh"))
    assert world.host.request.start == "new"
    world.host.answer("fresh start")
    assert words(heard)[-1] == "fresh start"


def test_a_store_that_does_not_answer_is_no_reason_not_to_resume(world: World) -> None:
    world.write("a", "first")
    world.host.answer("one")
    world.host.die("exit 0")
    world.reader_hangs = True
    world.write("a", "second")
    world.loop.pass_time(26.0)
    assert len(world.hosts) == 2


def test_who_listens_after_the_first_message_misses_nothing_that_was_said_before(world: World) -> None:
    world.write("new", "/mode nothing-here")
    world.write("new", "hello")
    world.host.answer("hi")
    assert words(world.listen("new"))[-1] == "hi"
    assert len(words(world.shown["new"])) == 2


def test_what_somebody_typed_into_the_old_terminal_is_loaded_before_the_next_turn_and_shown(world: World) -> None:
    heard = world.listen("a")
    world.write("a", "first")
    world.host.answer("one")
    world.loop.pass_time(3.0)
    world.leaf, world.added = "leaf-2", ["typed over there"]
    world.write("a", "second")
    assert world.host.reloads == [world.host.session]
    assert [e["text"].split("\n")[0] for e in heard if e.get("what") == "added"] == ["terminal: typed over there"]
    assert [p.blocks[0]["text"] for p in world.host.prompts] == ["first", "second"]
    world.host.answer("two")
    assert words(heard) == ["one", "two"]


def test_words_typed_right_behind_our_turn_are_not_taken_for_ours(world: World) -> None:
    world.write("a", "first")
    world.host.answer("one")
    world.leaf, world.added = "leaf-2", ["typed at once"]
    world.loop.pass_time(3.0)
    world.write("a", "second")
    assert world.host.reloads == [world.host.session]


def test_records_that_the_agent_itself_wrote_late_reload_nothing(world: World) -> None:
    world.write("a", "first")
    world.host.answer("one")
    world.loop.pass_time(3.0)
    world.leaf = "leaf-2"
    world.write("a", "second")
    assert world.host.reloads == []
    assert len(world.host.prompts) == 2


def test_words_typed_between_two_turns_that_follow_at_once_are_seen(world: World) -> None:
    world.write("a", "first")
    world.host.answer("one")
    world.added = ["typed in between"]
    world.write("a", "second")
    assert world.host.reloads == [world.host.session]
    assert len(world.host.prompts) == 2
