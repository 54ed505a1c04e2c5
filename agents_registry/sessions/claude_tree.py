"""From a Claude Code transcript to a conversation: the path of its tree that a resume would load.

Records with `uuid` and `parentUuid` form a tree. What counts is the path from the last user or assistant record up to
a record without parent; rewound and overwritten branches stay in the file and are not on it. Three things bend the
rule: the records of one API message, and the results of its parallel tool calls, hang side by side although all are
part of the turn; a parent that is not in the file is a gap that the record before it in the file closes; and a
compaction begins a new root, whose summary stands for what was before.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from agents_registry.sessions import claude_records as records
from agents_registry.sessions.jsonl import JsonLines
from agents_registry.sessions.neutral import Block, Builder, Conversation, FileRef, ImageRef, Text, flat_text
from agents_registry.sessions.neutral import clip as clip_text

Record = dict[str, Any]


@dataclass(slots=True)
class _Node:
    line: int
    parent: str | None
    record: Record
    """Only what a turn needs is kept of it (`_slim`)."""


def read(path: Path, session_id: str, *, clip: int = 0, sidechains: bool = False) -> Conversation:
    """The conversation of one transcript. `clip` bounds the characters kept of each tool result while reading.

    `sidechains` takes the records of sub-agents too, as a sub-agent's own file needs it. One pass over the file; memory holds the conversation's records, not progress, snapshots and wire logs. Raises
    OSError when the file cannot be read; damaged records are counted in the conversation.
    """
    lines = JsonLines(path)
    nodes: dict[str, _Node] = {}
    leaf: str | None = None
    made = Builder("claude", session_id)
    conversation = made.conversation
    titles: dict[str, str] = {}
    broken = 0
    for number, record in lines:
        kind = record.get("type")
        uuid = record.get("uuid")
        if kind in records.CONVERSATION and not isinstance(record.get("message"), dict):
            lines.note(number, "a message that is no object")
            broken += 1
            continue
        if not isinstance(uuid, str):
            if kind in records.CONVERSATION:
                uuid = f"line {number}"  # fixtures of other tools and very old versions: taken in file order
            else:
                _bookkeeping(record, kind, titles, conversation)
                continue
        if record.get("isSidechain") and kind in records.CONVERSATION and not sidechains:
            continue
        if uuid in nodes:
            lines.note(number, "a copy of an earlier record")
            continue
        parent = record.get("parentUuid")
        if "parentUuid" not in record:
            parent = leaf
        nodes[uuid] = _Node(number, parent if isinstance(parent, str) else None, _slim(record, kind, clip))
        if kind in records.CONVERSATION:
            leaf = uuid
            cwd = record.get("cwd")
            if isinstance(cwd, str) and cwd:
                conversation.cwd = conversation.cwd or cwd
                conversation.last_cwd = cwd
            branch = record.get("gitBranch")
            if isinstance(branch, str) and branch:
                conversation.branch = branch
            origin = record.get("forkedFrom")
            if isinstance(origin, dict) and not conversation.parent_id:
                conversation.parent_id = str(origin.get("sessionId", ""))
        elif isinstance(kind, str) and kind not in records.BOOKKEEPING:
            conversation.unknown[kind] = conversation.unknown.get(kind, 0) + 1
    chain = _path(nodes, leaf)
    _emit(made, nodes, chain)
    conversation.title = records.best_title(titles)
    conversation.path = path
    conversation.skipped = tuple(lines.skipped)
    conversation.skipped_count = lines.malformed + lines.non_object + broken
    return made.done()


def _slim(record: Record, kind: object, clip: int) -> Record:
    """The record without what no turn needs (a structured twin of each result, usage, wire data), results clipped."""
    if kind not in records.CONVERSATION:
        return {"type": kind, "subtype": record.get("subtype")}
    record.pop("toolUseResult", None)
    message = record.get("message")
    if isinstance(message, dict):
        message.pop("usage", None)
        content = message.get("content")
        if isinstance(content, list):
            for block in content:
                if isinstance(block, dict):
                    _lighten(block, clip)
    return record


def _lighten(block: Record, clip: int) -> None:
    kind = block.get("type")
    if kind == "tool_result":
        text = flat_text(block.get("content"))
        block["content"] = text if not clip else clip_text(text, clip)[0]
    elif kind in ("image", "document") and isinstance(block.get("source"), dict):
        data = block["source"].get("data")
        if isinstance(data, str):
            block["source"]["data"] = ""
            block["source"]["url"] = block["source"].get("url") or "inline"
    elif kind == "thinking":
        block.pop("signature", None)


def _bookkeeping(record: Record, kind: object, titles: dict[str, str], conversation: Conversation) -> None:
    found = records.title_of(record)
    if found:
        titles[found[0]] = found[1]
    if isinstance(kind, str) and kind not in records.BOOKKEEPING and kind not in records.CONVERSATION:
        conversation.unknown[kind] = conversation.unknown.get(kind, 0) + 1


def human_blocks(content: list[Any], line: int, at: float | None) -> list[Block]:
    """The blocks of a human turn; harness text between the prose is left out."""
    blocks: list[Block] = []
    for block in content:
        if not isinstance(block, dict):
            continue
        kind = block.get("type")
        if kind == "text" and isinstance(block.get("text"), str):
            if block["text"].strip() and not records.is_noise(block["text"]):
                blocks.append(Text(block["text"], line, at))
        elif kind in ("image", "document"):
            blocks.append(reference(block, line, at))
    return blocks


def reference(block: Record, line: int, at: float | None) -> ImageRef | FileRef:
    """An image or document block as a reference; its bytes stay in the store."""
    source = block.get("source")
    source = source if isinstance(source, dict) else {}
    media = str(source.get("media_type", ""))
    place = str(source.get("url") or source.get("file_id") or "inline")
    data = source.get("data")
    if block.get("type") == "document":
        return FileRef(str(block.get("title") or place), media, line, at)
    return ImageRef(media or "image/*", place, len(data) * 3 // 4 if isinstance(data, str) else 0, line, at)


def _path(nodes: dict[str, _Node], leaf: str | None) -> set[str]:
    """Uuids on the live path, with the side records of its messages and the results of its calls."""
    order = list(nodes)
    place = {uuid: index for index, uuid in enumerate(order)}
    chain: set[str] = set()
    at = leaf
    while at is not None and at not in chain:
        chain.add(at)
        parent = nodes[at].parent
        if parent is not None and parent not in nodes:
            parent = _before(order, nodes, place[at])
        at = parent
    messages = {records.message_id(nodes[u].record) for u in chain if nodes[u].record.get("type") == "assistant"} - {""}
    first = min((place[uuid] for uuid in chain), default=0)
    for uuid in order[first:]:
        record = nodes[uuid].record
        if record.get("type") == "assistant" and uuid not in chain and records.message_id(record) in messages:
            chain.add(uuid)
    calls = {
        block.get("id")
        for uuid in chain
        if nodes[uuid].record.get("type") == "assistant"
        for block in records.content_of(nodes[uuid].record)
        if isinstance(block, dict) and block.get("type") == "tool_use"
    }
    for uuid in order[first:]:
        record = nodes[uuid].record
        if record.get("type") == "user" and uuid not in chain:
            content = records.content_of(record)
            if any(isinstance(b, dict) and b.get("type") == "tool_result" and b.get("tool_use_id") in calls for b in content):
                chain.add(uuid)
    return chain


def _before(order: list[str], nodes: dict[str, _Node], index: int) -> str | None:
    for uuid in reversed(order[:index]):
        if nodes[uuid].record.get("type") in records.CONVERSATION:
            return uuid
    return None


def _emit(made: Builder, nodes: dict[str, _Node], chain: set[str]) -> None:
    humans_off_path = 0
    for uuid, node in nodes.items():
        record = node.record
        kind = record.get("type")
        if kind not in records.CONVERSATION:
            continue
        content = records.content_of(record)
        what = records.user_kind(record, content) if kind == "user" else ""
        if uuid not in chain:
            humans_off_path += what == "human"
            continue
        at = records.when(record)
        cwd = record.get("cwd")
        made.cwd = cwd if isinstance(cwd, str) else made.cwd
        if what == "human":
            made.user(human_blocks(content, node.line, at), line=node.line, at=at)
        elif what == "results":
            _results(made, content, node.line, at)
        elif what == "summary":
            made.compact(records.prose(content), line=node.line, at=at)
        elif kind == "assistant":
            _answer(made, record, content, node.line, at)
    compaction = made.conversation.compaction
    if compaction is not None and not compaction.turns_before:
        made.conversation.compaction = replace(compaction, turns_before=humans_off_path)


def _results(made: Builder, content: list[Any], line: int, at: float | None) -> None:
    for block in content:
        if isinstance(block, dict) and block.get("type") == "tool_result":
            made.result(
                str(block.get("tool_use_id", "")),
                flat_text(block.get("content")),
                is_error=bool(block.get("is_error")),
                line=line,
                at=at,
            )


def _answer(made: Builder, record: Record, content: list[Any], line: int, at: float | None) -> None:
    message = record["message"]
    if not records.is_model_text(record):
        return
    model = message.get("model")
    if isinstance(model, str) and model and model != "<synthetic>":
        made.model = model
    for block in content:
        if not isinstance(block, dict):
            continue
        kind = block.get("type")
        if kind == "text":
            text = block.get("text")
            if isinstance(text, str) and text != "No response requested.":
                made.text(text, line=line, at=at)
        elif kind == "thinking":
            made.thinking(str(block.get("thinking", "")), line=line, at=at)
        elif kind in ("tool_use", "server_tool_use"):
            made.call(str(block.get("id", "")), str(block.get("name", "")), block.get("input"), line=line, at=at)
        elif kind == "image":
            made.attach(reference(block, line, at))
