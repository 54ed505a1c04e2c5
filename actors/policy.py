"""Who may say what to whom on the bus: one pure function over (peer, address, message).

People's roles are the commands' table; this is about processes. An agent (a process below a host of ours or a
launched terminal) may look and hand over; a host speaks only for its own thread; a bridge only for its own routes.
"""

from __future__ import annotations

from typing import Any

from agents_registry.errors import RefusedError, VibeAroundError
from transports.bus.api import Peer
from transports.bus.vocabulary import bridges, children, handover, hosting, lists, surface, threads

_FROM_SURFACE: dict[str, tuple[type[Any], ...]] = {
    "route/": (surface.Submit, surface.Listen, surface.Unlisten, surface.ItemAck, surface.Answer, surface.StopTurn),
    "catalog": (lists.GetStatus, lists.ListThreads, lists.ShowThread, threads.GetAgents),
    "workspaces": (lists.ListWorkspaces, lists.AddWorkspace, lists.ChangeWorkspace, lists.FindWorkspace),
    "attacher": (
        handover.PickupTerminal, handover.PrepareHandover, handover.HandoverThread, handover.ListSessions, handover.ReadCode,
        lists.EndSessionHost,
    ),
    "supervisor": (lists.Shutdown, lists.MayChange),
    "spawner": (children.RefreshEnvironment,),
    "bridges": (
        bridges.AddBridge, bridges.ListBridges, bridges.ControlBridge, bridges.RemoveBridge, bridges.ApproveUser, bridges.RevokeUser,
    ),
}
_FROM_AGENT: dict[str, tuple[type[Any], ...]] = {
    # A route lets an agent's submit through only for commands that the table gives to agents.
    "route/": (surface.Submit,),
    "catalog": (lists.GetStatus, lists.ListThreads, lists.ShowThread, threads.GetAgents),
    "workspaces": (lists.ListWorkspaces, lists.AddWorkspace, lists.FindWorkspace),
    "attacher": (handover.PrepareHandover, handover.ListSessions),
}
_FROM_BRIDGE = (bridges.BridgeHello, bridges.BridgeClaim, bridges.BridgeState, bridges.BridgeKnock)
_FROM_HOST = (hosting.HostHello, hosting.HostEvent, hosting.HostDelta)


def allow(peer: Peer, address: str, message: Any) -> VibeAroundError | None:
    """None = allowed; else the error to answer with (exit 5)."""
    if peer.role == "host":
        # Its name is agent/<thread>/<instance>.
        thread = peer.name.split("/")[1] if peer.name.count("/") == 2 else ""
        own = address == f"thread/{thread}" and isinstance(message, _FROM_HOST)
        return None if own else _refused(f"a host may not send {message.TAG} to {address}")
    if peer.role == "reader":
        return _refused("the reader only answers")
    if peer.role == "bridge":
        if address == "bridges":
            return None if isinstance(message, _FROM_BRIDGE) else _refused(f"a bridge may not send {message.TAG} to {address}")
        if address.startswith("route/") and not address.startswith(f"route/{peer.name.removeprefix('bridge/')}:"):
            return _refused(f"this bridge does not serve {address.removeprefix('route/')}")
        # The page shows lists of its own; a chat has them by its commands, which look at the person's role.
        lists = peer.name.startswith("bridge/web:") and address in ("catalog", "workspaces", "attacher")
        own = (address.startswith("route/") or lists) and _listed(_FROM_SURFACE, address, message)
        return None if own else _refused(f"a bridge may not send {message.TAG} to {address}")
    if peer.role == "agent":
        if _listed(_FROM_AGENT, address, message):
            return None
        return agent_refused()
    return None if _listed(_FROM_SURFACE, address, message) else _refused(f"{message.TAG} may not be sent to {address}")


def agent_refused() -> RefusedError:
    return RefusedError(
        "An agent, or a command that an agent runs, may not do this: it is for the person at the keyboard or in the chat.",
        hint="Run it in a terminal of your own, or answer in the chat.", code="agent_refused",
    )


def _listed(table: dict[str, tuple[type[Any], ...]], address: str, message: Any) -> bool:
    kinds = table.get("route/" if address.startswith("route/") else address, ())
    return isinstance(message, kinds)


def _refused(why: str) -> RefusedError:
    return RefusedError(f"not allowed: {why}.", code="not_allowed")
