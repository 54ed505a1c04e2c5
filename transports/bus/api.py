"""What actors know of the bus: addresses and messages, never references.

`bus.send(address, message)` delivers in the process or over ZeroMQ; the order of messages is kept per (sender,
address), whichever way they go. A receiver gets a `Delivery`; it answers by sending to `delivery.sender` with
`corr=-delivery.corr`: a positive correlation marks a request, a negative one the answer to it (on the wire: kind
REPLY). A refusal or failure is answered with `messages.Failed`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol


@dataclass(frozen=True, slots=True)
class Peer:
    """Who is at the other end of a connection, as the kernel and a secret say, not as the peer claims.

    `role`: "owner" (a process of the user's uid), "agent" (has a host or a launched agent among its ancestors),
    "host", "bridge" or "reader" (bound by the secret they inherited). `name`: the logical name bound by the secret.
    """

    address: str
    pid: int
    uid: int
    role: str
    name: str = ""
    start_time: int = 0
    host_thread: str = ""
    """For role "agent": the thread whose host is an ancestor, when it is one of ours."""


class Delivery(NamedTuple):
    """One message as it reaches a receiver. `corr` is 0 when no answer is awaited. `peer` is None in the process."""

    address: str
    message: Any
    sender: str = ""
    corr: int = 0
    peer: Peer | None = None


Receiver = Callable[[Delivery], None]
"""Takes a delivery without blocking (puts it into an inbox). Raises BusyError when the inbox is full."""


class Bus(Protocol):
    """The switch of one process."""

    def send(self, address: str, message: Any, *, sender: str = "", corr: int = 0, peer: Peer | None = None) -> None:
        """Deliver. Never blocks, never raises for a missing or full receiver: those are answered to `sender` with
        `Failed` (when `corr` is set) and counted."""

    def register(self, address: str, receiver: Receiver) -> None:
        """One receiver per address; a second one is a programming error (ValueError)."""

    def unregister(self, address: str) -> None:
        """Messages to it are answered with `Failed` from now on. Unknown addresses are ignored."""

    def register_prefix(self, prefix: str, activate: Callable[[str], Receiver | None]) -> None:
        """`activate(address)` is asked once for a receiver when a message comes for an unregistered address that
        starts with `prefix`; None = there is none. It must not block."""
