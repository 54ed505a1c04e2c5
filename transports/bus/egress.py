"""What leaves by the ROUTER: sent at once where the peer takes it, kept in order where it does not.

All of it is the io thread's, but what `receiver` makes, which encodes on the caller's thread."""

from __future__ import annotations

import errno
from collections import Counter
from collections.abc import Callable
from threading import get_ident

import zmq

from agents_registry.errors import BusyError, VibeAroundError
from transports.bus import envelope
from transports.bus.api import Delivery, Receiver
from transports.bus.codec import encode
from transports.bus.frames import send_to
from transports.bus.outbox import Outbox
from transports.bus.peers import Connection, Question, frames_for
from transports.bus.switch import Passivated, Switch
from transports.bus.vocabulary.conversation import Failed

Item = tuple[Connection, bytes, bytes, bool] | Callable[[], None]
"""What is put for the io thread: something to send, or to do."""
RETRY_S = (0.002, 0.1)


class Egress:
    """`give_up(connection, reason)`: the peer is gone or does not take what it is sent. `counts`: what got lost."""

    def __init__(
        self, router: zmq.Socket[bytes], outbox: Outbox[Item], switch: Switch, give_up: Callable[[Connection, str], None],
        counts: Counter[str], queue_limit: int,
    ) -> None:
        self._router = router
        self._outbox = outbox
        self._switch = switch
        self._give_up = give_up
        self._counts = counts
        self._queue_limit = queue_limit
        self.slow: set[Connection] = set()
        """Peers that something waits for."""
        self.retry_s = RETRY_S[0]

    def receiver(self, connection: Connection) -> Receiver:
        """What stands in the switch for a peer's addresses: encodes on the caller's thread, hands over."""
        outbox, limit = self._outbox, self._queue_limit
        put = outbox.put

        def receive(delivery: Delivery) -> None:
            if connection.gone:
                raise Passivated  # its name may have a newer connection
            header, body, preview, given_up = frames_for(delivery, connection.asked)
            if get_ident() == outbox.owner and not outbox.items:  # on the io thread, with nothing before it
                self.transmit(connection, header, body, preview)
                if given_up is not None:
                    self.unanswered(connection, given_up, "has too many questions waiting")
                return
            size = len(header) + len(body)
            waiting = connection.handed_over + connection.outgoing.size
            if preview and waiting > limit // 8:
                connection.outgoing.dropped_previews += 1
                return
            if waiting > 2 * limit:
                raise BusyError(f"{connection.label} takes no messages.", hint="It is slow or hangs: see `va status`.")
            with connection.lock:
                connection.handed_over += size
                put((connection, header, body, preview))
            if given_up is not None:
                self.unanswered(connection, given_up, "has too many questions waiting")

        return receive

    def transmit(self, connection: Connection, header: bytes, body: bytes, preview: bool) -> None:
        """Send now if the peer takes it, else keep it in order; a peer that broke or keeps too much waiting is given up."""
        if connection.gone:
            self._counts["undeliverable"] += not preview
            return
        if not connection.outgoing.frames:
            try:
                send_to(self._router, connection.identity, header, body)
                return
            except zmq.ZMQError as error:
                if error.errno == errno.EHOSTUNREACH:
                    self._give_up(connection, "the connection broke")
                    return
                if error.errno != errno.EAGAIN:
                    raise
        if not connection.outgoing.add(header, body, preview):
            self._give_up(connection, f"it did not take {self._queue_limit >> 20} MiB that wait for it")
        elif connection.outgoing.frames:
            self.slow.add(connection)

    def retry(self) -> None:
        """Try the slow peers again; `retry_s` is when to do so next."""
        moved = False
        for connection in list(self.slow):
            outgoing = connection.outgoing
            while outgoing.frames and not connection.gone:
                header, body = outgoing.frames[0]
                try:
                    send_to(self._router, connection.identity, header, body)
                except zmq.ZMQError as error:
                    if error.errno == errno.EHOSTUNREACH:
                        self._give_up(connection, "the connection broke")
                    elif error.errno != errno.EAGAIN:
                        raise
                    break
                outgoing.done()
                moved = True
            if not outgoing.frames:
                self.slow.discard(connection)
        self.retry_s = RETRY_S[0] if moved else min(RETRY_S[1], self.retry_s * 2)

    def error(self, identity: bytes, error: VibeAroundError) -> None:
        """Tell a connection what is wrong with what it sent."""
        self._send_last(identity, envelope.ERROR, error)

    def bye(self, connection: Connection, error: VibeAroundError) -> None:
        """Tell a peer why its connection ends."""
        self._send_last(connection.identity, envelope.BYE, error)

    def _send_last(self, identity: bytes, kind: int, error: VibeAroundError) -> None:
        try:
            send_to(self._router, identity, envelope.pack(kind), encode(Failed(error.to_wire())))
        except zmq.ZMQError:
            self._counts["undeliverable"] += 1  # it is gone or hangs; it learns it from its own side of the connection

    def unanswered(self, connection: Connection, question: Question, why: str) -> None:
        """Say to who asked that no answer will come."""
        sender, corr = question
        error = VibeAroundError(f"{connection.label} {why} and did not answer.", hint="Try again.", code="peer_gone")
        self._switch.send(sender, Failed(error.to_wire()), sender=connection.label, corr=-corr)
