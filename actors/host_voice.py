"""What a host says: whole things as numbered durable events, text in the making as deltas."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from actors.host_assembler import Assembler
from actors.host_files import HostFiles, clean
from actors.host_outbox import HostOutbox
from actors.host_spec import HostSpec
from agents_registry.errors import VibeAroundError
from transports.bus.vocabulary.hosting import HostDelta

_WITHIN_A_BLOCK = ("text", "thought", "title", "commands", "mode", "other")
"""Kinds that do not end the block of text that is open."""


class HostVoice:
    """`turn` is the key under which things are said, "" outside of turns. `listened`: somebody takes deltas."""

    def __init__(
        self, spec: HostSpec, send: Callable[[Any], None], files: HostFiles, *, clock: Callable[[], float]
    ) -> None:
        self._epoch, self._send, self._files = spec.epoch, send, files
        self.turn = ""
        self.listened = False
        self.outbox = HostOutbox(spec.epoch, send, bound=spec.limits.unacked_bytes, clock=clock)
        self.assembler = Assembler(self, clock)

    def event(self, kind: str, body: dict[str, Any]) -> None:
        """One durable event of the running turn."""
        if kind not in _WITHIN_A_BLOCK:
            self.assembler.finish_block()
        self.event_of(self.turn, kind, body)

    def notice(self, text: str) -> None:
        """A word for the people in the chat."""
        self.event("notice", {"text": text})

    def piece(self, kind: str, block: int, offset: int, text: str) -> None:
        """Text in the making; nobody listens = nothing is sent."""
        if self.listened:
            self._send(HostDelta(self._epoch, self.turn, kind, block, offset, clean(text)))

    def event_of(self, turn: str, kind: str, body: dict[str, Any]) -> None:
        """One durable event of any turn."""
        try:
            self.outbox.add(turn, kind, self._files.fit(body))
        except (VibeAroundError, OSError) as error:
            # A full disk, or a thing made of very many small parts: the event's place is kept, and says why it is bare.
            bare = {k: v for k, v in body.items() if isinstance(v, str | int | float) and len(str(v)) < 1000}
            if isinstance(body.get("text"), str):
                bare["text"] = clean(body["text"][:200_000])
            self.outbox.add(turn, kind, {**bare, "incomplete": str(error)[:300]})
