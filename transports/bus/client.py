"""A process's connection to the supervisor: hosts, bridges, the reader; and, for the command line, SyncClient.

A connection is made anew, with a HELLO, after every break: the supervisor may be another one. Questions under way then
fail at once; what must not be lost travels as a reliable stream, which its owner resumes when `on_state("up")` comes.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from threading import get_ident
from typing import Any

import zmq

from agents_registry.errors import BusyError, VibeAroundError, from_wire
from transports.bus import envelope
from transports.bus.api import Delivery
from transports.bus.codec import decode
from transports.bus.outbox import Outbox
from transports.bus.peers import Asked, Liveness, Outgoing, frames_for
from transports.bus.syncclient import SyncClient
from transports.bus.vocabulary.conversation import Failed, Welcome
from transports.bus.wire import Dealer, hello, not_running, told

__all__ = ["BusClient", "SyncClient"]

HEARTBEAT_S = 5.0
QUEUE_LIMIT = 64 << 20
_BUSY_S = 30e-6
"""A poll that took less did not wait: more messages are likely to be there (see `endpoint`)."""
_BACKOFF_S = (0.05, 1.0)
_MINE = "\0send"
_REQUEST = "\0request"
"""Names for this client's own questions in the table of questions; never on the wire."""


class _Answer:
    __slots__ = ("done", "value")

    def __init__(self) -> None:
        self.done = threading.Event()
        self.value: Any = None


class BusClient:
    """Connects at once and stays connected. Thread-safe.

    `where`: the socket's path, or a callable that finds it (asked before every connect; NotRunningError = not yet).
    `on_message(delivery)` gets what is sent to this process and answers to `send(…, corr=n)` (with `-n`).
    `on_state(state)`: "up", "down", "refused" (see `error`; tried again every second), "replaced" (final).
    Both run on the client's io thread and must not block; sending is fine there, `request` is not.
    `stay`: False = end at the first break, for processes that end with the supervisor.
    """

    def __init__(
        self,
        where: Path | Callable[[], Path],
        *,
        kind: str,
        name: str = "",
        secret: bytes = b"",
        version: str = "",
        on_message: Callable[[Delivery], None] | None = None,
        on_state: Callable[[str], None] | None = None,
        stay: bool = True,
        heartbeat_s: float = HEARTBEAT_S,
        on_defect: Callable[[BaseException], None] | None = None,
    ) -> None:
        self._find: Callable[[], Path] = (lambda: where) if isinstance(where, Path) else where
        self._hello = hello(kind, name, secret, version)
        self._on_message = on_message
        self._on_state = on_state
        self._stay = stay
        self._heartbeat_s = heartbeat_s
        self._on_defect = on_defect
        self._outbox: Outbox[tuple[bytes, bytes, bool]] = Outbox()
        self._asked: Asked[tuple[str, int]] = Asked()
        self._answers: dict[int, _Answer] = {}
        self._lock = threading.Lock()
        self._corr = 0
        self._handed_over = 0
        self._read_at = 0.0
        self._dealer: Dealer | None = None
        """For the io thread alone."""
        self._outgoing = Outgoing(QUEUE_LIMIT)
        self._up = threading.Event()
        self._closing = False
        self._state = ""
        self.error: VibeAroundError | None = None
        """Why the connection was last refused or lost; None before the first break."""
        self.welcome: Welcome | None = None
        self._thread = threading.Thread(target=self._run, name="bus-client", daemon=True)
        self._thread.start()

    # --- any thread ---------------------------------------------------------------------------------------------

    @property
    def up(self) -> bool:
        return self._up.is_set()

    def wait_up(self, timeout: float) -> bool:
        """Wait until the supervisor has said WELCOME; False when it has not within `timeout` seconds."""
        return self._up.wait(timeout)

    def send(self, address: str, message: Any, corr: int = 0, *, sender: str = "") -> bool:
        """Hand over for sending. False while there is no connection: nothing is kept then, for the next supervisor
        would get it without its context. Raises BusyError when 64 MiB wait, UsageError for a message too large.

        `corr` > 0 asks a question under the caller's own number; < 0 answers the question -corr.
        """
        return self.forward(Delivery(address, message, sender or (_MINE if corr > 0 else ""), corr))

    def forward(self, delivery: Delivery) -> bool:
        """`Switch(forward=client.forward)`: carry what has no receiver in this process to the supervisor."""
        if not self._up.is_set():
            return False
        header, body, preview, given_up = frames_for(delivery, self._asked, keep_sender=not delivery.sender.startswith("\0"))
        dealer = self._dealer
        if dealer is not None and get_ident() == self._outbox.owner and not self._outbox.items and not self._outgoing.frames:
            if not dealer.send(header, body):
                self._outgoing.add(header, body, preview)
            if given_up is not None:
                self._fail(given_up, BusyError("too many questions wait for the supervisor."))
            return True
        size = len(header) + len(body)
        with self._lock:
            if self._handed_over + self._outgoing.size + size > QUEUE_LIMIT:
                if preview:
                    self._outgoing.dropped_previews += 1
                    return True
                raise BusyError("the supervisor takes no messages: 64 MiB wait.", hint="See `va status`.")
            if not self._up.is_set():
                return False
            self._handed_over += size
            self._outbox.put((header, body, preview))
        if given_up is not None:
            self._fail(given_up, BusyError("too many questions wait for the supervisor."))
        return True

    def request(self, address: str, message: Any, timeout: float = 30.0) -> Any:
        """The answer. Waits for a connection too. Raises what a `Failed` answer says, NotRunningError when the
        supervisor ends meanwhile, BusyError when no answer came within `timeout` seconds."""
        limit = time.monotonic() + timeout
        if not self._up.wait(max(0.0, timeout)):
            raise self.error or not_running(f"no connection within {timeout:g} seconds")
        answer = _Answer()
        with self._lock:
            self._corr += 1
            corr = self._corr
            self._answers[corr] = answer
        try:
            if not self.forward(Delivery(address, message, _REQUEST, corr)):
                raise self.error or not_running("the connection broke")
            if not answer.done.wait(max(0.0, limit - time.monotonic())):
                raise BusyError(f"{address} did not answer within {timeout:g} seconds.", hint="Try again; see `va status`.", code="timeout")
        finally:
            with self._lock:
                self._answers.pop(corr, None)
        if isinstance(answer.value, Failed):
            raise from_wire(answer.value.error)
        return answer.value

    def reply(self, delivery: Delivery, message: Any) -> bool:
        """Answer a question. False when the connection it came by is no more (nobody waits then)."""
        if delivery.corr <= 0:
            return False
        return self.forward(Delivery(delivery.sender, message, delivery.address, -delivery.corr))

    def close(self, timeout: float = 2.0) -> None:
        """Send what is handed over, say BYE, end the thread; at most `timeout` seconds. Idempotent."""
        self._closing = True
        self._outbox.wake()
        if self._thread is not threading.current_thread():
            self._thread.join(timeout)

    # --- io thread ----------------------------------------------------------------------------------------------

    def _run(self) -> None:
        backoff = _BACKOFF_S[0]
        self._outbox.owner = threading.get_ident()
        while not self._closing:
            state = "down"
            try:
                was_up = self._session(Dealer(self._find(), self._hello))
                backoff = _BACKOFF_S[0] if was_up else backoff
            except VibeAroundError as error:
                self.error = error
                state = "replaced" if error.code == "replaced" else "refused" if error.exit_code == 5 else "down"
            except (OSError, zmq.ZMQError) as error:
                self.error = not_running(str(error))
            if self._up.is_set():
                backoff = _BACKOFF_S[0]
            self._lost()
            self._tell(state)
            if state == "replaced" or not self._stay:
                break
            if not self._closing:
                poller = zmq.Poller()
                poller.register(self._outbox.fd, zmq.POLLIN)
                if poller.poll(int((1.0 if state == "refused" else backoff) * 1000)):
                    self._outbox.begin()
                backoff = min(_BACKOFF_S[1], backoff * 2)
        self._outbox.items.clear()

    def _session(self, dealer: Dealer) -> bool:
        """One connection, until it breaks (raises why) or `close` was called."""
        poller = zmq.Poller()
        monitor_fd = dealer.monitor.FD  # tells of changes only; `broken` reads until there is nothing
        for readable in (dealer.socket, monitor_fd, self._outbox.fd):
            poller.register(readable, zmq.POLLIN)
        if (broken := dealer.broken()) is not None:
            dealer.close(bye=False)
            raise broken
        liveness, next_tick = Liveness(), time.monotonic() + self._heartbeat_s
        bye = False
        self._dealer = dealer
        try:
            while True:
                wait = next_tick - time.monotonic()
                if self._outgoing.frames:
                    wait = min(wait, 0.005)
                ready = dict(poller.poll(0 if self._outbox.items else max(0, int(wait * 1000) + 1)))
                if self._outbox.fd in ready:
                    self._outbox.begin()
                self._drain(dealer)
                if self._closing:
                    bye = True
                    return True
                if dealer.socket in ready:
                    liveness.heard = True
                    self._take_all(dealer)
                    self._drain(dealer)
                elif monitor_fd in ready and (broken := dealer.broken()) is not None:
                    self._take_all(dealer, everything=True)
                    raise broken
                if time.monotonic() >= next_tick:
                    next_tick = time.monotonic() + self._heartbeat_s
                    if not liveness.tick():
                        raise not_running("it shows no sign of life")
                    if liveness.missed:
                        dealer.send(envelope.pack(envelope.PING), b"")
        finally:
            self._dealer = None
            dealer.close(bye=bye)

    def _drain(self, dealer: Dealer) -> None:
        outgoing = self._outgoing
        while outgoing.frames and dealer.send(*outgoing.frames[0]):
            outgoing.done()
        items = self._outbox.items
        for _ in range(len(items)):
            header, body, preview = items.popleft()
            with self._lock:
                self._handed_over -= len(header) + len(body)
            if outgoing.frames or not dealer.send(header, body):
                outgoing.add(header, body, preview)

    def _take_all(self, dealer: Dealer, *, everything: bool = False) -> None:
        busy = time.perf_counter() - self._read_at < _BUSY_S
        for _ in range(256 if everything else 64 if busy else 1):
            frame = dealer.receive()
            if frame is None:
                break
            self._take(dealer, *frame)
        self._read_at = time.perf_counter()

    def _take(self, dealer: Dealer, header: envelope.Header, body: bytes) -> None:
        kind = header.kind
        if kind == envelope.SEND:
            self._deliver(Delivery(header.address, self._decoded(body), header.sender, header.id))
        elif kind == envelope.REPLY:
            question = self._asked.take(header.corr)
            if question is not None:
                self._answered(question, self._decoded(body), header.sender)
        elif kind == envelope.PING:
            dealer.send(envelope.pack(envelope.PONG), b"")
        elif kind == envelope.WELCOME:
            self.welcome = decode(body)
            self.error = None
            self._up.set()
            self._tell("up")
        elif kind in (envelope.ERROR, envelope.BYE):
            error = told(body)
            if kind == envelope.BYE or not self._up.is_set() or error.code == "hello_first":
                raise error
            self.error = error

    @staticmethod
    def _decoded(body: bytes) -> Any:
        try:
            return decode(body)
        except VibeAroundError as error:
            return Failed(error.to_wire())

    def _answered(self, question: tuple[str, int], message: Any, sender: str) -> None:
        asker, corr = question
        if asker == _REQUEST:
            with self._lock:
                answer = self._answers.get(corr)
            if answer is not None:  # else it came too late: its asker has heard so
                answer.value = message
                answer.done.set()
            return
        self._deliver(Delivery(asker if asker != _MINE else "", message, sender, -corr))

    def _fail(self, question: tuple[str, int], error: VibeAroundError) -> None:
        self._answered(question, Failed(error.to_wire()), "")

    def _lost(self) -> None:
        """Nothing under way reaches its end any more."""
        with self._lock:
            self._up.clear()
            self._outbox.items.clear()
            self._handed_over = 0
            self._outgoing = Outgoing(QUEUE_LIMIT)
        gone = not_running("it ended while the question was under way")
        for question in self._asked.drain(close=False):
            self._fail(question, gone)

    def _deliver(self, delivery: Delivery) -> None:
        if self._on_message is None:
            return
        try:
            self._on_message(delivery)
        except Exception as error:  # noqa: BLE001 - the owner's handler; a defect in it must not end the connection
            self._defect(error)
            if delivery.corr > 0:
                refusal = error if isinstance(error, VibeAroundError) else VibeAroundError(f"{type(error).__name__}: {error}")
                self.reply(delivery, Failed(refusal.to_wire()))

    def _tell(self, state: str) -> None:
        if self._on_state is None or state == self._state:
            return
        self._state = state
        try:
            self._on_state(state)
        except Exception as error:  # noqa: BLE001 - as above
            self._defect(error)

    def _defect(self, error: BaseException) -> None:
        if self._on_defect is not None:
            self._on_defect(error)
        else:
            import traceback

            os.write(2, "".join(traceback.format_exception(error)).encode())
