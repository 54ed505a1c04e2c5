"""Read and replace one configuration file of somebody else, without losing anything of it.

A symbolic link stays a link: what it points to is replaced. Mode and owner's group stay as they were.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

from agents_registry.errors import RefusedError

MAX_BYTES = 16 * 1024 * 1024
"""A configuration file larger than this is left alone."""


def real(path: Path) -> Path:
    """Where the content lies: the end of the chain of links.

    Raises:
        RefusedError: the links lead in a circle.
    """
    try:
        return path.resolve()
    except (OSError, RuntimeError) as error:
        raise RefusedError(f"{path} is a link that leads nowhere: {error}.", hint="Correct the link and try again.") from error


def read_text(path: Path) -> str | None:
    """The file's text with its line ends as they are; None when it does not exist.

    Raises:
        RefusedError: it is no regular file, not readable, too large, or not UTF-8.
    """
    target = real(path)
    hint = "The file was not touched."
    try:
        if target.exists() and not target.is_file():
            raise RefusedError(f"{path} is not a regular file.", hint=hint)
        data = target.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise RefusedError(f"{path} cannot be read: {error.strerror or error}.", hint=hint) from error
    if len(data) > MAX_BYTES:
        raise RefusedError(f"{path} is larger than {MAX_BYTES // 1024 // 1024} MiB.", hint=hint)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise RefusedError(f"{path} is not UTF-8 text: {error}.", hint=hint) from error


def replace_file(path: Path, data: bytes, *, mode: int = 0o644) -> None:
    """Write `data` to `path` (following links) in one step; an existing file's mode is kept, a new one gets `mode`.

    Raises OSError when the directory cannot be written; the old content is then still there.
    """
    target = path.resolve()
    try:
        old = target.stat()
        mode = old.st_mode & 0o7777
    except FileNotFoundError:
        old = None
    descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            if old is not None and (old.st_uid, old.st_gid) != (os.getuid(), os.getgid()):
                with contextlib.suppress(PermissionError):  # a group we are not in: the mode below still holds
                    os.fchown(file.fileno(), old.st_uid, old.st_gid)
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        Path(name).replace(target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            Path(name).unlink()
        raise
    directory = os.open(target.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
