"""Turns that another client runs in a session which a host has joined: they are told, and ours wait for their end."""

from __future__ import annotations

from collections.abc import Callable

from actors.host_voice import HostVoice

SETTLE_S = 0.3
"""The end of a turn is heard beside the agent's own stream, which may still bring its last words."""
MAX_S = 6 * 3600.0
"""A turn whose end was never heard holds ours up no longer than this."""


class ForeignTurns:
    def __init__(self, voice: HostVoice, clock: Callable[[], float]) -> None:
        self._voice, self._clock = voice, clock
        self._running = False
        self.due: float | None = None
        """Clock time of the next `tick` that does something."""

    @property
    def running(self) -> bool:
        return self._running

    def heard(self, what: str, text: str) -> None:
        """begin, said (what the person typed), end, left (the other client is gone)."""
        if what == "begin":
            self._running, self.due = True, self._clock() + MAX_S
            self._tell("begin", "")
        elif what == "said":
            self._tell("said", text)
        elif what == "end" and self._running:
            self.due = self._clock() + SETTLE_S
        elif what == "left":
            if self._running:
                self.due = min(self.due or self._clock(), self._clock() + SETTLE_S)
            self._tell("left", "")

    def tick(self) -> bool:
        """True when a turn has just ended: ours may go on."""
        if self.due is None or self._clock() < self.due:
            return False
        self._running, self.due = False, None
        self._voice.assembler.finish_block()
        self._tell("end", "")
        return True

    def _tell(self, what: str, text: str) -> None:
        self._voice.event_of("", "foreign", {"what": what, "text": text})
