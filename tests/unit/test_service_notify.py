"""sd_notify over real datagram sockets."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from transports.service.notify import Notifier


@pytest.fixture(params=["path", "abstract"])
def manager(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[socket.socket, str]]:
    """A service manager's socket, and its address as NOTIFY_SOCKET has it."""
    name = f"va-test-{os.getpid()}"
    path = Path("/tmp") / f"{name}.sock"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.settimeout(10)
        receiver.bind("\0" + name if request.param == "abstract" else str(path))
        yield receiver, f"@{name}" if request.param == "abstract" else str(path)
    path.unlink(missing_ok=True)


@pytest.mark.requires("H2.readiness")
def test_readiness_watchdog_and_stopping_reach_the_manager(manager: tuple[socket.socket, str]) -> None:
    receiver, address = manager
    environ = {"NOTIFY_SOCKET": address, "WATCHDOG_USEC": "30000000", "WATCHDOG_PID": str(os.getpid()), "HOME": "/h"}
    notifier = Notifier.from_environ(environ)
    assert environ == {"HOME": "/h"}
    assert notifier.watchdog_s == 15.0
    assert notifier.ready("serving\n2 threads")
    assert receiver.recv(4096) == f"READY=1\nMAINPID={os.getpid()}\nSTATUS=serving 2 threads".encode()
    assert notifier.alive()
    assert receiver.recv(4096) == b"WATCHDOG=1"
    assert notifier.extend(2.5)
    assert receiver.recv(4096) == b"EXTEND_TIMEOUT_USEC=2500000"
    assert notifier.stopping()
    assert receiver.recv(4096) == b"STOPPING=1"


def test_without_a_manager_nothing_is_sent_and_nothing_breaks() -> None:
    notifier = Notifier.from_environ({})
    assert (notifier.ready(), notifier.alive(), notifier.stopping(), notifier.watchdog_s) == (False, False, False, None)


def test_a_manager_that_has_gone_does_not_stop_us(tmp_path: Path) -> None:
    assert Notifier.from_environ({"NOTIFY_SOCKET": str(tmp_path / "gone")}).ready() is False


@pytest.mark.parametrize("usec", ["", "0", "-5", "soon"])
def test_a_watchdog_that_makes_no_sense_is_none(usec: str) -> None:
    assert Notifier.from_environ({"NOTIFY_SOCKET": "/x", "WATCHDOG_USEC": usec}).watchdog_s is None


def test_a_watchdog_meant_for_another_process_is_none() -> None:
    environ = {"NOTIFY_SOCKET": "/x", "WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "1"}
    assert Notifier.from_environ(environ).watchdog_s is None
