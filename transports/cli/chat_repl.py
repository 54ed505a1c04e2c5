"""`va chat repl`: sending and listening in one terminal.

A thread owns the listening connection and shows what arrives; the main thread reads lines. They share the screen
under one lock: while a line is being typed, what arrives is written above it and the line is drawn again.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from pathlib import Path
from typing import Any

from agents_registry.errors import NotRunningError, VibeAroundError
from transports.bus.routes import terminal_route
from transports.bus.vocabulary.conversation import Ok
from transports.bus.vocabulary.surface import Accepted, Answer, StopTurn, Submit
from transports.cli.chat_listen import Listener
from transports.cli.chat_turn import LAST
from transports.cli.chat_view import TextView
from transports.cli.connect import ask, person, real_directory
from transports.cli.output import remark

_HISTORY = 1000
_JOIN_S = 3.0
_PROMPT = "> "
_ANSWER = "? "


class Repl:
    """One conversation loop; `run` returns the exit code."""

    def __init__(self, name: str, directory: str | None) -> None:
        self._route = terminal_route(name)
        self._listener = Listener(name)
        self._directory = real_directory(directory)
        self._view = TextView(name, interactive=True, listening=True)
        self._screen = threading.RLock()
        self._prompt = ""
        self._leaving = threading.Event()
        self._changed = threading.Condition()
        self._ready = False
        self._failure: VibeAroundError | None = None
        self._pending = ""
        """Key of the message whose end is awaited before the next line is read."""

    def run(self) -> int:
        thread = threading.Thread(target=self._listen, name="listen", daemon=True)
        thread.start()
        try:
            with self._changed:
                self._changed.wait_for(lambda: self._ready or self._failure is not None, 60.0)
            if self._failure is not None:
                raise self._failure
            with _history():
                remark("Write to the agent, or /help. Ctrl-C stops a turn, Ctrl-D leaves.")
                self._loop()
        finally:
            self._leaving.set()
            thread.join(_JOIN_S)
        if self._failure is not None:
            raise self._failure
        return 0

    # --- the listening thread ---

    def _listen(self) -> None:
        try:
            self._listener.run(self._arrived, self._told, self._leaving.is_set, self._is_ready)
        except VibeAroundError as error:
            with self._changed:
                self._failure = error
                self._changed.notify_all()

    def _is_ready(self) -> None:
        with self._changed:
            self._ready = True
            self._changed.notify_all()

    def _told(self, words: str) -> None:
        self._arrived({"event": "notice", "text": words})

    def _arrived(self, event: dict[str, Any]) -> None:
        kind = event.get("event")
        if kind == "asked" and event.get("route") == self._route.text:
            return
        with self._screen:
            if self._prompt and kind in ("text", "thought") and not event.get("final", True):
                return  # a line is being typed: above it stands the finished block, not one line for each piece
            if self._prompt and sys.stdout.isatty():
                sys.stdout.write("\r\x1b[K")
            self._view.show(event)
            if self._prompt and not _typed():  # what is half typed stays an answer, or a message, as it was begun
                self._prompt = _ANSWER if self._view.wants_input() else _PROMPT
            if self._prompt and sys.stdout.isatty():
                self._view.end_line()
                sys.stdout.write(self._prompt + _typed())
                sys.stdout.flush()
        with self._changed:
            if kind in LAST and self._pending in (event.get("turn"), event.get("key")):
                self._pending = ""
            self._changed.notify_all()

    # --- the typing thread ---

    def _loop(self) -> None:
        while self._failure is None:
            if not self._await_turn():
                continue
            try:
                prompt, line = self._read(_ANSWER if self._view.wants_input() else _PROMPT)
            except EOFError:
                return
            except KeyboardInterrupt:
                sys.stdout.write("\n")
                if self._pending:
                    self._stop()
                continue
            if prompt == _ANSWER and not self._view.wants_input():
                remark("(that question is settled; your line was not sent)")
                continue
            try:
                self._typed_line(line)
            except NotRunningError as error:
                remark(f"va: {error.message} {error.hint}")
            except VibeAroundError as error:
                remark(f"va: {error.message}" + (f"\n    {error.hint}" if error.hint else ""))

    def _await_turn(self) -> bool:
        """True when a line is to be read: no turn of ours runs, or it asks something."""
        try:
            with self._changed:
                self._changed.wait_for(lambda: not self._pending or self._view.wants_input() or self._failure is not None, 3600.0)
            return self._failure is None
        except KeyboardInterrupt:
            self._stop()
            return False

    def _stop(self) -> None:
        try:
            ask(self._route.address, StopTurn(person()), 15.0)
        except VibeAroundError as error:
            remark(f"va: {error.message}")
            self._pending = ""

    def _read(self, prompt: str) -> tuple[str, str]:
        """A line, and the prompt that stood before it at its end."""
        with self._screen:
            self._view.end_line()
            self._prompt = prompt
        try:
            line = input(prompt)
            return self._prompt, line
        finally:
            self._prompt = ""

    def _typed_line(self, line: str) -> None:
        if not line.strip():
            return
        if self._view.wants_input():
            with self._screen:
                chosen = self._view.choose(line)
            if chosen is not None:
                ask(self._route.address, Answer(*chosen, person()), 15.0)
            return
        key = os.urandom(9).hex()
        self._pending = key
        try:
            answer = ask(self._route.address, Submit(key, line, person(), self._directory), 90.0)
        except BaseException:
            self._pending = ""
            raise
        if isinstance(answer, Ok):
            self._pending = ""
            with self._screen:
                self._view.show({"event": "reply", **answer.data})
        elif isinstance(answer, Accepted) and answer.position > 0:
            remark(f"(waiting, place {answer.position})")


def _typed() -> str:
    """What stands in the line editor at the moment."""
    readline = sys.modules.get("readline")
    return readline.get_line_buffer() if readline is not None else ""


@contextlib.contextmanager
def _history() -> Any:
    """Line editing with a history in the data directory, private to the user; without readline, plain lines."""
    try:
        import readline
    except ImportError:
        yield
        return
    from transports import paths

    file: Path = paths.data_dir() / "chat_history"
    with contextlib.suppress(OSError):
        readline.read_history_file(file)
    readline.set_history_length(_HISTORY)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):  # history is a courtesy
            os.close(os.open(file, os.O_WRONLY | os.O_CREAT, 0o600))
            readline.write_history_file(file)
