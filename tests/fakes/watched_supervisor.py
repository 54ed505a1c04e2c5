"""A real supervisor whose actor threads are watched: each system call in them that may wait is written to a file.

`python -m tests.fakes.watched_supervisor REPORT`. Watched are the bus's io thread and the pool (the threads on which the
handlers of all chats run); the journal, the spawner and the access thread are there to wait.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

WATCHED = ("bus-io", "actors-")
EVENTS = (
    "open", "os.listdir", "os.scandir", "os.mkdir", "os.rename", "os.remove", "os.chmod", "os.link", "os.symlink", "os.truncate",
    "subprocess.Popen", "os.posix_spawn", "os.fork", "os.exec", "os.system", "socket.connect", "socket.getaddrinfo", "time.sleep",
    "sqlite3.connect", "shutil.copyfile", "tempfile.mkstemp", "glob.glob", "import",
)
"""Audit events (PEP 578) of calls that reach a disk, a process or a network. `import` reads files too."""


def main() -> int:
    report, sys.argv[1:] = sys.argv[1], sys.argv[2:]
    descriptor = os.open(report, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def watched() -> bool:
        return threading.current_thread().name.startswith(WATCHED)

    def note(what: str) -> None:
        # By hand: the traceback module reads source files, which would be noted in turn.
        frame, stack = sys._getframe(2), ""
        while frame is not None and stack.count("\n") < 14:
            stack += f"  {frame.f_code.co_filename}:{frame.f_lineno} {frame.f_code.co_name}\n"
            frame = frame.f_back  # type: ignore[assignment]
        os.write(descriptor, f"{threading.current_thread().name}: {what}\n{stack}\n".encode())

    def hook(event: str, args: tuple[Any, ...]) -> None:
        # An import of what is loaded already touches no file and raises no audit event.
        if event in EVENTS and watched():
            note(f"{event} {args[:1]!r}")

    def wrapped(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any, **kwargs: Any) -> Any:
            if watched():
                note(f"{name} {args[:1]!r}")
            return call(*args, **kwargs)

        return run

    from actors import supervisor

    # Not audited by CPython: looking at a path, and sleeping.
    for name in ("stat", "lstat", "readlink", "access", "statvfs"):
        setattr(os, name, wrapped(f"os.{name}", getattr(os, name)))
    time.sleep = wrapped("time.sleep", time.sleep)
    sys.addaudithook(hook)
    return supervisor.main()


if __name__ == "__main__":
    sys.exit(main())
