"""How long a host lives without a supervisor (DESIGN 5): the lease of permissions and idleness, the limit of a turn."""

from __future__ import annotations

from collections.abc import Callable

from actors.host_spec import HostLimits


class Lease:
    """Times are those of `clock` (monotonic seconds)."""

    def __init__(self, limits: HostLimits, clock: Callable[[], float]) -> None:
        self._limits = limits
        self._clock = clock
        self._heard = self._idle = clock()

    def heard(self) -> None:
        """The supervisor gave a sign of life."""
        self._heard = self._clock()

    def idle(self) -> None:
        """A turn has ended, or the agent has become ready."""
        self._idle = self._clock()

    def stirred(self) -> None:
        """The agent did something of its own accord: that is not idleness."""
        self._idle = self._clock()

    def since(self, asked_at: float) -> bool:
        """Whether a permission asked for at `asked_at` has waited for the lease without a supervisor."""
        return self._clock() - max(self._heard, asked_at) >= self._limits.lease_s

    @property
    def turn_is_orphan(self) -> bool:
        """The running turn has nobody to answer to for too long."""
        return self._clock() - self._heard >= self._limits.orphan_turn_s

    @property
    def is_over(self) -> bool:
        """An idle host has waited for the lease."""
        return self._clock() - max(self._heard, self._idle) >= self._limits.lease_s
