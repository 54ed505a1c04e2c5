"""What one line of a Codex rollout means. Pure functions over parsed lines, for all eras of the format.

Two logs lie in one file: `response_item` lines are what the model sees, `event_msg` lines what the window shows; since
0.146 a third, `item_completed`, may take the place of the second ("paginated"). Before September 2025 lines were bare:
no envelope, the first line without type or cwd. `unwrap` gives all of them one shape.
"""

from __future__ import annotations

import re
from typing import Any

from agents_registry.sessions.plain import flat_text
from agents_registry.sessions.times import seconds

Record = dict[str, Any]

ENVELOPES = frozenset(
    {
        "session_meta",
        "response_item",
        "event_msg",
        "turn_context",
        "compacted",
        "world_state",
        "inter_agent_communication",
        "inter_agent_communication_metadata",
        "token_usage_record",
    }
)
CALLS = frozenset(
    {
        "function_call",
        "custom_tool_call",
        "local_shell_call",
        "web_search_call",
        "tool_search_call",
        "image_generation_call",
        "tool_call",
    }
)
OUTPUTS = frozenset({"function_call_output", "custom_tool_call_output", "tool_search_output", "local_shell_call_output", "tool_result"})
_ITEMS = CALLS | OUTPUTS | {"message", "reasoning"}
_BARE_CALLS = {"tool_call": "function_call", "function_call": "function_call"}
_BARE_OUTPUTS = {"tool_result": "function_call_output", "function_result": "function_call_output"}

_INJECTED = re.compile(
    r"\s*(?:<(?:environment_context|user_instructions|permissions instructions|permissions|collaboration_mode|skills_instructions|"
    r"apps_instructions|plugins_instructions|turn_aborted|recommended_plugins|multi_agent_mode|model_switch|user_shell_command|"
    r"subagent_notification|heartbeat|skill|personality_spec|realtime_conversation|INSTRUCTIONS)\b"
    r"|# AGENTS\.md instructions|Warning: The maximum number of unified exec processes|"
    r"Another language model started to solve this problem and produced a summary)"
)
_REQUEST = "## My request for Codex:"
_CWD = re.compile(r"<cwd>(.*?)</cwd>|Current working directory: (.*)")
_EXIT = re.compile(r"(?:Chunk ID: .*\n)?(?:Wall time: .*\n)?(?:Process exited with code|Exit code:) (-?\d+)")


def unwrap(record: Record) -> tuple[str, Record]:
    """(kind, payload): kind is one of `ENVELOPES`, or "" for a line of no known shape."""
    payload = record.get("payload")
    kind = record.get("type")
    if kind is not None and not isinstance(kind, str):
        return "", {}
    if isinstance(payload, dict) and kind is not None:
        return kind, payload
    if kind in _BARE_CALLS and isinstance(record.get("function"), dict):
        return "response_item", {**record, "type": _BARE_CALLS[kind], "name": record["function"].get("name", "")}
    if kind in _BARE_OUTPUTS:
        return "response_item", {**record, "type": _BARE_OUTPUTS[kind], "output": record.get("result")}
    if kind in _ITEMS:
        return "response_item", record
    if kind is None and record.get("role") in ("user", "assistant"):
        return "response_item", {**record, "type": "message", "content": record.get("content", record.get("message"))}
    if kind is None and isinstance(record.get("id"), str) and "timestamp" in record and "record_type" not in record:
        return "session_meta", record
    return "", {}


def is_ours(record: Record) -> bool:
    """Whether the line is one of a rollout (and of no other agent that this package reads)."""
    kind, payload = unwrap(record)
    if kind == "session_meta":
        return "payload" in record or "instructions" in record or "git" in record
    if kind in ENVELOPES and "payload" in record:
        return True
    if record.get("record_type") == "state":
        return True
    if kind != "response_item":
        return False
    if payload["type"] == "message":
        # Bare lines: other agents write {role, content} too, but with ids, parents or nested messages.
        bare_keys = not {"uuid", "sessionId", "parentId", "parentUuid", "parts", "tool_calls", "tool_call_id", "session_id"} & record.keys()
        typed = record.get("type") == "message" and "message" not in record
        return bare_keys and (typed or "timestamp" in record or "created_at" in record) and not isinstance(record.get("message"), dict)
    return "id" not in record or "call_id" in record


def when(record: Record) -> float | None:
    found = seconds(record.get("timestamp"))
    if found is None:
        payload = record.get("payload")
        found = seconds(payload.get("timestamp")) if isinstance(payload, dict) else seconds(record.get("created_at"))
    return found


def message_text(payload: Record) -> str:
    """The text blocks of a message item joined with LF."""
    content = payload.get("content")
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    return "\n".join(
        block["text"]
        for block in content
        if isinstance(block, dict)
        and block.get("type") in ("input_text", "output_text", "text", "Text")
        and isinstance(block.get("text"), str)
    )


def is_injected(text: str) -> bool:
    """Whether a user text is context that the program put in."""
    return bool(_INJECTED.match(text))


def request(text: str) -> str:
    """What the human asked; editors wrap it in a description of open files."""
    if text.lstrip().startswith("# Context from my IDE setup") and _REQUEST in text:
        return text.split(_REQUEST, 1)[1].strip()
    return text


def context_cwd(text: str) -> str:
    """The working directory that an injected environment context names, "" without one."""
    found = _CWD.search(text) if "<environment_context>" in text else None
    return (found.group(1) or found.group(2) or "").strip() if found else ""


def call_id(payload: Record) -> str:
    found = payload.get("call_id") or payload.get("id")
    return found if isinstance(found, str) else ""


def call_parts(payload: Record) -> tuple[str, Any]:
    """(name, arguments) of a call item, MCP tools as `mcp__server__tool`."""
    kind = payload["type"]
    if kind in ("function_call", "tool_call"):
        name = str(payload.get("name", ""))
        space = payload.get("namespace")
        if isinstance(space, str) and space:
            name = f"{space}__{name}" if not name.startswith(space) else name
        return name, payload.get("arguments", payload.get("parameters"))
    if kind == "custom_tool_call":
        return str(payload.get("name", "")), {"input": payload.get("input", "")}
    if kind == "local_shell_call":
        action = payload.get("action")
        return "local_shell", action if isinstance(action, dict) else {}
    action = payload.get("action") or payload.get("arguments") or {}
    return kind.removesuffix("_call"), action


def output_parts(payload: Record) -> tuple[str, bool]:
    """(text, whether it failed) of an output item in any of its shapes."""
    output = payload.get("output", payload.get("result"))
    failed = payload.get("success") is False
    if isinstance(output, dict):
        failed = failed or output.get("success") is False
        return flat_text(output), failed
    if isinstance(output, str) and output.startswith('{"output"'):
        text, code = _wrapped(output)
        return text, failed or code not in (0, None)
    text = flat_text(output)
    found = _EXIT.match(text)
    return text, failed or (found is not None and found.group(1) != "0")


def _wrapped(output: str) -> tuple[str, int | None]:
    import json

    try:
        value = json.loads(output)
    except (ValueError, RecursionError):
        return output, None
    if not isinstance(value, dict) or not isinstance(value.get("output"), str):
        return output, None
    metadata = value.get("metadata")
    code = metadata.get("exit_code") if isinstance(metadata, dict) else None
    return value["output"], code if isinstance(code, int) else None


def parent_of(meta: Record) -> str:
    """The thread whose sub-agent this is, "" for a session of its own (a fork by the user is one)."""
    source = meta.get("source")
    spawned = source.get("subagent") if isinstance(source, dict) else None
    if spawned is None and meta.get("thread_source") != "subagent" and not meta.get("parent_thread_id"):
        return ""
    found = meta.get("parent_thread_id")
    if not found and isinstance(spawned, dict) and isinstance(spawned.get("thread_spawn"), dict):
        found = spawned["thread_spawn"].get("parent_thread_id")
    return str(found or meta.get("forked_from_id") or "unknown")
