"""A daemon of the product for one test, seen only from outside: the `va` command, its exit codes and its JSON.

    with Daemon(tmp_path / "va", home.env()) as daemon:
        turn = daemon.send("remember banana", chat="a", workspace=work)
        assert turn.text == "ECHO#1: remember banana"
        daemon.kill()                     # kill -9 of the supervisor alone
        daemon.start()

At the end it says `va down` and fails the test if any process of the daemon's data directory is left.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest

from tests.processes import kill_marked, marked, wait_gone

VA = Path(sys.executable).with_name("va")
_ROOT = Path(__file__).resolve().parents[1]
_BUILT = all((_ROOT / name).exists() for name in ("transports/cli/chat.py", "actors/supervisor.py", "actors/host.py"))
needs_va = pytest.mark.skipif(not _BUILT, reason="the daemon and its command line are not built yet")
Event = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Done:
    """A finished `va`: exit code, stdout, stderr."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        """The one document on stdout."""
        return json.loads(self.out)

    def events(self) -> list[Event]:
        """The objects on stdout, one a line."""
        return [json.loads(line) for line in self.out.splitlines()]


@dataclass(frozen=True, slots=True)
class Turn:
    """A finished `va chat send --json`."""

    code: int
    events: tuple[Event, ...]
    errors: str = ""

    def of(self, kind: str) -> list[Event]:
        return [event for event in self.events if event["event"] == kind]

    @property
    def text(self) -> str:
        """All finished blocks of the answer, joined by line ends."""
        return "\n".join(event["text"] for event in self.of("text") if event["final"])

    @property
    def reply(self) -> str:
        """The reply to a command."""
        return "\n".join(event["text"] for event in self.of("reply"))

    @property
    def session(self) -> Event:
        """The event that tells agent, session, workspace, cwd, thread, start."""
        return self.of("session")[-1]


class Running:
    """A `va` that prints JSON lines while it runs (`chat send`, `chat listen`). Waits are on its output."""

    def __init__(self, command: Sequence[str], cwd: Path, env: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            command,
            cwd=cwd,
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._changed = threading.Condition()
        self._events: list[Event] = []
        self._errors = ""
        self._ended = False
        self._drain = threading.Thread(target=self._read_errors, daemon=True)
        self._drain.start()
        threading.Thread(target=self._read, daemon=True).start()

    @property
    def events(self) -> tuple[Event, ...]:
        with self._changed:
            return tuple(self._events)

    def wait(self, kind: str, wanted: Callable[[Event], bool] = lambda event: True, *, seconds: float = 30.0) -> Event:
        """The first event of a kind for which `wanted` holds; AssertionError with all events when there is none."""
        until = time.monotonic() + seconds
        with self._changed:
            while True:
                for event in self._events:
                    if event["event"] == kind and wanted(event):
                        return event
                left = until - time.monotonic()
                if left <= 0 or self._ended:
                    why = "it ended" if self._ended else f"not within {seconds} s"
                    seen = "\n".join(json.dumps(event, ensure_ascii=False) for event in self._events)
                    raise AssertionError(f"no such {kind!r} event ({why}); seen:\n{seen}\n{self._errors}")
                self._changed.wait(left)

    def finish(self, *, seconds: float = 60.0) -> Turn:
        """Wait for its end."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._ended, seconds):
                seen = "\n".join(json.dumps(event, ensure_ascii=False) for event in self._events)
                raise AssertionError(f"it did not end within {seconds} s; seen:\n{seen}")
        return Turn(self._process.wait(10), self.events, self._errors)

    def end(self) -> None:
        """End it as Ctrl-C does; used for `listen`, which does not end by itself."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(10)

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                with self._changed:
                    self._events.append(json.loads(line))
                    self._changed.notify_all()
        self._drain.join(5)
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def _read_errors(self) -> None:
        assert self._process.stderr is not None
        with self._process.stderr as lines:
            for line in lines:
                self._errors += line


class Daemon:
    """`va serve` on a data directory of its own; a context manager.

    `env` is the whole environment (AgentHome.env(), or `plain_env`), `settings` come on top by their names:
    `threads__idle_shutdown_s=1`.
    """

    def __init__(self, folder: Path, env: Mapping[str, str], **settings: object) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.data = folder / "data"
        self.log = folder / "serve.log"
        self.cwd = folder
        given = {f"VIBEAROUND_{name.upper()}": str(value) for name, value in settings.items()}
        # The default workspace of a test is its own folder, never one of the person who runs it.
        given.setdefault("VIBEAROUND_WORKSPACES__DEFAULT", str(folder / "workspaces"))
        self.env = {**env, **given, "VIBEAROUND_DATA_DIR": str(self.data)}
        self.serve: list[str] = [str(VA), "serve"]
        """The command that is the supervisor; a test may put a watched one in its place."""
        self._mark = f"VIBEAROUND_DATA_DIR={self.data}"
        self._process: subprocess.Popen[bytes] | None = None
        self._running: list[Running] = []

    def __enter__(self) -> Daemon:
        try:
            self.start()
        except BaseException:
            kill_marked(self._mark)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for running in self._running:
            running.end()
        self.va("down", check=False)
        left = marked(self._mark)
        living = {pid: left[pid] for pid in wait_gone(left, seconds=5)}
        kill_marked(self._mark)
        if self._process is not None:
            self._process.wait(10)
        if kind is None:
            assert not living, f"left after va down: {living}\n{self.errors()}"

    def start(self) -> None:
        """Start the supervisor and wait until it answers."""
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self.serve,
                cwd=self.cwd,
                env=self.env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        done = self.va("status", "--wait", "20", check=False)
        assert done.code == 0, f"the daemon did not come up: {done.err}\n{self.errors()}"

    def kill(self) -> None:
        """kill -9 of the supervisor alone; its hosts live on."""
        assert self._process is not None
        os.kill(self._process.pid, signal.SIGKILL)
        self._process.wait(10)

    def terminate(self, *, seconds: float = 30.0) -> int:
        """SIGTERM as the service manager sends it; returns the exit code."""
        assert self._process is not None
        self._process.terminate()
        return self._process.wait(seconds)

    def errors(self) -> str:
        """The daemon's own log."""
        return self.log.read_text("utf-8", "replace")[-8000:] if self.log.exists() else ""

    def va(self, *words: str, check: bool = True, cwd: Path | None = None, seconds: float = 60.0, **env: str) -> Done:
        """Run `va WORDS` to its end; with `check` an exit code other than 0 fails the test."""
        ran = subprocess.run(
            [str(VA), *words],
            cwd=cwd or self.cwd,
            env={**self.env, **env},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
        done = Done(ran.returncode, ran.stdout, ran.stderr)
        assert not check or done.code == 0, f"va {' '.join(words)}: {done}\n{self.errors()}"
        return done

    def start_send(self, text: str, *, chat: str, workspace: Path | None = None, key: str = "") -> Running:
        """`va chat send --json`, while it runs."""
        words = ["chat", "send", text, "--chat", chat, "--json"]
        words += ["--workspace", str(workspace)] if workspace else []
        words += ["--key", key] if key else []
        return self._start(words, workspace)

    def send(
        self,
        text: str,
        *,
        chat: str,
        workspace: Path | None = None,
        key: str = "",
        check: bool = True,
        seconds: float = 60.0,
    ) -> Turn:
        """`va chat send --json` to its end; with `check` an exit code other than 0 fails the test."""
        turn = self.start_send(text, chat=chat, workspace=workspace, key=key).finish(seconds=seconds)
        assert not check or turn.code == 0, f"va chat send {text!r}: {turn}\n{self.errors()}"
        return turn

    def listen(self, chat: str) -> Running:
        """`va chat listen --json`, ended with the daemon at the latest."""
        return self._start(["chat", "listen", "--chat", chat, "--json"], None)

    def answer(self, chat: str, question: str, option: str, *, check: bool = True) -> Done:
        """`va chat answer`: a permission or a choice."""
        return self.va("chat", "answer", "--chat", chat, question, option, check=check)

    def status(self) -> dict[str, Any]:
        document: dict[str, Any] = self.va("status", "--json").json()
        return document

    def processes(self) -> dict[int, str]:
        """pid -> command line of everything that runs with this data directory."""
        return marked(self._mark)

    def _start(self, words: Sequence[str], cwd: Path | None) -> Running:
        running = Running([str(VA), *words], cwd or self.cwd, self.env)
        self._running.append(running)
        return running


def plain_env(folder: Path) -> dict[str, str]:
    """An environment without any real agent, for tests with the demo agent: an empty home under `folder`."""
    home = folder / "home"
    home.mkdir(parents=True, exist_ok=True)
    return {
        "PATH": os.pathsep.join([str(VA.parent), "/usr/local/bin", "/usr/bin", "/bin"]),
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "SHELL": "/bin/sh",
        "TERM": "dumb",
    }
