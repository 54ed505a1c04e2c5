"""From a Codex rollout to a conversation, as a resume would load it.

The history of a fork lies in its parent's file up to a recorded ordinal, so reading one may open several. A `compacted`
line replaces everything before it; `thread_rolled_back` takes human turns away from the end. Which of the logs speaks
for the human and for the agent is decided per file, once it has been read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agents_registry.sessions import codex_records as records
from agents_registry.sessions.handing import SUMMARY_MARK
from agents_registry.sessions.jsonl import JsonLines
from agents_registry.sessions.neutral import (
    USER,
    Builder,
    Conversation,
    FileRef,
    ImageRef,
    Text,
    clip,
    clip_setting,
    flat_text,
)

Record = dict[str, Any]
_FORKS = 20
"""Parents that are followed; a longer chain is a loop or a mistake."""

Finder = Callable[[str], Path | None]
"""Where the rollout of another thread of the same home lies."""


@dataclass(slots=True)
class _Step:
    """One thing that happened. `source` names the log it comes from."""

    source: str
    what: str
    line: int
    at: float | None
    text: str = ""
    payload: Record = field(default_factory=dict)
    call: str = ""
    failed: bool = False
    file: str = ""


@dataclass(slots=True)
class _Log:
    steps: list[_Step] = field(default_factory=list)
    failures: set[str] = field(default_factory=set)
    """Calls that the window's log says failed; the model's log often does not."""
    meta: Record = field(default_factory=dict)
    name: str = ""
    skipped: list[Any] = field(default_factory=list)
    skipped_count: int = 0
    unknown: dict[str, int] = field(default_factory=dict)


def read(path: Path, session_id: str, finder: Finder, *, clip_to: int = 0) -> Conversation:
    """The conversation of one rollout. `clip_to` bounds the characters kept of each tool result while reading.

    Raises OSError when the file cannot be read. A parent that is not there any more is a skipped record, not an error.
    """
    log = _Log()
    _collect(path, log, finder, clip_to or clip_setting(), until=None, depth=0)
    made = Builder("codex", session_id)
    conversation = made.conversation
    _assemble(made, log)
    meta = log.meta
    conversation.path = path
    conversation.title = log.name
    conversation.parent_id = records.parent_of(meta) or str(meta.get("forked_from_id") or "")
    git = meta.get("git")
    conversation.branch = str(git.get("branch") or "") if isinstance(git, dict) else ""
    first = meta.get("cwd")
    conversation.cwd = first if isinstance(first, str) and first else ""
    conversation.skipped = tuple(log.skipped)
    conversation.skipped_count = log.skipped_count
    conversation.unknown = log.unknown
    return made.done()


def _collect(path: Path, log: _Log, finder: Finder, clip_to: int, *, until: int | None, depth: int) -> None:
    lines = JsonLines(path)
    file = str(path) if depth else ""
    mine = False
    for number, record in lines:
        ordinal = record.get("ordinal")
        if until is not None and isinstance(ordinal, int) and ordinal >= until:
            break
        kind, payload = records.unwrap(record)
        at = records.when(record)
        if kind == "session_meta":
            if mine:
                continue  # a copied parent's
            mine = True
            if not depth:
                log.meta = payload
            if payload.get("cwd"):
                log.steps.append(_Step("", "cwd", number, at, str(payload["cwd"])))
            _base(path, payload, log, finder, clip_to, depth, lines, number)
        elif kind == "turn_context":
            log.steps.append(_Step("", "context", number, at, payload={"cwd": payload.get("cwd"), "model": payload.get("model")}, file=file))
        elif kind == "compacted":
            log.steps.append(_Step("", "compacted", number, at, _summary(payload), file=file))
        elif kind == "response_item":
            step = _response(payload, number, at, clip_to)
            if step is not None:
                step.file = file
                log.steps.append(step)
        elif kind == "event_msg":
            step = _event(payload, number, at, log, clip_to)
            if step is not None:
                step.file = file
                log.steps.append(step)
        elif kind not in records.ENVELOPES and record.get("record_type") != "state":
            name = kind or str(record.get("type", "record without type"))
            log.unknown[name] = log.unknown.get(name, 0) + 1
    log.skipped += lines.skipped
    log.skipped_count += lines.malformed + lines.non_object


def _base(path: Path, meta: Record, log: _Log, finder: Finder, clip_to: int, depth: int, lines: JsonLines, number: int) -> None:
    """Reads the history a fork stands on, when it is kept in another file."""
    base = meta.get("history_base")
    until: Any = None
    thread: Any = None
    if isinstance(base, dict):
        thread, until = base.get("thread_id"), base.get("end_ordinal_exclusive")
    elif meta.get("forked_from_ordinal_exclusive") is not None:
        thread, until = meta.get("forked_from_id"), meta["forked_from_ordinal_exclusive"]
    if not isinstance(thread, str) or not thread:
        return
    found = finder(thread) if depth < _FORKS else None
    if found is None or found == path:
        lines.note(number, f"the earlier history is in thread {thread}, whose file is not there")
        log.skipped_count += 1
        return
    _collect(found, log, finder, clip_to, until=until if isinstance(until, int) else None, depth=depth + 1)


def _summary(payload: Record) -> str:
    message = payload.get("message")
    if isinstance(message, str) and message.strip():
        return message
    parts = []
    for item in _list(payload.get("replacement_history")):
        if not isinstance(item, dict) or item.get("type") != "message" or item.get("role") not in ("user", "assistant"):
            continue
        text = records.message_text(item)
        if text.strip() and not records.is_injected(text):
            parts.append(text)
    return "\n\n".join(parts)


def _response(payload: Record, line: int, at: float | None, clip_to: int) -> _Step | None:
    kind = payload.get("type")
    if kind == "message":
        text = records.message_text(payload)
        role = payload.get("role")
        if role == "user":
            if records.is_injected(text):
                cwd = records.context_cwd(text)
                return _Step("", "cwd", line, at, cwd) if cwd else None
            return _Step("response", "user", line, at, text, {"images": images(payload, line, at)})
        return _Step("response", "agent", line, at, text) if role == "assistant" else None
    if kind == "reasoning":
        text = flat_text(payload.get("summary")) or flat_text(payload.get("content"))
        return _Step("response", "thinking", line, at, text) if text.strip() else None
    if not isinstance(kind, str):
        return None
    if kind in records.CALLS:
        name, arguments = records.call_parts(payload)
        return _Step("response", "call", line, at, name, {"arguments": arguments}, records.call_id(payload) or f"line {line}")
    if kind in records.OUTPUTS:
        text, failed = records.output_parts(payload)
        return _Step("response", "result", line, at, clip(text, clip_to)[0] if clip_to else text, {}, records.call_id(payload), failed)
    return None


def images(payload: Record, line: int, at: float | None) -> list[ImageRef | FileRef]:
    """References to the images of a user message (as event, as item, or as response item)."""
    found: list[ImageRef | FileRef] = []
    for path in _list(payload.get("local_images")):
        if isinstance(path, str):
            found.append(ImageRef("image/*", path, 0, line, at))
    for address in _list(payload.get("images")):
        if isinstance(address, str):
            found.append(_image(address, line, at))
    for block in _list(payload.get("content")):
        if not isinstance(block, dict):
            continue
        if block.get("type") in ("input_image", "image", "Image"):
            found.append(_image(str(block.get("image_url", "")), line, at))
        elif block.get("type") in ("local_image", "LocalImage"):
            found.append(ImageRef("image/*", str(block.get("path", "")), 0, line, at))
    return found


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _image(address: str, line: int, at: float | None) -> ImageRef:
    if address.startswith("data:"):
        media, _, data = address[5:].partition(",")
        return ImageRef(media.split(";")[0] or "image/*", "inline", len(data) * 3 // 4, line, at)
    return ImageRef("image/*", address or "inline", 0, line, at)


def _event(payload: Record, line: int, at: float | None, log: _Log, clip_to: int) -> _Step | None:
    kind = payload.get("type")
    if kind == "user_message":
        return _Step("event", "user", line, at, str(payload.get("message", "")), {"images": images(payload, line, at)})
    if kind == "agent_message":
        return _Step("event", "agent", line, at, str(payload.get("message", "")))
    if kind == "agent_reasoning":
        return _Step("event", "thinking", line, at, str(payload.get("text", "")))
    if kind == "thread_rolled_back":
        turns = payload.get("num_turns")
        return _Step("", "back", line, at, payload={"turns": turns}) if isinstance(turns, int) and turns > 0 else None
    if kind == "thread_name_updated":
        log.name = str(payload.get("thread_name") or payload.get("name") or log.name)
    if kind == "exec_command_end" and payload.get("exit_code") not in (0, None):
        log.failures.add(str(payload.get("call_id")))
    if kind == "mcp_tool_call_end":
        result = payload.get("result")
        ok = result.get("Ok") if isinstance(result, dict) else None
        if isinstance(result, dict) and ("Err" in result or (isinstance(ok, dict) and (ok.get("isError") or ok.get("is_error")))):
            log.failures.add(str(payload.get("call_id")))
    item = payload.get("item")
    if kind != "item_completed" or not isinstance(item, dict):
        return None
    what = item.get("type")
    if what == "UserMessage":
        return _Step("item", "user", line, at, records.message_text(item), {"images": images(item, line, at)})
    if what == "AgentMessage":
        return _Step("item", "agent", line, at, records.message_text(item))
    if what == "Reasoning":
        text = flat_text(item.get("summary_text")) or flat_text(item.get("raw_content"))
        return _Step("item", "thinking", line, at, text)
    if what in ("CommandExecution", "McpToolCall", "FileChange"):
        failed = item.get("status") == "failed" or item.get("exit_code") not in (0, None)
        if failed:
            log.failures.add(str(item.get("id")))
        return _Step("item", "done", line, at, clip(_item_output(item), clip_to)[0], _item_call(item), str(item.get("id", "")), failed)
    return None


def _item_call(item: Record) -> Record:
    kind = item["type"]
    if kind == "CommandExecution":
        return {"name": "exec_command", "arguments": {"command": item.get("command")}}
    if kind == "McpToolCall":
        return {"name": f"mcp__{item.get('server', '')}__{item.get('tool', '')}", "arguments": item.get("arguments")}
    return {"name": "apply_patch", "arguments": {"paths": list(item["changes"]) if isinstance(item.get("changes"), dict) else []}}


def _item_output(item: Record) -> str:
    for key in ("aggregated_output", "formatted_output", "stdout"):
        if isinstance(item.get(key), str) and item[key]:
            return str(item[key])
    return flat_text(item.get("result"))


def _assemble(made: Builder, log: _Log) -> None:
    speaks = {
        "user": _first_source(log, "user", ("event", "item", "response")),
        "agent": _first_source(log, "agent", ("response", "item", "event")),
        "thinking": _first_source(log, "thinking", ("response", "item", "event")),
    }
    has_calls = any(step.source == "response" and step.what == "call" for step in log.steps)
    for step in log.steps:
        made.file = step.file
        at, line = step.at, step.line
        if step.what in speaks and step.source != speaks[step.what]:
            continue
        if step.what == "user":
            if step.text.startswith(SUMMARY_MARK):
                made.compact(step.text.removeprefix(SUMMARY_MARK), line=line, at=at)
                continue
            text = records.request(step.text)
            blocks = [Text(text, line, at)] if text.strip() else []
            made.user([*blocks, *step.payload["images"]], line=line, at=at)
        elif step.what == "agent":
            made.text(step.text, line=line, at=at)
        elif step.what == "thinking":
            made.thinking(step.text, line=line, at=at)
        elif step.what == "call":
            made.call(step.call, step.text, step.payload["arguments"], line=line, at=at)
        elif step.what == "result":
            made.result(step.call, step.text, is_error=step.failed or step.call in log.failures, line=line, at=at)
        elif step.what == "done" and not has_calls:
            made.call(step.call, step.payload["name"], step.payload["arguments"], line=line, at=at)
            made.result(step.call, step.text, is_error=step.failed, line=line, at=at)
        elif step.what == "cwd":
            made.cwd = step.text
        elif step.what == "context":
            made.cwd = step.payload["cwd"] if isinstance(step.payload["cwd"], str) else made.cwd
            made.model = step.payload["model"] if isinstance(step.payload["model"], str) else made.model
        elif step.what == "compacted":
            made.compact(step.text, line=line, at=at)
        elif step.what == "back":
            _take_back(made, step.payload["turns"])


def _first_source(log: _Log, what: str, order: tuple[str, ...]) -> str:
    present = {step.source for step in log.steps if step.what == what}
    return next((source for source in order if source in present), "")


def _take_back(made: Builder, turns: int) -> None:
    kept = made.conversation.turns
    places = [index for index, turn in enumerate(kept) if turn.role == USER]
    if places:
        del kept[places[-min(turns, len(places))] :]
