"""A supervisor with nothing inside but its manners towards a service manager: lock, run.json, readiness, one "host" in a
session of its own that outlives a crash and is ended on an orderly stop. Run as `python service_supervisor.py`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from transports import paths
from transports.service.notify import Notifier


def main() -> None:
    notifier = Notifier.from_environ()
    data = paths.ensure_data_dir(paths.data_dir())
    lock = paths.acquire_lock(data)
    sockets = paths.prepare_socket_dir(paths.socket_dir(data))
    (sockets / f"seen-by-{os.getpid()}").touch()
    host_file = data / "host"
    if not host_file.exists():
        host = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
        host_file.write_text(str(host.pid))
    paths.write_run(data, sockets, "0", time.time())
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    notifier.ready("serving")
    signal.sigwait({signal.SIGTERM})
    notifier.stopping()
    os.kill(int(host_file.read_text()), signal.SIGKILL)
    host_file.unlink()
    paths.clear_run(data)
    lock.release()


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    main()
