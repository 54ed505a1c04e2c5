"""The journal's two actors: a writer that commits in groups, and a reader of history. Each has a thread of its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from actors.journal.writer import History, Journal
from actors.pooled import ThreadActor
from agents_registry.errors import UsageError
from transports.bus.api import Bus, Delivery
from transports.bus.vocabulary.storage import Load, Record


class JournalActor(ThreadActor):
    """Commits when its inbox is empty or a group is full: alone a record waits for nobody, together they share a sync."""

    inbox_limit = 20_000

    def __init__(self, path: Path, bus: Bus, now: Callable[[], float], report: Any) -> None:
        super().__init__(address="journal", report=report, bus=bus)
        # Opened here, on the starter's thread, so that a damaged file ends the start with its reason.
        self._journal = Journal(path, bus, now)

    def receive(self, delivery: Delivery) -> None:
        if not isinstance(delivery.message, Record):
            raise UsageError("the journal takes only records.", code="unknown_message")
        if self._journal.take(delivery) or self.actor_inbox.empty():
            self._journal.flush()

    def on_stop(self) -> None:
        self._journal.close()


class HistoryActor(ThreadActor):
    inbox_limit = 20_000

    def __init__(self, path: Path, bus: Bus, report: Any) -> None:
        super().__init__(address="history", report=report, bus=bus)
        self._history = History(path, bus)

    def receive(self, delivery: Delivery) -> None:
        if not isinstance(delivery.message, Load):
            raise UsageError("the history takes only loads.", code="unknown_message")
        self._history.read(delivery)

    def on_stop(self) -> None:
        self._history.close()
