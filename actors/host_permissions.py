"""The permissions that an agent has asked for: told, answered exactly once, settled with a word."""

from __future__ import annotations

from collections.abc import Callable

from actors.host_port import AgentPort
from actors.host_voice import HostVoice
from transports.acp.permission import Permission


class OpenPermissions:
    """By request ids of our own. Not thread-safe."""

    def __init__(
        self, agent: AgentPort, voice: HostVoice, new_id: Callable[[], str], clock: Callable[[], float]
    ) -> None:
        self._agent, self._voice, self._new_id, self._clock = agent, voice, new_id, clock
        self._open: dict[str, tuple[Permission, float]] = {}

    def ask(self, permission: Permission) -> None:
        """Tell it to whoever may answer."""
        request = self._new_id()
        self._open[request] = (permission, self._clock())
        options = [{"id": o.id, "name": o.name, "kind": o.kind} for o in permission.options]
        title = permission.title or str(permission.tool.get("kind") or "The agent asks for permission")
        body = {"id": request, "title": title, "tool": permission.tool, "options": options}
        self._voice.event("permission", body)

    def answer(self, request: str, option: str) -> bool:
        """Apply a decision; an option that the permission does not have counts as cancelled. False = settled before."""
        entry = self._open.pop(request, None)
        if entry is None:
            return False
        permission = entry[0]
        known = any(o.id == option for o in permission.options)
        applied = self._agent.answer(permission, option if known else None)
        self._done(request, "selected" if known else "cancelled", option if known else "", "answer")
        return applied

    def cancel_all(self, by: str) -> None:
        """Nobody is going to answer what is open."""
        for request in list(self._open):
            self._cancel(request, by)

    def cancel_older(self, over: Callable[[float], bool]) -> None:
        """Cancel those whose time of asking satisfies `over`: the lease has run."""
        for request in [r for r, (_, asked_at) in self._open.items() if over(asked_at)]:
            self._cancel(request, "lease")

    def settled(self, permissions: list[Permission], by: str) -> None:
        """These have been answered with cancelled already."""
        for permission in permissions:
            request = next((r for r, (p, _) in self._open.items() if p is permission), None)
            if request is not None:
                del self._open[request]
                self._done(request, "cancelled", "", by)

    def _cancel(self, request: str, by: str) -> None:
        permission, _ = self._open.pop(request)
        self._agent.answer(permission, None)
        self._done(request, "cancelled", "", by)

    def _done(self, request: str, outcome: str, option: str, by: str) -> None:
        self._voice.event("permission_done", {"id": request, "outcome": outcome, "option": option, "by": by})
