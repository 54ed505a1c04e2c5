"""Small questions about paths that every store asks in the same words."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path


def home(env: Mapping[str, str]) -> Path:
    """The user's home as `env` says."""
    return Path(env["HOME"]) if env.get("HOME") else Path.home()


def placed(env: Mapping[str, str], variable: str, *default: str) -> Path:
    """The directory a variable names (`~` expanded), else one below the home."""
    value = env.get(variable, "")
    if value.startswith("~/"):
        return home(env) / value[2:]
    return Path(value) if value else home(env).joinpath(*default)


def same_dir(one: str, other: str) -> bool:
    """Whether two recorded directories are the same place: equal text, or equal real paths. Neither need exist."""
    if one == other:
        return True
    if not one or not other:
        return False
    return real(one) == real(other)


def real(path: str) -> str:
    """The real path of a recorded directory; what cannot be a path at all stays as it is."""
    try:
        return os.path.realpath(path)
    except (OSError, ValueError):
        return path  # NUL bytes, lone surrogates: a damaged record names no place


def newest(paths: Iterable[Path]) -> list[tuple[Path, os.stat_result]]:
    """Existing paths with their stat, latest modification first; what vanished meanwhile is left out."""
    found = []
    for path in paths:
        try:
            found.append((path, path.stat()))
        except OSError:
            continue  # removed between the listing and the stat
    found.sort(key=lambda pair: (-pair[1].st_mtime_ns, str(pair[0])))
    return found
