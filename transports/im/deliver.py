"""Bringing something to a chat so that it stands there once, over crashes and lost answers.

With edits: the only blind send is a placeholder; its id is recorded before any text goes out, and all text goes by edits.
Without: a send that may have had its effect is repeated once, marked, counted; where the platform knows our keys it is
simply repeated.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal

from transports.im.calls import Calls
from transports.im.content import Content, Outgoing, Part, plain
from transports.im.errors import Ambiguous, BadMarkup, Gone, PlatformError, TooLong
from transports.im.inbound import Chat
from transports.im.platform import Capability, Surface
from transports.im.record import RouteRecord
from transports.im.split import split
from transports.im.words import Language, say

Saved = Callable[[], Awaitable[None]]


class Delivery:
    """For one route. `saved()` makes the record durable."""

    def __init__(self, surface: Surface, capability: Capability, calls: Calls, record: RouteRecord, saved: Saved) -> None:
        self._surface = surface
        self._capability = capability
        self._calls = calls
        self._record = record
        self._saved = saved

    @property
    def chat(self) -> Chat:
        return self._record.chat

    def pieces(self, content: Content, share: float = 1.0) -> list[Content]:
        """The content cut to messages; `share` < 1 for a platform that found them too long all the same."""
        room = max(20, int(self._capability.max_text * share))

        def fits(part: Content) -> bool:
            return self._surface.fits(Outgoing(part)) and (share == 1.0 or len(part.plain()) <= room)

        return split(content, fits, room=room, unit=self._capability.unit)

    async def placeholder(self, turn: dict[str, Any], outgoing: Outgoing) -> str:
        """A message of the turn whose text comes by edits: sent blind, recorded before anything else happens."""
        message = await self._blind(outgoing)
        turn["messages"].append(message)
        await self._saved()
        return message

    async def edit(self, turn: dict[str, Any], index: int, outgoing: Outgoing) -> None:
        """Bring the turn's message `index` to this state; a message that is gone is replaced by a new one."""
        while True:
            message = turn["messages"][index]
            try:
                await self.edit_message(message, outgoing)
                return
            except Gone:
                self._calls.counts["gone"] += 1
                turn["messages"][index] = await self._blind(replace(outgoing, content=plain("…"), buttons=()))
                await self._saved()

    async def edit_message(self, message: str, outgoing: Outgoing) -> None:
        """Until it is done; an answer that was lost is no matter, for an edit may be repeated. Raises Gone and the like."""
        tries = 0
        while True:
            try:
                await self._calls.must(self.chat, partial(self._surface.edit, self.chat, message, outgoing), message)
                return
            except Ambiguous:
                self._calls.counts["ambiguous_edit"] += 1
                await self._calls.rest(tries := tries + 1)
            except BadMarkup:
                if outgoing.plain:
                    raise
                outgoing = outgoing.as_plain()

    async def answer(self, turn: dict[str, Any], content: Content, heads: Outgoing, language: Language, name: str) -> None:
        """The final state of a turn. `heads`: the first message where there is none yet (its notification is the turn's)."""
        share = 1.0
        while True:
            try:
                await self._answer(turn, self.pieces(content, share), heads, language, name)
                return
            except TooLong:
                share *= 0.7
                if share < 0.1:
                    raise

    async def _answer(self, turn: dict[str, Any], pieces: Sequence[Content], heads: Outgoing, language: Language, name: str) -> None:
        messages: list[str] = turn["messages"]
        for index, piece in enumerate(pieces):
            if not self._capability.edit:
                if index < turn["sent"]:
                    continue
                again = turn.get("sending") == index
                turn["sending"] = index
                await self._saved()
                await self._once(Outgoing(piece, reply_to=heads.reply_to, silent=index > 0, key=f"{name}:{index}"), again, language)
                turn["sent"] = index + 1
                turn.pop("sending", None)
                await self._saved()
                continue
            if index >= len(messages):
                await self.placeholder(turn, heads if index == 0 else Outgoing(plain("…"), silent=True))
            await self.edit(turn, index, Outgoing(piece))

    async def one(self, name: str, outgoing: Outgoing, language: Language) -> str:
        """A message outside of turns, known by `name` over a crash; the id of its last piece. Buttons go to that piece."""
        pieces = self.pieces(outgoing.content)
        message = ""
        for index, piece in enumerate(pieces):
            last = index == len(pieces) - 1
            begun = self._record.sending(name, index) if name else "new"
            if begun == "done":
                continue
            if name:
                await self._saved()
            sent = replace(
                outgoing, content=piece, buttons=outgoing.buttons if last else (), key=f"{name}:{index}" if name else "",
                silent=outgoing.silent or index > 0,
            )  # fmt: skip
            message = await self._once(sent, begun == "again", language)
        if name:
            self._record.sent()
        return message

    async def _once(self, outgoing: Outgoing, again: bool, language: Language) -> str:
        """`again`: it may be there already (a crash came between)."""
        if again:
            self._calls.counts["repeated"] += 1
            if not self._capability.send_key:
                outgoing = _marked(outgoing, language)
        tries = 0
        while True:
            try:
                return await self._calls.must(self.chat, partial(self._surface.send, self.chat, outgoing))
            except Ambiguous:
                tries += 1
                self._calls.counts["ambiguous"] += 1
                if self._capability.send_key:
                    continue
                if tries > 1 or again:
                    return ""  # said twice already, for all we know
                outgoing = _marked(outgoing, language)
                self._calls.counts["repeated"] += 1
            except BadMarkup:
                if outgoing.plain:
                    raise
                outgoing = outgoing.as_plain()

    async def _blind(self, outgoing: Outgoing) -> str:
        """A send without anything in it that must not stand there twice."""
        tries = 0
        while True:
            try:
                return await self._calls.must(self.chat, partial(self._surface.send, self.chat, outgoing))
            except Ambiguous:
                self._calls.counts["ambiguous"] += 1
                await self._calls.rest(tries := tries + 1)
            except BadMarkup:
                if outgoing.plain:
                    raise
                outgoing = outgoing.as_plain()

    async def quietly(self, operation: Callable[[], Awaitable[Any]], what: Literal["drop_buttons", "react", "typing", "end_draft", "delete"]) -> None:
        """Something that would be nice: one try, its failure is counted and nothing more."""
        try:
            await self._calls.turnstile.enter(self.chat, urgent=False) if what in ("drop_buttons", "delete") else None
            await operation()
        except PlatformError as error:
            self._calls.counts[f"{what}:{error.code}"] += 1


def _marked(outgoing: Outgoing, language: Language) -> Outgoing:
    parts = (Part("status", say(language, "repeated")), *outgoing.content.parts)
    return replace(outgoing, content=Content(parts))
