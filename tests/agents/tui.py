"""The terminal form of an agent, driven as a person does: in tmux, by keys and by what the screen shows."""

from __future__ import annotations

import os
import re
import select
import shlex
import subprocess
import tempfile
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType

_WIDTH, _HEIGHT = 200, 50


class Tui:
    """A command in a tmux window of its own server; a context manager that leaves no process behind.

    Waits stand on the window's own output (tmux copies it into a pipe), so a wait wakes when the screen changes.
    """

    def __init__(self, command: Sequence[str], *, cwd: Path, env: Mapping[str, str]) -> None:
        self._command = list(command)
        self._cwd = cwd
        self._env = dict(env)
        self._server = f"va-test-{uuid.uuid4().hex[:12]}"
        self._folder = tempfile.TemporaryDirectory(prefix="va-tui-")
        self._pipe = -1

    def __enter__(self) -> Tui:
        fifo = Path(self._folder.name) / "output"
        os.mkfifo(fifo)
        self._pipe = os.open(fifo, os.O_RDWR | os.O_NONBLOCK)
        settings = [f"{key}={value}" for key, value in self._env.items()]
        inner = shlex.join(["env", "-i", *settings, *self._command])
        size = ["-x", str(_WIDTH), "-y", str(_HEIGHT)]
        # A shell that waits until the pipe is laid: nothing of the output is missed.
        go = Path(self._folder.name) / "go"
        os.mkfifo(go)
        waiting = f"read _ < {shlex.quote(str(go))}; exec {inner}"
        self._tmux("-f", "/dev/null", "new-session", "-d", "-s", "t", *size, "-c", str(self._cwd), waiting)
        self._tmux("set-option", "-g", "remain-on-exit", "on")
        self._tmux("pipe-pane", "-t", "t", f"cat > {shlex.quote(str(fifo))}")
        descriptor = os.open(go, os.O_WRONLY)
        os.write(descriptor, b"\n")
        os.close(descriptor)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pid = self.pid
        subprocess.run(["tmux", "-L", self._server, "kill-server"], check=False, capture_output=True, timeout=10)
        _await_end(pid)
        os.close(self._pipe)
        self._folder.cleanup()

    @property
    def pid(self) -> int:
        """The pid of the agent: the window's shell has become it."""
        return int(self._tmux("display-message", "-p", "-t", "t", "#{pane_pid}"))

    @property
    def ended(self) -> bool:
        return self._tmux("display-message", "-p", "-t", "t", "#{pane_dead}") == "1"

    def screen(self) -> str:
        """What a person sees, without the trailing blanks of each line."""
        return "\n".join(line.rstrip() for line in self._tmux("capture-pane", "-p", "-J", "-t", "t").split("\n"))

    def type(self, text: str, *, enter: bool = True) -> None:
        """Type a text, then Enter. The Enter waits until the text is on the screen, as agents take a fast one for a paste."""
        self._tmux("send-keys", "-t", "t", "-l", text)
        if enter:
            tail = text[-12:].strip()
            self.wait_until(lambda screen: tail in screen, f"the typed {tail!r}")
            self.press("Enter")

    def press(self, *keys: str) -> None:
        """Press keys by tmux's names: Enter, Escape, Up, C-c."""
        self._tmux("send-keys", "-t", "t", *keys)

    def decide(self, key: str, *, dialog: str) -> None:
        """Wait for a dialog that shows `dialog`, and press a key until it is gone. Agents let keys fall for a moment after
        a dialog has come, so that a person who is typing does not answer it by mistake; one press may be too early."""
        self.wait_for(dialog)
        for _ in range(20):
            self.press(key)
            try:
                self.wait_until(lambda screen: re.search(dialog, screen) is None, f"the end of {dialog!r}", seconds=1.0)
            except AssertionError:
                continue
            return
        raise AssertionError(f"{key} did not answer the dialog:\n{self.screen().rstrip()}")

    def wait_for(self, pattern: str, *, seconds: float = 30.0) -> str:
        """Wait until a regular expression matches the screen; returns the screen."""
        compiled = re.compile(pattern)
        return self.wait_until(lambda screen: compiled.search(screen) is not None, repr(pattern), seconds=seconds)

    def wait_until(self, wanted: Callable[[str], bool], what: str, *, seconds: float = 30.0) -> str:
        """Wait until `wanted(screen)` is true; AssertionError with the last screen when it never is, or when the agent ended."""
        until = time.monotonic() + seconds
        while True:
            screen = self.screen()
            if wanted(screen):
                return screen
            left = until - time.monotonic()
            if left <= 0 or self.ended:
                state = "the command has ended" if self.ended else f"not within {seconds} s"
                raise AssertionError(f"the screen never showed {what} ({state}):\n{screen.rstrip()}")
            # At most a second at once: the screen may have changed between the look at it and the wait.
            select.select([self._pipe], [], [], min(left, 1.0))
            self._drain()

    def wait_end(self, *, seconds: float = 20.0) -> None:
        """Wait until the command has ended by itself."""
        until = time.monotonic() + seconds
        while not self.ended:
            if time.monotonic() > until:
                raise AssertionError(f"the command did not end within {seconds} s:\n{self.screen().rstrip()}")
            select.select([self._pipe], [], [], 0.2)
            self._drain()

    # --- inside

    def _drain(self) -> None:
        try:
            while os.read(self._pipe, 65536):
                pass
        except BlockingIOError:
            pass

    def _tmux(self, *words: str) -> str:
        done = subprocess.run(["tmux", "-L", self._server, *words], capture_output=True, text=True, timeout=20)
        if done.returncode:
            raise RuntimeError(f"tmux {words[0]} failed: {done.stderr.strip()}")
        return done.stdout.rstrip("\n")


def _await_end(pid: int) -> None:
    """Wait at most 5 s for a process that is not our child; it was told to end by the closing of its terminal."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        if not select.select([descriptor], [], [], 5)[0]:
            os.kill(pid, 9)
            select.select([descriptor], [], [], 5)
    finally:
        os.close(descriptor)
