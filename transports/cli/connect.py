"""How a command reaches the supervisor: by `run.json` and nothing else."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from agents_registry.errors import NotFoundError, NotRunningError
from transports import paths
from transports.bus.syncclient import SyncClient

BUS_SOCKET = "bus.sock"


def connect(*, wait_s: float = 0.0) -> SyncClient:
    """A connection to the running supervisor. Raises NotRunningError, naming `va up`, after at most `wait_s` seconds."""
    limit = time.monotonic() + wait_s
    while True:
        try:
            info = paths.read_run(paths.data_dir())
            return SyncClient(Path(info.socket(BUS_SOCKET)))
        except NotRunningError:
            if time.monotonic() >= limit:
                raise
            time.sleep(0.1)


def ask(address: str, message: Any, timeout: float = 30.0) -> Any:
    """One question over a connection of its own. Raises what the answer says."""
    with connect() as client:
        return client.request(address, message, timeout)


def real_directory(named: str | None) -> str:
    """The real path of a directory the user named, or of the current one. Raises NotFoundError when it does not exist."""
    try:
        path = os.path.realpath(os.path.expanduser(named) if named else os.getcwd())  # noqa: PTH109,PTH111 - cheap, and getcwd may fail
    except FileNotFoundError as error:
        raise NotFoundError(
            "The current directory does not exist any more.", hint="Go to another directory.", code="cwd_gone"
        ) from error
    if not os.path.isdir(path):  # noqa: PTH112 - as above
        raise NotFoundError(f"There is no directory {path}.", hint="Name one that exists.", code="cwd_gone")
    return path


def person() -> dict[str, str]:
    """Who speaks at this terminal. The role is not ours to say: the kernel tells the supervisor."""
    return {"id": f"uid:{os.getuid()}", "name": os.environ.get("USER") or os.environ.get("LOGNAME") or "terminal"}
