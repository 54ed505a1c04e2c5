"""Sending and receiving frames at pyzmq's lower level: a hop is short enough for its convenience to show.

`send_multipart` and `recv_multipart` combine flags and options as enum members, 3 to 5 us per message; the backend's
methods take plain numbers. Multipart messages are atomic in ZeroMQ: once the first frame was taken or given, the
others follow without waiting.
"""

from __future__ import annotations

from typing import Any, Final

import zmq
from zmq.backend import Socket as _Backend

_send: Any = _Backend.send
_recv: Any = _Backend.recv
_NOW: Final = int(zmq.DONTWAIT)
_NOW_MORE: Final = int(zmq.DONTWAIT) | int(zmq.SNDMORE)


def send_pair(socket: zmq.Socket[bytes], header: bytes, body: bytes) -> None:
    """Without waiting. Raises zmq.Again when the queue is full."""
    _send(socket, header, _NOW_MORE)
    _send(socket, body, _NOW)


def send_to(router: zmq.Socket[bytes], identity: bytes, header: bytes, body: bytes) -> None:
    """Without waiting. Raises zmq.Again when that peer's queue is full, ZMQError EHOSTUNREACH when it is gone."""
    _send(router, identity, _NOW_MORE)
    _send(router, header, _NOW_MORE)
    _send(router, body, _NOW)


def receive_first(socket: zmq.Socket[bytes]) -> bytes:
    """The first frame of the next message, without waiting. Raises zmq.Again when there is none."""
    frame: bytes = _recv(socket, _NOW)
    return frame


def receive_all(socket: zmq.Socket[bytes], *, wait: bool = False) -> list[bytes]:
    """The frames of the next message, or those left of one that was begun. Raises zmq.Again when there is none (with
    `wait`: for as long as the socket's RCVTIMEO says)."""
    frame = _recv(socket, 0 if wait else _NOW, False)
    frames: list[bytes] = [frame.bytes]
    while frame.more:
        frame = _recv(socket, _NOW, False)
        frames.append(frame.bytes)
    return frames
