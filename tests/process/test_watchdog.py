"""The sign of life to the service manager ends when a part of the supervisor that serves hangs, though its main thread lives."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from actors.heartbeat import Heartbeat
from tests.daemon import plain_env

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.requires("M4.watchdog")
@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGUSR2], ids=["io thread", "pool"])
def test_a_hung_part_of_the_supervisor_ends_its_sign_of_life(tmp_path: Path, number: signal.Signals) -> None:
    address = str(tmp_path / "notify")
    env = {
        **plain_env(tmp_path), "VIBEAROUND_DATA_DIR": str(tmp_path / "data"), "PYTHONPATH": str(ROOT), "NOTIFY_SOCKET": address,
        "WATCHDOG_USEC": "1000000",
    }
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(address)
        manager.settimeout(10)
        process = subprocess.Popen([sys.executable, "-m", "tests.fakes.stuck_supervisor"], env=env, cwd=ROOT, stderr=subprocess.PIPE)
        try:
            for _ in range(4):  # ready, and signs of life
                said = manager.recv(4096)
            assert said == b"WATCHDOG=1"
            os.kill(process.pid, number)
            assert process.stderr is not None
            for line in process.stderr:
                if b"no sign of life" in line:
                    break
            manager.setblocking(False)
            before = _drained(manager)
            assert before <= 3
            assert b"no sign of life" in next(line for line in process.stderr if b"no sign" in line)
            assert _drained(manager) == 0
        finally:
            process.kill()
            process.wait(10)


def _drained(manager: socket.socket) -> int:
    count = 0
    while True:
        try:
            manager.recv(4096)
        except BlockingIOError:
            return count
        count += 1


@pytest.mark.requires("M4.watchdog")
def test_each_part_is_asked_anew_only_after_it_has_answered() -> None:
    waiting = []
    heart = Heartbeat({"one": lambda answered: answered(), "two": waiting.append})
    assert [heart.beat(), heart.beat(), heart.beat()] == [[], ["two"], ["two"]]
    assert len(waiting) == 1
    waiting[0]()
    assert heart.beat() == []
    assert len(waiting) == 2
