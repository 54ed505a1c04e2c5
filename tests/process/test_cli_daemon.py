"""`va up`, `va down`, `va demo` and `va chat repl` as people use them, with real processes."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.daemon import VA, Daemon, needs_va, plain_env
from tests.processes import marked, wait_gone

pytestmark = needs_va


def va(env: dict[str, str], *words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(VA), *words], env=env, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=90, check=False
    )


@pytest.fixture
def env(tmp_path: Path) -> Iterator[dict[str, str]]:
    made = {**plain_env(tmp_path), "VIBEAROUND_DATA_DIR": str(tmp_path / "data"), "VIBEAROUND_AGENTS__DEFAULT": "demo"}
    yield made
    va(made, "down")
    assert not wait_gone(marked(f"VIBEAROUND_DATA_DIR={tmp_path / 'data'}"))


@pytest.mark.requires("H7.up-down")
def test_up_starts_once_and_down_leaves_nothing(env: dict[str, str], tmp_path: Path) -> None:
    first = va(env, "up")
    assert (first.returncode, "is running (pid" in first.stdout) == (0, True), first.stderr
    again = va(env, "up", "--json")
    assert again.returncode == 0
    assert '"started": false' in again.stdout
    assert va(env, "chat", "send", "hello", cwd=tmp_path).returncode == 0
    assert va(env, "down").returncode == 0
    assert not wait_gone(marked(f"VIBEAROUND_DATA_DIR={tmp_path / 'data'}"))
    assert va(env, "status").returncode == 3


def test_two_ups_at_once_start_one_supervisor_and_both_find_it(env: dict[str, str]) -> None:
    both = [subprocess.Popen([str(VA), "up", "--json"], env=env, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    told = [one.communicate(timeout=60)[0] for one in both]
    assert [one.returncode for one in both] == [0, 0]
    assert len({line for text in told for line in text.splitlines() if '"pid"' in line}) == 1


def test_up_tells_why_the_supervisor_ended_at_once(env: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "settings.toml").write_text("this is = not toml [")
    failed = va(env, "up")
    assert failed.returncode == 2
    assert "settings.toml" in failed.stderr
    assert "Traceback" not in failed.stderr


@pytest.mark.requires("H7.down-without-supervisor")
def test_down_ends_the_hosts_of_a_supervisor_that_was_killed(env: dict[str, str], tmp_path: Path) -> None:
    assert va(env, "up").returncode == 0
    assert va(env, "chat", "send", "hello", cwd=tmp_path).returncode == 0
    status = va(env, "status", "--json").stdout
    pid = int(status.split('"pid": ')[1].split(",")[0])
    os.kill(pid, signal.SIGKILL)
    assert not wait_gone([pid])
    ended = va(env, "down")
    assert ended.returncode == 0
    assert "Ended the demo host" in ended.stdout


@pytest.mark.requires("H7.demo")
def test_the_demo_plays_the_whole_handover_and_leaves_nothing_behind(env: dict[str, str], tmp_path: Path) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    played = va({**env, "TMPDIR": str(temporary)}, "demo", "--fast")
    assert played.returncode == 0, played.stdout + played.stderr
    for words in ("/pickup", "Picked up demo", "Blue Heron", "done by the agent", "(cancelled)", "The daemon restarts", "va pickup"):
        assert words in played.stdout + played.stderr
    assert list(temporary.iterdir()) == []
    assert not (tmp_path / "data").exists()


def test_the_demo_in_a_running_daemon_leaves_its_lists_as_they_were(tmp_path: Path) -> None:
    with Daemon(tmp_path / "va", plain_env(tmp_path), agents__default="demo") as daemon:
        daemon.va("demo", "--fast")
        assert daemon.va("threads", "list", "--json").json() == []
        assert daemon.va("workspace", "list", "--json").json() == []


class Typist:
    """A person at a terminal: waits for words, types others."""

    def __init__(self, argv: list[str], cwd: Path, env: dict[str, str]) -> None:
        self.pid, self._fd = pty.fork()
        if self.pid == 0:
            os.chdir(cwd)
            os.execve(argv[0], argv, env)
        self.seen = ""
        self._mark = 0

    def await_words(self, words: str, seconds: float = 20.0) -> None:
        until = time.monotonic() + seconds
        while words not in self.seen[self._mark :]:
            left = until - time.monotonic()
            assert left > 0, f"never saw {words!r}:\n{self.seen}"
            if select.select([self._fd], [], [], left)[0]:
                self.seen += os.read(self._fd, 65536).decode("utf-8", "replace")
        self._mark = self.seen.index(words, self._mark) + len(words)

    def type(self, text: str) -> None:
        os.write(self._fd, text.encode())

    def end(self, seconds: float = 20.0) -> int:
        until = time.monotonic() + seconds
        while True:
            assert time.monotonic() < until, self.seen
            try:
                if select.select([self._fd], [], [], 0.5)[0] and not os.read(self._fd, 65536):
                    break
            except OSError:  # the terminal's other side is closed: the process has ended
                break
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


@pytest.mark.requires("H5.repl")
def test_a_conversation_at_the_terminal_streams_asks_stops_and_leaves(tmp_path: Path) -> None:
    with Daemon(tmp_path / "va", plain_env(tmp_path), agents__default="demo") as daemon:
        person = Typist([str(VA), "chat", "repl", "--chat", "r"], tmp_path, {**daemon.env, "TERM": "dumb"})
        person.await_words("> ")
        person.type("hello\r")
        person.await_words('You said: "hello"')
        person.await_words("> ")
        person.type("run: echo $((40+2))\r")
        person.await_words("? ")
        person.type("1\r")
        person.await_words("ended with 0: 42")
        person.await_words("> ")
        person.type("slow 30\r")
        person.await_words("second 1 of 30")
        person.type("\x03")
        person.await_words("(cancelled)")
        person.await_words("> ")
        person.type("/route\r")
        person.await_words("This chat is cli:local:r.")
        person.await_words("> ")
        other = daemon.send("/route", chat="other")
        assert other.code == 0
        person.type("\x04")
        assert person.end() == 0
        assert (daemon.data / "chat_history").stat().st_mode & 0o777 == 0o600


def test_what_another_chat_asks_stands_in_whole_lines_above_the_line_being_typed(tmp_path: Path) -> None:
    with Daemon(tmp_path / "va", plain_env(tmp_path), agents__default="demo") as daemon:
        person = Typist([str(VA), "chat", "repl", "--chat", "r"], tmp_path, {**daemon.env, "TERM": "dumb"})
        person.await_words("> ")
        person.type("hello\r")
        person.await_words('You said: "hello"')
        person.await_words("> ")
        handed = daemon.send("/handover", chat="r").reply
        assert daemon.send(handed.splitlines()[0], chat="other").code == 0
        assert daemon.send("slow 1", chat="other").code == 0  # a quarter of a second between its words
        person.await_words("second 1 of 1")
        person.type("\x04")
        assert person.end() == 0


def test_a_question_that_somebody_else_settles_leaves_the_terminal_ready_for_a_message(tmp_path: Path) -> None:
    with Daemon(tmp_path / "va", plain_env(tmp_path), agents__default="demo") as daemon:
        person = Typist([str(VA), "chat", "repl", "--chat", "r"], tmp_path, {**daemon.env, "TERM": "dumb"})
        person.await_words("> ")
        person.type("run: echo $((40+2))\r")
        person.await_words("The agent asks")
        person.await_words("? ")
        daemon.va("chat", "stop", "--chat", "r")
        person.await_words("> ")
        person.type("hello\r")
        person.await_words('You said: "hello"')
        person.await_words("> ")
        person.type("\x04")
        assert person.end() == 0


def test_a_permission_is_asked_in_the_terminal_that_sent_the_message(tmp_path: Path) -> None:
    with Daemon(tmp_path / "va", plain_env(tmp_path), agents__default="demo") as daemon:
        person = Typist([str(VA), "chat", "send", "run: echo $((40+2))", "--chat", "r"], tmp_path, daemon.env)
        person.await_words("Number, or c to cancel")
        person.type("1\r")
        person.await_words("ended with 0: 42")
        assert person.end() == 0
