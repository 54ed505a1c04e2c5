"""The demo agent in a terminal: the same sessions and the same brain, read from stdin, written to stdout."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import TextIO

from transports.acp.demo.mcp import McpFailed, call_tool, stripped
from transports.acp.demo.store import DemoSession, DemoStore
from transports.acp.demo.turn import TurnFailed, play


def shim_command() -> list[str]:
    """The MCP server as `va integrate` writes it: isolated interpreter and the shim's own file."""
    return [sys.executable, "-I", "-S", str(Path(__file__).resolve().parents[2] / "mcp" / "shim.py")]


class Terminal:
    """One conversation in a terminal. `source` is read line by line; its end ends the conversation."""

    def __init__(self, source: TextIO, sink: TextIO, session: DemoSession, *, mcp_command: list[str]) -> None:
        self._source, self._sink, self._session, self._mcp = source, sink, session, mcp_command
        self._stop = Event()
        self._always = False

    def run(self) -> int:
        """Read prompts until the end of the input; exit code 0."""
        self._write(f"VibeAround demo agent (no model). Session {self._session.id} in {self._session.cwd}\n")
        self._write('Type "help" for what it can do, "hand over" to go on in a chat, ctrl-D to leave.\n')
        while True:
            self._write("> ")
            line = self._source.readline()
            if not line:
                self._write("\n")
                return 0
            if line.strip():
                self._turn(line.strip())

    def _turn(self, text: str) -> None:
        self._stop.clear()
        try:
            play(self._session, text, self)
        except TurnFailed as failed:
            self._write(f"error: {failed}")
        except KeyboardInterrupt:
            self._write("(stopped)")
        self._write("\n")

    def _write(self, text: str) -> None:
        self._sink.write(text)
        self._sink.flush()

    # --- the stage of a turn

    def say(self, text: str) -> None:
        self._write(text)

    def think(self, text: str) -> None:
        self._write(f"(thinking: {text})\n")

    def plan(self, entries: tuple[tuple[str, str], ...]) -> None:
        self._write("".join(f"  [{status}] {content}\n" for content, status in entries))

    def ask(self, title: str, kind: str, text: str) -> str | None:
        if self._always:
            return "tool"
        self._write(f"May I do this? {title} ({kind}) [y = once, a = always, n = no] ")
        answer = self._source.readline().strip().lower()
        self._always = answer in ("a", "always")
        return "tool" if self._always or answer in ("y", "yes") else None

    def tool_done(self, tool: str, output: str, ok: bool) -> None:
        self._write(output if output.endswith("\n") else output + "\n")

    def cancelled(self) -> bool:
        return self._stop.is_set()

    def pause(self, seconds: float) -> None:
        self._stop.wait(seconds)

    def crash(self, code: int) -> None:
        self._write("\n")
        os._exit(code)

    def hand_over(self, session: DemoSession) -> str:
        data = os.environ.get("VIBEAROUND_DATA_DIR", "")
        command = [*self._mcp, "--data-dir", data] if data else self._mcp
        env = stripped(os.environ, {"VIBEAROUND_DEMO_SESSION_ID": session.id})
        arguments = {"cwd": session.cwd, "agent_kind": "demo", "session_id": session.id}
        try:
            return call_tool(command, env, session.cwd, "prepare_handover", arguments)
        except McpFailed as failed:
            return f"The handover failed: {failed}"


def converse(
    *, resume: str = "", session_id: str = "", cwd: str = "", missing: Callable[[str], Exception], taken: Callable[[str], Exception]
) -> int:
    """Open or create a session and talk. `missing(id)` and `taken(id)` make the errors that are raised for an id that
    is unknown, or in use already."""
    store = DemoStore.of(os.environ)
    if resume:
        found = store.open(resume)
        if found is None:
            raise missing(resume)
        session = found
    else:
        try:
            session = store.new(cwd or os.environ.get("PWD") or str(Path.cwd()), session_id)
        except FileExistsError:
            raise taken(session_id) from None
    return Terminal(sys.stdin, sys.stdout, session, mcp_command=shim_command()).run()
