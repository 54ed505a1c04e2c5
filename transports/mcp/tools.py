"""The tools that an agent may call, and the check of what it sends. Running one is the supervisor's business.

The declarations are `tools.json`, which the shim reads too when it has to answer without a supervisor.
"""

from __future__ import annotations

import json
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple

from agents_registry.errors import UsageError

INSTRUCTIONS = (
    "VibeAround moves this conversation to another surface (phone chat, web page, another terminal). When the user asks "
    "to hand over, call prepare_handover once and show the line `/pickup CODE` as it is."
)
_LONGEST_ARGUMENT = 4096
_ALIASES = {"agent_type": "agent_kind"}
DECLARATIONS: list[dict[str, Any]] = json.loads(Path(__file__).with_name("tools.json").read_bytes())
_BY_NAME = {declaration["name"]: declaration for declaration in DECLARATIONS}


class ToolCall(NamedTuple):
    """A checked call. `arguments` holds only declared names with non-empty text; `meta` is the request's `_meta` as it
    came (Codex puts its thread id there), unchecked."""

    name: str
    arguments: dict[str, str]
    meta: dict[str, Any]


def is_known(name: object) -> bool:
    return isinstance(name, str) and name in _BY_NAME


def check(name: str, arguments: object, meta: dict[str, Any]) -> ToolCall:
    """A call of a known tool with its arguments checked and aliases resolved.

    Raises UsageError with words that let the model mend its call.
    """
    if arguments is None:
        arguments = {}
    if not isinstance(arguments, dict):
        raise UsageError(f"The arguments of {name} must be an object.")
    schema = _BY_NAME[name]["inputSchema"]
    given: dict[str, str] = {}
    key: str
    for key, value in arguments.items():
        if key not in schema["properties"]:
            near = get_close_matches(key[:64], schema["properties"], 1)
            known = f"Did you mean {near[0]}?" if near else f"It takes {', '.join(schema['properties'])}."
            raise UsageError(f"{name} has no argument {key[:64]!r}.", hint=known)
        if value is None or value == "":
            continue
        given[_ALIASES.get(key, key)] = _checked_text(name, key, value)
    missing = [required for required in schema.get("required", ()) if required not in given]
    if missing:
        raise UsageError(f"{name} needs {' and '.join(missing)}.", hint=schema["properties"][missing[0]]["description"])
    cwd = given.get("cwd")
    if cwd is not None and not cwd.startswith("/"):
        raise UsageError(f"cwd must be an absolute path, not {cwd[:200]!r}.", hint="Give the output of `pwd`.")
    return ToolCall(name, given, meta)


def handover_text(code: str, expires_in_s: float, *notes: str) -> str:
    """The answer of prepare_handover: what to type, alone on its line, then for how long, then what else to know."""
    lines = [
        "Tell the user to type this in the chat, or as `va pickup` in a terminal:",
        f"/pickup {code}",
        f"The code holds for {expires_in_s:.0f} seconds and works once.",
        *notes,
    ]
    return "\n".join(lines)


def _checked_text(name: str, key: str, value: object) -> str:
    if not isinstance(value, str):
        raise UsageError(f"{key} of {name} must be a text.")
    text = value.strip()
    if len(text) > _LONGEST_ARGUMENT:
        raise UsageError(f"{key} of {name} has {len(text)} characters; {_LONGEST_ARGUMENT} are allowed.")
    if any(character < " " or character == "\x7f" for character in text):
        raise UsageError(f"{key} of {name} must be one line without control characters.")
    return text
