"""Where stores lie, and whether two recorded directories are the same place.

Only environment and path texts are looked at here; a directory is never guessed from the name of a store's folder,
because every agent's way of naming those is many-to-one.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote, urlsplit

from agents_registry.sessions.paths import home

_DRIVE = re.compile(r"^[A-Za-z]:([\\/]|$)")


def expand(text: str, env: Mapping[str, str]) -> Path:
    """A directory named in the environment, `~` resolved against the home of that same environment."""
    if text == "~" or text.startswith(("~/", "~\\")):
        return home(env) / text[2:]
    return Path(text)


def named(env: Mapping[str, str], *names: str) -> Path | None:
    """The directory that the first set variable of `names` gives, or None."""
    for name in names:
        if value := env.get(name, "").strip():
            return expand(value, env)
    return None


def data_home(env: Mapping[str, str]) -> Path:
    """XDG data directory (`XDG_DATA_HOME`, else ~/.local/share)."""
    return named(env, "XDG_DATA_HOME") or home(env) / ".local" / "share"


def config_home(env: Mapping[str, str]) -> Path:
    """XDG configuration directory (`XDG_CONFIG_HOME`, else ~/.config)."""
    return named(env, "XDG_CONFIG_HOME") or home(env) / ".config"


def normal(path: str) -> str:
    """A directory's text in a form that can be compared.

    Windows spellings (a drive letter, or a UNC name) lose case and the kind of slash; others lose doubled and trailing
    slashes only.
    """
    if _DRIVE.match(path) or path.startswith("\\\\"):
        return path.replace("\\", "/").rstrip("/").lower()
    return os.path.normpath(path) if path else ""


def same_place(one: str, other: str) -> bool:
    """Whether two directories are the same, by text or by real path. An unknown one ("") is the same as nothing."""
    if not one or not other:
        return False
    if normal(one) == normal(other):
        return True
    if _DRIVE.match(one) or _DRIVE.match(other):
        return False
    return os.path.realpath(one) == os.path.realpath(other)


def from_uri(uri: str) -> str:
    """The path of a file: address; other texts as they are."""
    if not uri.startswith("file:"):
        return uri
    path = unquote(urlsplit(uri).path)
    return path[1:] if _DRIVE.match(path[1:]) else path
