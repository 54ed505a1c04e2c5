"""A real supervisor of which a part hangs when it is told: SIGUSR1 the bus's io thread, SIGUSR2 every thread of the pool."""

from __future__ import annotations

import signal
import sys
import threading
from typing import Any

from actors import supervisor
from transports.bus.vocabulary.children import HostState

_NEVER = threading.Event()


class Stuck(supervisor.Supervisor):
    def start(self) -> None:
        super().start()
        for number in range(supervisor.POOL_THREADS):
            self._run(f"stuck/{number}", lambda _: _hang())
        signal.signal(signal.SIGUSR1, lambda *_: self.endpoint.call(_hang))
        signal.signal(signal.SIGUSR2, self._hang_pool)

    def _hang_pool(self, *_: Any) -> None:
        for number in range(supervisor.POOL_THREADS):
            self.switch.send(f"stuck/{number}", HostState("", "hang"))


def _hang() -> None:
    _NEVER.wait()


if __name__ == "__main__":
    supervisor.Supervisor = Stuck  # type: ignore[misc]
    sys.exit(supervisor.main())
