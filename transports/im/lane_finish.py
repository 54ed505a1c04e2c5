"""The end of a turn: its answer with whole texts, as messages or as a beginning and a file, and the files it shows."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

from transports.human import shorten
from transports.im import outfiles
from transports.im.content import Content, Outgoing, Part, plain
from transports.im.deliver import Delivery
from transports.im.errors import Ambiguous, PlatformError
from transports.im.live import LiveTurn
from transports.im.record import RouteRecord
from transports.im.shared import Shared
from transports.im.words import say

_DISK_S = 10.0
"""A workspace on a hanging mount costs an answer its files, not the chat its answer."""


class Finish:
    def __init__(self, delivery: Delivery, shared: Shared, record: RouteRecord) -> None:
        self._delivery = delivery
        self._s = shared
        self._record = record

    async def turn(self, turn: LiveTurn, entry: dict[str, Any], quoted: str, name: str) -> None:
        """Until all of it stands there; may be called again for the same turn after a crash."""
        now = self._s.now()
        entry.setdefault("ended", now)
        await self._whole_texts(turn)
        files = await self._files(turn, entry)
        content = turn.answer(float(entry["ended"]))
        pieces = self._delivery.pieces(content)
        if len(pieces) > self._s.capability.max_parts and self._s.capability.file_out_bytes:
            files.append(await asyncio.to_thread(outfiles.write, content.plain(), self._s.private))
            short = self._delivery.pieces(content, 0.8)[0]
            first = [part for part in short.parts if part.kind != "status"]
            note = Part("plain", say(turn.language, "as_file"))
            content = Content((*first, note, Part("status", turn.status(float(entry["ended"])))))
        head = Outgoing(Content((Part("status", turn.status(now)),)), reply_to=quoted)
        await self._delivery.answer(entry, content, head, turn.language, name)
        await self._send_files(turn, entry, files, name)

    async def _whole_texts(self, turn: LiveTurn) -> None:
        for block, path in turn.refs.items():
            try:
                turn.texts[block] = await asyncio.to_thread(outfiles.read_reference, path, self._s.link.data_dir)
            except OSError as error:
                turn.lines.append(say(turn.language, "part_missing", why=error.strerror or str(error)))
        turn.refs = {}

    async def _files(self, turn: LiveTurn, entry: dict[str, Any]) -> list[outfiles.Ready]:
        """The files that the answer shows; refusals become lines of it."""
        limit = self._s.capability.file_out_bytes
        if not limit or not turn.cwd or "files" in entry:
            return []
        ready: list[outfiles.Ready] = []
        for target in outfiles.linked("\n\n".join(turn.texts.values())):
            try:
                async with asyncio.timeout(_DISK_S):
                    found = await asyncio.to_thread(outfiles.fetch, target, turn.cwd, self._s.private, limit)
            except (TimeoutError, OSError, ValueError):
                found = outfiles.Refused(target.rpartition("/")[2], "missing")
            if isinstance(found, outfiles.Ready):
                ready.append(found)
            else:
                why = f"file_{found.why.removeprefix('file_')}"
                words = say(turn.language, why, limit=_size(limit))
                turn.lines.append(say(turn.language, "file_refused", name=shorten(found.name, 60), why=words))
        return ready

    async def _send_files(self, turn: LiveTurn, entry: dict[str, Any], files: list[outfiles.Ready], name: str) -> None:
        entry.setdefault("files", 0)
        for index, file in enumerate(files):
            if index >= entry["files"]:
                await self._send_file(turn, file, f"{name}:file:{index}")
                entry["files"] = index + 1
                await self._s.saved()
            file.path.unlink(missing_ok=True)

    async def _send_file(self, turn: LiveTurn, file: outfiles.Ready, name: str) -> None:
        surface, chat = self._s.surface, self._delivery.chat
        outgoing = Outgoing(Content(()), silent=True, key=name)
        for _ in range(2):
            send = partial(surface.send_file, chat, file.path, file.name, file.mime, outgoing)
            try:
                await self._s.calls.must(chat, send)
                return
            except Ambiguous:
                self._s.calls.counts["ambiguous"] += 1
                if not self._s.capability.send_key:
                    outgoing = Outgoing(plain(say(turn.language, "repeated")), silent=True, key=name)
            except PlatformError as error:
                if error.code in ("forbidden", "migrated"):
                    raise
                self._s.log(f"{file.name} could not be sent: {error}")
                words = say(turn.language, "file_refused", name=shorten(file.name, 60), why=error.message)
                await self._delivery.one("", Outgoing(plain(words), silent=True), turn.language)
                return


def _size(limit: int) -> str:
    return f"{limit / (1 << 20):.0f} MB" if limit >= 1 << 20 else f"{limit / 1024:.0f} KB"
