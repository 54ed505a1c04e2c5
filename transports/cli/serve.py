"""`va serve`: the supervisor in the foreground."""

from __future__ import annotations

import os
import sys

import click

SUPERVISOR = "actors.supervisor"


def module_argv(module: str, *args: str) -> list[str]:
    """The words that run one of our modules in a process of its own. `-P`: a folder of the same name in the current
    directory must not be taken for ours."""
    return [sys.executable, "-P", "-m", module, *args]


@click.command("serve")
def serve() -> None:
    """Run the supervisor in the foreground, its log on stderr. Ends with Ctrl-C, and its agents with it."""
    sys.stdout.flush()
    argv = module_argv(SUPERVISOR)
    os.execv(argv[0], argv)
