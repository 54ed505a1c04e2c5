"""The scenes of `va demo`."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import click

from agents_registry.errors import NotRunningError, VibeAroundError
from transports import paths
from transports.cli.chat_turn import Turn
from transports.cli.chat_view import TextView
from transports.cli.connect import ask, person
from transports.cli.output import clean, emit
from transports.cli.serve import module_argv

SECRET = "the launch code name is Blue Heron"
_CODE = re.compile(r"/pickup ([A-Z2-9]{4})\b")
_LIMIT_S = 60.0
"""Longest wait for the demo agent's terminal to answer; it needs a fraction of a second."""


def play(pause: float) -> None:
    """Play all scenes. Raises VibeAroundError when something does not go as it should."""
    with _stage() as own, tempfile.TemporaryDirectory(prefix="va-demo-project-") as project:
        _Play(Path(project).resolve(), pause, own).run()


@contextlib.contextmanager
def _stage() -> Iterator[bool]:
    """A running supervisor: the user's, or one of our own in a temporary directory (True), which is kept on failure."""
    from transports.cli import up

    try:
        paths.read_run(paths.data_dir())
    except NotRunningError:
        pass
    else:
        yield False
        return
    before = os.environ.get("VIBEAROUND_DATA_DIR")
    directory = Path(tempfile.mkdtemp(prefix="va-demo-"))
    os.environ["VIBEAROUND_DATA_DIR"] = str(directory)
    try:
        up.start(directory)
        try:
            yield True
        finally:
            up.stop(directory)
    except BaseException:
        emit(f"\n(The demo's data, with its logs, was left in {directory}.)")
        raise
    finally:
        if before is None:
            del os.environ["VIBEAROUND_DATA_DIR"]
        else:
            os.environ["VIBEAROUND_DATA_DIR"] = before
    shutil.rmtree(directory, ignore_errors=True)


class _Play:
    def __init__(self, project: Path, pause: float, own: bool) -> None:
        self._project = project
        self._pause = pause
        self._own = own
        tail = os.urandom(2).hex()
        self._phone, self._laptop = f"demo-phone-{tail}", f"demo-laptop-{tail}"

    def run(self) -> None:
        self._tell("A conversation begins in a terminal, with the demo agent (no model, no keys).")
        with _Terminal(self._project, []) as terminal:
            terminal.type(f"remember: {SECRET}")
            self._tell('You have to leave. You say "hand over"; the agent asks VibeAround for a code.')
            code = _code(terminal.type("hand over"))
            self._tell("On the phone (here: a chat in this terminal) you type the code.")
            self._expect(self._say(self._phone, f"/pickup {code}"), "Picked up")
        self._tell("The context came along: it is the same session.")
        self._expect(self._say(self._phone, "recall"), SECRET)

        self._tell("A second chat joins the same conversation.")
        code = _code(self._say(self._phone, "/handover"))
        self._expect(self._say(self._laptop, f"/pickup {code}"), "Picked up")

        self._tell("The agent wants to run a command. It asks in both chats; the other one answers.")
        self._expect(self._say(self._phone, "run: echo done by the agent", on_permission=self._allow), "done by the agent")

        self._tell("A turn takes too long. The chat stops it.")
        self._expect(self._say(self._phone, "slow 30", on_text=self._stop_after(2)), "second 1")

        if self._own:
            self._tell("The daemon restarts (va down, va up). The chat goes on as if nothing had happened.")
            self._restart()
            self._expect(self._say(self._phone, "recall"), SECRET)

        self._tell("Back at the desk: the conversation returns to a terminal. Its agent in the chat stops first.")
        code = _code(self._say(self._phone, "/handover"))
        with _Terminal(self._project, ["pickup", code]) as terminal:
            self._expect(terminal.type("recall"), SECRET)
        for chat in (self._laptop, self._phone):
            self._say(chat, "/close")
        if not self._own:
            self._forget_project()
        self._tell("That was it. With your own agents: va integrate, then say \"hand over\" in Claude Code or Codex.", last=True)

    def _forget_project(self) -> None:
        """The user's own supervisor shall not list a directory that is about to be removed."""
        from transports.bus.vocabulary.lists import ChangeWorkspace, FindWorkspace

        found = ask("workspaces", FindWorkspace(str(self._project))).data
        ask("workspaces", ChangeWorkspace(found["id"], "archive"))

    def _tell(self, words: str, *, last: bool = False) -> None:
        _styled("\n" + words, bold=True)
        if not last:
            time.sleep(self._pause)

    def _expect(self, shown: str, words: str) -> None:
        if words not in shown:
            raise VibeAroundError(
                f"The demo did not go as it should: {words!r} was expected here.", hint="Look at `va doctor`.", code="demo_failed"
            )
        time.sleep(self._pause)

    def _say(
        self, chat: str, text: str, *, on_permission: Callable[[dict[str, Any]], None] | None = None,
        on_text: Callable[[str], None] | None = None,
    ) -> str:
        """Send a message, show and return what came of it."""
        _styled(f"{chat}> {text}", fg="cyan")
        view = _View(chat, on_permission, on_text)
        code = Turn(chat, text, str(self._project)).run(view)
        if code:
            raise VibeAroundError(f"The demo did not go as it should: {view.text or 'an error'}", code="demo_failed")
        return view.text

    def _allow(self, event: dict[str, Any]) -> None:
        from transports.bus.routes import terminal_route
        from transports.bus.vocabulary.surface import Answer

        option = next(o["id"] for o in event["options"] if o.get("kind") == "allow_once")
        _styled(f"{self._laptop}> (presses {option!r})", fg="cyan")
        ask(terminal_route(self._laptop).address, Answer(str(event["id"]), str(option), person()), 15.0)

    def _stop_after(self, lines: int) -> Callable[[str], None]:
        from transports.bus.routes import terminal_route
        from transports.bus.vocabulary.surface import StopTurn

        asked = threading.Event()

        def look(text: str) -> None:
            if text.count("\n") >= lines and not asked.is_set():
                asked.set()
                ask(terminal_route(self._phone).address, StopTurn(person()), 15.0)

        return look

    def _restart(self) -> None:
        from transports.cli import up

        directory = paths.data_dir()
        up.stop(directory)
        up.start(directory)


class _View(TextView):
    """Shows a turn as a chat does, and keeps what was said."""

    def __init__(
        self, chat: str, on_permission: Callable[[dict[str, Any]], None] | None, on_text: Callable[[str], None] | None
    ) -> None:
        super().__init__(chat, interactive=False)
        self._on_permission_asked = on_permission
        self._on_text_shown = on_text
        self._making = ""
        self.text = ""

    def show(self, event: dict[str, Any]) -> None:
        kind = event.get("event")
        if kind in ("text", "reply") and event.get("final", True):
            self.text += clean(str(event.get("text") or "")) + "\n"
            self._making = ""
        elif kind == "text":
            self._making += str(event.get("text") or "")
        elif kind == "error":
            self.text += str(event.get("message") or "")
        super().show(event)
        if kind == "permission" and self._on_permission_asked is not None:
            self._on_permission_asked(event)
        if kind == "text" and self._on_text_shown is not None:
            self._on_text_shown(self._making or self.text)


class _Terminal:
    """A terminal with the demo agent in it, typed into by us; what it writes is shown as it comes."""

    def __init__(self, cwd: Path, words: list[str]) -> None:
        self._argv = module_argv("transports.cli.main", *(words or ["demo-agent"]))
        shown = " ".join(words) if words else "demo-agent"
        _styled(f"$ va {shown}", fg="green")
        pipe = subprocess.PIPE
        env = {**os.environ, "PWD": str(cwd), "PYTHONIOENCODING": "utf-8"}
        self._child = subprocess.Popen(self._argv, stdin=pipe, stdout=pipe, stderr=subprocess.STDOUT, cwd=cwd, env=env)
        self._timer = threading.Timer(_LIMIT_S, self._child.kill)
        self._timer.start()

    def __enter__(self) -> _Terminal:
        try:
            self._until_prompt()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        with contextlib.suppress(OSError):
            self._input.close()
        try:
            self._child.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()
        emit("")

    @property
    def _input(self) -> IO[bytes]:
        assert self._child.stdin is not None
        return self._child.stdin

    def type(self, text: str) -> str:
        """Type a line; what the agent answers to it."""
        _styled(text, fg="cyan")
        self._input.write(text.encode() + b"\n")
        self._input.flush()
        return self._until_prompt()

    def _until_prompt(self) -> str:
        assert self._child.stdout is not None
        seen = bytearray()
        while not (seen.endswith(b"\n> ") or bytes(seen) == b"> "):
            piece = os.read(self._child.stdout.fileno(), 65536)
            if not piece:
                raise VibeAroundError(
                    f"The demo agent's terminal ended: {seen.decode('utf-8', 'replace').strip()[-300:]}", code="demo_failed"
                )
            seen += piece
            sys.stdout.write(piece.decode("utf-8", "replace"))
            sys.stdout.flush()
        return seen.decode("utf-8", "replace")


def _styled(text: str, **style: Any) -> None:
    """A line in colour where stdout is a terminal, plain elsewhere."""
    emit(click.style(text, **style) if sys.stdout.isatty() else text)


def _code(text: str) -> str:
    found = _CODE.search(text)
    if found is None:
        raise VibeAroundError("The demo did not go as it should: no code was issued.", hint="Look at `va doctor`.", code="demo_failed")
    return found[1]
