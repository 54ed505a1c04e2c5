"""ACP v1 `session/update` notifications as neutral events, so that nothing above speaks a protocol version.

Unknown kinds and fields pass through: an update that is not understood becomes `Other` with its whole content.
Sources: agentclientprotocol.com schema v1 and what the adapters really send (Codex puts shell output into `_meta`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Text:
    """A piece of what the agent says. `message_id` changes with each message where the agent gives one."""

    text: str
    message_id: str = ""


@dataclass(frozen=True, slots=True)
class Thought:
    """A piece of what the agent thinks."""

    text: str
    message_id: str = ""


@dataclass(frozen=True, slots=True)
class UserEcho:
    """A piece of a user's text: history while a session is loaded, or an agent that echoes its prompts."""

    text: str


@dataclass(frozen=True, slots=True)
class Media:
    """Something said that is not text: an image, a sound, a resource; the ACP content block."""

    block: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool call's beginning or change. Only the fields that this update carried are set (`None` = unchanged)."""

    id: str
    title: str | None = None
    kind: str | None = None
    status: str | None = None
    input: Any = None
    output: Any = None
    content: list[Any] | None = None
    locations: list[Any] | None = None
    output_delta: str = ""
    """A further piece of a running command's output (Codex)."""
    exit_code: int | None = None
    begins: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """The whole plan; it replaces the one before."""

    entries: list[Any]


@dataclass(frozen=True, slots=True)
class Mode:
    """The agent's current mode."""

    mode: str


@dataclass(frozen=True, slots=True)
class Title:
    """The agent's name for the session."""

    title: str


@dataclass(frozen=True, slots=True)
class Commands:
    """The agent's slash commands: `[{name, description}]`."""

    commands: list[dict[str, str]]


@dataclass(frozen=True, slots=True)
class Options:
    """The session's configuration options, as the agent states them."""

    options: list[Any]


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens or cost so far, as the agent states them."""

    usage: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Other:
    """An update of a kind that is not known here, whole."""

    kind: str
    update: dict[str, Any] = field(default_factory=dict)


Event = Text | Thought | UserEcho | Media | Tool | Plan | Mode | Title | Commands | Options | Usage | Other

CONVERSATION = (Text, Thought, UserEcho, Media, Tool, Plan)
"""Kinds that a replay of history consists of; the others describe the session's present."""


def neutral(update: dict[str, Any]) -> Event:
    """The event that one `update` object means. Never raises: what is malformed is passed on as `Other`."""
    kind = update.get("sessionUpdate")
    if not isinstance(kind, str):
        return Other("", update)
    if kind in ("agent_message_chunk", "agent_thought_chunk", "user_message_chunk"):
        return _chunk(kind, update)
    if kind in ("tool_call", "tool_call_update"):
        return _tool(kind == "tool_call", update)
    return _state(kind, update)


def _chunk(kind: str, update: dict[str, Any]) -> Event:
    content = update.get("content")
    if not isinstance(content, dict):
        return Other(kind, update)
    text = content.get("text") if content.get("type", "text") == "text" else None
    if kind == "user_message_chunk":
        return UserEcho(text if isinstance(text, str) else "")
    if not isinstance(text, str):
        return Media(content)
    message_id = update.get("messageId")
    return (Text if kind == "agent_message_chunk" else Thought)(text, message_id if isinstance(message_id, str) else "")


def _tool(begins: bool, update: dict[str, Any]) -> Event:
    tool_id = update.get("toolCallId")
    if not isinstance(tool_id, str):
        return Other("tool_call", update)
    meta = update.get("_meta")
    meta = meta if isinstance(meta, dict) else {}
    delta = meta.get("terminal_output_delta")
    end = meta.get("terminal_exit")
    exit_code = end.get("exit_code", end.get("exitCode")) if isinstance(end, dict) else None
    content, locations = update.get("content"), update.get("locations")
    return Tool(
        id=tool_id,
        title=_text(update.get("title")),
        kind=_text(update.get("kind")),
        status=_text(update.get("status")) or ("pending" if begins else None),
        input=update.get("rawInput"),
        output=update.get("rawOutput"),
        content=content if isinstance(content, list) else None,
        locations=locations if isinstance(locations, list) else None,
        output_delta=(_text(delta.get("data")) or "") if isinstance(delta, dict) else "",
        exit_code=exit_code if isinstance(exit_code, int) else None,
        begins=begins,
    )


def _state(kind: str, update: dict[str, Any]) -> Event:
    match kind:
        case "plan" if isinstance(update.get("entries"), list):
            return Plan(update["entries"])
        case "current_mode_update" if isinstance(update.get("currentModeId"), str):
            return Mode(update["currentModeId"])
        case "session_info_update" if isinstance(update.get("title"), str):
            return Title(update["title"])
        case "available_commands_update" if isinstance(update.get("availableCommands"), list):
            return Commands(
                [
                    {"name": str(c.get("name", "")), "description": str(c.get("description", ""))}
                    for c in update["availableCommands"]
                    if isinstance(c, dict)
                ]
            )
        case "config_option_update" if isinstance(update.get("configOptions"), list):
            return Options(update["configOptions"])
        case "usage_update":
            return Usage({k: v for k, v in update.items() if k != "sessionUpdate"})
    return Other(kind, update)


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
