"""The command line's contract: exit codes, JSON fields, events, what works without a supervisor."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.daemon import VA, Daemon, needs_va, plain_env

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


def alone(tmp_path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """`va WORDS` with a data directory that no supervisor serves."""
    env = {**plain_env(tmp_path), "VIBEAROUND_DATA_DIR": str(tmp_path / "data")}
    return subprocess.run(
        [str(VA), *words],
        cwd=tmp_path,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.requires("H7.without-supervisor", "H7.exit-codes")
@pytest.mark.parametrize(
    "words",
    [
        ["status"],
        ["status", "--json"],
        ["threads", "list"],
        ["workspace", "list"],
        ["handover", "--agent", "demo", "--session", "x", "--cwd", "/"],
        ["pickup", "ABCD"],
        ["chat", "send", "hello", "--chat", "a"],
        ["chat", "listen", "--chat", "a"],
        ["chat", "stop", "--chat", "a"],
    ],
    ids=" ".join,
)
def test_without_a_supervisor_it_exits_3_and_names_va_up(tmp_path: Path, words: list[str]) -> None:
    ran = alone(tmp_path, *words)
    assert (ran.returncode, "va up" in ran.stderr + ran.stdout) == (3, True)


@pytest.mark.requires("H7.without-supervisor")
@pytest.mark.parametrize(
    "words",
    [
        ["--help"],
        ["settings", "list", "--json"],
        ["settings", "path"],
        ["agents", "list", "--json"],
        ["sessions", "list", "--json"],
        ["integrate", "claude", "--print", "--json"],
        ["service", "install", "--print"],
        ["down"],
    ],
    ids=" ".join,
)
def test_without_a_supervisor_these_work(tmp_path: Path, words: list[str]) -> None:
    ran = alone(tmp_path, *words)
    assert ran.returncode == 0, ran.stderr
    if "--json" in words:
        json.loads(ran.stdout)


@pytest.mark.requires("H7.exit-codes")
@pytest.mark.parametrize("words", [["nonsense"], ["settings", "set", "handover.ttl_s", "soon"], ["chat", "send"]], ids=" ".join)
def test_wrong_words_exit_2(tmp_path: Path, words: list[str]) -> None:
    assert alone(tmp_path, *words).returncode == 2


@pytest.mark.requires("H7.send-events", "H5.route")
def test_a_prompt_prints_the_documented_events_in_order(daemon: Daemon, work: Path) -> None:
    turn = daemon.send("banana", chat="a", workspace=work)
    kinds = [event["event"] for event in turn.events]
    assert kinds[0] == "accepted" and kinds[-1] == "done"
    assert kinds.index("session") < kinds.index("text")
    assert turn.events[0]["key"]
    session = turn.session
    assert (session["agent"], session["start"], session["cwd"]) == ("demo", "new", str(work))
    assert session["session"] and session["thread"].startswith("wt_") and session["workspace"].startswith("ws_")
    pieces = [event["text"] for event in turn.of("text") if not event["final"]]
    assert "banana" in turn.text
    assert "".join(pieces) in ("", turn.text)
    assert turn.of("done")[0]["stop_reason"] == "end_turn"


@pytest.mark.requires("H7.send-events", "H7.answer")
def test_a_permission_has_its_options_and_send_goes_on_after_the_answer(daemon: Daemon, work: Path) -> None:
    turn = daemon.start_send("run: echo hi > made", chat="a", workspace=work)
    asked = turn.wait("permission")
    assert asked["title"] and {"id", "name", "kind"} <= asked["options"][0].keys()
    allow = next(one["id"] for one in asked["options"] if one["kind"] == "allow_once")
    daemon.answer("a", asked["id"], allow)
    done = turn.finish()
    assert done.code == 0 and (work / "made").exists()
    assert {"id", "title", "status"} <= done.of("tool")[-1].keys()


@pytest.mark.requires("H7.exit-codes", "H7.send-events")
def test_an_agent_that_fails_ends_the_send_with_an_error_and_its_code(daemon: Daemon, work: Path) -> None:
    turn = daemon.send("crash", chat="a", workspace=work, check=False)
    error = turn.of("error")[0]
    assert turn.code == 7
    assert error["code"] and error["message"] and error["hint"]


@pytest.mark.requires("H7.send-key")
def test_the_same_key_again_runs_nothing_and_shows_the_first_turn(daemon: Daemon, work: Path) -> None:
    first = daemon.send("banana", chat="a", workspace=work, key="k1")
    again = daemon.send("banana", chat="a", workspace=work, key="k1")
    assert again.text == first.text
    assert daemon.send("recall", chat="a").text.count("banana") == 1


@pytest.mark.requires("H7.listen")
def test_a_listener_gets_what_reaches_the_route_once_and_a_second_one_is_refused(daemon: Daemon, work: Path) -> None:
    daemon.send("banana", chat="a", workspace=work)
    listener = daemon.listen("a")
    listener.wait("text", lambda event: event["final"] and "banana" in event["text"])
    second = daemon.va("chat", "listen", "--chat", "a", "--json", check=False, seconds=20)
    assert second.code in (5, 8)
    listener.end()
    daemon.send("cherry", chat="a")
    later = daemon.listen("a")
    later.wait("text", lambda event: event["final"] and "cherry" in event["text"])
    assert not [event for event in later.events if event["event"] == "text" and '"banana"' in event["text"]]


@pytest.mark.requires("H6.grammar", "H6.unknown", "H6.prefixes", "H6.help-status", "H6.route")
def test_commands_are_answered_and_what_is_none_reaches_the_agent(daemon: Daemon, work: Path) -> None:
    unknown = daemon.send("/statsu", chat="a", workspace=work, check=False)
    assert "/status" in json.dumps(unknown.events) and not unknown.of("session")
    assert "cli:local:a" in daemon.send("/va route", chat="a").reply
    assert "/pickup" in daemon.send("/help", chat="a").reply
    assert "etc" in daemon.send("/etc/hosts is wrong", chat="a", workspace=work).text
    status = daemon.send("/status", chat="a").reply
    assert "demo" in status.lower() and str(work) in status


@pytest.mark.requires("H7.json", "H7.threads")
def test_listings_have_the_documented_fields(daemon: Daemon, work: Path) -> None:
    turn = daemon.send("banana", chat="a", workspace=work)
    status = daemon.status()
    assert {"version", "pid", "uptime_s", "data_dir", "threads", "routes", "hosts", "bridges"} <= status.keys()
    assert {"thread", "agent", "pid", "session", "state", "rss_mb"} <= status["hosts"][0].keys()
    thread = daemon.va("threads", "list", "--json").json()[0]
    assert {"id", "workspace", "cwd", "host", "status", "title", "routes", "updated_at"} <= thread.keys()
    assert thread["host"] == {"agent": "demo", "profile": "direct"} and thread["routes"] == ["cli:local:a"]
    shown = daemon.va("threads", "show", turn.session["thread"], "--json").json()
    assert {"agent", "id", "observed_at", "current"} <= shown["sessions"][0].keys()
    fields = {"key", "route", "prompt", "state", "stop_reason", "started_at", "ended_at", "text"}
    assert fields <= shown["turns"][0].keys()
    listed = daemon.va("sessions", "list", "--agent", "demo", "--json").json()
    assert {"agent", "id", "cwd", "title", "updated_at", "live"} <= listed[0].keys()
    words = ["handover", "--agent", "demo", "--session", turn.session["session"], "--cwd", str(work), "--json"]
    issued = daemon.va(*words).json()
    assert {"code", "command", "expires_in_s"} <= issued.keys() and 0 < issued["expires_in_s"] <= 120


@pytest.mark.requires("H7.up-down", "H7.status-wait")
def test_up_starts_and_down_ends_the_daemon(tmp_path: Path) -> None:
    daemon = Daemon(tmp_path / "va", plain_env(tmp_path), agents__default="demo")
    try:
        daemon.va("up")
        assert daemon.va("status", "--wait", "10", "--json").json()["data_dir"] == str(daemon.data)
        daemon.va("up")  # again: it runs already
    finally:
        daemon.__exit__(None, None, None)
    assert daemon.va("status", check=False).code == 3


@pytest.mark.requires("H7.serve")
def test_serve_ends_on_term(daemon: Daemon, work: Path) -> None:
    daemon.send("banana", chat="a", workspace=work)
    assert daemon.terminate() == 0
    assert not [line for line in daemon.processes().values() if "serve" in line]


@pytest.mark.requires("H7.demo")
def test_the_demo_plays_to_its_end_in_a_directory_of_its_own(tmp_path: Path) -> None:
    ran = alone(tmp_path, "demo")
    assert ran.returncode == 0, ran.stderr
    assert "/pickup" in ran.stdout
    assert not (tmp_path / "data").exists() or not (tmp_path / "data" / "run.json").exists()
