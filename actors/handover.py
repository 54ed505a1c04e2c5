"""The handover code store: short codes that carry pointers to a session, in memory only.

A code is live, claimed by one route, or gone. Expiry and claim are compared at receipt; a claim made in time lives
until it is settled. Misses are counted per route and per user, never for everybody: a lock-out of one chat leaves the
others alone.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from actors.mailbox import Clock, Mailbox
from agents_registry.errors import BusyError, CodeError, RefusedError, UsageError, VibeAroundError
from transports.bus.api import Bus, Delivery
from transports.bus.vocabulary.conversation import Ok
from transports.bus.vocabulary.handover import ClaimCode, Claimed, CodeIssued, IssueCode, SettleClaim

ALPHABET = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
LENGTH = 4
GONE = (
    "The code {code} is not valid: it was never issued, has expired, or was used. Codes live {ttl:g} seconds and are "
    "forgotten when the supervisor restarts (last start {uptime} ago)."
)


@dataclass(slots=True)
class _Code:
    payload: dict[str, Any]
    issued_at: float
    claimed_by: str = ""


@dataclass(slots=True)
class _Misses:
    at: deque[float] = field(default_factory=deque)
    locked_until: float = 0.0


class HandoverStore(Mailbox):
    """`random_letter` gives one letter of the alphabet from the operating system's randomness."""

    def __init__(
        self, bus: Bus, clock: Clock, *, random_letter: Callable[[], str], ttl_s: float, max_misses: int, lockout_s: float,
        max_codes: int = 256,
    ) -> None:
        super().__init__("handover", bus, clock)
        self._letter = random_letter
        self._ttl = ttl_s
        self._max_misses = max_misses
        self._lockout = lockout_s
        self._max_codes = max_codes
        self._codes: dict[str, _Code] = {}
        self._misses: dict[str, _Misses] = {}
        self._started = clock.monotonic()

    def handle(self, delivery: Delivery) -> None:
        message = delivery.message
        if isinstance(message, IssueCode):
            self.reply(delivery, self.issue(message))
        elif isinstance(message, ClaimCode):
            self.reply(delivery, self.claim(message))
        elif isinstance(message, SettleClaim):
            self.settle(message)
            self.reply(delivery, Ok())
        else:
            raise UsageError("the handover store does not know this message.", code="unknown_message")

    def issue(self, request: IssueCode) -> CodeIssued:
        """A fresh code among the live ones. Raises BusyError when too many are live."""
        now = self.clock.monotonic()
        self._forget_expired(now)
        if len(self._codes) >= self._max_codes:
            raise BusyError(f"{self._max_codes} handover codes are live.", hint="Wait two minutes and ask again.")
        while True:
            code = "".join(self._letter() for _ in range(LENGTH))
            if code not in self._codes:
                break
        payload = {name: getattr(request, name) for name in request.__dataclass_fields__}
        self._codes[code] = _Code(payload, now)
        return CodeIssued(code, self._ttl, request.note)

    def claim(self, request: ClaimCode) -> Claimed:
        """The payload, for the one route that claims it. Raises CodeError, RefusedError (locked out) or BusyError."""
        code = request.code
        self._check_lock(request)
        entry = self._codes.get(code)
        if entry is not None and not entry.claimed_by and self._expired(entry, request.received_at):
            del self._codes[code]
            entry = None
        if entry is None:
            self._miss(request)
            uptime = _span(self.clock.monotonic() - self._started)
            raise CodeError(
                GONE.format(code=code, ttl=self._ttl, uptime=uptime),
                hint='Ask the agent in the terminal to "hand over" again for a new code.',
            )
        if entry.claimed_by and entry.claimed_by != request.route:
            raise BusyError(f"The code {code} is being picked up right now in another chat.", code="code_claimed")
        entry.claimed_by = request.route
        return Claimed(code, entry.payload)

    def settle(self, request: SettleClaim) -> None:
        entry = self._codes.get(request.code)
        if entry is None or entry.claimed_by != request.route:
            return
        if request.done or self._expired(entry, self.clock.monotonic()):
            del self._codes[request.code]
        else:
            entry.claimed_by = ""
        if request.done:
            self._misses.pop(f"route:{request.route}", None)

    @property
    def live(self) -> int:
        return len(self._codes)

    def _expired(self, entry: _Code, at: float) -> bool:
        return at - entry.issued_at >= self._ttl

    def _forget_expired(self, now: float) -> None:
        for code in [c for c, e in self._codes.items() if not e.claimed_by and self._expired(e, now)]:
            del self._codes[code]
        for who in [w for w, m in self._misses.items() if now - max([m.locked_until, *m.at]) > self._lockout]:
            del self._misses[who]

    def _who(self, request: ClaimCode) -> list[str]:
        return [f"route:{request.route}"] + ([f"user:{request.user}"] if request.user else [])

    def _check_lock(self, request: ClaimCode) -> None:
        now = self.clock.monotonic()
        for who in self._who(request):
            misses = self._misses.get(who)
            if misses is not None and misses.locked_until > now:
                raise _locked(misses.locked_until - now)

    def _miss(self, request: ClaimCode) -> None:
        now = self.clock.monotonic()
        self._forget_expired(now)
        for who in self._who(request):
            misses = self._misses.setdefault(who, _Misses())
            misses.at.append(now)
            while misses.at and now - misses.at[0] > self._lockout:
                misses.at.popleft()
            if len(misses.at) >= self._max_misses:
                misses.locked_until = now + self._lockout
                misses.at.clear()


def _locked(left_s: float) -> VibeAroundError:
    return RefusedError(
        f"Too many wrong codes from here: codes are not looked at for another {_span(left_s)}. Other chats are not affected.",
        hint="Wait, then ask the agent in the terminal for a fresh code.",
        code="locked_out",
    )


def _span(seconds: float) -> str:
    whole = max(1, round(seconds))
    if whole < 120:
        return f"{whole} s"
    return f"{whole // 60} min" if whole < 7200 else f"{whole // 3600} h"
