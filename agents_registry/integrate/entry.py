"""The MCP entry of VibeAround in each agent's configuration: where it stands, what it says, how it is put into the text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from agents_registry.errors import RefusedError
from agents_registry.integrate import files, json_text, toml_text
from agents_registry.model import AgentSpec, McpSpec, place

NAME = "vibearound"
"""The server's name in every configuration, and the skill's."""


def mcp_file(spec: AgentSpec, env: Mapping[str, str], project: Path | None = None) -> Path | None:
    """The configuration file: the user's as `env` places it, or the one of a project. None when the agent has none."""
    if spec.mcp is None:
        return None
    if project is not None:
        return project / spec.mcp.project if spec.mcp.project else None
    found = place(spec.mcp.user, env)
    if found is not None and found.suffix == ".json" and not found.exists() and found.with_suffix(".jsonc").exists():
        return found.with_suffix(".jsonc")
    return found


def entry(mcp: McpSpec, command: Sequence[str]) -> dict[str, Any]:
    """What stands under our name, in the agent's own form."""
    if mcp.shape == "command-list":
        fields: dict[str, Any] = {"type": "local", "command": list(command)}
    else:
        fields = {"command": command[0], "args": list(command[1:])}
        if mcp.shape == "stdio":
            fields = {"type": "stdio", **fields}
    return {**fields, **mcp.extra}


def entered(mcp: McpSpec, text: str) -> Mapping[str, Any] | None:
    """Our entry as `text` has it, or None. Raises ValueError when the text is not of the format."""
    found = (toml_text.get_table if mcp.format == "toml" else json_text.get_member)(text, _path(mcp)) if text.strip() else None
    return found if isinstance(found, Mapping) else None


def with_entry(mcp: McpSpec, text: str, command: Sequence[str], path: Path) -> str:
    """`text` with our entry; further fields that somebody gave it (limits, variables) stay.

    Raises:
        RefusedError: the text is not of the agent's format.
    """
    wanted = entry(mcp, command)
    try:
        merged = {**(entered(mcp, text) or {}), **wanted}
        return (toml_text.set_table if mcp.format == "toml" else json_text.set_member)(text, _path(mcp), merged)
    except ValueError as error:
        raise _refused(path, mcp, error) from error


def without_entry(mcp: McpSpec, text: str, path: Path) -> str:
    """`text` without our entry. Raises RefusedError like `with_entry`."""
    if not text.strip():
        return text
    try:
        return (toml_text.remove_table if mcp.format == "toml" else json_text.remove_member)(text, _path(mcp))
    except ValueError as error:
        raise _refused(path, mcp, error) from error


def is_integrated(spec: AgentSpec, env: Mapping[str, str], cwd: Path | None = None) -> bool:
    """Whether the agent's own configuration has our server, at user level or in the project `cwd`.

    A file that cannot be read counts as one without it: the agent then does not start it either.
    """
    if spec.mcp is None:
        return False
    for path in (mcp_file(spec, env), mcp_file(spec, env, cwd) if cwd is not None else None):
        if path is None:
            continue
        try:
            found = entered(spec.mcp, files.read_text(path) or "")
        except (RefusedError, ValueError):
            continue
        if found is not None and found.get("enabled") is not False and found.get("disabled") is not True:
            return True
    return False


def _path(mcp: McpSpec) -> tuple[str, ...]:
    return (*mcp.key.split("."), NAME)


def _refused(path: Path, mcp: McpSpec, error: ValueError) -> RefusedError:
    return RefusedError(
        f"{path} is not the {mcp.format.upper()} that was expected: {error}.",
        hint="The file was not touched. Correct it, or enter the server by hand: va integrate --print shows how.",
        code="unparsable_file",
    )
