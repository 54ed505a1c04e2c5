"""What a bridge must know again after a crash: one private file, replaced atomically; writes are gathered.

Small on purpose: which chats there are, which messages on the platform belong to which turn or question, and how far each
route's items have been handled. Text is in it only for a turn so long that its items had to be acknowledged before its end.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from agents_registry.errors import UsageError
from transports.paths import atomic_write

VERSION = 1


class StateFile:
    """`data` is the whole state, a dict of JSON types, changed in place by its users; `saved()` waits until what it holds
    now is on the disk. Raises UsageError for a file that is not ours or of a later version: it is never overwritten."""

    def __init__(self, path: Path, write: Callable[[Path, bytes], None] = lambda path, raw: atomic_write(path, raw)) -> None:
        self._path = path
        self._write = write
        self._waiting: list[asyncio.Future[None]] = []
        self._task: asyncio.Task[None] | None = None
        self._dirty = False
        self.data: dict[str, Any] = self._load()

    async def saved(self) -> None:
        """Raises OSError when the disk does not take it."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()
        self._waiting.append(done)
        if self._task is None or self._task.done():
            self._task = loop.create_task(self._flush())
        await done

    def later(self) -> None:
        """To be written soon; nobody waits. A failure is told to the next `saved`."""
        self._dirty = True
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._flush())

    async def _flush(self) -> None:
        while self._waiting or self._dirty:
            waiting, self._waiting, self._dirty = self._waiting, [], False
            raw = json.dumps({"version": VERSION, **self.data}, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
            failure: OSError | None = None
            try:
                await asyncio.to_thread(self._write, self._path, raw)
            except OSError as error:
                failure = error
            for done in waiting:
                if not done.done():
                    done.set_exception(failure) if failure is not None else done.set_result(None)

    def _load(self) -> dict[str, Any]:
        try:
            raw = self._path.read_bytes()
        except FileNotFoundError:
            return {"routes": {}}
        try:
            data = json.loads(raw)
            if not isinstance(data, dict) or data.pop("version") != VERSION or not isinstance(data.get("routes"), dict):
                raise ValueError("not of a known version")
        except (ValueError, KeyError, RecursionError) as error:
            raise UsageError(
                f"{self._path} is not a state file that this version knows: {error}.",
                hint="Move it away and start the bridge again; open chats are then shown anew.", code="bad_state",
            ) from error
        return data
