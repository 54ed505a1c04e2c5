"""The three sockets of the supervisor's side of the bus: the ROUTER, its access handler (ZAP) and its monitor."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import zmq

from agents_registry.errors import UsageError
from transports.bus import envelope
from transports.bus.access import zap_reply


class Sockets:
    """Bound when made, in a context of their own; all use and `close` are the io thread's.

    `hwm`: messages that libzmq holds per peer. `uid`: whose processes are let in. `counts`: refusals are counted.
    Raises UsageError when the path cannot be bound.
    """

    def __init__(self, path: Path, hwm: int, uid: int, counts: Counter[str]) -> None:
        self._uid = uid
        self._counts = counts
        self._context = zmq.Context()
        self.zap = self._context.socket(zmq.REP)
        self.zap.linger = 0
        self.zap.bind("inproc://zeromq.zap.01")
        router = self.router = self._context.socket(zmq.ROUTER)
        router.setsockopt(zmq.ROUTER_MANDATORY, 1)
        router.setsockopt(zmq.SNDHWM, hwm)
        router.setsockopt(zmq.RCVHWM, hwm)
        router.setsockopt(zmq.MAXMSGSIZE, envelope.MAX_HEADER + (1 << 20))
        router.setsockopt(zmq.LINGER, 200)
        router.setsockopt(zmq.ZAP_DOMAIN, b"vibearound")
        self.monitor = router.get_monitor_socket(zmq.EVENT_DISCONNECTED)
        try:
            router.bind(f"ipc://{path}")
            path.chmod(0o600)
        except (zmq.ZMQError, OSError) as error:
            router.disable_monitor()
            self._context.destroy(linger=0)
            raise UsageError(f"the bus socket {path} cannot be opened: {error}.") from error

    def judge(self) -> None:
        """Answer the access handler's questions until there is none."""
        while True:
            try:
                request = self.zap.recv_multipart(zmq.DONTWAIT)
            except zmq.Again:
                return
            reply = zap_reply(request, self._uid)
            if reply[2] != b"200":
                self._counts["refused_connections"] += 1
            self.zap.send_multipart(reply)

    def forget_events(self) -> None:
        """Read the monitor until there is nothing: that something broke is all that it can tell."""
        while True:
            try:
                self.monitor.recv_multipart(zmq.DONTWAIT)
            except zmq.Again:
                return

    def close(self) -> None:
        """Waits at most 0.2 s for what is on its way out."""
        self.router.disable_monitor()
        self.monitor.close(0)
        self.zap.close(0)
        self.router.close(200)
        self._context.term()
