"""One turn as one message: what it shows while it runs, and the answer that it becomes. Pure.

Text is kept by block: the pieces of the open block as they come, replaced by the finished block. Tool calls are folded
into one part; the status line counts them and shows the last.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from transports.human import shorten
from transports.im.content import Content, Part
from transports.im.words import Language, clock, say, where

MAX_TOOL_LINES = 40
_MARKS = {"completed": "✓", "failed": "✗", "in_progress": "…", "pending": "…"}


@dataclass(slots=True)
class LiveTurn:
    """`key`: the turn's name in all items. `started`: seconds since the epoch. `show`: quiet, normal or full."""

    key: str
    started: float
    language: Language = "en"
    show: str = "normal"
    agent: str = ""
    cwd: str = ""
    asked: str = ""
    """The head line and words of a prompt that came from elsewhere; "" for one of this chat."""
    texts: dict[str, str] = field(default_factory=dict)
    """Block → text, in order of appearance. A finished block stays; the open one grows."""
    finished: set[str] = field(default_factory=set)
    thoughts: dict[str, str] = field(default_factory=dict)
    tools: dict[str, list[str]] = field(default_factory=dict)
    """Id → [title, status]."""
    tool_count: int = 0
    lines: list[str] = field(default_factory=list)
    """Notices of the turn, kept in the answer."""
    plan: list[tuple[str, str]] = field(default_factory=list)
    place: int = 0
    ended: str = ""
    """"", done, stopped, failed or silent (nothing to say any more)."""
    failure: str = ""
    own: bool = True
    """Asked from this chat."""
    refs: dict[str, str] = field(default_factory=dict)
    """Block → the file that holds its whole text; `texts` has only its head."""

    def take(self, event: dict[str, Any], route: str) -> None:
        """Fold one event in, preview or durable. `route`: the chat's own, to tell its prompts from others'."""
        handler = getattr(self, f"_on_{event.get('event')}", None)
        if handler is not None:
            handler(event, route)

    # --- events ---

    def _on_asked(self, event: dict[str, Any], route: str) -> None:
        self.own = event.get("route") == route
        if not self.own:
            place, who = where(self.language, str(event.get("route") or "")), str(event.get("by") or "")
            head = say(self.language, "asked" if who else "asked_nobody", where=place, who=who)
            self.asked = f"{head} {shorten(str(event.get('text') or ''), 400)}"

    def _on_queued(self, event: dict[str, Any], route: str) -> None:
        self.place = int(event.get("position") or 0)

    def _on_session(self, event: dict[str, Any], route: str) -> None:
        self.agent = str(event.get("agent") or self.agent)
        self.cwd = str(event.get("cwd") or self.cwd)
        self.place = 0
        if event.get("forked_from"):
            self.lines.append(f"fork {event.get('session')} ← {event['forked_from']}")

    def _on_text(self, event: dict[str, Any], route: str) -> None:
        self._piece(self.texts, event)

    def _on_thought(self, event: dict[str, Any], route: str) -> None:
        self._piece(self.thoughts, event)

    def _piece(self, blocks: dict[str, str], event: dict[str, Any]) -> None:
        self.place = 0
        block, text = f"{event.get('event')}{event.get('block', 0)}", str(event.get("text") or "")
        if event.get("final", True):
            blocks[block] = text
            self.finished.add(block)
            if isinstance(event.get("ref"), dict) and blocks is self.texts:
                self.refs[block] = str(event["ref"].get("path") or "")
            return
        if block in self.finished:
            return  # a late piece of what stands there as a whole
        shown, offset = blocks.get(block, ""), event.get("offset")
        if not isinstance(offset, int) or offset == len(shown):
            blocks[block] = shown + text
        elif offset < len(shown):
            blocks[block] = shown[:offset] + text if offset + len(text) > len(shown) else shown
        # a piece in between is missing: the finished block brings it

    def _on_tool(self, event: dict[str, Any], route: str) -> None:
        self.place = 0
        ident = str(event.get("id"))
        if ident not in self.tools:
            self.tool_count += 1
        title = shorten(str(event.get("title") or event.get("kind") or "tool"), 100)
        self.tools[ident] = [title, str(event.get("status") or "")]
        while len(self.tools) > MAX_TOOL_LINES:
            del self.tools[next(iter(self.tools))]

    def _on_plan(self, event: dict[str, Any], route: str) -> None:
        entries = event.get("entries")
        if isinstance(entries, list):
            self.plan = [
                (str(e.get("status") or ""), shorten(str(e.get("content") or ""), 120)) for e in entries[:40] if isinstance(e, dict)
            ]

    def _on_notice(self, event: dict[str, Any], route: str) -> None:
        self.lines.append(shorten(str(event.get("text") or ""), 1000))

    def _on_reply(self, event: dict[str, Any], route: str) -> None:
        self.texts["reply"] = str(event.get("text") or "")
        self.ended = "done"

    def _on_error(self, event: dict[str, Any], route: str) -> None:
        self.ended = "failed"
        words = str(event.get("message") or event.get("code") or say(self.language, "failed"))
        self.failure = f"❌ {words}" + (f"\n{event['hint']}" if event.get("hint") else "")

    def _on_done(self, event: dict[str, Any], route: str) -> None:
        reason = str(event.get("stop_reason") or "end_turn")
        self.ended = "stopped" if reason == "cancelled" else "done"
        if reason not in ("end_turn", "cancelled"):
            self.lines.append(reason.replace("_", " "))

    # --- what it shows ---

    def live(self, now: float, room: int) -> Content:
        """The message while the turn runs, with at most about `room` code points of text: the newest."""
        parts = [*self.head(), Part("status", self.status(now))]
        if self.show != "quiet" and self.plan:
            parts.append(Part("plain", self._plan_text(), title=say(self.language, "plan")))
        text = self._newest()
        if text:
            budget = max(200, room - sum(len(p.text) + len(p.title) + 2 for p in parts))
            parts.append(Part("markdown", text if len(text) <= budget else "…" + _tail(text, budget)))
        return Content(tuple(parts))

    def answer(self, now: float) -> Content:
        """The message that stays."""
        parts = self.head()
        text = "\n\n".join(t.strip("\n") for t in self.texts.values() if t.strip())
        if text:
            parts.append(Part("markdown", text))
        if self.failure:
            parts.append(Part("plain", self.failure))
        if not text and not self.failure and self.ended != "stopped":
            parts.append(Part("plain", say(self.language, "no_text")))
        parts.extend(Part("plain", line) for line in self.lines if line)
        if self.show == "full" and self.thoughts:
            parts.append(Part("folded", "\n\n".join(self.thoughts.values()), title=say(self.language, "thoughts")))
        if self.show != "quiet" and self.tools:
            lines = [f"{_MARKS.get(status, '·')} {title}" for title, status in self.tools.values()]
            if self.tool_count > len(lines):
                lines.insert(0, f"… {self.tool_count - len(lines)} +")
            parts.append(Part("folded", "\n".join(lines), title=say(self.language, "tool_calls", count=self.tool_count)))
        if self.show != "quiet" or self.ended != "done":
            parts.append(Part("status", self.status(now)))
        return Content(tuple(parts))

    def status(self, now: float) -> str:
        """One line: mark, agent, time, tools, and what is going on."""
        mark = {"done": "✅", "stopped": "⏹", "failed": "❌"}.get(self.ended, "⏳")
        pieces = [self.agent] if self.agent else []
        if self.place > 0 and not self.ended:
            return f"{mark} {' · '.join([*pieces, say(self.language, 'queued', place=self.place)])}"
        pieces.append(clock(now - self.started))
        if self.tool_count:
            pieces.append(say(self.language, "tool") if self.tool_count == 1 else say(self.language, "tools", count=self.tool_count))
        if self.ended in ("stopped", "failed"):
            pieces.append(say(self.language, self.ended))
        elif not self.ended:
            running = [title for title, status in self.tools.values() if status not in ("completed", "failed")]
            if running and self.show != "quiet":
                pieces.append(shorten(running[-1], 60))
            elif not self._newest():
                pieces.append(say(self.language, "thinking"))
        return f"{mark} {' · '.join(pieces)}"

    def head(self) -> list[Part]:
        """Who asked, when it was not this chat."""
        return [Part("plain", f"💬 {self.asked}")] if self.asked else []

    def _newest(self) -> str:
        return next((text for text in reversed(self.texts.values()) if text.strip()), "")

    def _plan_text(self) -> str:
        return "\n".join(f"{'☑' if status == 'completed' else '▸' if status == 'in_progress' else '☐'} {text}" for status, text in self.plan)

    # --- over a restart, when its items had to be acknowledged before its end ---

    def dump(self) -> dict[str, Any]:
        """JSON types; what is not finished is left out, it comes again."""
        texts = {block: text for block, text in self.texts.items() if block in self.finished}
        return {
            "agent": self.agent, "cwd": self.cwd, "asked": self.asked, "own": self.own, "texts": texts, "tools": self.tools,
            "tool_count": self.tool_count, "lines": self.lines[-50:], "refs": self.refs,
        }

    def load(self, data: dict[str, Any]) -> None:
        """What `dump` gave."""
        self.agent, self.cwd, self.asked = str(data["agent"]), str(data["cwd"]), str(data["asked"])
        self.own, self.texts, self.tools = bool(data["own"]), dict(data["texts"]), dict(data["tools"])
        self.tool_count, self.lines = int(data["tool_count"]), list(data["lines"])
        self.finished, self.refs = set(self.texts), dict(data["refs"])


def _tail(text: str, size: int) -> str:
    """The last `size` code points, from the start of a line or word; an open fence before them is opened again."""
    from transports.im.split import open_fence

    at = len(text) - size
    for sign in ("\n", " "):
        found = text.find(sign, at, at + size // 4)
        if found >= 0:
            at = found + 1
            break
    fence = open_fence(text[:at])
    return f"\n{fence}\n{text[at:]}" if fence else f" {text[at:].lstrip()}"
