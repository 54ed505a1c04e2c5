"""Which bridges there are: `<data>/bridges.toml`, a table per name with its kind and its options; secrets by reference.

    [telegram]
    kind = "telegram"
    [telegram.options]
    token = "env:MY_BOT_TOKEN"      # or "file:/home/me/.token"
"""

from __future__ import annotations

import os
import re
import stat
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from agents_registry.errors import NotFoundError, RefusedError, UsageError

FILE = "bridges.toml"
NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,31}")
_LONGEST_SECRET = 64 * 1024


@dataclass(frozen=True, slots=True)
class Definition:
    """One bridge. `options` as written: secrets are still references."""

    name: str
    kind: str
    options: dict[str, str] = field(default_factory=dict)


def read(data_dir: Path) -> dict[str, Definition]:
    """All definitions by name; none where there is no file. Raises UsageError for a file that cannot be understood."""
    path = data_dir / FILE
    try:
        tables = tomllib.loads(path.read_bytes().decode("utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"{path} cannot be read: {error}.", hint="Correct it; it is never overwritten as it is.", code="bad_bridges") from error
    found: dict[str, Definition] = {}
    for name, table in tables.items():
        options = table.get("options", {}) if isinstance(table, dict) else None
        if not NAME.fullmatch(name) or not isinstance(options, dict) or not isinstance(table.get("kind"), str):
            raise UsageError(f"{path}: [{name[:40]}] is no bridge.", hint='It needs a plain name, kind = "…", and [NAME.options].', code="bad_bridges")
        found[name] = Definition(name, table["kind"], {str(k): v if isinstance(v, str) else str(v) for k, v in options.items()})
    return found


def find(data_dir: Path, name: str) -> Definition:
    """The definition of this name. Raises NotFoundError."""
    found = read(data_dir).get(name)
    if found is None:
        raise NotFoundError(f"There is no bridge {name[:40]!r}.", hint="See `va bridge list`.", code="no_bridge")
    return found


def change(data_dir: Path, name: str, definition: Definition | None) -> None:
    """Write one definition, or take it out (None). The rest of the file stays as it is, comments too. A file that cannot be
    understood is left alone (UsageError)."""
    import fcntl

    import tomlkit

    from transports.paths import atomic_write, ensure_data_dir

    path = ensure_data_dir(data_dir) / FILE
    with open(os.open(data_dir / f".{FILE}.lock", os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600), "wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        read(data_dir)
        document = tomlkit.parse(path.read_text("utf-8")) if path.exists() else tomlkit.document()
        if definition is None:
            document.pop(name, None)
        else:
            table, options = tomlkit.table(), tomlkit.table()
            table.add("kind", definition.kind)
            for key, value in definition.options.items():
                options.add(key, value)
            table.add("options", options)
            document[name] = table
        atomic_write(path, tomlkit.dumps(document).encode("utf-8"))


def dereference(value: str, environ: Mapping[str, str] | None = None) -> str:
    """The secret that a reference names, without blanks around it. Errors name the reference, never the secret."""
    kind, sign, name = value.partition(":")
    if not sign or kind not in ("env", "file") or not name:
        raise UsageError("A secret is given by reference.", hint="Write env:NAME or file:PATH.", code="bad_reference")
    if kind == "env":
        secret = (os.environ if environ is None else environ).get(name, "")
        if not secret.strip():
            raise UsageError(f"The environment variable {name} is not set where the bridge runs.", hint="Set it, and run `va up` again.")
        return secret.strip()
    path = Path(name).expanduser()
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            info = os.fstat(file.fileno())
            if not stat.S_ISREG(info.st_mode):
                raise UsageError(f"{path} is no plain file.", hint="Write the secret into a file of its own.")
            if info.st_mode & 0o077:
                raise RefusedError(f"{path} can be read by others.", hint=f"Run: chmod 600 {path}", code="secret_open")
            return file.read(_LONGEST_SECRET).decode("utf-8", "replace").strip()
    except OSError as error:
        raise UsageError(f"The secret's file {path} cannot be read: {error.strerror}.", hint="Give its whole path.") from error
