"""What every conversation on the bus begins and answers with.

Addresses: `route/<route text>`, `thread/<id>`, `agent/<thread>/<instance>`, `handover`, `attacher`, `workspaces`,
`catalog` (lists and status), `journal`, `history`, `reader`, `spawner`, `supervisor`, `peer/<n>` (a connection).
In all of `transports.bus.vocabulary` times are seconds since the epoch unless a name ends in `_s` (a duration in
seconds). A process imports the parts that it speaks: each message costs its share of the start.
"""

from __future__ import annotations

from dataclasses import field
from typing import Any

from transports.bus.codec import message


@message("hello")
class Hello:
    """First message of a connection. `kind`: client, bridge, host, reader. `secret` proves `name` (see access)."""

    kind: str
    name: str = ""
    secret: bytes = b""
    pid: int = 0
    version: str = ""
    protocol: list[int] = field(default_factory=lambda: [1, 1])
    """Lowest and highest protocol version spoken."""


@message("welcome")
class Welcome:
    """The answer: the peer's own address, and the role the supervisor gives it."""

    address: str
    role: str
    version: str


@message("failed")
class Failed:
    """The answer that is an error: `errors.VibeAroundError.to_wire()`."""

    error: list[Any]


@message("ok")
class Ok:
    """The answer that is data."""

    data: dict[str, Any] = field(default_factory=dict)


@message("gone")
class PeerGone:
    """A connection ended: sent to whoever watches it."""

    address: str
    name: str = ""
    reason: str = ""
