"""What OpenCode's messages and parts mean, in its database and in the JSON tree of its older versions alike."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from agents_registry.sessions.filestore import Meta, object_of, text_of
from agents_registry.sessions.jsonl import Record
from agents_registry.sessions.neutral import FileRef, ImageRef, Text, Thinking, ToolResult, flat_text
from agents_registry.sessions.places import from_uri
from agents_registry.sessions.steps import Call, Kind, Part, Step
from agents_registry.sessions.times import seconds

_QUIET = frozenset({"step-start", "step-finish", "snapshot", "patch", "agent", "subtask", "retry", "compaction"})
_ENDED = frozenset({"completed", "success", "error"})


def message_step(
    message_id: str, data: Record, parts: Iterable[tuple[str, Record]], meta: Meta, *, exact: bool = False
) -> Step | None:
    """One message with its parts as (part id, data); None when there is nothing in it.

    `exact`: a tool's status counts as ended only in OpenCode's own spelling; otherwise case does not matter.

    Synthetic text is the harness's (it repeats what a tool read, or asks the agent to go on) and is nobody's words.
    """
    at = seconds(object_of(data, "time").get("created"))
    role = text_of(data, "role")
    path = data.get("path")
    step = Step(Kind.NOTE, [], 0, at, id=message_id, message_id=message_id)
    step.cwd = text_of(path, "cwd") if isinstance(path, dict) else ""
    step.model = text_of(data, "modelID") or text_of(object_of(data, "model"), "modelID")
    compacted_from = None
    for part_id, part in parts:
        if text_of(part, "type") == "compaction":
            compacted_from = text_of(part, "tail_start_id")
        step.parts.extend(_part(part_id, part, at, meta, exact))
    if role == "user":
        if not step.parts:
            # The oldest versions kept a prompt's text in the summary alone.
            title = text_of(object_of(data, "summary"), "title")
            step.parts = [Text(title, 0, at)] if title and compacted_from is None else []
        step.kind = Kind.USER if step.parts else Kind.NOTE
        if compacted_from is not None:
            step.kind = Kind.NOTE
            step.kept_from = compacted_from
        return step
    if role != "assistant":
        meta.strange(f"role {str(role)[:30]}")
        return None
    step.kind = Kind.AGENT
    if data.get("summary") is True and step.text.strip() and not data.get("error"):
        step.kind = Kind.COMPACT
    return step


def in_order(steps: Iterable[Step], revert: Record) -> Iterator[Step]:
    """Messages as the agent sees them: those from `revert.messageID` on are undone; a summary knows what it kept."""
    undone = text_of(revert, "messageID")
    kept_from = ""
    for step in steps:
        if undone and step.id == undone:
            return
        if step.kind is Kind.NOTE and step.kept_from:
            kept_from = step.kept_from
        elif step.kind is Kind.COMPACT:
            step.kept_from, kept_from = kept_from, ""
        yield step


def as_counted(steps: Iterable[Step]) -> Iterator[Step]:
    """The same messages for counting: a summary is a message of the agent."""
    for step in steps:
        if step.kind is Kind.COMPACT:
            step.kind = Kind.AGENT
        yield step


def _part(part_id: str, part: Record, at: float | None, meta: Meta, exact: bool) -> Iterator[Part]:
    kind = text_of(part, "type")
    if kind == "text":
        if part.get("synthetic") is not True and part.get("ignored") is not True and text_of(part, "text"):
            yield Text(text_of(part, "text"), 0, at)
    elif kind == "reasoning":
        if text_of(part, "text"):
            yield Thinking(text_of(part, "text"), 0, at)
    elif kind == "tool":
        yield from _tool(part_id, part, at, exact)
    elif kind == "file":
        media, url = text_of(part, "mime"), text_of(part, "url")
        source = "inline" if url.startswith("data:") else from_uri(url)
        if media.startswith("image/"):
            yield ImageRef(media, source, len(url) * 3 // 4 if source == "inline" else 0, 0, at)
        elif part.get("synthetic") is not True:
            yield FileRef(source, media, 0, at)
    elif kind not in _QUIET:
        meta.strange(f"part {str(kind)[:30]}")


def _tool(part_id: str, part: Record, at: float | None, exact: bool) -> Iterator[Part]:
    state = object_of(part, "state")
    call_id = text_of(part, "callID") or part_id
    yield Call(call_id, text_of(part, "tool"), state.get("input"))
    status = text_of(state, "status")
    status = status if exact else status.lower()
    if status not in _ENDED:
        return
    # A command that failed is "completed" to OpenCode; its exit code tells (metadata.exit).
    code = object_of(state, "metadata").get("exit")
    failed = status == "error" or (isinstance(code, int) and code != 0)
    text = flat_text(state.get("error")) if status == "error" else flat_text(state.get("output"))
    ended = seconds(object_of(state, "time").get("end"))
    yield ToolResult(call_id, text, failed, 0, 0, ended if ended is not None else at)
