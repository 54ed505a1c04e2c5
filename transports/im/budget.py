"""The send budget: token buckets per chat and for the whole bot, and who goes next when both are short. Pure.

Fair: among the chats that may go, the one served longest ago goes first. What a person waits for (answers, questions) goes
before previews; a preview that has waited `AGE_S` counts the same, so that no chat is starved.
"""

from __future__ import annotations

from dataclasses import dataclass

from transports.im.platform import Rate

AGE_S = 5.0
"""Seconds after which a preview goes like an answer."""
_FORGET_S = 600.0
"""A chat that was silent so long begins with a full bucket anyway."""


class Bucket:
    """`rate.per_s` tokens a second, at most `rate.burst`. Times are seconds of any one clock."""

    def __init__(self, rate: Rate, now: float) -> None:
        self._rate = rate
        self._tokens = max(1.0, rate.burst)
        self._at = now
        self._paused_until = 0.0

    def ready_at(self, now: float) -> float:
        """When one token can be had; `now` or earlier: at once."""
        self._fill(now)
        missing = 1.0 - self._tokens
        ready = now if missing <= 1e-9 else now + missing / self._rate.per_s
        return max(ready, self._paused_until)

    def take(self, now: float) -> None:
        self._fill(now)
        self._tokens -= 1.0

    def pause(self, until: float) -> None:
        self._paused_until = max(self._paused_until, until)

    def _fill(self, now: float) -> None:
        if now > self._at:
            self._tokens = min(max(1.0, self._rate.burst), self._tokens + (now - self._at) * self._rate.per_s)
            self._at = now


@dataclass(eq=False, slots=True)
class Ticket:
    """One operation that waits for its turn."""

    chat: str
    urgent: bool
    since: float
    number: int


@dataclass(slots=True)
class _Chat:
    bucket: Bucket
    waiting: list[Ticket]
    served: int = 0
    """Number of the last grant; the lowest goes first."""
    used: float = 0.0


class Budget:
    """`enter`, then ask `grant` until it gives the ticket; `wake_at` tells when to ask again."""

    def __init__(self, bot: Rate, now: float) -> None:
        self._bot = Bucket(bot, now)
        self._chats: dict[str, _Chat] = {}
        self._number = 0
        self._grants = 0

    def enter(self, chat: str, rate: Rate, urgent: bool, now: float) -> Ticket:
        known = self._chats.get(chat)
        if known is None:
            self._forget(now)
            known = self._chats[chat] = _Chat(Bucket(rate, now), [], self._grants, now)
        self._number += 1
        ticket = Ticket(chat, urgent, now, self._number)
        known.waiting.append(ticket)
        known.used = now
        return ticket

    def leave(self, ticket: Ticket) -> None:
        """The operation is not wanted any more."""
        chat = self._chats.get(ticket.chat)
        if chat is not None and ticket in chat.waiting:
            chat.waiting.remove(ticket)

    def grant(self, now: float) -> Ticket | None:
        """The next ticket that may go now; its tokens are taken."""
        if self._bot.ready_at(now) > now:
            return None
        best: tuple[tuple[int, int, int], Ticket, _Chat] | None = None
        for chat in self._chats.values():
            if not chat.waiting or chat.bucket.ready_at(now) > now:
                continue
            ticket = min(chat.waiting, key=lambda t: (self._class(t, now), t.number))
            rank = (self._class(ticket, now), chat.served, ticket.number)
            if best is None or rank < best[0]:
                best = rank, ticket, chat
        if best is None:
            return None
        _, ticket, chat = best
        chat.waiting.remove(ticket)
        chat.bucket.take(now)
        self._bot.take(now)
        self._grants += 1
        chat.served = self._grants
        return ticket

    def wake_at(self, now: float) -> float | None:
        """The earliest time when `grant` may give something; None while nothing waits."""
        chats = [chat.bucket.ready_at(now) for chat in self._chats.values() if chat.waiting]
        return max(self._bot.ready_at(now), min(chats)) if chats else None

    def free_at(self, chat: str, rate: Rate, now: float) -> float:
        """When an operation of the chat could go if nobody else waited."""
        known = self._chats.get(chat)
        return max(self._bot.ready_at(now), known.bucket.ready_at(now) if known is not None else now)

    def pause(self, chat: str, rate: Rate, until: float, now: float) -> None:
        """The platform wants silence in this chat; "" = everywhere."""
        if not chat:
            self._bot.pause(until)
            return
        known = self._chats.get(chat)
        if known is None:
            known = self._chats[chat] = _Chat(Bucket(rate, now), [], self._grants, now)
        known.bucket.pause(until)
        known.used = max(known.used, until)

    @staticmethod
    def _class(ticket: Ticket, now: float) -> int:
        return 0 if ticket.urgent or now - ticket.since >= AGE_S else 1

    def _forget(self, now: float) -> None:
        if len(self._chats) > 1024:
            self._chats = {k: c for k, c in self._chats.items() if c.waiting or now - c.used < _FORGET_S}
