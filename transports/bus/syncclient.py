"""A blocking client without a thread, for the command line."""

from __future__ import annotations

import time
from collections import deque
from pathlib import Path
from typing import Any

import zmq

from agents_registry.errors import BusyError, VibeAroundError, from_wire
from transports.bus import envelope
from transports.bus.api import Delivery
from transports.bus.codec import decode, encode
from transports.bus.vocabulary.conversation import Failed, Welcome
from transports.bus.wire import SLICE_S, Dealer, hello, not_running, told

SILENCE_S = 5.0
"""Seconds without a sign of life after a PING until the supervisor counts as hung."""


class SyncClient:
    """Connects at once. Every method raises NotRunningError when the supervisor ends or hangs (asked by PING).

    `welcome` holds the own address and role. Not thread-safe.
    """

    def __init__(self, path: Path, *, kind: str = "client", name: str = "", version: str = "", timeout: float = 5.0) -> None:
        self._dealer = Dealer(path, hello(kind, name, b"", version))
        self._poller = zmq.Poller()
        self._poller.register(self._dealer.socket, zmq.POLLIN)
        self._poller.register(self._dealer.monitor, zmq.POLLIN)
        self._waiting: deque[Delivery] = deque()
        self._ids = 0
        self._heard = self._pinged = time.monotonic()
        self._broken: VibeAroundError | None = None
        self._welcome: Welcome | None = None
        try:
            self.welcome = self._await_welcome(timeout)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> SyncClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def send(self, address: str, message: Any, *, question: bool = False) -> int:
        """Send; with `question` the answer comes out of `receive`, its `corr` the negative of the returned id."""
        self._ids += 1
        ident = self._ids if question else 0
        if not self._dealer.send(envelope.pack(envelope.SEND, id=ident, address=address), encode(message)):
            raise BusyError("the supervisor takes no messages.", hint="Look at `va status`.")
        return ident

    def request(self, address: str, message: Any, timeout: float = 30.0) -> Any:
        """The answer. Raises what a `Failed` answer says, BusyError after `timeout` seconds.

        What else arrives meanwhile stays for `receive`.
        """
        ident = self.send(address, message, question=True)
        limit, aside = time.monotonic() + timeout, deque[Delivery]()
        try:
            while True:
                delivery = self.receive(limit - time.monotonic())
                if delivery is None:
                    raise BusyError(
                        f"{address} did not answer within {timeout:g} seconds.", hint="Try again; see `va status`.", code="timeout"
                    )
                if delivery.corr == -ident:
                    if isinstance(delivery.message, Failed):
                        raise from_wire(delivery.message.error)
                    return delivery.message
                aside.append(delivery)
        finally:
            self._waiting.extendleft(reversed(aside))

    def reply(self, delivery: Delivery, message: Any) -> None:
        """Answer a question that came out of `receive`."""
        if delivery.corr > 0:
            self._dealer.send(envelope.pack(envelope.REPLY, corr=delivery.corr), encode(message))

    def receive(self, timeout: float) -> Delivery | None:
        """The next message, None when there is none within `timeout` seconds."""
        limit = time.monotonic() + max(0.0, timeout)
        while not self._waiting:
            if not self._step(limit):
                return None
        return self._waiting.popleft()

    def close(self) -> None:
        """Idempotent."""
        self._dealer.close(bye=self._broken is None)

    def _await_welcome(self, timeout: float) -> Welcome:
        limit = time.monotonic() + timeout
        while True:
            if not self._step(limit):
                raise not_running(f"it does not answer within {timeout:g} seconds")
            if self._welcome is not None:
                return self._welcome

    def _step(self, limit: float) -> bool:
        """Wait for something and take it in. False: the time is over. Raises when the supervisor is gone."""
        if self._broken is not None:
            raise self._broken
        now = time.monotonic()
        if limit - now >= SLICE_S:  # shorter by a poll; a break is noticed within the slice
            if self._take(wait=True):
                return True
            ready = dict(self._poller.poll(0))
        else:
            ready = dict(self._poller.poll(max(0, int((limit - now) * 1000 + 0.999))))
        if self._dealer.socket in ready and self._take():
            return True
        if self._dealer.monitor in ready and (broken := self._dealer.broken()) is not None:
            while self._take():  # what it said before it went
                pass
            self._broken = self._broken or broken
            if self._waiting:
                return True
            raise self._broken
        now = time.monotonic()
        if now - self._heard > 1.0 and now - self._pinged > 1.0:
            self._pinged = now
            self._dealer.send(envelope.pack(envelope.PING), b"")
        if now - self._heard > SILENCE_S + 1.0:
            raise not_running(f"it has not answered for {now - self._heard:.0f} seconds (it hangs)")
        return now < limit

    def _take(self, *, wait: bool = False) -> bool:
        frame = self._dealer.receive(wait=wait)
        if frame is None:
            return False
        self._heard = time.monotonic()
        header, body = frame
        kind = header.kind
        if kind in (envelope.SEND, envelope.REPLY):
            corr = header.id if kind == envelope.SEND else -header.corr
            self._waiting.append(Delivery(header.address, decode(body), header.sender, corr))
        elif kind == envelope.WELCOME:
            self._welcome = decode(body)
        elif kind in (envelope.ERROR, envelope.BYE):
            self._broken = told(body)
            if self._welcome is None:
                raise self._broken
        elif kind == envelope.PING:
            self._dealer.send(envelope.pack(envelope.PONG), b"")
        return True
