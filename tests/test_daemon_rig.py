"""What the tests look at a daemon with: JSON lines of a running command."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from tests.daemon import Running, Turn

ENV = {"PATH": "/usr/local/bin:/usr/bin:/bin"}


def test_several_waits_see_the_same_event_and_the_end_has_its_code(tmp_path: Path) -> None:
    running = Running(["sh", "-c", 'echo \'{"event": "done", "n": 1}\'; exit 3'], tmp_path, ENV)
    seen: list[int] = []
    waiters = [threading.Thread(target=lambda: seen.append(running.wait("done")["n"])) for _ in range(3)]
    for waiter in waiters:
        waiter.start()
    for waiter in waiters:
        waiter.join(10)
    assert seen == [1, 1, 1]
    assert running.finish() == Turn(3, ({"event": "done", "n": 1},))


def test_an_event_that_never_comes_fails_with_what_was_seen_and_said(tmp_path: Path) -> None:
    running = Running(["sh", "-c", 'echo \'{"event": "a"}\'; echo trouble >&2'], tmp_path, ENV)
    with pytest.raises(AssertionError, match=r"it ended(.|\n)*\"a\"(.|\n)*trouble"):
        running.wait("b")


def test_a_command_that_does_not_end_by_itself_is_ended(tmp_path: Path) -> None:
    running = Running(["cat", "/dev/stdin"], tmp_path, ENV)
    endless = Running(["sh", "-c", 'echo \'{"event": "a"}\'; exec tail -f /dev/null'], tmp_path, ENV)
    endless.wait("a")
    endless.end()
    assert endless.finish().code != 0
    assert running.finish().code == 0


def test_the_text_of_a_turn_is_its_finished_blocks() -> None:
    events = (
        {"event": "text", "text": "par", "final": False},
        {"event": "text", "text": "part one", "final": True},
        {"event": "text", "text": "part two", "final": True},
    )
    assert Turn(0, events).text == "part one\npart two"
