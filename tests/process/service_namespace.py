"""Run inside private mount and pid namespaces (pid 1 there): a throw-away systemd user manager, and our service in it.

Prints one JSON object a line for each step; the test outside judges them. Arguments: an empty folder, and `real` for
the real supervisor or `fake` for one that has a host without an agent.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.waiting import until
from transports import paths
from transports.service import manage
from transports.service.systemd import Systemd

SYSTEMD = "/lib/systemd/systemd"


def tell(step: str, **facts: object) -> None:
    print(json.dumps({"step": step, **facts}), flush=True)


def alive(pid: int) -> bool:
    return paths.process_start_time(pid) is not None


def main(folder: Path, which: str) -> None:
    runtime = folder / "run"
    for path in (runtime, folder / "linger"):
        path.mkdir(mode=0o700)
    environ = {"HOME": str(folder), "XDG_RUNTIME_DIR": str(runtime), "PATH": os.defpath, "PYTHONPATH": str(Path.cwd())}
    for path in ("/run", str(runtime)):  # systemd removes runtime directories from memory file systems only
        subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=700", "tmpfs", path], check=True, timeout=10)
    Path("/run/systemd/system").mkdir(parents=True)  # sd_booted(3): without it systemctl refuses
    os.environ.update(environ)
    with (folder / "manager.log").open("wb") as log:
        user_manager = subprocess.Popen([SYSTEMD, "--user", "--log-target=console"], env=environ, stderr=log, stdout=log)
    try:
        data = folder / "data"
        unit = manage.unit_for(data, environ, Path(sys.executable) if which == "real" else folder / "python")
        if which == "fake":
            fake = Path(__file__).parents[1] / "fakes" / "service_supervisor.py"
            unit.python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{fake}"\n')
            unit.python.chmod(0o755)

        def run(argv: object, limit_s: float) -> object:
            return manage.run_bounded(argv, environ, limit_s)  # type: ignore[arg-type]

        service = Systemd(unit, run, folder, environ, user="root", linger_dir=folder / "linger")  # type: ignore[arg-type]

        def usable() -> bool:
            try:
                service.check()
            except manage.RefusedError:
                return False
            return True

        until(usable, "the user manager answers", seconds=20)

        manage.install(service, data)
        first = service.state()
        host = int((data / "host").read_text()) if which == "fake" else 0
        tell("installed", state=first.detail, pid=first.pid, run_pid=paths.read_run(data).pid, host=alive(host))

        os.kill(first.pid, signal.SIGKILL)
        again = until(lambda: _other(service, first.pid), "the service is started again", seconds=20)
        seen = sorted(path.name for path in Path(paths.read_run(data).socket_dir).iterdir())
        tell("killed", pid=again, host=alive(host), seen=seen, expected=sorted([f"seen-by-{first.pid}", f"seen-by-{again}"]))

        service.stop()
        stopped = service.state()
        left = Path(runtime, unit.instance)  # systemd tells the end of the job just before it removes the directory
        until(lambda: not left.exists(), f"the socket directory {left} is removed")
        tell("stopped", active=stopped.active, host=alive(host), lock=paths.lock_holder(data))

        service.start()
        tell("started", active=service.state().active)

        manage.uninstall(service)
        gone = service.state()
        tell("removed", installed=gone.installed, active=gone.active, data=sorted(path.name for path in data.iterdir()))
    finally:
        user_manager.kill()
        user_manager.wait(10)


def _other(service: Systemd, old: int) -> int:
    state = service.state()
    return state.pid if state.active and state.pid not in (0, old) and "running" in state.detail else 0


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
