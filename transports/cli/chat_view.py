"""How the events of a chat look: as JSON lines for scripts, as text for people."""

from __future__ import annotations

import shlex
import sys
from typing import Any

from transports.cli.output import clean, emit_line, remark, write
from transports.human import shorten

_QUIET = frozenset({"accepted", "permission_done", "choice_done", "asked"})


class JsonView:
    """Events as they are, one object a line."""

    def show(self, event: dict[str, Any]) -> None:
        emit_line(event)

    def wants_input(self) -> bool:
        return False

    def poll_input(self) -> tuple[str, str] | None:
        return None


class TextView:
    """Streams the agent's text, with tools, questions and remarks beside it on stderr.

    `interactive`: questions are answered here, by number. `listening`: everything that reaches the chat, with who asked.
    """

    def __init__(self, chat: str, *, interactive: bool, listening: bool = False) -> None:
        self._chat = chat
        self._interactive = interactive
        self._listening = listening
        self._open: tuple[Any, ...] | None = None
        self._shown = ""
        self._column = 0
        self._tools: set[Any] = set()
        self._questions: dict[str, list[dict[str, Any]]] = {}

    def show(self, event: dict[str, Any]) -> None:
        kind = str(event.get("event"))
        handler = getattr(self, f"_on_{kind}", None)
        if handler is not None:
            handler(event)
        elif kind not in _QUIET:
            self._aside(f"{kind}: {shorten(str(event.get('text') or event.get('message') or ''), 200)}")

    # --- text in the making ---

    def _on_text(self, event: dict[str, Any]) -> None:
        self._piece("text", event)

    def _on_thought(self, event: dict[str, Any]) -> None:
        if event.get("final", True):
            self._aside(f"(thinks) {shorten(clean(str(event.get('text') or '')), 300)}")

    def _piece(self, kind: str, event: dict[str, Any]) -> None:
        block = (kind, event.get("turn"), event.get("block"))
        text = clean(str(event.get("text") or ""))
        if self._open != block:
            self.end_line()
            self._open, self._shown = block, ""
        if event.get("final", True):
            if text.startswith(self._shown):
                self._put(text[len(self._shown) :])
            else:  # pieces were dropped on the way: the whole block again
                self.end_line()
                self._put(text)
            self.end_line()
            self._open = None
            return
        offset = event.get("offset")
        if isinstance(offset, int) and offset != len(self._shown):
            if offset > len(self._shown):
                return  # a piece is missing: the finished block brings it
            text = text[len(self._shown) - offset :]
        self._put(text)
        self._shown += text

    def _put(self, text: str) -> None:
        if text:
            write(text)
            self._column = 0 if text.endswith("\n") else 1

    def end_line(self) -> None:
        """Go to the start of a line, if text stands on the current one."""
        if self._column:
            write("\n")
            self._column = 0

    def _aside(self, text: str) -> None:
        self.end_line()  # the open block goes on afterwards, from where it was
        remark(text)

    # --- beside the text ---

    def _on_queued(self, event: dict[str, Any]) -> None:
        self._aside(f"(waiting, place {event.get('position')})")

    def _on_session(self, event: dict[str, Any]) -> None:
        how = "goes on in" if event.get("start") == "resumed" else "starts"
        text = f"[{event.get('agent')} {how} session {event.get('session')} in {clean(str(event.get('cwd')))}]"
        if event.get("forked_from"):
            text += f" (a fork of {event['forked_from']})"
        self._aside(text)

    def _on_asked(self, event: dict[str, Any]) -> None:
        if self._listening:
            who = event.get("by") or "somebody"
            self._aside(f"> {clean(str(who))} ({event.get('route')}): {shorten(clean(str(event.get('text') or '')), 300)}")

    def _on_tool(self, event: dict[str, Any]) -> None:
        status = str(event.get("status") or "tool")
        if status == "in_progress" and event.get("id") in self._tools:
            return  # its first line stands there already
        if status in ("completed", "failed"):
            self._tools.discard(event.get("id"))
        else:
            self._tools.add(event.get("id"))
        self._aside(f"[{status}] {shorten(clean(str(event.get('title') or event.get('kind') or 'tool')), 120)}")

    def _on_plan(self, event: dict[str, Any]) -> None:
        lines = [f"  {'x' if e.get('status') == 'completed' else '-'} {shorten(clean(str(e.get('content') or '')), 100)}" for e in event.get("entries") or []]
        self._aside("\n".join(["plan:", *lines]))

    def _on_notice(self, event: dict[str, Any]) -> None:
        self._aside(f"({clean(str(event.get('text') or ''))})")

    def _on_title(self, event: dict[str, Any]) -> None:
        """The agent's own name for the conversation: /status and the lists show it."""

    def _on_mode(self, event: dict[str, Any]) -> None:
        self._aside(f"(mode: {clean(str(event.get('mode') or ''))})")

    def _on_reply(self, event: dict[str, Any]) -> None:
        self.end_line()
        self._put(clean(str(event.get("text") or "")))
        self.end_line()

    def _on_error(self, event: dict[str, Any]) -> None:
        hint = event.get("hint")
        self._aside(f"va: {clean(str(event.get('message') or event.get('code') or 'it failed'))}" + (f"\n    {clean(str(hint))}" if hint else ""))

    def _on_done(self, event: dict[str, Any]) -> None:
        self.end_line()
        self._open = None
        reason = event.get("stop_reason")
        if reason not in ("end_turn", None, ""):
            self._aside(f"({str(reason).replace('_', ' ')})")
        self._questions.clear()
        self._tools.clear()

    # --- questions ---

    def _on_permission(self, event: dict[str, Any]) -> None:
        self._question(event, f"The agent asks: {clean(str(event.get('title') or 'may it go on?'))}", "")

    def _on_choice(self, event: dict[str, Any]) -> None:
        limit = event.get("expires_in_s")
        self._question(event, clean(str(event.get("title") or "Which?")), f" (within {float(limit):.0f} s)" if limit else "")

    def _question(self, event: dict[str, Any], title: str, limit: str) -> None:
        ident = str(event.get("id"))
        options = [dict(o) for o in event.get("options") or []]
        lines = [title]
        lines += [f"  {n}. {clean(str(o.get('name') or o.get('id')))}  [{o.get('id')}]" for n, o in enumerate(options, 1)]
        if self._interactive:
            lines.append(f"Number, or c to cancel{limit}:")
            self._questions[ident] = options
        else:
            lines.append(f"Answer{limit}: va chat answer --chat {shlex.quote(self._chat)} {ident} OPTION")
        self._aside("\n".join(lines))

    def _on_permission_done(self, event: dict[str, Any]) -> None:
        self._settled(event)

    def _on_choice_done(self, event: dict[str, Any]) -> None:
        self._settled(event)

    def _settled(self, event: dict[str, Any]) -> None:
        asked_here = self._questions.pop(str(event.get("id")), None) is not None
        who = f" by {event['by']}" if event.get("by") else ""
        words = event.get("text") or event.get("why") or f"answered{who}: {event.get('option') or event.get('outcome') or 'cancelled'}"
        if asked_here or self._listening or event.get("text") or event.get("why"):
            self._aside(f"({clean(str(words))})")

    def wants_input(self) -> bool:
        return bool(self._questions)

    def poll_input(self) -> tuple[str, str] | None:
        import select

        if not select.select([sys.stdin], [], [], 0)[0]:
            return None
        line = sys.stdin.readline()
        if not line:  # Ctrl-D: no more answers from here
            self._interactive = False
            self._questions.clear()
            return None
        return self.choose(line)

    def choose(self, line: str) -> tuple[str, str] | None:
        """The answer that a typed line gives to the oldest open question: a number, an option's id or name, c."""
        typed = line.strip().casefold()
        if not typed or not self._questions:
            return None
        ident, options = next(iter(self._questions.items()))
        if typed in ("c", "cancel"):
            del self._questions[ident]
            return ident, ""
        for number, option in enumerate(options, 1):
            if typed in (str(number), str(option.get("id")).casefold(), str(option.get("name")).casefold()):
                del self._questions[ident]
                return ident, str(option.get("id"))
        self._aside(f"A number from 1 to {len(options)}, or c to cancel:")
        return None
