"""The send budget on the loop: operations wait here for their turn."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from transports.im.budget import Budget, Ticket
from transports.im.platform import Capability, Chat, Rate


class Turnstile:
    """`clock`: seconds, monotonic; the loop's own time in the process."""

    def __init__(self, capability: Capability, clock: Callable[[], float]) -> None:
        self._capability = capability
        self._clock = clock
        self._budget = Budget(capability.bot_budget, clock())
        self._waiting: dict[Ticket, asyncio.Future[None]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0.0

    async def enter(self, chat: Chat, *, urgent: bool) -> None:
        """Returns when one operation on the chat may go."""
        loop = asyncio.get_running_loop()
        ticket = self._budget.enter(chat.id, self.rate(chat), urgent, self._clock())
        passed: asyncio.Future[None] = loop.create_future()
        self._waiting[ticket] = passed
        self._grant()
        try:
            await passed
        except asyncio.CancelledError:
            if self._waiting.pop(ticket, None) is not None:
                self._budget.leave(ticket)
            raise

    def pause(self, chat: Chat | None, seconds: float) -> None:
        """Silence in the chat, or everywhere, for so long."""
        now = self._clock()
        rate = self.rate(chat) if chat is not None else self._capability.bot_budget
        self._budget.pause(chat.id if chat is not None else "", rate, now + seconds, now)

    def free_in(self, chat: Chat) -> float:
        """Seconds until an operation of the chat could go if no other chat waited."""
        now = self._clock()
        return max(0.0, self._budget.free_at(chat.id, self.rate(chat), now) - now)

    def rate(self, chat: Chat) -> Rate:
        return self._capability.chat_budget if chat.direct else self._capability.group_budget or self._capability.chat_budget

    def _grant(self) -> None:
        now = self._clock()
        while (ticket := self._budget.grant(now)) is not None:
            passed = self._waiting.pop(ticket, None)
            if passed is not None and not passed.done():
                passed.set_result(None)
        at = self._budget.wake_at(now)
        if self._timer is not None and (at is None or abs(at - self._timer_at) > 1e-4):
            self._timer.cancel()
            self._timer = None
        if at is not None and self._timer is None:
            self._timer_at = at
            self._timer = asyncio.get_running_loop().call_later(max(0.0, at - now) + 0.0005, self._ring)

    def _ring(self) -> None:
        self._timer = None
        self._grant()
