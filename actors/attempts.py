"""What agents tried and were refused: a word to the people of the conversation, and one in the log.

The first attempt of each kind is shown at once; what follows within a minute is counted and told in one line, so that an
agent in a loop cannot fill a chat.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from actors.mailbox import Clock, Mailbox
from agents_registry.errors import UsageError
from transports.bus.api import Bus, Delivery
from transports.bus.vocabulary.conversation import Failed
from transports.bus.vocabulary.threads import AgentTried, RouteNotice, ThreadNotice

WINDOW_S = 60.0
MAX_KNOWN = 256
"""Kinds of attempts that are counted at once; beyond that they go to the log alone."""

WORDS = {
    "answer": "answer a permission or a question", "submit": "write to a chat as a person", "stop_turn": "stop a turn",
    "pickup_terminal": "pick up a conversation", "shutdown": "stop VibeAround", "listen": "listen to a chat",
    "may_change": "change the settings", "change_workspace": "change a workspace",
}
"""What an attempt is called, by the message that was refused."""


@dataclass(slots=True)
class _Seen:
    tried: AgentTried
    more: int = 0


class Attempts(Mailbox):
    """`log(text)` writes one line into the supervisor's log."""

    def __init__(self, bus: Bus, clock: Clock, log: Callable[[str], None]) -> None:
        super().__init__("attempts", bus, clock)
        self._log = log
        self._seen: dict[str, _Seen] = {}

    def handle(self, delivery: Delivery) -> None:
        message = delivery.message
        if isinstance(message, AgentTried):
            self._tried(message)
        elif not isinstance(message, Failed):
            raise UsageError("this address does not know this message.", code="unknown_message")

    def alarm(self, name: str) -> None:
        seen = self._seen.pop(name, None)
        if seen is not None and seen.more:
            times = "once more" if seen.more == 1 else f"{seen.more} times more"
            self._tell(seen.tried, f"The agent tried {times} to {_what(seen.tried)}; it was refused each time.")

    def _tried(self, tried: AgentTried) -> None:
        name = f"{tried.thread}\n{tried.route if not tried.thread else ''}\n{tried.what}"
        seen = self._seen.get(name)
        if seen is not None:
            seen.more += 1
            return
        if len(self._seen) >= MAX_KNOWN:
            return
        self._seen[name] = _Seen(tried)
        self.set_timer(name, WINDOW_S)
        self._tell(tried, f"An agent tried to {_what(tried)} (process {tried.pid}). It was refused: that is for people alone.")

    def _tell(self, tried: AgentTried, text: str) -> None:
        self._log(f"{text} thread={tried.thread or '-'} route={tried.route or '-'}")
        if tried.thread:
            self.tell(f"thread/{tried.thread}", ThreadNotice(text, "agent_refused"))
        elif tried.route:
            # An agent of a terminal: no conversation of ours is its own, so the chat that it meant is told.
            self.tell(f"route/{tried.route}", RouteNotice(text))


def _what(tried: AgentTried) -> str:
    where = f" ({tried.route})" if tried.route else ""
    return WORDS.get(tried.what, f"do what only people may ({tried.what})") + where
