"""Commands in a chat and the daemon's promises around them, with the demo agent, seen from outside."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.daemon import VA, Daemon, Event, Running, needs_va, plain_env
from tests.waiting import until

pytestmark = needs_va


@pytest.fixture
def work(tmp_path: Path) -> Path:
    place = tmp_path.resolve() / "work"
    place.mkdir()
    return place


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    with Daemon(tmp_path / "va", plain_env(tmp_path), agents__default="demo") as one:
        yield one


def option(event: Event, *words: str) -> str:
    """The id of the first option whose id or name holds one of the words."""
    return next(
        str(one["id"]) for one in event["options"] if any(word in f"{one['id']} {one['name']}".lower() for word in words)
    )


@pytest.mark.requires("H6.choice-in-turn", "H7.answer")
def test_a_new_thread_in_mid_turn_is_asked_about_and_made_after_the_stop(daemon: Daemon, work: Path) -> None:
    turn = daemon.start_send("hang", chat="a", workspace=work)
    thread = turn.wait("session")["thread"]
    new = daemon.start_send("/new", chat="a")
    asked = new.wait("choice")
    assert len(asked["options"]) == 3
    daemon.answer("a", asked["id"], option(asked, "stop"))
    assert turn.finish().of("done")[0]["stop_reason"] == "cancelled"
    assert new.finish().code == 0
    assert daemon.send("hello", chat="a").session["thread"] != thread


@pytest.mark.requires("H7.choice-expires")
def test_a_choice_that_nobody_answers_counts_as_its_harmless_option_and_says_so(tmp_path: Path, work: Path) -> None:
    with Daemon(tmp_path / "va", plain_env(tmp_path), agents__default="demo", choices__expire_s=1) as daemon:
        turn = daemon.start_send("hang", chat="a", workspace=work)
        thread = turn.wait("session")["thread"]
        new = daemon.start_send("/new", chat="a")
        assert new.wait("choice")["expires_in_s"] <= 1
        told = new.finish().events
        assert any(event["event"] in ("reply", "error", "notice") for event in told)
        daemon.va("chat", "stop", "--chat", "a")
        turn.finish()
        assert daemon.send("hello", chat="a").session["thread"] == thread


@pytest.mark.requires("H6.at-once")
def test_looking_commands_work_in_mid_turn_and_create_nothing(daemon: Daemon, work: Path) -> None:
    for text in ("/help", "/status", "/route", "/workspace", "/agent", "/profile"):
        assert daemon.send(text, chat="idle").reply
    assert daemon.va("threads", "list", "--json").json() == []
    turn = daemon.start_send("hang", chat="a", workspace=work)
    turn.wait("session")
    for text in ("/help", "/status", "/route", "/session list"):
        assert daemon.send(text, chat="a").reply
    daemon.send("/stop", chat="a")
    assert turn.finish().of("done")[0]["stop_reason"] == "cancelled"


@pytest.mark.requires("H6.stop")
def test_stop_cancels_what_this_chat_has_waiting_and_says_how_many_and_leaves_the_other_chats(
    daemon: Daemon, work: Path
) -> None:
    first = daemon.send("hello", chat="a", workspace=work).session
    code = daemon.va("handover", "--agent", "demo", "--session", first["session"], "--cwd", str(work), "--json").json()[
        "code"
    ]
    daemon.send(f"/pickup {code}", chat="b")
    running = daemon.start_send("hang", chat="a")
    running.wait("session")
    waiting = daemon.start_send("banana", chat="a")
    waiting.wait("queued")
    other = daemon.start_send("cherry", chat="b")
    other.wait("queued")
    assert "1" in daemon.send("/stop", chat="a").reply
    running.finish()
    waiting.finish()
    assert "cherry" in other.finish().text
    assert "banana" not in daemon.send("recall", chat="b").text


@pytest.mark.requires("H6.mode-plan", "H6.profile", "H6.agent-cmd")
def test_modes_are_listed_and_set_and_plan_is_one_of_them(daemon: Daemon, work: Path) -> None:
    daemon.send("hello", chat="a", workspace=work)
    assert "plan" in daemon.send("/mode", chat="a").reply
    daemon.send("/plan", chat="a")
    assert "plan mode" in daemon.send("run: touch made", chat="a").text
    daemon.send("/mode ask", chat="a")
    turn = daemon.start_send("run: touch made", chat="a")
    daemon.answer(
        "a",
        (asked := turn.wait("permission"))["id"],
        next(o["id"] for o in asked["options"] if o["kind"] == "allow_once"),
    )
    turn.finish()
    assert (work / "made").exists()
    assert "direct" in daemon.send("/profile", chat="a").reply
    assert "demo agent" in daemon.send("/agent /help", chat="a").text


@pytest.mark.requires("H6.session", "H4.session-switch", "H4.ambiguous")
def test_a_session_is_listed_with_its_title_and_selected_by_a_unique_prefix(daemon: Daemon, work: Path) -> None:
    first = daemon.send("the banana plan", chat="a", workspace=work).session["session"]
    daemon.send("/new", chat="a")
    second = daemon.send("the cherry plan", chat="a").session["session"]
    listed = daemon.send("/session", chat="a").reply
    assert "banana" in listed and "cherry" in listed
    length = next(n for n in range(4, 37) if first[:n] != second[:n])
    daemon.send(f"/session --switch {first[:length]}", chat="a")
    turn = daemon.send("recall", chat="a")
    assert turn.session["session"] == first and "banana" in turn.text


@pytest.mark.requires("H6.workspace", "H7.workspace")
def test_a_workspace_is_added_renamed_listed_chosen_archived_and_its_directory_is_not_touched(
    daemon: Daemon, work: Path
) -> None:
    (work / "file").write_text("mine")
    before = sorted(work.iterdir())
    daemon.va("workspace", "add", str(work))
    entry = next(
        one for one in daemon.va("workspace", "list", "--json").json() if one.get("path", one.get("cwd")) == str(work)
    )
    daemon.va("workspace", "rename", entry["id"], "the house")
    assert "the house" in daemon.send("/workspace", chat="a").reply
    daemon.send(f"/workspace {entry['id']}", chat="a")
    assert daemon.send("hello", chat="a").session["cwd"] == str(work)
    daemon.va("workspace", "archive", entry["id"])
    assert sorted(work.iterdir()) == before


@pytest.mark.requires("H7.sessions-list", "H3.demo-terminal")
def test_a_session_of_the_terminal_form_is_listed(daemon: Daemon, work: Path) -> None:
    subprocess.run(
        [str(VA), "demo-agent"],
        cwd=work,
        env=daemon.env,
        input="the banana plan\n",
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    listed = daemon.va("sessions", "list", "--agent", "demo", "--cwd", str(work), "--limit", "5", "--json").json()
    assert [(one["agent"], one["cwd"], "banana" in one["title"]) for one in listed] == [("demo", str(work), True)]


@pytest.mark.requires("H7.newcomer", "H7.completion")
def test_va_alone_says_what_to_do_next_and_completion_is_there(daemon: Daemon) -> None:
    assert "va" in daemon.va().out
    for shell in ("bash", "zsh", "fish"):
        assert "va" in daemon.va("completion", shell).out


@pytest.mark.requires("H2.private-files")
def test_nothing_in_the_data_directory_can_be_read_by_others(daemon: Daemon, work: Path) -> None:
    daemon.send("banana", chat="a", workspace=work)
    assert stat.S_IMODE(daemon.data.stat().st_mode) == 0o700
    private = [
        path
        for path in daemon.data.iterdir()
        if path.name.startswith(("journal", "run.json", "spool", "files", "vibearound"))
    ]
    assert private
    assert [str(path) for path in private if path.stat().st_mode & 0o077] == []


@pytest.mark.requires("H2.max-live")
def test_with_the_limit_of_live_hosts_reached_the_idle_one_stops_and_comes_back(tmp_path: Path, work: Path) -> None:
    with Daemon(tmp_path / "va", plain_env(tmp_path), agents__default="demo", hosts__max_live=1) as daemon:
        first = daemon.send("banana", chat="a", workspace=work).session
        daemon.send("cherry", chat="b", workspace=work)
        until(lambda: len(daemon.status()["hosts"]) == 1, "one host", seconds=20)
        again = daemon.send("recall", chat="a")
        assert again.session["session"] == first["session"] and "banana" in again.text


@pytest.mark.requires("H2.interrupted", "H2.restart-policy", "I2")
def test_a_turn_whose_host_was_killed_is_called_interrupted_and_not_run_again(daemon: Daemon, work: Path) -> None:
    daemon.send("banana", chat="a", workspace=work)
    turn = daemon.start_send("run: echo once >> ran; exec tail -f /dev/null", chat="a")
    asked = turn.wait("permission")
    daemon.answer("a", asked["id"], next(o["id"] for o in asked["options"] if o["kind"] == "allow_once"))
    until(lambda: (work / "ran").exists(), "the command's start")
    for pid, line in daemon.processes().items():
        if "actors/host.py" in line:
            os.kill(pid, signal.SIGKILL)
    assert turn.finish().code in (1, 7)
    assert "banana" in daemon.send("recall", chat="a").text
    assert (work / "ran").read_text() == "once\n"


@pytest.mark.requires("H2.spool", "H2.orphan-permission", "M4.spool")
def test_a_host_without_a_supervisor_ends_after_its_lease_and_what_it_had_to_say_is_not_lost(
    tmp_path: Path, work: Path
) -> None:
    with Daemon(tmp_path / "va", plain_env(tmp_path), agents__default="demo", hosts__lease_s=1) as daemon:
        turn = daemon.start_send("slow 4", chat="a", workspace=work)
        turn.wait("text")
        daemon.kill()
        turn.end()
        until(lambda: not daemon.processes(), "the end of the host after its lease", seconds=30)
        daemon.start()
        listener = daemon.listen("a")
        final = listener.wait("text", lambda event: event["final"] and "done." in event["text"])
        assert "second 4 of 4" in final["text"]


@pytest.mark.requires("H7.down-without-supervisor", "I6", "M4.down-without-supervisor")
def test_down_without_a_supervisor_ends_the_recorded_hosts(daemon: Daemon, work: Path) -> None:
    daemon.send("banana", chat="a", workspace=work)
    daemon.kill()
    assert daemon.processes()
    daemon.va("down")
    until(lambda: not daemon.processes(), "the end of all", seconds=15)
    daemon.start()


@pytest.mark.requires("H6.answer-follows")
def test_the_answer_reaches_the_chat_that_asked_though_it_has_moved_on(daemon: Daemon, work: Path) -> None:
    turn = daemon.start_send("slow 6", chat="a", workspace=work)
    first = turn.wait("session")["thread"]
    new = daemon.start_send("/new", chat="a")
    asked = new.wait("choice")
    daemon.answer("a", asked["id"], option(asked, "wait"))
    assert "second 6 of 6" in turn.finish().text
    new.finish()
    assert daemon.send("hello", chat="a").session["thread"] != first


def first_word(running: Running) -> str:
    """What a message that was sent while a turn runs is told first: queued, or an error."""
    return until(
        lambda: next((str(e["event"]) for e in running.events if e["event"] in ("queued", "error")), None),
        "a word about it",
    )


@pytest.mark.requires("I1")
def test_every_accepted_message_is_answered_or_refused_with_a_word(tmp_path: Path, work: Path) -> None:
    with Daemon(tmp_path / "va", plain_env(tmp_path), agents__default="demo", routes__max_queue=2) as daemon:
        running = daemon.start_send("hang", chat="a", workspace=work)
        running.wait("session")
        sent = [daemon.start_send("banana", chat="a") for _ in range(6)]
        refused = [one for one in sent if first_word(one) == "error"]
        assert len(refused) == 4
        assert {one.finish().code for one in refused} == {8}
        daemon.send("/stop", chat="a")
        running.finish()
        for one in sent:
            one.finish()


@pytest.mark.requires("H7.json")
def test_a_document_on_stdout_is_the_only_thing_there(daemon: Daemon) -> None:
    for words in (["status"], ["threads", "list"], ["workspace", "list"], ["sessions", "list"], ["agents", "list"]):
        json.loads(daemon.va(*words, "--json").out)
