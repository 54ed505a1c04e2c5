"""A host's numbered events: kept until acked, sent in order within a window, sent again after a reconnect."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from transports.bus.codec import encode
from transports.bus.vocabulary.hosting import HostEvent

WINDOW_EVENTS = 256
WINDOW_BYTES = 4 << 20
"""What may be under way unacked: the supervisor's queue for one host stays short, whatever the backlog."""
RESEND_S = 10.0
"""Without any progress for so long, what is under way is sent again; the receiver drops what it has."""


class HostOutbox:
    """`send(event)` hands one to the link. Not thread-safe: it belongs to the host's one loop."""

    def __init__(self, epoch: int, send: Callable[[Any], None], *, bound: int, clock: Callable[[], float]) -> None:
        self._epoch = epoch
        self._send = send
        self._bound = bound
        self._clock = clock
        self._kept: deque[tuple[HostEvent, int]] = deque()
        self._sent = 0
        """How many of `_kept`, from the left, are under way."""
        self._sent_bytes = 0
        self._linked = False
        self._moved_at = 0.0
        self.bytes = 0
        self.last_seq = 0
        self.acked = 0

    @property
    def full(self) -> bool:
        """The agent's output should not be read further."""
        return self.bytes >= self._bound

    @property
    def empty(self) -> bool:
        return not self._kept

    def add(self, turn: str, kind: str, body: dict[str, Any]) -> HostEvent:
        """Number an event, keep it, and send it when the window allows."""
        self.last_seq += 1
        event = HostEvent(self.last_seq, self._epoch, turn, kind, body)
        size = len(encode(event))
        self._kept.append((event, size))
        self.bytes += size
        self._pump()
        return event

    def ack(self, upto: int) -> None:
        """Events up to `upto` are durable elsewhere. Numbers never given out are ignored."""
        if upto > self.last_seq:
            return
        self.acked = max(self.acked, upto)
        while self._kept and self._kept[0][0].seq <= upto:
            _, size = self._kept.popleft()
            self.bytes -= size
            if self._sent:
                self._sent -= 1
                self._sent_bytes -= size
            self._moved_at = self._clock()
        self._pump()

    def linked(self, acked: int) -> None:
        """The supervisor is there (again) and has events up to `acked`: send the rest."""
        self._linked = True
        self._rewind()
        self.ack(acked)

    def unlinked(self) -> None:
        """Nobody listens; events are kept."""
        self._linked = False
        self._rewind()

    def check(self) -> None:
        """Call now and then: sends again when nothing moved for long."""
        if self._linked and self._sent and self._clock() - self._moved_at > RESEND_S:
            self._rewind()
            self._pump()

    def rest(self) -> list[HostEvent]:
        """What is not acked, in order."""
        return [event for event, _ in self._kept]

    def _rewind(self) -> None:
        self._sent = self._sent_bytes = 0

    def _pump(self) -> None:
        while (
            self._linked
            and self._sent < len(self._kept)
            and self._sent < WINDOW_EVENTS
            and (not self._sent or self._sent_bytes < WINDOW_BYTES)
        ):
            event, size = self._kept[self._sent]
            if not self._sent:
                self._moved_at = self._clock()
            self._sent += 1
            self._sent_bytes += size
            self._send(event)
