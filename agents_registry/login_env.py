"""The environment of the user's login shell: what a terminal would have, read once and with a limit.

A daemon started by the session manager has a bare PATH; the agents' programs often stand in directories that only
the shell's own start files name.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from agents_registry.bounded import run_bounded

_MARK = "__vibearound_environment__"
_OWN = ("_", "SHLVL", "PWD", "OLDPWD", "TERM", "COLUMNS", "LINES")
"""Variables of the shell that was asked, not of the user's environment."""


@dataclass(frozen=True, slots=True)
class LoginEnvironment:
    """`variables` is complete; `source` says where it comes from; `problem` why the shell was not the source."""

    variables: Mapping[str, str]
    source: str
    problem: str = ""


def login_environment(environ: Mapping[str, str], *, limit_s: float = 5.0) -> LoginEnvironment:
    """Ask `$SHELL` (as an interactive login shell) for its environment; without an answer `environ` itself counts.

    What `environ` has and the shell does not stays, so that nothing is lost by asking.
    """
    shell = environ.get("SHELL", "")
    if not shell or not os.access(shell, os.X_OK):
        return LoginEnvironment(dict(environ), "this process", "SHELL names no program" if shell else "SHELL is not set")
    script = f"printf '%s\\0' {_MARK}; env -0; printf '%s\\0' {_MARK}"
    ran = run_bounded([shell, "-l", "-i", "-c", script], environ, limit_s, cwd=environ.get("HOME") or None)
    parts = ran.out.split(_MARK + "\0")
    if len(parts) != 3:
        return LoginEnvironment(dict(environ), "this process", ran.why or f"{shell} gave no environment (exit {ran.code})")
    told = dict(item.split("=", 1) for item in parts[1].split("\0") if "=" in item)
    for name in _OWN:
        told.pop(name, None)
    return LoginEnvironment({**environ, **told}, shell)


def joined_path(*paths: str) -> str:
    """One PATH of several, each directory once, the first ones first."""
    return os.pathsep.join(dict.fromkeys(part for path in paths for part in path.split(os.pathsep) if part))
