"""From an agent's stream to whole things: finished blocks, tool calls, plans; and text in the making, merged.

A block is a run of text (or of thought) that nothing interrupts. Blocks count from 1 within a turn.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from transports.acp import updates

MERGE_S = 0.020
MERGE_BYTES = 16 << 10
"""Text in the making waits at most so long, or until it is so large (characters are counted as one byte)."""
MAX_OUTPUT = 16 << 20
"""Characters of one running command's output that are kept (the rest is counted)."""
MAX_TOOLS = 10_000
ENDED = ("completed", "failed", "cancelled")


class Sink(Protocol):
    """Where whole things and pieces go."""

    def event(self, kind: str, body: dict[str, Any]) -> None:
        """One finished thing."""

    def piece(self, kind: str, block: int, offset: int, text: str) -> None:
        """A further piece of the open block; `offset` in characters."""


@dataclass(slots=True)
class _Tool:
    id: str
    title: str = ""
    kind: str = ""
    status: str = "pending"
    input: Any = None
    output: Any = None
    content: list[Any] = field(default_factory=list)
    locations: list[Any] = field(default_factory=list)
    printed: list[str] = field(default_factory=list)
    printed_size: int = 0
    dropped: int = 0
    exit_code: int | None = None


class Assembler:
    """One per session; `reset` at each turn's start. Not thread-safe."""

    def __init__(self, sink: Sink, clock: Callable[[], float]) -> None:
        self._sink = sink
        self._clock = clock
        self._blocks = 0
        self._kind = ""
        self._parts: list[str] = []
        self._length = 0
        self._message = ""
        self._waiting: list[str] = []
        self._waiting_size = 0
        self._flushed_at = float("-inf")
        self._tools: dict[str, _Tool] = {}
        self.usage: dict[str, Any] = {}

    # --- the stream

    def take(self, event: updates.Event) -> None:
        """One update, in wire order."""
        match event:
            case updates.Text(text, message):
                self._text("text", text, message)
            case updates.Thought(text, message):
                self._text("thought", text, message)
            case updates.Tool():
                self._tool(event)
            case updates.Plan(entries):
                self.finish_block()
                self._sink.event("plan", {"entries": entries})
            case updates.Media(block):
                self.finish_block()
                self._blocks += 1
                self._sink.event("media", {"block": self._blocks, "content": block})
            case updates.Mode(mode):
                self._sink.event("mode", {"mode": mode})
            case updates.Title(title):
                self._sink.event("title", {"title": title})
            case updates.Commands(commands):
                self._sink.event("commands", {"commands": commands})
            case updates.Usage(usage):
                self.usage = {**self.usage, **usage}
            case updates.Other(kind, update):
                self._sink.event("other", {"kind": kind, "update": update})
            case updates.UserEcho() | updates.Options():
                pass  # our own prompt, said back (Vibe); options are the host's to look at

    def _text(self, kind: str, text: str, message: str) -> None:
        if kind != self._kind or (message and self._message and message != self._message):
            self.finish_block()
            self._kind = kind
            self._blocks += 1
        self._message = message or self._message
        if not text:
            return
        self._parts.append(text)
        self._waiting.append(text)
        self._waiting_size += len(text)
        self._length += len(text)
        if self._waiting_size >= MERGE_BYTES or self._clock() - self._flushed_at >= MERGE_S:
            self.flush()

    def flush(self) -> None:
        """Hand out the text that waits to be merged."""
        if not self._waiting:
            return
        text = "".join(self._waiting)
        offset = self._length - self._waiting_size
        self._waiting.clear()
        self._waiting_size = 0
        self._flushed_at = self._clock()
        # In pieces: one delta must fit the bus, whatever the agent's own chunk was.
        for start in range(0, len(text), MERGE_BYTES):
            self._sink.piece(self._kind, self._blocks, offset + start, text[start : start + MERGE_BYTES])

    @property
    def flush_due(self) -> float | None:
        """When waiting text must go out (clock time); None when none waits."""
        return self._flushed_at + MERGE_S if self._waiting else None

    @property
    def open_size(self) -> int:
        """Characters of the open block."""
        return self._length

    def snapshot(self) -> None:
        """Hand out the whole open block from its start, for a supervisor that has just come back."""
        self._waiting = ["".join(self._parts)] if self._parts else []
        self._waiting_size = self._length
        self.flush()

    def finish_block(self) -> None:
        """End the open block, if there is one."""
        if not self._kind:
            return
        self.flush()
        kind, text = self._kind, "".join(self._parts)
        self._kind, self._message = "", ""
        self._parts = []
        self._length = 0
        if text:
            self._sink.event(kind, {"block": self._blocks, "text": text})
        else:
            self._blocks -= 1

    # --- tool calls

    def _tool(self, event: updates.Tool) -> None:
        self.finish_block()
        tool = self._tools.get(event.id)
        known = tool is not None
        if tool is None:
            if len(self._tools) >= MAX_TOOLS:
                del self._tools[next(iter(self._tools))]
            tool = self._tools[event.id] = _Tool(event.id)
        before = (tool.title, tool.status, tool.kind)
        ended = tool.status in ENDED
        for name in ("title", "kind", "status", "input", "output", "content", "locations", "exit_code"):
            value = getattr(event, name)
            if value is not None:
                setattr(tool, name, value)
        if event.output_delta:
            self._print(tool, event.output_delta)
        changed = (tool.title, tool.status, tool.kind) != before
        late = ended and (event.content is not None or event.output is not None)
        if not known or changed or late:
            self._show(tool)

    def _print(self, tool: _Tool, text: str) -> None:
        room = MAX_OUTPUT - tool.printed_size
        tool.printed.append(text[:room])
        tool.printed_size += min(len(text), room)
        tool.dropped += max(0, len(text) - room)

    def _show(self, tool: _Tool) -> None:
        body: dict[str, Any] = {
            "id": tool.id,
            "title": tool.title,
            "kind": tool.kind,
            "status": tool.status,
            "input": tool.input,
            "content": [],
            "locations": tool.locations,
        }
        if tool.status in ENDED:
            body["content"] = self._content(tool)
            if tool.exit_code is not None:
                body["exit_code"] = tool.exit_code
        elif any(isinstance(c, dict) and c.get("type") == "diff" for c in tool.content):
            body["content"] = tool.content  # what is going to be changed is worth seeing before it is
        self._sink.event("tool", body)

    def _content(self, tool: _Tool) -> list[Any]:
        content = [c for c in tool.content if not (isinstance(c, dict) and c.get("type") == "terminal")]
        if tool.printed:
            text = "".join(tool.printed)
            if tool.dropped:
                text += f"\n({tool.dropped} more characters were not kept)"
            content.append({"type": "content", "content": {"type": "text", "text": text}})
        if not content and tool.output is not None:
            text = tool.output if isinstance(tool.output, str) else _json(tool.output)
            content.append({"type": "content", "content": {"type": "text", "text": text}})
        return content

    # --- turns

    def reset(self) -> None:
        """A turn begins."""
        self.finish_block()
        self._blocks = 0
        self._tools.clear()
        self.usage = {}

    def end_turn(self, *, cancelled: bool) -> None:
        """A turn ends: the open block is finished; tool calls that a cancel cut off are shown as cancelled."""
        self.finish_block()
        if not cancelled:
            return
        for tool in self._tools.values():
            if tool.status not in ENDED:
                tool.status = "cancelled"
                self._show(tool)


def _json(value: Any) -> str:
    import json

    return json.dumps(value, ensure_ascii=False, indent=1, default=str)
