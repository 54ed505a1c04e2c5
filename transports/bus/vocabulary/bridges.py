"""What a bridge process and the supervisor's desk for bridges (address `bridges`) say to each other."""

from __future__ import annotations

from dataclasses import field
from typing import Any

from transports.bus.codec import message


@message("bridge_hello")
class BridgeHello:
    """First message of a bridge process. Answered with `BridgeWelcome`."""

    kind: str
    name: str
    version: str = ""


@message("bridge_welcome")
class BridgeWelcome:
    """The people of this bridge, [{id, name, role}], and whether its owner may be claimed by a code at the moment."""

    users: list[Any] = field(default_factory=list)
    claim_open: bool = False


@message("bridge_claim")
class BridgeClaim:
    """A stranger sent `/start CODE`. Answered with Ok {outcome: "owner" | "refused"}; the desk counts tries and time."""

    user_id: str
    user_name: str
    code: str


@message("bridge_state")
class BridgeState:
    """`state`: starting, running, retrying or failed; `error`: why, for people, without secrets."""

    state: str
    error: str = ""


@message("bridge_people")
class BridgePeople:
    """Pushed to the bridge process whenever its people, or the open claim, have changed: the whole list."""

    users: list[Any] = field(default_factory=list)
    claim_open: bool = False
