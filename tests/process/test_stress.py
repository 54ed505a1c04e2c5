"""The long ones (`make stress`): kill -9 of any one process at any moment, many times over."""

from __future__ import annotations

import os
import random
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.daemon import Daemon, needs_va, plain_env

pytestmark = [needs_va, pytest.mark.stress, pytest.mark.timeout(1500)]
ROUNDS = 25


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    with Daemon(tmp_path / "va", plain_env(tmp_path), agents__default="demo") as made:
        yield made


@pytest.fixture
def work(tmp_path: Path) -> Path:
    made = tmp_path / "work"
    made.mkdir()
    return made


def turns(daemon: Daemon) -> list[dict[str, Any]]:
    """All turns of all threads."""
    found = []
    for thread in daemon.va("threads", "list", "--json").json():
        found.extend(daemon.va("threads", "show", thread["id"], "--json").json()["turns"])
    return found


def test_a_supervisor_killed_again_and_again_loses_no_prompt_runs_none_twice_and_no_text_is_lost(daemon: Daemon, work: Path) -> None:
    moments = random.Random(7)
    shown = {}
    for n in range(ROUNDS):
        key = f"key-{n}"
        running = daemon.start_send(f"slow 8 round {n}", chat=f"c{n % 3}", workspace=work, key=key)
        running.wait(moments.choice(["accepted", "session", "text"]))
        daemon.kill()
        daemon.start()
        again = daemon.send(f"slow 8 round {n}", chat=f"c{n % 3}", workspace=work, key=key)
        shown[key] = again.text
    kept = {t["key"]: t for t in turns(daemon)}
    assert Counter(t["key"] for t in turns(daemon)) == Counter(shown.keys())
    assert {k: t["state"] for k, t in kept.items()} == dict.fromkeys(shown, "done")
    assert {k: t["text"] for k, t in kept.items()} == shown


def test_a_host_killed_again_and_again_is_an_interruption_each_time_and_the_session_goes_on(daemon: Daemon, work: Path) -> None:
    first = daemon.send("remember banana", chat="a", workspace=work)
    for n in range(ROUNDS):
        running = daemon.start_send("slow 30", chat="a", key=f"cut-{n}")
        running.wait("text")
        (host,) = [h for h in daemon.status()["hosts"] if h["state"] == "busy"]
        os.kill(host["pid"] if n % 2 else host["agent_pid"], signal.SIGKILL)
        assert running.finish().code == 7
    after = daemon.send("recall", chat="a")
    assert after.session["session"] == first.session["session"]
    assert "remember banana" in after.text
    assert Counter(t["key"] for t in turns(daemon)).most_common(1)[0][1] == 1


def test_chats_that_write_at_once_get_every_answer_in_their_own_order(daemon: Daemon, work: Path) -> None:
    chats = [f"chat-{n}" for n in range(6)]
    running = {
        (chat, n): daemon.start_send(f"message {n} of {chat}", chat=chat, workspace=work, key=f"{chat}-{n}") for n in range(8) for chat in chats
    }
    for (chat, n), one in running.items():
        turn = one.finish(seconds=120)
        assert turn.code == 0, (chat, n, turn)
        assert f"message {n} of {chat}" in turn.text
    assert Counter(t["key"] for t in turns(daemon)) == Counter(f"{chat}-{n}" for chat in chats for n in range(8))
