"""The service under `systemctl --user`."""

from __future__ import annotations

import getpass
from collections.abc import Mapping
from pathlib import Path

from agents_registry.errors import RefusedError
from transports.service import units
from transports.service.manage import ACT_S, ASK_S, Run, State, failed

_LINGER = Path("/var/lib/systemd/linger")


class Systemd:
    """One user unit. `user` and `linger_dir` are given by tests only."""

    def __init__(
        self, unit: units.Unit, run: Run, home: Path, environ: Mapping[str, str], *, user: str = "", linger_dir: Path = _LINGER
    ) -> None:
        self.name = unit.systemd_name
        config = environ.get("XDG_CONFIG_HOME") or str(home / ".config")
        self.path = Path(config, "systemd", "user", self.name)
        self._unit, self._run = unit, run
        self._user = user or getpass.getuser()
        self._linger_dir = linger_dir

    def rendered(self) -> bytes:
        return units.systemd_unit(self._unit).encode()

    def check(self) -> None:
        """Raises RefusedError where there is no user manager to talk to (containers, other init systems, plain su)."""
        asked = self._run(["systemctl", "--user", "show-environment"], ASK_S)
        if not asked.ok:
            why = (asked.why or asked.err.strip() or f"exit code {asked.code}").splitlines()[0].rstrip(".")
            raise RefusedError(
                f"There is no systemd user manager here: {why}.",
                hint="Use `va up` (no service needed), or run `va serve` under a manager of your own.",
                code="no_service_manager",
            )

    def load(self, changed: bool) -> list[str]:
        """Make the unit known, enabled and running in its present form; notes on what is left to do."""
        if changed:
            self._act("daemon-reload", named=False)
        self._act("enable")
        self._act("restart" if changed else "start")
        return self._linger_notes()

    def unload(self) -> None:
        self._act("disable", "--now")

    def start(self) -> None:
        """Returns when the supervisor has said that it serves (Type=notify)."""
        self._act("start")

    def stop(self) -> None:
        self._act("stop")

    def state(self) -> State:
        """Asked from the manager; where it does not answer, what the files say. Never raises for that."""
        try:
            content: bytes | None = self.path.read_bytes()
        except OSError:
            content = None
        wanted = ["ActiveState", "SubState", "MainPID", "UnitFileState", "Result"]
        asked = self._run(["systemctl", "--user", "show", self.name, "-p", ",".join(wanted)], ASK_S)
        told = dict(line.split("=", 1) for line in asked.out.splitlines() if "=" in line) if asked.ok else {}
        detail = f"{told.get('ActiveState', 'unknown')} ({told.get('SubState', asked.why or asked.err.strip())})"
        if told.get("Result", "success") != "success":
            detail += f", last result: {told['Result']}"
        pid = told.get("MainPID", "0")
        return State(
            manager="systemd",
            name=self.name,
            path=self.path,
            installed=content is not None,
            current=content == self.rendered(),
            enabled=told.get("UnitFileState") == "enabled",
            active=told.get("ActiveState") in ("active", "activating", "reloading"),
            pid=int(pid) if pid.isdigit() else 0,
            detail=detail,
            lingers=self._lingers(),
        )

    def _act(self, verb: str, *options: str, named: bool = True) -> None:
        ran = self._run(["systemctl", "--user", verb, *options, *([self.name] if named else [])], ACT_S)
        if not ran.ok:
            hint = f"See `journalctl --user -u {self.name} -n 50`, or `va serve` in a terminal."
            raise failed(ran, f"systemctl --user {verb} {self.name} failed", hint)

    def _lingers(self) -> bool:
        return (self._linger_dir / self._user).exists()

    def _linger_notes(self) -> list[str]:
        """Without lingering the service ends with the user's last session (loginctl(1))."""
        if self._lingers():
            return []
        self._run(["loginctl", "enable-linger", self._user], ASK_S)
        if self._lingers():
            return [f"Lingering is on for {self._user}: the service lives on when you log out."]
        return [f"The service ends when you log out. To change that: sudo loginctl enable-linger {self._user}"]
