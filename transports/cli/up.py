"""`va up` and `va down`: the supervisor in the background, by the service manager where our service is installed."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from agents_registry.errors import BusyError, NotRunningError, VibeAroundError, from_wire
from transports import paths
from transports.cli.output import emit, emit_json, json_option, remark
from transports.cli.serve import SUPERVISOR, module_argv

if TYPE_CHECKING:
    from subprocess import Popen

LOG = "supervisor.log"
_UP_S = 30.0
_DOWN_S = 90.0
"""The supervisor gives its hosts 30 s, and each its agent's shutdown ladder; after that it is stuck."""


@click.command("up")
@json_option
def up(as_json: bool) -> None:
    """Start VibeAround in the background. One that runs already reads the login environment anew."""
    data_dir = paths.ensure_data_dir(paths.data_dir())
    known = False
    try:
        status = _status(5.0)
        known = True
        _refresh()
    except NotRunningError:
        status = start(data_dir)
    if as_json:
        emit_json({**{k: status[k] for k in ("version", "pid", "uptime_s", "data_dir")}, "started": not known})
    elif known:
        emit(f"VibeAround {status['version']} is running already (pid {status['pid']}).")
    else:
        emit(f"VibeAround {status['version']} is running (pid {status['pid']}), data in {status['data_dir']}.")


def _refresh() -> None:
    """A running supervisor reads the login shell's environment again: hosts that start from now on get it."""
    from transports.bus.vocabulary.children import RefreshEnvironment
    from transports.cli.connect import ask

    ask("spawner", RefreshEnvironment(), 15.0)


def _status(timeout: float) -> dict[str, Any]:
    from transports.bus.vocabulary.lists import GetStatus
    from transports.cli.connect import connect

    with connect() as client:
        data: dict[str, Any] = client.request("catalog", GetStatus(), timeout).data
        return data


def start(data_dir: Path) -> dict[str, Any]:
    """Start the supervisor of this data directory and wait until it answers; its status."""
    from transports.service import manage

    manager = manage.installed(data_dir)
    child: Popen[bytes] | None = None
    log = data_dir / LOG
    seen = log.stat().st_size if log.exists() else 0
    if manager is not None:
        manager.start()
    else:
        child = _detached(data_dir)
    limit = time.monotonic() + _UP_S
    while True:
        try:
            status = _status(max(1.0, limit - time.monotonic()))
        except NotRunningError:
            pass
        else:
            if child is not None and status["pid"] != child.pid:
                _withdraw(child)
            return status
        if child is not None and child.poll() is not None:
            if paths.lock_holder(data_dir) is None:
                _explain(log, seen, child.returncode)
            child = None  # another `va up` was faster: it is that one's supervisor that comes
        if time.monotonic() >= limit:
            raise _silent(data_dir, log)
        time.sleep(0.05)


def _silent(data_dir: Path, log: Path) -> VibeAroundError:
    """No answer in time. A process that holds the data directory (its sockets may be gone) is in a new one's way."""
    holder = paths.lock_holder(data_dir)
    said = f"The supervisor did not answer within {_UP_S:.0f} seconds."
    if holder is None:
        return VibeAroundError(said, hint=f"Look at {log}.", code="no_start")
    return VibeAroundError(
        f"{said} Process {holder} holds {data_dir}.", hint=f"Stop it with `va down`, then `va up`. Its log is {log}.", code="no_start"
    )


def _detached(data_dir: Path) -> Popen[bytes]:
    """A supervisor that belongs to no terminal; it keeps its own log."""
    import subprocess

    argv = module_argv(SUPERVISOR, "--detach-log")
    env = {**os.environ, "VIBEAROUND_DATA_DIR": str(data_dir)}
    quiet = subprocess.DEVNULL
    return subprocess.Popen(argv, stdin=quiet, stdout=quiet, stderr=quiet, cwd="/", env=env, start_new_session=True)


def _withdraw(child: Popen[bytes]) -> None:
    """Another `va up` was faster; ours must not come up later, when that one has been stopped."""
    import subprocess

    child.terminate()
    try:
        child.wait(timeout=10)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


def _explain(log: Path, seen: int, code: int) -> None:
    """It ended at once: say why, in its own last words. Raises."""
    text = ""
    if log.exists():
        with log.open("rb") as stream:
            stream.seek(seen if log.stat().st_size >= seen else 0)
            text = stream.read()[-4096:].decode("utf-8", "replace")
    lines = [line for line in text.strip().splitlines() if line.strip()]
    told = f"The supervisor ended at once (exit code {code})" + (f": {' '.join(lines[-2:])}" if lines else ".")
    # Its exit code says of which kind its trouble is (a setting, another supervisor), so ours is the same.
    raise from_wire([code, "no_start", told, f"Its log is {log}; `va doctor` looks for causes."])


@click.command("down")
@json_option
def down(as_json: bool) -> None:
    """Stop VibeAround and all agents that it hosts. The conversations stay."""
    data_dir = paths.data_dir()
    info = _running(data_dir)
    if info is None:
        _end_recorded(data_dir, as_json)
        return
    stop(data_dir)
    if as_json:
        emit_json({"stopped": True, "pid": info.pid, "ended": []})
    else:
        emit(f"Stopped (pid {info.pid}).")


def _running(data_dir: Path) -> paths.RunInfo | None:
    """The supervisor, also one that is just starting or ending: it holds the lock, and is waited for."""
    limit = time.monotonic() + _UP_S
    while True:
        try:
            return paths.read_run(data_dir)
        except NotRunningError:
            holder = paths.lock_holder(data_dir)
            if holder is None:
                return None
            if time.monotonic() >= limit:
                raise BusyError(
                    f"A supervisor (pid {holder}) holds {data_dir} and does not say how to reach it.",
                    hint=f"Look at its log, or end it: kill {holder}",
                ) from None
        time.sleep(0.1)


def stop(data_dir: Path) -> None:
    """Stop the running supervisor of this data directory and see it gone. Raises NotRunningError when there is none."""
    info = paths.read_run(data_dir)
    service = _active_service(data_dir, info.pid)
    if service is not None:
        service.stop()
    else:
        _shutdown(info)
    _await_end(info)


def _active_service(data_dir: Path, pid: int) -> Any:
    """The service manager, where it is what runs this supervisor."""
    from transports.service import manage

    manager = manage.installed(data_dir)
    if manager is None:
        return None
    state = manager.state()
    return manager if state.active and state.pid in (0, pid) else None


def _shutdown(info: paths.RunInfo) -> None:
    """Ask it to stop; a supervisor that does not answer gets SIGTERM, which means the same."""
    import signal

    from transports.bus.vocabulary.lists import Shutdown
    from transports.cli.connect import ask

    try:
        ask("supervisor", Shutdown("va down"), 5.0)
    except (NotRunningError, BusyError):
        if paths.is_alive(info):
            os.kill(info.pid, signal.SIGTERM)


def _await_end(info: paths.RunInfo) -> None:
    began = time.monotonic()
    told = False
    while paths.is_alive(info):
        waited = time.monotonic() - began
        if waited > 2.0 and not told:
            told = True
            remark("Waiting for the agents to end …")
        if waited > _DOWN_S:
            raise BusyError(
                f"The supervisor (pid {info.pid}) has not ended within {_DOWN_S:.0f} seconds.",
                hint=f"Look at its log, or end it: kill -9 {info.pid}, then `va down` once more for its hosts.",
            )
        time.sleep(0.02 if waited < 1 else 0.2)


def _end_recorded(data_dir: Path, as_json: bool) -> None:
    """No supervisor: hosts that outlived a crash are ended by a process of the top floor, which knows the journal."""
    import json
    import subprocess

    ended: list[dict[str, Any]] = []
    if (data_dir / "state" / "journal.db").exists():
        argv = module_argv("actors.end_hosts", "--data-dir", str(data_dir), "--json")
        try:
            done = subprocess.run(argv, stdout=subprocess.PIPE, timeout=_DOWN_S, check=False)
        except subprocess.TimeoutExpired as error:
            raise BusyError(f"The recorded hosts have not ended within {_DOWN_S:.0f} seconds.", hint="Run `va down` again.") from error
        if done.returncode:
            raise SystemExit(done.returncode)  # it has said why
        ended = json.loads(done.stdout)
    if as_json:
        emit_json({"stopped": False, "pid": None, "ended": ended})
    elif not ended:
        emit("Nothing is running.")
    for one in [] if as_json else ended:
        emit(f"Ended the {one['agent']} host of {one['thread']} (pid {one['pid']}), left by a supervisor that is gone.")
