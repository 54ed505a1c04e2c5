"""What is no longer kept is removed: texts of old turns, and the files that went with them."""

from __future__ import annotations

from typing import Any

from actors.mailbox import Clock, Mailbox
from transports.bus.api import Bus, Delivery
from transports.bus.vocabulary.storage import Record, Recorded, RemoveFiles

EVERY_S = 6 * 3600.0
DAY_S = 86400.0


class Housekeeping(Mailbox):
    """`keep_days`: how long texts are kept. Begins with the first message it gets, then every six hours."""

    def __init__(self, bus: Bus, clock: Clock, *, keep_days: float) -> None:
        super().__init__("housekeeping", bus, clock)
        self._keep_s = keep_days * DAY_S

    def handle(self, delivery: Delivery) -> None:
        self.alarm("tidy")

    def alarm(self, name: str) -> None:
        self.set_timer("tidy", EVERY_S)
        self.ask("journal", Record([["forget_old", self.clock.now() - self._keep_s]]), self._forgotten, limit_s=60.0)

    def _forgotten(self, answer: Any) -> None:
        # A journal that refuses now is asked again in six hours; nothing depends on it meanwhile.
        if isinstance(answer, Recorded) and answer.results[0]:
            self.tell("spawner", RemoveFiles(answer.results[0]))
