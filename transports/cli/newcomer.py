"""`va` without arguments: what to do next, seen from where things stand."""

from __future__ import annotations

import os

from agents_registry.errors import NotRunningError
from transports import paths
from transports.cli.output import emit, table


def show_next() -> None:
    """Print the state of things in a line, and the next commands that make sense."""
    directory = paths.data_dir()
    try:
        info = paths.read_run(directory)
    except NotRunningError:
        emit("VibeAround is not running.\n")
        steps = [("va up", "start it in the background")]
    else:
        emit(f"VibeAround {info.version} is running (pid {info.pid}).\n")
        steps = []
    names = _integrated()
    if not names:
        steps.append(("va integrate", 'teach your coding agents to "hand over" (say yes once)'))
    steps += [
        ("va demo", "watch a whole handover, no keys needed"),
        ("va agents list", "which coding agents are here"),
        ("va chat repl", "talk to an agent in this terminal"),
    ]
    emit("Next:")
    emit(table([(f"  {command}", words) for command, words in steps]))
    if names:
        emit(f"\nIn {', '.join(names)}: say \"hand over\", then type /pickup CODE in a chat, or here: va pickup CODE")
    emit("\nAll commands: va --help. Is everything well? va doctor")


_CONFIGURED = (("Claude Code", ".claude.json"), ("Codex", ".codex/config.toml"), ("Gemini CLI", ".gemini/settings.json"))


def _integrated() -> list[str]:
    """Agents whose own configuration names our MCP server; a look at the bytes, no parsing."""
    found = []
    home = os.path.expanduser("~")  # noqa: PTH111 - no pathlib needed
    for name, file in _CONFIGURED:
        try:
            with open(f"{home}/{file}", "rb") as stream:
                if b"vibearound" in stream.read(8 << 20):
                    found.append(name)
        except OSError:
            continue
    return found
