"""Where a unix socket may stand: path length, a private directory, and the lock that must be held before binding.

A second bind on a live ipc path is accepted by libzmq and steals it, hence the lock. `sun_path` holds 108 bytes on
Linux and 104 on macOS, the end included.
"""

from __future__ import annotations

import fcntl
import os
import stat
from pathlib import Path

from agents_registry.errors import BusyError, RefusedError, UsageError

MAX_PATH = 103


def check_socket_path(path: Path) -> None:
    """Raises UsageError when the path is too long or its directory is missing, RefusedError when others could put
    something into that directory."""
    length = len(os.fsencode(path))
    if length > MAX_PATH:
        raise UsageError(
            f"the socket path {path} has {length} bytes, the system allows {MAX_PATH}.",
            hint="Set XDG_RUNTIME_DIR to a shorter directory.",
        )
    try:
        found = path.parent.lstat()
    except OSError as error:
        raise UsageError(f"the socket directory {path.parent} cannot be used: {error.strerror}.") from error
    if not stat.S_ISDIR(found.st_mode):
        raise RefusedError(f"the socket directory {path.parent} is not a directory of its own.")
    if found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise RefusedError(
            f"the socket directory {path.parent} is open to other users.", hint=f"Run `chmod 700 {path.parent}`."
        )


class SocketLock:
    """An advisory lock beside the socket; the kernel gives it back when the process ends, however it ends."""

    def __init__(self, path: Path) -> None:
        self._path = path.with_name(path.name + ".lock")
        self._fd = -1

    def take(self) -> None:
        """Raises BusyError when another process holds it."""
        fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(fd)
            raise BusyError(
                f"another process serves {self._path.with_suffix('')} already.", hint="See `va status`; `va down` ends it."
            ) from error
        self._fd = fd

    def release(self) -> None:
        """Idempotent. The file stays: removing it would let two processes lock two files of one name."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
