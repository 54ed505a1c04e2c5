"""What both kinds of client do with a DEALER: connect, say HELLO, read frames, notice that the other end is gone.

Kept free of threads, logging and access: the command line loads it.
"""

from __future__ import annotations

import os
import struct
from pathlib import Path

import zmq

from agents_registry.errors import NotRunningError, RefusedError, VibeAroundError, from_wire
from transports.bus import envelope
from transports.bus.codec import decode, encode
from transports.bus.frames import receive_all, send_pair
from transports.bus.vocabulary.conversation import Failed, Hello

HWM = 2000
SLICE_S = 0.2
"""Longest blocking receive, in seconds: after it the owner looks whether the other end is still there."""
_EVENTS = (
    zmq.EVENT_DISCONNECTED
    | zmq.EVENT_CONNECT_RETRIED
    | zmq.EVENT_CLOSED
    | zmq.EVENT_HANDSHAKE_FAILED_AUTH
    | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL
    | zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL
)


def not_running(why: str) -> NotRunningError:
    return NotRunningError(f"the supervisor cannot be reached: {why}.", hint="Start it with `va up`, or see `va status`.")


class Dealer:
    """One connection to an endpoint. Not thread-safe; its owner polls `socket` and `monitor`.

    A Dealer never reconnects: libzmq would do so silently, to a supervisor that knows nothing of the questions asked.
    """

    def __init__(self, path: Path, hello: Hello) -> None:
        """Connects and says HELLO; does not wait. Raises NotRunningError when there is no such socket."""
        if not path.exists():
            raise not_running(f"there is no socket {path}")
        self._context = zmq.Context()
        socket = self.socket = self._context.socket(zmq.DEALER)
        socket.setsockopt(zmq.SNDHWM, HWM)
        socket.setsockopt(zmq.RCVHWM, HWM)
        socket.setsockopt(zmq.LINGER, 500)
        socket.setsockopt(zmq.RECONNECT_IVL, 60_000)
        socket.setsockopt(zmq.RCVTIMEO, int(SLICE_S * 1000))
        self.monitor = socket.get_monitor_socket(_EVENTS)
        socket.connect(f"ipc://{path}")
        socket.send_multipart((envelope.pack(envelope.HELLO), encode(hello)))

    def send(self, header: bytes, body: bytes) -> bool:
        """False: the connection does not take it at the moment."""
        try:
            send_pair(self.socket, header, body)
        except zmq.Again:
            return False
        return True

    def receive(self, *, wait: bool = False) -> tuple[envelope.Header, bytes] | None:
        """The next frame pair; None when there is none now (with `wait`: within SLICE_S). Raises VersionError,
        EnvelopeError."""
        try:
            parts = receive_all(self.socket, wait=wait)
        except zmq.Again:
            return None
        if len(parts) != 2:
            raise envelope.EnvelopeError(f"a bus message has {len(parts)} frames instead of 2.")
        return envelope.unpack(parts[0]), parts[1]

    def broken(self) -> VibeAroundError | None:
        """Why the connection is no more; None while nothing was noticed. Call when `monitor` is readable."""
        found: VibeAroundError | None = None
        while True:
            try:
                frames = self.monitor.recv_multipart(zmq.DONTWAIT)
            except zmq.Again:
                return found
            event = struct.unpack("=hi", frames[0])[0]
            if event == zmq.EVENT_HANDSHAKE_FAILED_AUTH:
                found = RefusedError("the supervisor belongs to another user.", hint="Run as the user who started it.")
            elif found is None:
                found = not_running("nobody serves its socket" if event != zmq.EVENT_DISCONNECTED else "it ended")

    def close(self, *, bye: bool) -> None:
        """Idempotent; sends what is on its way for at most half a second."""
        if self.socket.closed:
            return
        if bye:
            self.send(envelope.pack(envelope.BYE), b"")
        self.socket.disable_monitor()
        self.monitor.close(0)
        self.socket.close(500 if bye else 0)
        self._context.term()


def told(body: bytes) -> VibeAroundError:
    """The error in the body of an ERROR or BYE frame."""
    try:
        message = decode(body)
    except VibeAroundError as error:
        return error
    return from_wire(message.error) if isinstance(message, Failed) else VibeAroundError("the connection was refused.")


def hello(kind: str, name: str, secret: bytes, version: str) -> Hello:
    return Hello(kind, name, secret, os.getpid(), version)
