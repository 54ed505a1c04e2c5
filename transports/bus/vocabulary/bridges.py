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


@message("bridge_knock")
class BridgeKnock:
    """A stranger wrote and was told the one line. `routes`: chats in which owners wrote directly, where a word may go."""

    user_id: str
    user_name: str
    routes: list[Any] = field(default_factory=list)


@message("bridge_people")
class BridgePeople:
    """Pushed to the bridge process whenever its people, or the open claim, have changed: the whole list."""

    users: list[Any] = field(default_factory=list)
    claim_open: bool = False


@message("add_bridge")
class AddBridge:
    """An owner's command line: the definition is in bridges.toml; start it, and open the claim of its owner.
    Answered with Ok {code, expires_in_s}."""

    name: str
    kind: str


@message("list_bridges")
class ListBridges:
    """Answered with Ok {bridges: [{name, kind, state, since, error, pid, users, knocks[{id, name, at}]}]}."""


@message("control_bridge")
class ControlBridge:
    """`action`: start, stop, restart, or claim (a new code for an owner). Answered with Ok {state, code, expires_in_s}."""

    name: str
    action: str


@message("remove_bridge")
class RemoveBridge:
    """Its definition is gone: stop it and forget its people. Answered with Ok."""

    name: str


@message("approve_user")
class ApproveUser:
    """Put a person on the list, or change his role: owner, member, viewer. Answered with Ok."""

    name: str
    user_id: str
    role: str = "member"
    user_name: str = ""


@message("revoke_user")
class RevokeUser:
    """Take a person off the list. Answered with Ok, or Failed when he is not on it."""

    name: str
    user_id: str


@message("start_bridge")
class StartBridge:
    """Desk -> spawner: start the process of a bridge. Answered with Ok {pid} or Failed."""

    name: str
    kind: str
