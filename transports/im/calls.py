"""One operation on the platform, tried until it has an outcome: budget, pauses and back-off are here and nowhere else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from typing import TypeVar

from transports.im.errors import Migrated, PlatformError, RetryAfter, Transient
from transports.im.inbound import Chat
from transports.im.turnstile import Turnstile

T = TypeVar("T")
_BACKOFF_S = (1.0, 60.0)
MAX_PAUSE_S = 24 * 3600.0


class Calls:
    """`pause(seconds)` waits; `clock()` in seconds. `counts`: what happened, for logs and tests."""

    def __init__(
        self, turnstile: Turnstile, clock: Callable[[], float], pause: Callable[[float], Awaitable[None]], log: Callable[[str], None]
    ) -> None:
        self.turnstile = turnstile
        self.clock = clock
        self._pause = pause
        self._log = log
        self.counts: Counter[str] = Counter()
        self._quiet: dict[tuple[Chat, str], float] = {}
        """Until when a message's edits pause."""

    def quiet_for(self, chat: Chat, message: str) -> float:
        """Seconds for which the message is not to be edited."""
        return max(0.0, self._quiet.get((chat, message), 0.0) - self.clock())

    async def must(self, chat: Chat, operation: Callable[[], Awaitable[T]], message: str = "") -> T:
        """Until it succeeds or fails for good (raises what the surface raised, Ambiguous included). Waits as the platform
        says; what comes after it in this chat waits too, other chats do not."""
        backoff = _BACKOFF_S[0]
        while True:
            wait = self.quiet_for(chat, message) if message else 0.0
            if wait > 0:
                await self._pause(wait)
            await self.turnstile.enter(chat, urgent=True)
            try:
                return await self._one(operation)
            except RetryAfter as error:
                self.obey(chat, message, error)
                if error.scope == "message" and not message:
                    self.turnstile.pause(chat, error.seconds)
            except Transient as error:
                self.counts["transient"] += 1
                self._log(f"{error}; again in {backoff:g} s")
                await self._pause(backoff)
                backoff = min(_BACKOFF_S[1], backoff * 2)

    async def may(self, chat: Chat, operation: Callable[[], Awaitable[T]], message: str = "") -> bool:
        """One try of something replaceable, the budget already had. False: it did not happen, and will be shown anew later.
        Raises Gone, Unsupported, BadMarkup, TooLong, Forbidden, Migrated for the caller to act on."""
        try:
            await self._one(operation)
        except RetryAfter as error:
            self.obey(chat, message, error)
            return False
        except PlatformError as error:
            if error.code in ("gone", "unsupported", "bad_markup", "too_long", "forbidden") or isinstance(error, Migrated):
                raise
            self.counts[error.code] += 1
            return False
        return True

    async def rest(self, tries: int) -> None:
        """Before something is repeated the n-th time: not at all the first time, then longer and longer."""
        if tries > 1:
            await self._pause(min(_BACKOFF_S[1], 0.5 * 2**tries))

    def obey(self, chat: Chat, message: str, error: RetryAfter) -> None:
        """Keep the silence that the platform wants: of the message, the chat, or everywhere."""
        self.counts["retry_after"] += 1
        seconds = min(error.seconds, MAX_PAUSE_S)
        if error.scope == "message" and message:
            now = self.clock()
            self._quiet = {k: t for k, t in self._quiet.items() if t > now}
            self._quiet[(chat, message)] = now + seconds
        elif error.scope == "bot":
            self.turnstile.pause(None, seconds)
        elif error.scope == "chat":
            self.turnstile.pause(chat, seconds)

    async def _one(self, operation: Callable[[], Awaitable[T]]) -> T:
        try:
            return await operation()
        except PlatformError:
            raise
        except Exception as error:
            self._log(f"defect: {type(error).__name__}: {error}")
            self.counts["defect"] += 1
            raise PlatformError(f"{type(error).__name__}: {error}", code="defect") from error
