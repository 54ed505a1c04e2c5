"""Rows of the behaviour table, each by its number, with the demo agent and the daemon seen from outside. Rows whose behaviour
is the real agents' own stand in tests/agents."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.daemon import VA, Daemon, needs_va, plain_env
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


def terminal_session(daemon: Daemon, cwd: Path, text: str) -> str:
    """A session of the demo agent's terminal form with one turn; returns its id."""
    ran = subprocess.run(
        [str(VA), "demo-agent"],
        cwd=cwd,
        env=daemon.env,
        input=f"{text}\n",
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    return ran.stdout.split("Session ", 1)[1].split()[0]


def code_for(daemon: Daemon, session: str, cwd: Path) -> str:
    words = ["handover", "--agent", "demo", "--session", session, "--cwd", str(cwd), "--json"]
    return str(daemon.va(*words).json()["code"])


def share(daemon: Daemon, chat: str, other: str) -> None:
    """Attach a second chat to the first one's thread."""
    session = daemon.send("who is here", chat=chat).session
    daemon.send(f"/pickup {code_for(daemon, session['session'], Path(session['cwd']))}", chat=other)


@pytest.mark.requires("B1", "H4.pickup-needs-no-agent-start", "H4.cwd-recorded")
def test_row_1_a_terminal_session_is_picked_up_and_the_reply_names_title_and_directory(
    daemon: Daemon, work: Path
) -> None:
    session = terminal_session(daemon, work, "the banana plan")
    picked = daemon.send(f"/pickup {code_for(daemon, session, work)}", chat="a")
    assert "the banana plan" in picked.reply and str(work) in picked.reply
    assert daemon.status()["hosts"] == []
    turn = daemon.send("recall", chat="a")
    assert "the banana plan" in turn.text
    assert (turn.session["session"], turn.session["cwd"]) == (session, str(work))


@pytest.mark.requires("B2")
def test_row_2_the_same_code_twice_is_refused_the_second_time(daemon: Daemon, work: Path) -> None:
    code = code_for(daemon, terminal_session(daemon, work, "one"), work)
    assert daemon.send(f"/pickup {code}", chat="a").code == 0
    assert daemon.send(f"/pickup {code}", chat="b", check=False).code == 6


@pytest.mark.requires("B8", "B9")
def test_rows_8_and_9_the_session_that_was_handed_over_is_resumed_though_its_thread_went_on_with_another(
    daemon: Daemon, work: Path
) -> None:
    other = terminal_session(daemon, work, "cherry")
    first = daemon.send("banana", chat="a", workspace=work).session["session"]
    daemon.send(f"/session {other}", chat="a")
    assert daemon.send("recall", chat="a").session["session"] == other
    daemon.send(f"/pickup {code_for(daemon, first, work)}", chat="b")
    turn = daemon.send("recall", chat="b")
    assert turn.session["session"] == first
    assert "banana" in turn.text and "cherry" not in turn.text


@pytest.mark.requires("B10", "H2.lazy-return")
def test_row_10_after_an_idle_stop_the_same_session_goes_on(tmp_path: Path, work: Path) -> None:
    with Daemon(tmp_path / "va", plain_env(tmp_path), agents__default="demo", threads__idle_shutdown_s=0.2) as daemon:
        first = daemon.send("banana", chat="a", workspace=work)
        until(lambda: not daemon.status()["hosts"], "the end of the idle host", seconds=20)
        second = daemon.send("recall", chat="a")
    assert "banana" in second.text
    assert (second.session["thread"], second.session["session"]) == (first.session["thread"], first.session["session"])


@pytest.mark.requires("B11", "H2.rehydrate")
@pytest.mark.parametrize("how", ["terminate", "kill"])
def test_row_11_after_a_restart_the_same_thread_and_session_go_on(daemon: Daemon, work: Path, how: str) -> None:
    first = daemon.send("banana", chat="a", workspace=work)
    getattr(daemon, how)()
    daemon.start()
    second = daemon.send("recall", chat="a")
    assert "banana" in second.text
    assert (second.session["thread"], second.session["session"]) == (first.session["thread"], first.session["session"])


@pytest.mark.requires("B12")
def test_row_12_after_a_restart_close_closes_the_old_thread(daemon: Daemon, work: Path) -> None:
    thread = daemon.send("banana", chat="a", workspace=work).session["thread"]
    daemon.terminate()
    daemon.start()
    daemon.send("/close", chat="a")
    shown = daemon.va("threads", "show", thread, "--json").json()
    assert shown["status"] == "closed"
    assert daemon.send("recall", chat="a", workspace=work).session["thread"] != thread


@pytest.mark.requires("B13", "H2.lanes")
def test_row_13_a_second_message_waits_with_its_place_and_in_order(daemon: Daemon, work: Path) -> None:
    first = daemon.start_send("run: cat", chat="a", workspace=work)
    permission = first.wait("permission")
    second = daemon.start_send("banana", chat="a")
    assert second.wait("queued")["position"] == 1
    third = daemon.start_send("cherry", chat="a")
    assert third.wait("queued")["position"] == 2
    reject = next(one["id"] for one in permission["options"] if one["kind"] == "reject_once")
    daemon.answer("a", permission["id"], reject)
    first.finish()
    assert second.finish().code == 0
    assert "earlier" in third.finish().text
    assert daemon.send("recall", chat="a").text.index("banana") < daemon.send("recall", chat="a").text.index("cherry")


@pytest.mark.requires("B15", "B18", "I7")
def test_rows_15_and_18_a_hanging_turn_and_an_open_permission_delay_no_other_chat(daemon: Daemon, work: Path) -> None:
    hanging = daemon.start_send("hang", chat="a", workspace=work)
    hanging.wait("accepted")
    asking = daemon.start_send("run: echo hello", chat="b", workspace=work)
    asking.wait("permission")
    assert daemon.send("/status", chat="c", workspace=work).reply
    assert "banana" in daemon.send("banana", chat="c", workspace=work).text
    assert daemon.send("/status", chat="a").reply
    for chat, turn in (("a", hanging), ("b", asking)):
        daemon.va("chat", "stop", "--chat", chat)
        assert turn.finish().of("done")[0]["stop_reason"] == "cancelled"


@pytest.mark.requires("B26", "H6.new-close", "H5.join-leave")
def test_row_26_a_new_thread_in_one_chat_is_told_to_the_others_and_leaves_theirs(daemon: Daemon, work: Path) -> None:
    first = daemon.send("banana", chat="a", workspace=work).session
    share(daemon, "a", "b")
    listener = daemon.listen("b")
    daemon.send("/new", chat="a")
    until(lambda: "cli:local:a" in json.dumps(listener.events), "word in b that a has left")
    assert daemon.send("recall", chat="b").session["thread"] == first["thread"]
    assert daemon.send("recall", chat="a").session["thread"] != first["thread"]


@pytest.mark.requires("B27", "I10")
def test_row_27_a_torn_last_line_of_a_session_costs_that_line_only(daemon: Daemon, work: Path) -> None:
    session = terminal_session(daemon, work, "banana")
    path = next(Path(daemon.env["HOME"]).rglob(f"{session}.jsonl"), None) or next(daemon.data.rglob(f"{session}.jsonl"))
    with path.open("ab") as file:
        file.write(b'{"type": "user", "text": "torn \xe4')
    daemon.send(f"/pickup {code_for(daemon, session, work)}", chat="a")
    assert "banana" in daemon.send("recall", chat="a").text


@pytest.mark.requires("B28", "H2.lock-first")
def test_row_28_a_second_daemon_on_the_same_data_directory_refuses_to_start(daemon: Daemon, work: Path) -> None:
    second = daemon.va("serve", check=False, seconds=30)
    assert second.code != 0
    assert str(daemon.data) in second.err
    assert daemon.send("banana", chat="a", workspace=work).code == 0


@pytest.mark.requires("B29", "H2.settings-kept", "I8")
def test_row_29_a_settings_file_that_does_not_parse_is_never_overwritten(daemon: Daemon) -> None:
    path = daemon.data / "settings.toml"
    path.write_text("# mine\n[threads\nidle_shutdown_s = 5\n")
    before = path.read_bytes()
    refused = daemon.va("settings", "set", "handover.ttl_s", "60", check=False)
    assert refused.code in (2, 5) and "line 2" in refused.err
    assert path.read_bytes() == before


@pytest.mark.requires("B31", "H4.lockout")
def test_row_31_many_wrong_codes_lock_out_that_chat_alone(tmp_path: Path, work: Path) -> None:
    with Daemon(tmp_path / "va", plain_env(tmp_path), agents__default="demo", handover__max_misses=3) as daemon:
        session = terminal_session(daemon, work, "banana")
        codes = [daemon.send(f"/pickup ZZZ{end}", chat="a", check=False).code for end in "2345"]
        assert codes[:3] == [6, 6, 6] and codes[3] == 5
        good = code_for(daemon, session, work)
        locked = daemon.send(f"/pickup {good}", chat="a", check=False)
        assert locked.code == 5 and "lock" in json.dumps(locked.events)
        assert daemon.send(f"/pickup {good}", chat="b").code == 0
