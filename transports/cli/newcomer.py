"""`va` without arguments: what to do next, seen from where things stand."""

from __future__ import annotations

import os
import sys

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
        emit(f"VibeAround {info.version} is running (pid {info.pid}), data in {directory}.\n")
        steps = []
    if not _on_path():
        steps.insert(0, _way_onto_path())
    names = _integrated()
    if not names:
        steps.append(("va integrate", 'teach your coding agents to "hand over"'))
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


def _on_path() -> bool:
    """Whether the shell finds `va`; not so in a fresh checkout, where it lies in the virtual environment only."""
    return any(os.access(f"{directory}/va", os.X_OK) for directory in os.environ.get("PATH", os.defpath).split(os.pathsep))


def _way_onto_path() -> tuple[str, str]:
    """The command after which the shell finds `va`, and why."""
    beside = os.path.dirname(os.path.abspath(sys.executable))  # noqa: PTH100, PTH120 - no pathlib needed
    line = f"source {beside}/activate" if os.path.exists(f"{beside}/activate") else f"export PATH={beside}:$PATH"  # noqa: PTH110
    return line, "so that this shell finds `va`"


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
