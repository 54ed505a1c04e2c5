"""One receiver per bot on this machine: a second daemon of the same user is told at once, before Telegram has to."""

from __future__ import annotations

import fcntl
import hashlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from transports.im.errors import Conflict


def lock_folder() -> Path:
    """A private directory of this user that all daemons of this machine share, whatever their data directory."""
    base = os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()
    return Path(base) / f"vibearound-{os.geteuid()}-locks"


@contextmanager
def token_lock(token: str, base: str, folder: Path | None = None) -> Iterator[None]:
    """Hold the lock of the bot that `token` names at `base`. Raises Conflict when another process has it.

    Its file is named by a hash, so that neither the token nor the bot's number is told by it. Where no lock can be made
    (a read-only temporary directory, another user's file), Telegram's own 409 has to do.
    """
    place = lock_folder() if folder is None else folder
    name = hashlib.sha256(f"{base}\n{token}".encode()).hexdigest()[:32]
    try:
        place.mkdir(mode=0o700, exist_ok=True)
        if place.stat().st_uid != os.geteuid():
            raise PermissionError
        handle = os.open(place / f"telegram-{name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError:
        yield
        return
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise Conflict(
                "Another VibeAround on this machine already receives with this bot's token.",
                hint="Stop it there (va bridge stop), or give this one a bot of its own.",
            ) from None
        yield
    finally:
        os.close(handle)
