"""The permissions that an agent has asked for and nobody has answered yet, under ids of our own."""

from __future__ import annotations

from collections.abc import Callable

from transports.acp.permission import Permission


class OpenPermissions:
    """By request id. Not thread-safe."""

    def __init__(self, new_id: Callable[[], str], clock: Callable[[], float]) -> None:
        self._new_id = new_id
        self._clock = clock
        self._open: dict[str, tuple[Permission, float]] = {}

    def add(self, permission: Permission) -> str:
        """The id under which it is known from now on."""
        request = self._new_id()
        self._open[request] = (permission, self._clock())
        return request

    def get(self, request: str) -> Permission | None:
        """None for what is unknown or settled."""
        entry = self._open.get(request)
        return entry[0] if entry else None

    def find(self, permission: Permission) -> str | None:
        """The id of a permission; None when it is settled."""
        return next((r for r, (p, _) in self._open.items() if p is permission), None)

    def remove(self, request: str) -> None:
        """Settled."""
        self._open.pop(request, None)

    def all(self) -> list[tuple[str, Permission]]:
        return [(r, p) for r, (p, _) in self._open.items()]

    def older(self, over: Callable[[float], bool]) -> list[tuple[str, Permission]]:
        """Those whose time of asking satisfies `over`."""
        return [(r, p) for r, (p, at) in self._open.items() if over(at)]
