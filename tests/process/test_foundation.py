"""The foundation's promises, with every process real and the demo agent: nothing waits in the supervisor, a hung store
delays nobody else, a killed supervisor loses nothing, what is left of processes is nothing."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.daemon import Daemon, needs_va, plain_env
from tests.waiting import until

pytestmark = needs_va


@pytest.fixture
def work(tmp_path: Path) -> Path:
    made = tmp_path / "项目 one"
    made.mkdir()
    return made


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    with Daemon(tmp_path / "va", plain_env(tmp_path), agents__default="demo") as made:
        yield made


def demo_session(daemon: Daemon, work: Path, *words: str) -> str:
    """A session of the demo agent, made in its terminal form; returns its id."""
    before = {s["id"] for s in daemon.va("sessions", "list", "--agent", "demo", "--json").json()}
    import subprocess

    said = "\n".join(words) + "\n"
    subprocess.run(["va", "demo-agent"], input=said, text=True, cwd=work, env=daemon.env, capture_output=True, timeout=30, check=True)
    (new,) = {s["id"] for s in daemon.va("sessions", "list", "--agent", "demo", "--json").json()} - before
    return str(new)


def code_of(daemon: Daemon, session: str, work: Path) -> str:
    return str(daemon.va("handover", "--agent", "demo", "--session", session, "--cwd", str(work), "--json").json()["code"])


@pytest.mark.requires("H2.no-waiting-calls")
def test_during_a_whole_handover_no_handler_makes_a_system_call_that_may_wait(tmp_path: Path, work: Path) -> None:
    report = tmp_path / "report.txt"
    daemon = Daemon(tmp_path / "va", plain_env(tmp_path), agents__default="demo", threads__idle_shutdown_s=1)
    daemon.serve = [sys.executable, "-m", "tests.fakes.watched_supervisor", str(report)]
    daemon.env["PYTHONPATH"] = str(Path(__file__).resolve().parents[2])
    with daemon:
        session = demo_session(daemon, work, "remember banana")
        daemon.send("hello", chat="a", workspace=work)
        assert "Picked up" in daemon.send(f"/pickup {code_of(daemon, session, work)}", chat="b").reply
        running = daemon.start_send("run: echo hi", chat="b")
        asked = running.wait("permission")
        daemon.answer("b", asked["id"], "yes")
        assert running.finish().code == 0
        for command in ("/status", "/session", "/workspace", "/agent", "/handover", "/new"):
            daemon.send(command, chat="b")
        daemon.va("workspace", "add", str(work))
        daemon.status()
    assert report.read_text() == ""


@pytest.mark.requires("H2.reader-hangs")
def test_a_store_that_hangs_costs_its_own_request_and_no_other_chat(tmp_path: Path, work: Path) -> None:
    knob = tmp_path / "hang"
    daemon = Daemon(tmp_path / "va", plain_env(tmp_path), agents__default="demo", reader__deadline_s=3)
    daemon.env["VIBEAROUND_TEST_READER_HANG"] = str(knob)
    with daemon:
        session = demo_session(daemon, work, "remember banana")
        code = code_of(daemon, session, work)
        knob.write_text(session)
        hung = daemon.start_send(f"/pickup {code}", chat="hung")
        hung.wait("accepted")
        assert daemon.send("hello", chat="other", workspace=work).code == 0
        told = hung.finish()
        assert told.code == 8
        knob.unlink()
        assert "Picked up" in daemon.send(f"/pickup {code}", chat="hung").reply


@pytest.mark.requires("H9.supervisor-killed")
def test_a_supervisor_killed_in_mid_stream_loses_nothing_and_spawns_nothing_twice(daemon: Daemon, work: Path) -> None:
    daemon.send("hello", chat="a", workspace=work)
    (host,) = daemon.status()["hosts"]
    running = daemon.start_send("slow 40", chat="a", key="the-key")
    running.wait("text")
    daemon.kill()
    daemon.start()
    shown = daemon.send("slow 40", chat="a", key="the-key")
    assert shown.code == 0
    assert shown.text
    (after,) = daemon.status()["hosts"]
    assert (after["pid"], after["session"]) == (host["pid"], host["session"])
    thread = daemon.va("threads", "show", daemon.status()["threads"][0]["id"], "--json").json()
    assert [t["state"] for t in thread["turns"]] == ["done", "done"]
    assert thread["turns"][1]["text"] == shown.text


def test_a_killed_host_takes_its_agent_with_it_and_the_next_message_brings_both_back(daemon: Daemon, work: Path) -> None:
    daemon.send("remember banana", chat="a", workspace=work)
    (host,) = daemon.status()["hosts"]
    os.kill(host["pid"], signal.SIGKILL)
    until(lambda: not Path(f"/proc/{host['agent_pid']}").exists(), "the agent of a killed host is gone")
    turn = daemon.send("recall", chat="a")
    assert "remember banana" in turn.text
    assert turn.session["session"] == host["session"]


@pytest.mark.requires("B28", "M4.two-supervisors")
def test_a_second_supervisor_on_one_data_directory_refuses_to_start(daemon: Daemon) -> None:
    second = daemon.va("serve", check=False)
    assert second.code == 5
    assert str(daemon.status()["pid"]) in second.err


def test_after_va_down_hosts_that_outlived_a_crash_are_ended_without_a_supervisor(daemon: Daemon, work: Path) -> None:
    daemon.send("hello", chat="a", workspace=work)
    (host,) = daemon.status()["hosts"]
    daemon.kill()
    assert Path(f"/proc/{host['pid']}").exists()
    daemon.va("down")
    for pid in (host["pid"], host["agent_pid"]):
        until(lambda pid=pid: not Path(f"/proc/{pid}").exists(), f"{pid} is gone")
    daemon.start()
    assert daemon.send("recall", chat="a").code == 0


@pytest.mark.requires("H2.reader-lifeline")
def test_the_reader_ends_with_its_supervisor_however_that_ends(daemon: Daemon, work: Path) -> None:
    daemon.va("workspace", "add", str(work))
    readers = [pid for pid, line in daemon.processes().items() if "actors.reader" in line]
    assert readers
    daemon.kill()
    for pid in readers:
        until(lambda pid=pid: not Path(f"/proc/{pid}").exists(), f"reader {pid} is gone")
    daemon.start()


@pytest.mark.requires("H2.subreaper", "I6")
def test_what_a_tool_left_behind_is_reaped_and_gone_after_down(daemon: Daemon, work: Path) -> None:
    running = daemon.start_send("run: (sleep 300 >/dev/null 2>&1 &) ; echo left", chat="a", workspace=work)
    asked = running.wait("permission")
    daemon.answer("a", asked["id"], "yes")
    assert running.finish().code == 0
    (host,) = daemon.status()["hosts"]
    children = Path(f"/proc/{host['pid']}/task/{host['pid']}/children").read_text().split()
    assert str(host["agent_pid"]) in children
    daemon.va("down")
    until(lambda: not any("sleep 300" in line for line in daemon.processes().values()), "the left command is gone")
    daemon.start()
