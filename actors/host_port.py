"""What the host's core needs of the agent behind it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from agents_registry.errors import VibeAroundError
from transports.acp.permission import Permission


class AgentPort(Protocol):
    """The agent's process. None of these block; results come back as calls of `HostCore`."""

    def open(self) -> None:
        """Begin the handshake -> `opened` or `open_failed`."""

    def reload(self, session: str) -> None:
        """Open the session again -> `reloaded`."""

    def begin_turn(self) -> None:
        """Remember which processes the agent has now."""

    def prompt(self, turn: str, session: str, blocks: list[Any]) -> None:
        """Run a turn -> `turn_over`."""

    def cancel(self, session: str) -> list[Permission]:
        """Answer open permissions with cancelled and ask the agent to stop; returns those."""

    def answer(self, permission: Permission, option: str | None) -> bool:
        """Once; False when it was answered before."""

    def set_mode(self, session: str, mode: str, then: Callable[[VibeAroundError | None], None]) -> None:
        """`then` is called on the core's thread."""

    def end_commands(self, turn: str) -> None:
        """End what the turn started -> `commands_ended`."""

    def stop(self) -> None:
        """The shutdown ladder -> `stopped`."""
