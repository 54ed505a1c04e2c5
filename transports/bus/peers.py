"""What one connection remembers: questions under way in both directions, what waits to go out, signs of life.

Pure bookkeeping: no socket, no thread of its own. Ids are per connection and direction, so the correlation numbers of
actors never travel and cannot collide with a peer's.
"""

from __future__ import annotations

import itertools
import random
import threading
from collections import OrderedDict, deque
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from transports.bus import envelope
from transports.bus.api import Delivery, Peer
from transports.bus.codec import encode
from transports.bus.switch import Passivated

T = TypeVar("T")
Question = tuple[str, int]
"""(sender, its positive correlation number)"""

MAX_ASKED = 4096
"""Questions to one peer that may be unanswered at once; the oldest is given up for a newer one."""


class Asked(Generic[T]):
    """Questions sent over a connection: their id on the wire, and who waits for the answer. Thread-safe.

    Ids begin at a random number: an answer to a question of an earlier connection then meets nobody.
    """

    def __init__(self, limit: int = MAX_ASKED) -> None:
        self._ids = itertools.count(random.randrange(envelope.MAX_ID))
        self._open: OrderedDict[int, T] = OrderedDict()
        self._limit = limit
        self._closed = False
        self._lock = threading.Lock()

    def add(self, waiting: T) -> tuple[int, T | None]:
        """(id for the wire, the one given up for it if the table was full). Raises Passivated after `drain`."""
        with self._lock:
            if self._closed:
                raise Passivated
            given_up = self._open.popitem(last=False)[1] if len(self._open) >= self._limit else None
            ident = next(self._ids) % envelope.MAX_ID + 1
            self._open[ident] = waiting
            return ident, given_up

    def take(self, ident: int) -> T | None:
        """Who waits for this reply; None for one that nobody waits for (any more)."""
        with self._lock:
            return self._open.pop(ident, None)

    def drain(self, *, close: bool = True) -> list[T]:
        """All that will never be answered now."""
        with self._lock:
            self._closed = close
            rest = list(self._open.values())
            self._open.clear()
            return rest


@dataclass(slots=True)
class Outgoing:
    """Bytes for a peer that its socket does not take at the moment. Previews are dropped, the rest waits in order."""

    limit: int
    frames: deque[tuple[bytes, bytes]] = field(default_factory=deque)
    size: int = 0
    dropped_previews: int = 0

    def add(self, header: bytes, body: bytes, preview: bool) -> bool:
        """False: more waits than may; the peer is to be given up."""
        if preview:
            self.dropped_previews += 1
            return True
        self.frames.append((header, body))
        self.size += len(header) + len(body)
        return self.size <= self.limit

    def done(self) -> None:
        """The first one was sent."""
        header, body = self.frames.popleft()
        self.size -= len(header) + len(body)


@dataclass(slots=True)
class Liveness:
    """A peer is heard by any frame. Each tick without one counts; three in a row and it is gone."""

    limit: int = 3
    heard: bool = True
    missed: int = 0

    def tick(self) -> bool:
        """False: gone. Else a PING is due when `missed` is not 0."""
        if self.heard:
            self.heard, self.missed = False, 0
            return True
        self.missed += 1
        return self.missed <= self.limit


@dataclass(slots=True, eq=False)
class Connection:
    """One socket identity at the ROUTER. `peer` is None until its HELLO was accepted."""

    identity: bytes
    number: int
    pid: int
    uid: int
    outgoing: Outgoing
    asked: Asked[Question] = field(default_factory=Asked)
    liveness: Liveness = field(default_factory=Liveness)
    peer: Peer | None = None
    names: tuple[str, ...] = ()
    hello_seen: bool = False
    gone: bool = False
    early: list[tuple[envelope.Header, bytes]] = field(default_factory=list)
    early_size: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)
    handed_over: int = 0
    """Bytes on their way from other threads to the io thread."""

    @property
    def address(self) -> str:
        return f"peer/{self.number}"

    @property
    def label(self) -> str:
        """How the peer is named as a sender: by its first bound name, else by its number."""
        return self.names[0] if self.names else self.address


def frames_for(
    delivery: Delivery, asked: Asked[Question], *, keep_sender: bool = True
) -> tuple[bytes, bytes, bool, Question | None]:
    """(header, body, preview, question given up) of a delivery that leaves by a connection.

    A negative `corr` is an answer (REPLY to the id -corr); a positive one a question, which gets an id of this
    connection; 0 expects none. Raises UsageError for a message that is too large.
    """
    body = encode(delivery.message)
    sender = delivery.sender if keep_sender else ""
    preview = bool(getattr(delivery.message, "PREVIEW", False))
    if delivery.corr < 0:
        header = envelope.pack(envelope.REPLY, corr=-delivery.corr, address=delivery.address, sender=sender)
        return header, body, preview, None
    ident, given_up = 0, None
    if delivery.corr > 0 and delivery.sender:
        ident, given_up = asked.add((delivery.sender, delivery.corr))
    header = envelope.pack(envelope.SEND, id=ident, address=delivery.address, sender=sender)
    return header, body, preview, given_up
