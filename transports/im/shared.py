"""What all chats of one bridge have in common."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from transports.im.calls import Calls
from transports.im.inbound import Chat
from transports.im.link import BusLink
from transports.im.platform import Capability, Surface
from transports.im.state import StateFile

_ALPHABET = "abcdefghjkmnpqrstuvwxyz23456789"


def token() -> str:
    """Eight characters that cannot be guessed within a question's life, and that fit any platform's button."""
    return "".join(secrets.choice(_ALPHABET) for _ in range(8))


@dataclass(slots=True)
class Shared:
    """`now()`: seconds since the epoch; `calls.clock()`: monotonic. `private`: this instance's directory (0700)."""

    link: BusLink
    surface: Surface
    capability: Capability
    options: Mapping[str, str]
    calls: Calls
    state: StateFile
    private: Path
    log: Callable[[str], None]
    now: Callable[[], float] = time.time
    new_token: Callable[[], str] = token
    moved: Callable[[Chat, str], None] = field(default=lambda chat, to: None)
    """The chat has a new id on the platform."""

    async def saved(self) -> None:
        """The state is on the disk; waits for a disk that is full."""
        while True:
            try:
                await self.state.saved()
                return
            except OSError as error:
                self.calls.counts["disk"] += 1
                self.log(f"the state cannot be written: {error}; again in 5 s")
                await asyncio.sleep(5.0)

    def at(self) -> str:
        """The time of day for people."""
        return time.strftime("%H:%M", time.localtime(self.now()))
