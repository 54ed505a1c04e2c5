"""The supervisor's side of the bus: one io thread owns the ROUTER, its access handler, and further descriptors.

Why this way: `ROUTER_MANDATORY`, because without it a stalled peer silently loses what its queue does not take; socket
identities are made by libzmq per connection (chosen ones are refused), because with HANDOVER a second
peer of one identity receives the first one's messages; the shared ROUTER is always read on, so a slow peer costs only
itself. What a peer does not take waits in a queue of its own (`peers.Outgoing`).
"""

from __future__ import annotations

import logging
import selectors
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import get_ident
from typing import Any, Protocol

import zmq

from agents_registry.errors import BusyError, NotRunningError, RefusedError, VibeAroundError
from transports.bus import envelope
from transports.bus.access import Access, Role
from transports.bus.admission import Admission
from transports.bus.api import Peer
from transports.bus.codec import MAX_BODY, decode, encode
from transports.bus.egress import Egress, Item
from transports.bus.frames import receive_all, receive_first
from transports.bus.outbox import Outbox
from transports.bus.peers import Connection, Outgoing
from transports.bus.socketpath import SocketLock, check_socket_path
from transports.bus.sockets import Sockets
from transports.bus.switch import Switch
from transports.bus.vocabulary.conversation import Failed, Hello, Welcome

_log = logging.getLogger(__name__)

HWM = 500
"""Messages libzmq holds per peer; more waits in our own queue, which is bounded by bytes."""
QUEUE_LIMIT = 64 << 20
"""Bytes that may wait for one peer; beyond that it is given up (its stored positions let it catch up)."""
EARLY_LIMIT = 4 << 20
"""Bytes a peer may send between its HELLO and the answer."""
_PROBE_S = 0.02
_BUSY_S = 30e-6

class Clock(Protocol):
    def call_later(self, delay: float, fn: Callable[[], None], /) -> Any: ...


class Extra(Protocol):
    """A further descriptor for the io thread: `ready` is called when it is readable, and must not block."""

    def fileno(self) -> int: ...
    def ready(self) -> None: ...


class Endpoint:
    """See the module's text. Callbacks run on the io thread and must not block.

    `bind_names(peer, hello)`: the logical addresses that this connection is to own (`agent/<thread>/<instance>`, …),
    registered in the switch; raising VibeAroundError refuses the HELLO. A newer connection that is given the same name
    replaces the older. `on_gone(peer, reason)`: an admitted peer's connection is no more.
    `heartbeat_s`: seconds between the looks at who was silent; after three more in silence a peer is gone.
    """

    def __init__(
        self,
        path: Path,
        switch: Switch,
        *,
        access: Access,
        bind_names: Callable[[Peer, Hello], Sequence[str]],
        on_gone: Callable[[Peer, str], None],
        clock: Clock,
        version: str = "",
        heartbeat_s: float = 5.0,
        queue_limit: int = QUEUE_LIMIT,
        hwm: int = HWM,
        extras: Sequence[Extra] = (),
    ) -> None:
        self.path = path
        self._switch = switch
        self._access = access
        self._admission = Admission(access, bind_names)
        self._on_gone = on_gone
        self._clock = clock
        self._version = version
        self._heartbeat_s = heartbeat_s
        self._queue_limit = queue_limit
        self._hwm = hwm
        self._extras = list(extras)
        self._outbox: Outbox[Item] = Outbox()
        self._connections: dict[bytes, Connection] = {}
        self._by_name: dict[str, Connection] = {}
        self._numbers = 0
        self._probe_at = 0.0
        self._burst = 1
        self._read_at = 0.0
        self._stopping = False
        self._thread: threading.Thread | None = None
        self._lock = SocketLock(path)
        self._counts: Counter[str] = Counter()

    # --- any thread ---------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Lock, bind, run. Raises UsageError for a path that cannot be a socket, BusyError when another process
        serves it."""
        check_socket_path(self.path)
        self._lock.take()
        try:
            self._open()
        except BaseException:
            self._lock.release()
            raise
        self._thread = threading.Thread(target=self._run, name="bus-io", daemon=True)
        self._thread.start()
        self._arm_tick()

    def close(self, timeout: float = 5.0) -> None:
        """Say BYE to all peers and end the io thread; waits at most `timeout` seconds. Idempotent."""
        if self._thread is None or self._stopping:
            return
        self._outbox.put(self._stop)
        self._thread.join(timeout)
        if self._thread.is_alive():
            _log.error("the bus's io thread did not end within %g s", timeout)
        self._access.close()
        self._lock.release()

    def peers(self) -> list[Peer]:
        """The admitted peers, for status listings."""
        return [connection.peer for connection in list(self._connections.values()) if connection.peer is not None]

    def counters(self) -> dict[str, int]:
        """What went wrong or was dropped, by kind; for status and tests."""
        return dict(self._counts)

    def call(self, fn: Callable[[], None]) -> None:
        """Run `fn` on the io thread soon."""
        self._outbox.put(fn)

    def disconnect(self, address: str, reason: str) -> None:
        """Give a peer up (by its `peer/<n>` or a bound name); unknown addresses are ignored."""

        def act() -> None:
            for connection in list(self._connections.values()):
                if address == connection.address or address in connection.names:
                    self._egress.bye(connection, RefusedError(reason, code="disconnected"))
                    self._drop(connection, reason)

        self._outbox.put(act)

    # --- io thread: life ----------------------------------------------------------------------------------------

    def _open(self) -> None:
        self._sockets = Sockets(self.path, self._hwm, self._access.uid, self._counts)
        self._router = self._sockets.router
        self._egress = Egress(self._router, self._outbox, self._switch, self._drop, self._counts, self._queue_limit)

    def _run(self) -> None:
        router, outbox, side = self._router, self._outbox, selectors.DefaultSelector()
        # What is seldom ready waits behind one descriptor. ZeroMQ's own descriptors tell of changes only: their handlers
        # read until there is nothing, and once before the first wait.
        side.register(self._sockets.zap.FD, selectors.EVENT_READ, self._sockets.judge)
        side.register(self._sockets.monitor.FD, selectors.EVENT_READ, self._notice)
        for extra in self._extras:
            side.register(extra.fileno(), selectors.EVENT_READ, extra.ready)
        self._sockets.judge()
        self._notice()
        poller = zmq.Poller()
        for readable in (router, outbox.fd, side.fileno()):
            poller.register(readable, zmq.POLLIN)
        outbox.owner = get_ident()
        while not self._stopping:
            try:
                ready = dict(poller.poll(0 if outbox.items else self._timeout_ms()))
                if outbox.items:
                    self._drain_outbox()
                if outbox.fd in ready:
                    outbox.begin()  # after the sending, which it would delay; what was put meanwhile is seen below
                if router in ready:
                    self._read()
                if outbox.items:
                    self._drain_outbox()
                if side.fileno() in ready:
                    for key, _ in side.select(0):
                        key.data()
                if self._egress.slow:
                    self._egress.retry()
                if self._probe_at and time.monotonic() >= self._probe_at:
                    self._probe()
            except Exception:  # noqa: BLE001 - the io thread is everybody's: a defect costs one round, not the bus
                _log.exception("a round of the bus's io thread failed")
                self._counts["io_failures"] += 1
                time.sleep(0.01)  # a defect that comes back at once must not fill the log as fast as it can
        side.close()
        self._shut()

    def _timeout_ms(self) -> int | None:
        if not self._egress.slow and not self._probe_at:
            return None
        waits = []
        if self._egress.slow:
            waits.append(self._egress.retry_s)
        if self._probe_at:
            waits.append(max(0.0, self._probe_at - time.monotonic()))
        return int(min(waits) * 1000) + 1

    def _stop(self) -> None:
        self._stopping = True

    def _shut(self) -> None:
        self._drain_outbox()
        leaving = NotRunningError("the supervisor stops.", hint="Start it with `va up`.", code="supervisor_stops")
        for connection in list(self._connections.values()):
            self._egress.bye(connection, leaving)
            self._drop(connection, "the supervisor stops")
        self._sockets.close()
        self._outbox.close()

    def _drain_outbox(self) -> None:
        items = self._outbox.items
        for _ in range(len(items)):
            item = items.popleft()
            if callable(item):
                item()
                continue
            connection, header, body, preview = item
            with connection.lock:
                connection.handed_over -= len(header) + len(body)
            self._egress.transmit(connection, header, body, preview)

    def _notice(self) -> None:
        """A connection broke, libzmq does not say which: PING them all in a moment, the dead one is unreachable."""
        self._sockets.forget_events()
        self._probe_at = self._probe_at or time.monotonic() + _PROBE_S

    def _probe(self) -> None:
        """One PING to each: whose connection broke is unreachable, and dropped."""
        self._probe_at = 0.0
        for connection in list(self._connections.values()):
            self._egress.transmit(connection, envelope.pack(envelope.PING), b"", True)

    def _arm_tick(self) -> None:
        def due() -> None:
            if not self._stopping:
                self._outbox.put(self._tick)

        self._clock.call_later(self._heartbeat_s, due)

    def _tick(self) -> None:
        for connection in list(self._connections.values()):
            if not connection.liveness.tick():
                self._drop(connection, "no sign of life")
            elif connection.liveness.missed:
                self._egress.transmit(connection, envelope.pack(envelope.PING), b"", True)
        self._arm_tick()

    # --- io thread: inbound -------------------------------------------------------------------------------------

    def _read(self) -> None:
        router, connections = self._router, self._connections
        # Trying until there is nothing costs an exception per round, a second poll costs as much: where the poller did
        # not have to wait, more is likely to be there; else one message is all.
        self._burst = min(256, 4 * self._burst) if time.perf_counter() - self._read_at < _BUSY_S else 1
        for _ in range(self._burst):
            try:
                identity = receive_first(router)
            except zmq.Again:
                break
            connection = connections.get(identity)
            if connection is None:
                self._stranger(identity)
                continue
            parts = receive_all(router)
            connection.liveness.heard = True
            try:
                if len(parts) != 2:
                    raise envelope.EnvelopeError(f"a bus message has {len(parts)} frames instead of 2.")
                header = envelope.unpack(parts[0])
                envelope.check_body(parts[1])
            except envelope.EnvelopeError as error:
                self._counts[error.code] += 1
                self._egress.error(identity, error)
                continue
            self._frame(connection, header, parts[1])
        self._read_at = time.perf_counter()

    def _stranger(self, identity: bytes) -> None:
        """The first frame of a connection: only a HELLO makes it a peer."""
        frames: list[zmq.Frame] = self._router.recv_multipart(copy=False)
        try:
            found = self._admission.read(identity, frames, len(self._connections))
        except VibeAroundError as error:
            self._counts[error.code] += 1
            self._egress.error(identity, error)
            return
        if found is None:
            return
        hello, uid, pid = found
        self._numbers += 1
        connection = Connection(identity, self._numbers, pid or hello.pid, uid, Outgoing(self._queue_limit))
        self._connections[identity] = connection

        def classified(role: Role) -> None:
            self._outbox.put(lambda: self._admit(connection, hello, role))

        self._access.classify_soon(connection.pid, classified)

    def _admit(self, connection: Connection, hello: Hello, role: Role) -> None:
        if connection.gone:
            return
        try:
            peer, names = self._admission.judge(
                connection, hello, role, lambda wanted: wanted not in self._by_name and self._switch.known(wanted)
            )
        except VibeAroundError as error:
            self._refuse(connection, error)
            return
        connection.peer, connection.names = peer, names
        for older in {self._by_name[wanted] for wanted in names if wanted in self._by_name}:
            self._egress.bye(older, RefusedError(f"a newer connection took over {older.label}.", code="replaced"))
            self._drop(older, "replaced by a newer connection")
        receive = self._egress.receiver(connection)
        for address in (connection.address, *names):
            self._switch.register(address, receive)
        self._by_name.update(dict.fromkeys((connection.address, *names), connection))
        welcome = encode(Welcome(connection.label, peer.role, self._version))
        self._egress.transmit(connection, envelope.pack(envelope.WELCOME, address=connection.label), welcome, False)
        early, connection.early = connection.early, []
        for header, body in early:
            if not connection.gone:
                self._frame(connection, header, body)

    def _refuse(self, connection: Connection, error: VibeAroundError) -> None:
        self._counts["refused_hellos"] += 1
        self._egress.error(connection.identity, error)
        self._drop(connection, error.message)

    def _frame(self, connection: Connection, header: envelope.Header, body: bytes) -> None:
        kind, peer = header.kind, connection.peer
        if kind == envelope.SEND and peer is not None:
            self._inbound(connection, peer, header, body)
        elif kind == envelope.PING:
            self._egress.transmit(connection, envelope.pack(envelope.PONG, corr=header.id), b"", True)
        elif kind == envelope.PONG:
            pass
        elif kind == envelope.BYE:
            self._drop(connection, "closed by the peer")
        elif kind == envelope.HELLO:
            self._egress.error(connection.identity, envelope.EnvelopeError("a second HELLO on one connection."))
        elif peer is None:
            connection.early_size += len(body) + 64
            if connection.early_size > EARLY_LIMIT:
                self._refuse(connection, BusyError("too much was sent before the HELLO was answered."))
                return
            connection.early.append((header, body))
        elif kind == envelope.REPLY:
            self._answered(connection, peer, header, body)
        else:
            self._counts["unexpected"] += 1

    def _inbound(self, connection: Connection, peer: Peer, header: envelope.Header, body: bytes) -> None:
        sender = header.sender if header.sender in connection.names else connection.label
        try:
            message = decode(body)
            refusal = self._access.allow(peer, header.address, message)
        except VibeAroundError as error:
            refusal = error
        if refusal is not None:
            self._counts[refusal.code] += 1
            if header.id:
                self._switch.send(sender, Failed(refusal.to_wire()), sender=header.address, corr=-header.id)
            return
        self._switch.send(header.address, message, sender=sender, corr=header.id, peer=peer)

    def _answered(self, connection: Connection, peer: Peer, header: envelope.Header, body: bytes) -> None:
        question = connection.asked.take(header.corr)
        if question is None:
            self._counts["late_replies"] += 1
            return
        sender, corr = question
        asker = self._by_name.get(sender)
        if asker is not None and len(body) <= MAX_BODY:  # from peer to peer the body stays opaque
            answer = envelope.pack(envelope.REPLY, corr=corr, address=sender, sender=connection.label)
            if self._outbox.items:
                self._drain_outbox()  # what was sent to the asker before
            self._egress.transmit(asker, answer, body, False)
            return
        try:
            message = decode(body)
        except VibeAroundError as error:
            message = Failed(error.to_wire())
        self._switch.send(sender, message, sender=connection.label, corr=-corr, peer=peer)

    # --- io thread: the end of a connection ---------------------------------------------------------------------

    def _drop(self, connection: Connection, reason: str) -> None:
        """The connection is no more: its addresses, its questions and its queue end here."""
        if connection.gone:
            return
        connection.gone = True
        self._connections.pop(connection.identity, None)
        self._egress.slow.discard(connection)
        self._counts["undeliverable"] += len(connection.outgoing.frames)
        connection.outgoing.frames.clear()
        connection.outgoing.size = 0
        if connection.peer is None:
            return
        for address in (connection.address, *connection.names):
            if self._by_name.get(address) is connection:
                del self._by_name[address]
                self._switch.unregister(address)
        for question in connection.asked.drain():
            self._egress.unanswered(connection, question, f"is gone ({reason})")
        try:
            self._on_gone(connection.peer, reason)
        except Exception:  # noqa: BLE001 - the callback is the supervisor's own; the connection is closed all the same
            _log.exception("the end of %s could not be told", connection.label)
