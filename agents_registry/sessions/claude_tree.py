"""From a Claude Code transcript to a conversation: the path of its tree that a resume would load.

Records with `uuid` and `parentUuid` form a tree. What counts is the path from the last user or assistant record up to
a record without parent; rewound and overwritten branches stay in the file and are not on it. Three things bend the
rule: the records of one API message, and the results of its parallel tool calls, hang side by side although all are
part of the turn; a parent that is not in the file is a gap that the record before it in the file closes; and a
compaction begins a new root, whose summary stands for what was before.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from agents_registry.sessions import claude_records as records
from agents_registry.sessions.jsonl import JsonLines
from agents_registry.sessions.neutral import (
    USER,
    Block,
    Builder,
    Compaction,
    Conversation,
    FileRef,
    ImageRef,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    clip_setting,
    flat_text,
)
from agents_registry.sessions.neutral import clip as clip_text
from agents_registry.sessions.plain import clean
from agents_registry.sessions.times import seconds

Record = dict[str, Any]


class _Node:
    """What a turn needs of one record; the rest of the record is let go at once, which bounds memory."""

    __slots__ = ("blocks", "cwd", "line", "message", "model", "parent", "what")

    def __init__(self, line: int, parent: str | None, what: str) -> None:
        self.line = line
        self.parent = parent
        self.what = what
        """"" for a record that is only a link, "assistant", or the kind of a user record (`records.UserKind`)."""
        self.message = ""
        self.model = ""
        self.cwd = ""
        self.blocks: list[Block] = []


class _Reading:
    """One pass over a transcript."""

    def __init__(self, lines: JsonLines, conversation: Conversation, clip: int) -> None:
        self.lines, self.conversation, self.clip = lines, conversation, clip
        self.nodes: dict[str, _Node] = {}
        self.leaf: str | None = None
        self.titles: dict[str, str] = {}
        self.broken = 0
        self._strings: dict[str, str] = {}  # the same few directories and models stand in every record

    def run(self, sidechains: bool) -> None:
        nodes, lines = self.nodes, self.lines
        for number, record in lines:
            kind = record.get("type")
            uuid = record.get("uuid")
            spoken = kind in records.CONVERSATION
            if spoken:
                if record.get("message").__class__ is not dict:
                    lines.note(number, "a message that is no object")
                    self.broken += 1
                    continue
                if record.get("isSidechain") and not sidechains:
                    continue
                if uuid.__class__ is not str:
                    uuid = f"line {number}"  # fixtures of other tools and very old versions: taken in file order
            elif uuid.__class__ is not str:
                self._bookkeeping(record, kind)
                continue
            if uuid in nodes:
                lines.note(number, "a copy of an earlier record")
                continue
            parent = record.get("parentUuid", self.leaf)
            if parent.__class__ is not str:
                parent = None
            if spoken:
                nodes[uuid] = self._spoken(number, parent, str(kind), record)
                self.leaf = uuid
            else:
                nodes[uuid] = _Node(number, parent, "")
                self._unknown(kind)

    def _spoken(self, number: int, parent: str | None, kind: str, record: Record) -> _Node:
        content = record["message"].get("content")
        if content.__class__ is str:
            content = [{"type": "text", "text": content}]
        elif content.__class__ is not list:
            content = []
        at = seconds(record.get("timestamp"))
        if kind == "assistant":
            node = _Node(number, parent, kind)
            message = record["message"]
            found = message.get("id")
            node.message = found if found.__class__ is str else ""
            model = message.get("model")
            if model.__class__ is str and model != "<synthetic>":
                node.model = self._same(model)
            if (node.model and "isApiErrorMessage" not in record) or records.is_model_text(record):
                self._answer(node, content, number, at)
        else:
            what = records.user_kind(record, content)
            node = _Node(number, parent, what)
            if what == "results":
                self._results(node, content, number, at)
            elif what == "human":
                node.blocks = human_blocks(content, number, at)
            elif what == "summary":
                node.blocks = [Text(clean(records.prose(content)), number, at)]
        self._where(node, record)
        return node

    def _where(self, node: _Node, record: Record) -> None:
        made = self.conversation
        cwd = record.get("cwd")
        if cwd.__class__ is str and cwd:
            node.cwd = made.last_cwd = self._same(cwd)
            made.cwd = made.cwd or node.cwd
        branch = record.get("gitBranch")
        if branch and branch != made.branch and branch.__class__ is str:
            made.branch = branch
        if "forkedFrom" in record and not made.parent_id:
            origin = record["forkedFrom"]
            made.parent_id = str(origin.get("sessionId", "")) if isinstance(origin, dict) else ""

    def _answer(self, node: _Node, content: list[Any], line: int, at: float | None) -> None:
        for block in content:
            if not isinstance(block, dict):
                continue
            kind = block.get("type")
            if kind == "text":
                text = block.get("text")
                if isinstance(text, str) and text.strip() and text != "No response requested.":
                    node.blocks.append(Text(clean(text), line, at))
            elif kind == "thinking":
                text = block.get("thinking")
                if isinstance(text, str) and text.strip():
                    node.blocks.append(Thinking(clean(text), line, at))
            elif kind in ("tool_use", "server_tool_use"):
                made = self._builder_call(block, line, at)
                node.blocks.append(made)
            elif kind == "image":
                node.blocks.append(reference(block, line, at))

    def _builder_call(self, block: Record, line: int, at: float | None) -> ToolCall:
        return ToolCall.of("claude", str(block.get("id", "")), str(block.get("name", "")), block.get("input"), self.clip, line, at)

    def _results(self, node: _Node, content: list[Any], line: int, at: float | None) -> None:
        for block in content:
            if isinstance(block, dict) and block.get("type") == "tool_result":
                inner = block.get("content")
                text = inner if inner.__class__ is str else flat_text(inner)
                kept, omitted = clip_text(clean(text), self.clip)
                call = clean(str(block.get("tool_use_id", "")))
                node.blocks.append(ToolResult(call, kept, bool(block.get("is_error")), omitted, line, at))

    def _bookkeeping(self, record: Record, kind: object) -> None:
        found = records.title_of(record)
        if found:
            self.titles[found[0]] = found[1]
        self._unknown(kind)

    def _unknown(self, kind: object) -> None:
        if isinstance(kind, str) and kind not in records.BOOKKEEPING and kind not in records.CONVERSATION:
            self.conversation.unknown[kind] = self.conversation.unknown.get(kind, 0) + 1

    def _same(self, text: str) -> str:
        return self._strings.setdefault(text, text)


def read(path: Path, session_id: str, *, clip: int = 0, sidechains: bool = False) -> Conversation:
    """The conversation of one transcript. `clip` bounds the characters kept of each tool result while reading.

    `sidechains` takes the records of sub-agents too, as a sub-agent's own file needs it. One pass over the file;
    memory holds what turns need, not progress, snapshots and wire logs. Raises OSError when the file cannot be read;
    damaged records are counted in the conversation.
    """
    lines = JsonLines(path)
    made = Builder("claude", session_id)
    conversation = made.conversation
    reading = _Reading(lines, conversation, clip or clip_setting())
    reading.run(sidechains)
    _emit(made, reading.nodes, _path(reading.nodes, reading.leaf))
    conversation.title = records.best_title(reading.titles)
    conversation.path = path
    conversation.skipped = tuple(lines.skipped)
    conversation.skipped_count = lines.malformed + lines.non_object + reading.broken
    return made.done()


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
    chain: set[str] = set()
    at = leaf
    while at is not None and at not in chain:
        chain.add(at)
        parent = nodes[at].parent
        if parent is not None and parent not in nodes:
            parent = _before(order, nodes, at)
        at = parent
    if len(chain) == len(nodes):
        return chain
    messages = {nodes[uuid].message for uuid in chain} - {""}
    for uuid, node in nodes.items():
        if node.message in messages:
            chain.add(uuid)
    calls = {block.id for uuid in chain for block in nodes[uuid].blocks if isinstance(block, ToolCall)}
    for uuid, node in nodes.items():
        if node.what == "results" and uuid not in chain and any(isinstance(b, ToolResult) and b.call_id in calls for b in node.blocks):
            chain.add(uuid)
    return chain


def _before(order: list[str], nodes: dict[str, _Node], uuid: str) -> str | None:
    """The record of the conversation that stands before this one in the file."""
    for earlier in reversed(order[: order.index(uuid)]):
        if nodes[earlier].what:
            return earlier
    return None


def _emit(made: Builder, nodes: dict[str, _Node], chain: set[str]) -> None:
    off_path = 0
    before = 0
    for uuid, node in nodes.items():
        what = node.what
        if uuid not in chain:
            off_path += what == "human"
            continue
        made.cwd = node.cwd or made.cwd
        made.model = node.model or made.model
        if what == "summary":
            summary = node.blocks[0]
            made.compact(summary.text if isinstance(summary, Text) else "", line=node.line, at=summary.at)
            before = off_path
        elif node.blocks:
            made.take(USER if what == "human" else "agent", node.blocks, node.line)
    found = made.conversation.compaction
    if found is not None and not found.turns_before:
        made.conversation.compaction = Compaction(found.summary, found.line, found.at, before)
