"""A host's core with everything round it in the hands of the test: agent, link and clock are plain objects."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

from actors.agent import HostCore
from actors.host_files import HostFiles
from actors.host_handshake import Ready
from actors.host_spec import HostLimits, HostSpec
from agents_registry.errors import VibeAroundError
from transports.acp import updates
from transports.acp.permission import Permission, PermissionOption
from transports.acp.sessions import AgentInfo, Opened
from transports.bus.vocabulary.hosting import HostDelta, HostEvent, HostHello, HostPrompt, HostWelcome


class Agent:
    """Remembers what it was asked to do; the test plays its answers."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, Any]] = []
        self.answers: list[tuple[Any, str | None]] = []
        self.open_permissions: list[Permission] = []

    def open(self) -> None:
        self.calls.append(("open", None))

    def reload(self, session: str) -> None:
        self.calls.append(("reload", session))

    def begin_turn(self) -> None:
        self.calls.append(("mark", None))

    def prompt(self, turn: str, session: str, blocks: list[Any]) -> None:
        self.calls.append(("prompt", turn))

    def cancel(self, session: str) -> list[Permission]:
        self.calls.append(("cancel", session))
        dropped, self.open_permissions = self.open_permissions, []
        return dropped

    def answer(self, permission: Permission, option: str | None) -> bool:
        if permission not in self.open_permissions:
            return False
        self.open_permissions.remove(permission)
        self.answers.append((permission.rpc_id, option))
        return True

    def set_mode(self, session: str, mode: str, then: Callable[[VibeAroundError | None], None]) -> None:
        self.calls.append(("mode", mode))
        then(None)

    def end_commands(self, turn: str) -> None:
        self.calls.append(("end-commands", turn))

    def stop(self) -> None:
        self.calls.append(("stop", None))

    def did(self, what: str) -> list[Any]:
        return [value for name, value in self.calls if name == what]


class World:
    """`core` with its surroundings. `sent` is what reached the thread, in order."""

    def __init__(self, files: Path, **spec: Any) -> None:
        self.now = 100.0
        self.sent: list[Any] = []
        self.replies: list[Any] = []
        self.agent = Agent()
        limits = {"lease_s": 10.0, "orphan_turn_s": 50.0, "cancel_s": 5.0, **spec.pop("limits", {})}
        self.spec = HostSpec(
            thread="wt_1", instance="host", epoch=3, argv=["x"], cwd="/", data_dir=str(files), limits=HostLimits(**limits)
        )._replace(**spec)
        ids = itertools.count(1)
        self.core = HostCore(
            self.spec,
            self.agent,
            self.sent.append,
            HostFiles(files / "files", "wt_1-3"),
            clock=lambda: self.now,
            new_id=lambda: f"r{next(ids)}",
            host=(10, 1),
            pids=(11, 11, 2),
        )

    def start(self, *, ready: bool = True) -> World:
        """Linked, and with a session."""
        self.core.link_up()
        self.tell(HostWelcome(0))
        if ready:
            self.core.opened(ready_of("s-1"))
        return self

    def tell(self, message: Any) -> Any:
        """Deliver; the reply, or None."""
        before = len(self.replies)
        self.core.deliver(message, self.replies.append)
        return self.replies[-1] if len(self.replies) > before else None

    def prompt(self, turn: str) -> Any:
        return self.tell(HostPrompt(turn, [{"type": "text", "text": "hi"}]))

    def says(self, text: str) -> None:
        self.core.update("s-1", updates.Text(text))

    def asks(self, rpc_id: str) -> str:
        """A permission; its request id."""
        options = (PermissionOption("y", "Yes", "allow_once"), PermissionOption("n", "No", "reject_once"))
        permission = Permission(rpc_id, "s-1", {"title": "do it"}, options)
        self.agent.open_permissions.append(permission)
        self.core.permission(permission)
        return str([e for e in self.core.outbox.rest() if e.kind == "permission"][-1].body["id"])

    def over(self, turn: str, reason: str = "end_turn") -> None:
        self.core.turn_over(turn, {"stopReason": reason}, None)

    def later(self, seconds: float) -> None:
        """Time passes, and the loop looks at the clock as often as it would."""
        end = self.now + seconds
        while self.now < end:
            self.now = min(end, max(self.core.deadline(), self.now + 0.001))
            self.core.tick()

    def events(self, *kinds: str) -> list[HostEvent]:
        return [m for m in self.sent if isinstance(m, HostEvent) and (not kinds or m.kind in kinds)]

    def deltas(self) -> list[HostDelta]:
        return [m for m in self.sent if isinstance(m, HostDelta)]

    def hellos(self) -> list[HostHello]:
        return [m for m in self.sent if isinstance(m, HostHello)]


def ready_of(session: str, start: str = "new") -> Ready:
    opened = Opened(session, start, (("ask", "Ask"), ("plan", "Plan")), "ask")
    return Ready(AgentInfo("A", "1", {}), opened, start, "ask")
