"""Ends of hosts and agents with every process real: what a tool call detached, an agent that ignores every polite end."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from actors.children import alive, process_start_time
from tests.daemon import Daemon, needs_va
from tests.process.fake_hosted import fake_daemon
from tests.waiting import until

pytestmark = needs_va


@pytest.fixture
def work(tmp_path: Path) -> Path:
    place = tmp_path.resolve() / "work"
    place.mkdir()
    return place


def pid_of(daemon: Daemon) -> int:
    (host,) = daemon.status()["hosts"]
    return int(host["pid"])


@pytest.mark.requires("M4.detached")
@pytest.mark.parametrize("how", ["down", "down without a supervisor", "not to be ended"])
def test_what_a_tool_detached_is_named_at_the_idle_stop_and_ended_on_down_alone(tmp_path: Path, work: Path, how: str) -> None:
    pids = tmp_path / "pids"
    kept = {"hosts__end_detached": "false"} if how.startswith("not") else {}
    with fake_daemon(tmp_path, {"pid_file": str(pids)}, threads__idle_shutdown_s=1, **kept) as daemon:
        daemon.send("command; say begun", chat="a", workspace=work)
        heard = daemon.listen("a")
        pid = int(pids.read_text())
        start = process_start_time(pid) or 0
        named = heard.wait("notice", lambda e: "Left running" in e["text"])
        assert f"sleep 600 (pid {pid})" in named["text"]
        until(lambda: not daemon.status()["hosts"], "the idle stop")
        assert alive(pid, start)
        heard.end()
        if "without" in how:
            daemon.kill()
        daemon.va("down")
        if kept:
            assert alive(pid, start)
            os.kill(pid, signal.SIGKILL)
        until(lambda: not alive(pid, start), "the end of what was detached")


@pytest.mark.requires("M4.host-killed")
def test_a_killed_host_takes_an_agent_that_ignores_every_polite_end_with_it_grandchild_included(tmp_path: Path, work: Path) -> None:
    pids = tmp_path / "pids"
    knobs = {"pid_file": str(pids), "ignore_eof": True, "ignore_term": True, "grandchild": "group"}
    with fake_daemon(tmp_path, knobs, hosts__stop_s=1) as daemon:
        turn = daemon.start_send("say begun; wait", chat="a", workspace=work)
        turn.wait("text")
        (host,) = daemon.status()["hosts"]
        grandchild = int(pids.read_text())
        known = [(pid, process_start_time(pid) or 0) for pid in (int(host["agent_pid"]), grandchild)]
        os.kill(int(host["pid"]), signal.SIGKILL)
        assert turn.finish().of("error")[0]["code"] == "interrupted"
        for one in known:
            until(lambda one=one: not alive(*one), f"the end of {one}")


@pytest.mark.requires("M4.host-killed")
def test_down_without_a_supervisor_ends_a_host_and_an_agent_that_ignores_every_polite_end(tmp_path: Path, work: Path) -> None:
    pids = tmp_path / "pids"
    knobs = {"pid_file": str(pids), "ignore_eof": True, "ignore_term": True, "grandchild": "group"}
    with fake_daemon(tmp_path, knobs, hosts__stop_s=1) as daemon:
        daemon.send("say begun", chat="a", workspace=work)
        host, grandchild = pid_of(daemon), int(pids.read_text())
        known = [(pid, process_start_time(pid) or 0) for pid in (host, grandchild)]
        daemon.kill()
        daemon.va("down")
        assert not [one for one in known if alive(*one)]
