"""Where things lie: the data directory, the socket directory, `run.json`, the supervisor's lock; and how files are replaced.

Standard library only and cheap to import: the command line and every client load it. Clients find the supervisor by
`run.json` and by nothing else, since agents give the servers they start a stripped environment.
"""

from __future__ import annotations

import fcntl
import os
import stat
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from agents_registry.errors import NotRunningError, RefusedError, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

RUN_FILE = "run.json"
LOCK_FILE = "supervisor.lock"
SOCKET_NAMES = ("bus.sock", "mcp.sock")
_LONGEST_SOCKET_NAME = 16
"""Bytes kept free for the name of a socket inside the socket directory."""
_SUN_PATH = 103 if sys.platform == "darwin" else 107
"""Longest path of a unix socket in bytes: sun_path less its NUL (unix(7); macOS <sys/un.h>)."""
_START_HINT = "Start it with `va up`."


class RunInfo(NamedTuple):
    """What a running supervisor tells its clients. `start_time` is field 22 of /proc/<pid>/stat in clock ticks since
    boot, 0 where there is no /proc; `started_at` is Unix time in seconds."""

    pid: int
    start_time: int
    socket_dir: str
    version: str
    started_at: float

    def socket(self, name: str) -> str:
        """The file system path of one of the supervisor's sockets."""
        return f"{self.socket_dir}/{name}"

    def endpoint(self, name: str) -> str:
        """The same path as a ZeroMQ address."""
        return f"ipc://{self.socket_dir}/{name}"


def data_dir(environ: Mapping[str, str] | None = None, override: str | os.PathLike[str] | None = None) -> Path:
    """The data directory, absolute: the override, else VIBEAROUND_DATA_DIR, else ~/.vibearound. Not created here."""
    env = os.environ if environ is None else environ
    named = os.fspath(override) if override else env.get("VIBEAROUND_DATA_DIR", "")
    return Path(named or "~/.vibearound").expanduser().absolute()  # not resolved: shown as the user wrote it


def ensure_data_dir(path: Path) -> Path:
    """Create the directory with mode 0700, or take the group's and others' rights from an existing one.

    Raises UsageError when it cannot be made or is not a directory, RefusedError when another user owns it.
    """
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        info = path.stat()
        if info.st_uid == os.geteuid() and info.st_mode & 0o077:
            path.chmod(0o700)
    except OSError as error:
        raise UsageError(
            f"The data directory {path} cannot be used: {error.strerror}.",
            hint="Set VIBEAROUND_DATA_DIR to a directory that you may write.",
        ) from error
    if info.st_uid != os.geteuid():
        raise RefusedError(
            f"The data directory {path} belongs to uid {info.st_uid}, not to you.",
            hint="Set VIBEAROUND_DATA_DIR to a directory of your own.",
        )
    return path


def process_start_time(pid: int) -> int | None:
    """Start time of a living process in clock ticks since boot; None when it is gone or a zombie.

    Where there is no /proc (macOS) a living process answers 0. proc(5): the second field may hold spaces and
    parentheses, so fields are counted from the last `)`.
    """
    if pid <= 0:
        return None
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
        return None if fields[0] in (b"Z", b"X") else int(fields[19])
    except (FileNotFoundError, ProcessLookupError):
        if os.path.exists("/proc/self/stat"):  # noqa: PTH110 - os.path is enough here
            return None
    except (IndexError, ValueError):
        return None
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        pass
    return 0


def write_run(directory: Path, socket_dir: str | os.PathLike[str], version: str, started_at: float) -> RunInfo:
    """Announce the calling process as the supervisor of this data directory."""
    import json

    pid = os.getpid()
    info = RunInfo(pid, process_start_time(pid) or 0, os.fspath(socket_dir), version, started_at)
    atomic_write(directory / RUN_FILE, json.dumps(info._asdict()).encode() + b"\n")
    return info


def clear_run(directory: Path) -> None:
    """Withdraw the announcement, if it is the calling process's own."""
    info = load_run(directory)
    if info is not None and info.pid == os.getpid():
        (directory / RUN_FILE).unlink(missing_ok=True)


def load_run(directory: Path) -> RunInfo | None:
    """What `run.json` says, whether or not that process still lives; None when there is none or it is damaged."""
    import json

    try:
        # Without waiting: a pipe in its place would have no writer for ever.
        with open(os.open(directory / RUN_FILE, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            fields = json.loads(file.read())
        return RunInfo(
            int(fields["pid"]),
            int(fields["start_time"]),
            str(fields["socket_dir"]),
            str(fields["version"]),
            float(fields["started_at"]),
        )
    except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None


def read_run(directory: Path) -> RunInfo:
    """The living supervisor of this data directory. Raises NotRunningError when there is none."""
    info = load_run(directory)
    if info is None:
        raise NotRunningError(f"No supervisor is running for {directory}.", hint=_START_HINT)
    if not is_alive(info):
        raise NotRunningError(
            f"The supervisor that served {directory} (pid {info.pid}) is not running any more.", hint=_START_HINT
        )
    return info


def is_alive(info: RunInfo) -> bool:
    """Whether the process that wrote `run.json` still lives; a reused pid does not count."""
    started = process_start_time(info.pid)
    return started is not None and (not started or not info.start_time or started == info.start_time)


def instance_name(directory: Path) -> str:
    """`vibearound-<hash>`: one name per data directory, the same for every spelling of its path."""
    from hashlib import sha256

    return "vibearound-" + sha256(os.fsencode(os.path.realpath(directory))).hexdigest()[:12]


def socket_dir(directory: Path, environ: Mapping[str, str] | None = None) -> Path:
    """The directory for the sockets of this data directory; chosen, not created (`prepare_socket_dir`).

    $XDG_RUNTIME_DIR/vibearound-<hash> where that directory is ours and the path is short enough for a unix socket,
    else /tmp/vibearound-<uid>-<hash>.
    """
    env = os.environ if environ is None else environ
    name = instance_name(directory)
    runtime = env.get("XDG_RUNTIME_DIR", "")
    if runtime.startswith("/") and _is_own_dir(runtime):
        chosen = Path(runtime, name)
        if _fits(chosen):
            return chosen
    return Path("/tmp", name.replace("-", f"-{os.geteuid()}-", 1))


def prepare_socket_dir(path: Path) -> Path:
    """Create the socket directory with mode 0700 and see that it is really ours (no link, no other owner).

    Raises RefusedError when somebody else made it, UsageError when its path is too long for a socket.
    """
    if not _fits(path):
        raise UsageError(
            f"The socket directory {path} is too long: a socket's path may have {_SUN_PATH} bytes.",
            hint="Set XDG_RUNTIME_DIR to a shorter directory, or unset it.",
        )
    try:
        path.mkdir(mode=0o700, exist_ok=True)
        info = path.lstat()
    except OSError as error:
        raise UsageError(
            f"The socket directory {path} cannot be made: {error.strerror}.",
            hint="Check XDG_RUNTIME_DIR, or that /tmp can be written.",
        ) from error
    if not stat.S_ISDIR(info.st_mode) or info.st_uid != os.geteuid():
        raise RefusedError(
            f"The socket directory {path} is not a directory of yours (owner uid {info.st_uid}).",
            hint="Remove it, or set XDG_RUNTIME_DIR.",
        )
    if info.st_mode & 0o077:
        path.chmod(0o700)
    return path


def _fits(path: Path) -> bool:
    return len(os.fsencode(path)) + 1 + _LONGEST_SOCKET_NAME <= _SUN_PATH


def _is_own_dir(path: str) -> bool:
    try:
        info = Path(path).stat()
    except OSError:
        return False
    return stat.S_ISDIR(info.st_mode) and info.st_uid == os.geteuid()


class Lock:
    """The supervisor's hold on its data directory; ends with `release` or with the process."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def release(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def acquire_lock(directory: Path) -> Lock:
    """Take the lock before binding any socket: a second bind on a live ipc path steals it without an error.

    Raises RefusedError naming the process that holds it.
    """
    descriptor = os.open(directory / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    if not _try_lock(descriptor):
        holder = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip() or "unknown"
        os.close(descriptor)
        raise RefusedError(
            f"A supervisor is already running for {directory} (pid {holder}).",
            hint="See it with `va status`, end it with `va down`.",
            code="already_running",
        )
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
    return Lock(descriptor)


def _try_lock(descriptor: int) -> bool:
    for pause in (0.02, 0.05, 0.1, 0.0):  # `lock_holder` of a doctor may look for an instant
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            time.sleep(pause)
    return False


def lock_holder(directory: Path) -> int | None:
    """The pid that holds the supervisor's lock; None when it is free; 0 when it is held by an unknown process."""
    try:
        descriptor = os.open(directory / LOCK_FILE, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        text = os.pread(descriptor, 32, 0).strip()
        return int(text) if text.isdigit() else 0
    finally:
        os.close(descriptor)
    return None


def atomic_write(path: Path, content: bytes, mode: int = 0o600) -> None:
    """Replace a file as a whole: readers see the old bytes or the new ones, also after a crash. OSError passes through."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{os.urandom(4).hex()}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        try:
            os.fchmod(descriptor, mode)  # the umask must not decide
            view = memoryview(content)
            while view:
                view = view[os.write(descriptor, view) :]
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    parent = os.open(path.parent, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(parent)
    finally:
        os.close(parent)
