"""What actor tests share: a switch, a clock that is turned by hand, a journal on disk, and pooled actors run inline.

No threads: `Loop` puts deliveries into one queue and handles them in order, so that a test says exactly when what
happens. The same logic classes run on the pool in the product.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

from actors.clock import ManualClock
from actors.journal.writer import History, Journal
from transports.bus.api import Delivery, Peer
from transports.bus.switch import Switch
from transports.bus.vocabulary.storage import Load, Record

OWNER = Peer("peer/1", 1, 0, "owner")


class Loop:
    """A switch whose receivers run one delivery after another when `run` is called."""

    def __init__(self, tmp_path: Path) -> None:
        self.switch = Switch()
        self.clock = ManualClock()
        self._queue: deque[tuple[Callable[[Delivery], None], Delivery]] = deque()
        self.seen: list[Delivery] = []
        path = tmp_path / "journal.db"
        self.journal = Journal(path, self.switch, self.clock.now)
        self.history = History(path, self.switch)
        self.journal_works = True
        self.add("journal", self._record)
        self.add("history", self.history.read)
        self._corr = 10_000_000
        self.numbers = 0

    def add(self, address: str, receive: Callable[[Delivery], None]) -> None:
        self.switch.register(address, lambda d: self._queue.append((receive, d)))

    def prefix(self, prefix: str, make: Callable[[str], Callable[[Delivery], None]]) -> None:
        def activate(address: str) -> Callable[[Delivery], None]:
            made: list[Callable[[Delivery], None]] = []

            def receive(delivery: Delivery) -> None:
                if not made:
                    made.append(make(address))
                made[0](delivery)

            return lambda d: self._queue.append((receive, d))

        self.switch.register_prefix(prefix, activate)

    def new_id(self, prefix: str) -> str:
        self.numbers += 1
        return f"{prefix}_{self.numbers}"

    def _record(self, delivery: Delivery) -> None:
        assert isinstance(delivery.message, Record)
        self.journal.take(delivery)
        self.journal.flush()

    def run(self, limit: int = 5000) -> None:
        """Handle everything that waits, and what comes of it."""
        for _ in range(limit):
            if not self._queue:
                return
            receive, delivery = self._queue.popleft()
            receive(delivery)
        raise AssertionError("the actors do not come to rest")

    def pass_time(self, seconds: float) -> None:
        self.clock.advance(seconds)
        self.run()

    def ask(self, address: str, message: Any, *, peer: Peer | None = OWNER, sender: str = "peer/1") -> Any:
        """The answer to a request, after everything has come to rest; None when there is none yet."""
        self._corr += 1
        corr, answers = self._corr, []
        if not self.switch.known(sender):
            self.switch.register(sender, self.seen.append)
        before = len(self.seen)
        self.switch.send(address, message, sender=sender, corr=corr, peer=peer)
        self.run()
        answers = [d.message for d in self.seen[before:] if d.corr == -corr]
        return answers[0] if answers else None

    def query(self, name: str, *params: Any) -> dict[str, Any]:
        answer = self.ask("history", Load(name, list(params)))
        return dict(answer.data)

    def record(self, *ops: list[Any]) -> Any:
        return self.ask("journal", Record(list(ops)))

    def close(self) -> None:
        self.journal.close()
        self.history.close()
