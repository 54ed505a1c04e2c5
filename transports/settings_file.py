"""Writing `settings.toml`: one key at a time, comments and order kept, a file that does not parse never touched."""

from __future__ import annotations

import fcntl
import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agents_registry.errors import RefusedError, UsageError
from transports import settings
from transports.paths import atomic_write, ensure_data_dir

if TYPE_CHECKING:
    from collections.abc import Iterator


def set_value(data_dir: Path, key: str, text: str) -> Any:
    """Write one setting, as the words of a command line give it; returns the value written.

    Raises NotFoundError (unknown key), UsageError (not a value of it), RefusedError (the file does not parse or cannot
    be written; nothing was changed).
    """
    setting = settings.find(key)
    value = settings.plain(settings.parse_text(setting, text))
    with _editing(data_dir) as document:
        table = document.get(setting.section)
        if table is None:
            from tomlkit import table as new_table

            table = document[setting.section] = new_table()
        if not hasattr(table, "items"):
            raise RefusedError(
                f"{settings.path_of(data_dir)}: {setting.section} is not a section.",
                hint=f"Write [{setting.section}] there; the file was left as it is.",
            )
        table[setting.name] = value
    return value


def unset_value(data_dir: Path, key: str) -> bool:
    """Take one setting out of the file, so that its default holds; False when it was not there. Raises like `set_value`."""
    setting = settings.find(key)
    with _editing(data_dir) as document:
        table = document.get(setting.section)
        if not hasattr(table, "items") or setting.name not in table:
            return False
        del table[setting.name]
    return True


@contextmanager
def _editing(data_dir: Path) -> Iterator[Any]:
    import tomlkit

    ensure_data_dir(data_dir)
    path = Path(os.path.realpath(settings.path_of(data_dir)))  # a linked file (dotfiles) stays a link
    lock = os.open(data_dir / ".settings.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RefusedError(f"{path} is being written by another command.", hint="Run it again.") from None
        try:
            _, text = settings.parse_file(path)
        except UsageError as error:
            raise RefusedError(error.message, hint=error.hint, code="settings_damaged") from error
        document = tomlkit.parse(text)
        yield document
        try:
            atomic_write(path, tomlkit.dumps(document).encode())
        except OSError as error:
            raise RefusedError(
                f"{path} cannot be written: {error.strerror}.", hint="Check its directory's owner and free space."
            ) from error
    finally:
        os.close(lock)
