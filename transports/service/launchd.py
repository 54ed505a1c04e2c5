"""The service as a launch agent of macOS. Written after launchctl(1) and launchd.plist(5); not run on a Mac so far."""

from __future__ import annotations

import os
import re
from pathlib import Path

from agents_registry.errors import RefusedError
from transports.service import units
from transports.service.manage import ACT_S, ASK_S, Run, State, failed


class Launchd:
    """One agent in the user's graphical domain."""

    def __init__(self, unit: units.Unit, run: Run, home: Path, *, uid: int | None = None) -> None:
        self.name = unit.launchd_label
        self.path = home / "Library" / "LaunchAgents" / f"{self.name}.plist"
        self._unit, self._run = unit, run
        self._domain = f"gui/{os.getuid() if uid is None else uid}"
        self._target = f"{self._domain}/{self.name}"

    def rendered(self) -> bytes:
        return units.launchd_plist(self._unit)

    def check(self) -> None:
        """Raises RefusedError where the user has no graphical session (plain ssh)."""
        asked = self._run(["launchctl", "print", self._domain], ASK_S)
        if not asked.ok:
            raise RefusedError(
                f"There is no launchd domain {self._domain} here.",
                hint="Log in on the Mac's screen once, or use `va up` (no service needed).",
                code="no_service_manager",
            )

    def load(self, changed: bool) -> list[str]:
        if changed and self._is_loaded():
            self._act("bootout", self._target)
        self.start()
        return []

    def unload(self) -> None:
        if self._is_loaded():
            self._act("bootout", self._target)

    def start(self) -> None:
        if self._is_loaded():
            self._act("kickstart", self._target)
        else:
            self._act("bootstrap", self._domain, str(self.path))

    def stop(self) -> None:
        """Unloaded until the next start or login: launchd would start a stopped agent again."""
        self.unload()

    def state(self) -> State:
        try:
            content: bytes | None = self.path.read_bytes()
        except OSError:
            content = None
        asked = self._run(["launchctl", "print", self._target], ASK_S)
        pid = re.search(r"^\s*pid = (\d+)", asked.out, re.MULTILINE)
        told = re.search(r"^\s*state = (.+)$", asked.out, re.MULTILINE)
        return State(
            manager="launchd",
            name=self.name,
            path=self.path,
            installed=content is not None,
            current=content == self.rendered(),
            enabled=asked.ok,
            active=pid is not None,
            pid=int(pid[1]) if pid else 0,
            detail=told[1].strip() if told else "not loaded",
            lingers=None,
        )

    def _is_loaded(self) -> bool:
        return self._run(["launchctl", "print", self._target], ASK_S).ok

    def _act(self, verb: str, *words: str) -> None:
        ran = self._run(["launchctl", verb, *words], ACT_S)
        if not ran.ok:
            hint = f"See {self._unit.data_dir / 'supervisor.log'}, or `va serve` in a terminal."
            raise failed(ran, f"launchctl {verb} {self.name} failed", hint)
