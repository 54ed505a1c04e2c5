"""Install, remove and ask after the service, through the machine's own manager: systemd (user) or launchd.

`Run` is injected: a function from words and seconds to what came of it. Nothing here is a default of its own; the data
directory stays when the service goes.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from agents_registry.bounded import Ran, run_bounded
from agents_registry.errors import RefusedError, VibeAroundError
from transports import paths
from transports.service import units

Run = Callable[[Sequence[str], float], Ran]
ASK_S = 5.0
ACT_S = 60.0
"""Limit of starting and stopping: the unit's own limits are shorter."""


class State(NamedTuple):
    """How the service is. `current` is false where the file on disk is not what this version would write."""

    manager: str
    name: str
    path: Path
    installed: bool
    current: bool
    enabled: bool
    active: bool
    pid: int
    detail: str
    lingers: bool | None


class Manager(Protocol):
    """A service manager with one service of ours: see `find`."""

    name: str
    path: Path

    def rendered(self) -> bytes: ...
    def check(self) -> None: ...
    def load(self, changed: bool) -> list[str]: ...
    def unload(self) -> None: ...
    def start(self) -> None: ...
    def stop(self) -> None: ...
    def state(self) -> State: ...


def unit_for(data_dir: Path, environ: Mapping[str, str] | None = None, python: Path | None = None) -> units.Unit:
    """What to render for a data directory: this interpreter, absolute, not resolved (a venv's link is its identity)."""
    env = {name: value for name, value in (environ or os.environ).items() if name != "VIBEAROUND_DATA_DIR"}
    default = paths.instance_name(paths.data_dir(env))
    instance = paths.instance_name(data_dir)
    return units.Unit((python or Path(sys.executable)).absolute(), data_dir, instance, instance != default)


def find(
    data_dir: Path, environ: Mapping[str, str] | None = None, platform: str = sys.platform, run: Run | None = None
) -> Manager:
    """The manager of this machine for the service of this data directory, whether or not it is usable or installed."""
    env = dict(os.environ if environ is None else environ)
    unit = unit_for(data_dir, env)
    runner = run or (lambda argv, limit_s: run_bounded(argv, env, limit_s))
    home = Path(env.get("HOME") or "~").expanduser()
    if platform == "darwin":
        from transports.service.launchd import Launchd

        return Launchd(unit, runner, home)
    from transports.service.systemd import Systemd

    return Systemd(unit, runner, home, env)


def installed(data_dir: Path, environ: Mapping[str, str] | None = None) -> Manager | None:
    """The manager where a service of ours is installed for this data directory: what `va up` and `va down` use."""
    manager = find(data_dir, environ)
    return manager if is_ours(_read(manager.path)) else None


def install(manager: Manager, data_dir: Path) -> list[str]:
    """Write the definition, enable and start it; what was done and what is left to do, in words. May be repeated.

    Raises RefusedError (no usable manager, a definition that is not ours, a supervisor started by hand), or
    VibeAroundError with the manager's own words when it fails.
    """
    manager.check()
    existing = _read(manager.path)
    if existing is not None and not is_ours(existing):
        raise RefusedError(
            f"{manager.path} exists and was not written by VibeAround.", hint="Move it away, then install again."
        )
    paths.ensure_data_dir(data_dir)
    run = paths.load_run(data_dir)
    if run is not None and paths.is_alive(run) and not manager.state().active:
        raise RefusedError(
            f"A supervisor started by hand is running (pid {run.pid}).", hint="End it with `va down`, then install again."
        )
    content = manager.rendered()
    changed = existing != content
    if changed:
        manager.path.parent.mkdir(parents=True, exist_ok=True)
        paths.atomic_write(manager.path, content, 0o644)
    notes = manager.load(changed)
    return [f"{'Wrote' if changed else 'Kept'} {manager.path}.", f"{manager.name} is enabled and running.", *notes]


def uninstall(manager: Manager) -> list[str]:
    """Stop and remove the service; data stays. Raises like `install`."""
    existing = _read(manager.path)
    if existing is None:
        return [f"No service is installed ({manager.path} does not exist)."]
    if not is_ours(existing):
        raise RefusedError(
            f"{manager.path} was not written by VibeAround and is left alone.", hint="Remove it yourself if you want to."
        )
    manager.unload()
    manager.path.unlink(missing_ok=True)
    return [f"Stopped and removed {manager.name} ({manager.path}). Your data is untouched."]


def is_ours(content: bytes | None) -> bool:
    return content is not None and units.MARK.encode() in content


def failed(ran: Ran, what: str, hint: str) -> VibeAroundError:
    """The error for a manager's command that did not succeed, in its own words."""
    lines = (ran.err or ran.out).strip().splitlines()
    words = ran.why or (lines[-1] if lines else f"exit code {ran.code}")
    return VibeAroundError(f"{what}: {words.rstrip('.')}.", hint=hint)


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise RefusedError(f"{path} cannot be read: {error.strerror}.", hint="Check its owner and mode.") from error
