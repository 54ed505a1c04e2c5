"""How the fake model reads a request: one view of the history and of the offered tools, whatever the API.

Harness text that agents add to a conversation (reminders, environment, instructions) is no user text here, and messages of
role "system" or "developer" in the middle of a history are passed over, as Claude Code 2.1.3xx and Codex send them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

_WRAPPED = re.compile(r"<(system-reminder|session_context|environment_context)>.*?</\1>", re.DOTALL)
_NOISE = re.compile(
    r"^\s*<(system-reminder|environment_context|user_instructions|permissions|collaboration_mode|skills_instructions|"
    r"apps_instructions|plugins_instructions|model_switch|turn_aborted|local-command-caveat|local-command-stdout|"
    r"command-name|recommended_plugins|multi_agent_mode|session_context)\b|^\s*# AGENTS.md instructions"
)


class ToolName(NamedTuple):
    """A tool as it is called: Codex groups MCP tools in namespaces, all others have one name."""

    name: str
    namespace: str = ""

    @property
    def full(self) -> str:
        return f"{self.namespace}__{self.name}" if self.namespace else self.name


Tools = dict[ToolName, Mapping[str, Any]]


@dataclass(slots=True)
class History:
    """What a request holds, in order: (role, text), role one of user, assistant, call, result."""

    turns: list[tuple[str, str]] = field(default_factory=list)

    def add(self, role: str, text: str) -> None:
        """One entry; texts of a user that are harness only are left out, and so are empty ones."""
        if role == "user":
            text = _WRAPPED.sub("", text).strip()
            text = "" if _NOISE.match(text) else text
        if text or role == "result":
            self.turns.append((role, text))

    @property
    def users(self) -> tuple[str, ...]:
        return tuple(text for role, text in self.turns if role == "user")

    @property
    def last_user(self) -> str:
        return self.users[-1] if self.users else ""

    @property
    def _since_last_user(self) -> list[tuple[str, str]]:
        places = [place for place, (role, _) in enumerate(self.turns) if role == "user"]
        return self.turns[places[-1] + 1 :] if places else self.turns

    @property
    def rounds(self) -> int:
        """How many rounds of tool results followed the last user text."""
        roles = [role for role, _ in self._since_last_user]
        return sum(role == "result" and roles[place + 1 : place + 2] != ["result"] for place, role in enumerate(roles))

    @property
    def last_results(self) -> tuple[str, ...]:
        """The tool results at the very end."""
        found: list[str] = []
        for role, text in reversed(self._since_last_user):
            if role != "result":
                break
            found.insert(0, text)
        return tuple(found)


def flat(value: Any) -> str:
    """All text in a content value, whatever its nesting; text blocks are joined by line ends."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "\n".join(part for part in map(flat, value) if part)
    if isinstance(value, Mapping):
        for key in ("text", "output", "content"):
            if key in value:
                return flat(value[key])
        return ""
    return "" if value is None else str(value)


def _blocks(content: Any) -> list[Mapping[str, Any]]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [part if isinstance(part, Mapping) else {"type": "text", "text": str(part)} for part in content or ()]


def anthropic(body: Mapping[str, Any]) -> tuple[History, Tools]:
    """A request of POST /v1/messages."""
    history = History()
    for message in body.get("messages") or ():
        role = message.get("role")
        if role not in ("user", "assistant"):
            continue
        texts: list[str] = []
        for block in _blocks(message.get("content")):
            kind = block.get("type")
            if kind == "text":
                texts.append(str(block.get("text", "")))
            elif kind == "tool_result":
                history.add("result", flat(block.get("content")))
            elif kind == "tool_use":
                history.add("call", f"{block.get('name')} {json.dumps(block.get('input'), ensure_ascii=False)}")
        for text in texts:
            history.add(role, text)
    tools = {ToolName(str(tool.get("name"))): tool.get("input_schema") or {} for tool in body.get("tools") or ()}
    return history, tools


def responses(body: Mapping[str, Any]) -> tuple[History, Tools]:
    """A request of POST /v1/responses."""
    history = History()
    items = body.get("input") or []
    if isinstance(items, str):
        items = [{"type": "message", "role": "user", "content": items}]
    for item in items:
        kind = item.get("type", "message")
        if kind == "message" and item.get("role") in ("user", "assistant"):
            for block in _blocks(item.get("content")):
                history.add(item["role"], str(block.get("text", "")))
        elif kind.endswith("_output"):
            history.add("result", flat(item.get("output")))
        elif kind.endswith("_call"):
            arguments = item.get("arguments") or item.get("input") or item.get("action")
            history.add("call", f"{item.get('name', kind)} {arguments}")
    tools: Tools = {}
    for tool in body.get("tools") or ():
        if tool.get("type") == "namespace":
            for part in tool.get("tools") or ():
                tools[ToolName(str(part.get("name")), str(tool.get("name")))] = part.get("parameters") or {}
        else:
            tools[ToolName(str(tool.get("name") or tool.get("type")))] = tool.get("parameters") or {}
    return history, tools


def chat(body: Mapping[str, Any]) -> tuple[History, Tools]:
    """A request of POST /v1/chat/completions."""
    history = History()
    for message in body.get("messages") or ():
        role = message.get("role")
        if role == "tool":
            history.add("result", flat(message.get("content")))
        elif role in ("user", "assistant"):
            for block in _blocks(message.get("content")):
                history.add(role, str(block.get("text", "")))
            for call in message.get("tool_calls") or ():
                function = call.get("function") or {}
                history.add("call", f"{function.get('name')} {function.get('arguments')}")
    tools: Tools = {}
    for tool in body.get("tools") or ():
        function = tool.get("function") or {}
        tools[ToolName(str(function.get("name")))] = function.get("parameters") or {}
    return history, tools


def gemini(body: Mapping[str, Any]) -> tuple[History, Tools]:
    """A request of POST /v1beta/models/NAME:generateContent or :streamGenerateContent."""
    history = History()
    for content in body.get("contents") or ():
        role = "assistant" if content.get("role") == "model" else "user"
        for part in content.get("parts") or ():
            if "functionResponse" in part:
                answer = part["functionResponse"].get("response")
                history.add("result", json.dumps(answer, ensure_ascii=False))
            elif "functionCall" in part:
                call = part["functionCall"]
                history.add("call", f"{call.get('name')} {json.dumps(call.get('args'), ensure_ascii=False)}")
            elif "text" in part and not part.get("thought"):
                history.add(role, str(part["text"]))
    tools: Tools = {}
    for tool in body.get("tools") or ():
        for function in tool.get("functionDeclarations") or ():
            schema = function.get("parametersJsonSchema") or function.get("parameters") or {}
            tools[ToolName(str(function.get("name")))] = schema
    return history, tools


def wanted_schema(body: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The JSON schema that a request wants its answer to fit (titles and other helpers), or None."""
    asked = (body.get("output_config") or {}).get("format") or (body.get("text") or {}).get("format") or {}
    if isinstance(asked, Mapping) and asked.get("type") == "json_schema":
        return asked.get("schema") or {}
    asked = body.get("response_format") or {}
    if asked.get("type") in ("json_schema", "json_object"):
        return (asked.get("json_schema") or {}).get("schema") or {}
    asked = body.get("generationConfig") or {}
    if asked.get("responseMimeType") == "application/json":
        return asked.get("responseJsonSchema") or asked.get("responseSchema") or {}
    return None
