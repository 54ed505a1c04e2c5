"""Guards round agents that destroy sessions when they load them: Gemini CLI, in two known ways (0.61.0).

A. `session/load` first opens a file `session-<UTC minute>-<first 8 of the id>.jsonl`. In the minute in which the
   session began that is the session's own file, and a line that empties its history is appended.
B. In a later minute the load leaves a junk sibling with the same ending; with `sessionRetention.enabled` (the
   default) the next start of any gemini there deletes "unresumable" files by that ending, the real session included.

Guards: wait for the next minute (A), keep a copy and compare (both), remove the junk after the load (B).
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from actors.host_handshake import NoGuard
from actors.host_spec import HostSpec
from agents_registry.errors import AgentError
from transports.paths import atomic_write

MAX_COPY = 512 << 20
"""Bytes; a larger session is not loaded, since it could not be kept safe."""


class AgentGuard(NoGuard):
    """A guard that is also asked at the agent's end."""

    def at_end(self) -> None:
        """Nothing to do."""


def guard_for(spec: HostSpec, note: Callable[[str], None]) -> AgentGuard:
    """The guard that the spec names, or one that does nothing."""
    if spec.guard != "gemini" or not spec.session:
        return AgentGuard()
    home = spec.env.get("GEMINI_CLI_HOME") or spec.env.get("HOME") or "~"
    return GeminiGuard(
        Path(home).expanduser() / ".gemini", spec.session, Path(spec.data_dir) / "guarded", note, now=time.time, sleep=time.sleep
    )


class GeminiGuard(AgentGuard):
    """Keeps the session `session` below `store` (the `.gemini` directory) safe; copies go to `keep`."""

    def __init__(
        self,
        store: Path,
        session: str,
        keep: Path,
        note: Callable[[str], None],
        *,
        now: Callable[[], float],
        sleep: Callable[[float], None],
    ) -> None:
        self._store, self._session, self._keep, self._note = store, session, keep, note
        self._now, self._sleep = now, sleep
        self._file: Path | None = None
        self._copy: Path | None = None
        self._known: set[Path] = set()

    def before_load(self) -> None:
        """Copy the session, and let its first minute pass. Raises AgentError when it cannot be kept safe."""
        self._known = set(self._siblings())
        self._file = next((p for p in self._known if _session_of(p) == self._session and _messages(p)), None)
        if self._file is None:
            return  # the agent will say that it does not know it
        size = self._file.stat().st_size
        if size > MAX_COPY:
            raise AgentError(
                f"The Gemini session {self._session} has {size >> 20} MiB, too much to be kept safe while it is loaded.",
                hint="Gemini can destroy a session that it loads; go on with it in a terminal.",
                code="guard_too_large",
            )
        self._keep.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._copy = self._keep / f"gemini-{self._session}.jsonl"
        shutil.copyfile(self._file, self._copy)
        self._copy.chmod(0o600)
        if f"session-{self._minute()}-" in self._file.name:
            wait = 60.5 - self._now() % 60
            self._note(f"Gemini can empty a session that is loaded in the minute it began; waiting {wait:.0f} s.")
            self._sleep(wait)

    def after_load(self) -> None:
        """Compare with the copy; put it back when history was lost; remove the junk file."""
        self._restore()
        for path in self._siblings():
            if path not in self._known and path != self._file and not _messages(path):
                path.unlink(missing_ok=True)

    def at_end(self) -> None:
        """The session must still be there."""
        self._restore()
        if self._copy is not None:
            self._copy.unlink(missing_ok=True)

    def _restore(self) -> None:
        if self._file is None or self._copy is None or not self._copy.exists():
            return
        kept = self._copy.read_bytes()
        try:
            now = self._file.read_bytes()
        except FileNotFoundError:
            now = b""
        if now.startswith(kept) and not _emptied(now[len(kept) :]):
            return
        atomic_write(self._file, kept, mode=0o600)
        self._note("Gemini damaged its session file; it was put back as it was.")

    def _siblings(self) -> list[Path]:
        return list(self._store.glob(f"tmp/*/chats/session-*-{self._session[:8]}.json*"))

    def _minute(self) -> str:
        return datetime.fromtimestamp(self._now(), UTC).strftime("%Y-%m-%dT%H-%M")


def _records(data: bytes) -> list[dict[str, Any]]:
    found = []
    for line in data.split(b"\n"):
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if isinstance(record, dict):
            found.append(record)
    return found


def _session_of(path: Path) -> str:
    """The id in the header; "" when there is none."""
    try:
        with path.open("rb") as file:
            head = file.read(1 << 16)
    except OSError:
        return ""
    if path.suffix == ".json":
        return json.loads(path.read_bytes()).get("sessionId", "") if os.path.getsize(path) < MAX_COPY else ""  # noqa: PTH202
    records = _records(head)
    return str(records[0].get("sessionId", "")) if records else ""


def _messages(path: Path) -> bool:
    """Whether it holds a conversation: a message, or a document with messages."""
    try:
        data = path.read_bytes()
    except OSError:
        return False
    return any(r.get("type") in ("user", "gemini") or r.get("messages") for r in _records(data)) or b'"messages": [' in data


def _emptied(appended: bytes) -> bool:
    """Whether what was appended replaces the history by a shorter one without an answer of the model in it."""
    for record in _records(appended):
        change = record.get("$set")
        messages = change.get("messages") if isinstance(change, dict) else None
        if isinstance(messages, list) and not any(isinstance(m, dict) and m.get("type") == "gemini" for m in messages):
            return True
    return False
