"""The host's link to its thread: a bus connection under the host's own name, made anew after every break."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from actors.host_loop import HostLoop
from actors.host_spec import HostSpec
from agents_registry.errors import VibeAroundError
from transports.bus.api import Delivery
from transports.bus.client import BusClient
from transports.bus.vocabulary.hosting import HostHello
from transports.paths import read_run

if TYPE_CHECKING:
    from actors.agent import HostCore


class BusLink:
    """`send` goes to the thread; what comes is handed to the core on the loop."""

    def __init__(self, spec: HostSpec, loop: HostLoop) -> None:
        self._spec, self._loop = spec, loop
        self._thread = f"thread/{spec.thread}"
        self._numbers = itertools.count(1)
        self._core: HostCore | None = None
        self._client: BusClient | None = None

    def start(self, core: HostCore) -> None:
        """Connect, and stay connected, to whichever supervisor runs."""
        self._core = core
        self._client = BusClient(
            lambda: Path(read_run(Path(self._spec.data_dir)).socket("bus.sock")),
            kind="host",
            name=self._spec.address,
            secret=bytes.fromhex(self._spec.secret),
            on_message=self._on_message,
            on_state=self._on_state,
            on_defect=lambda error: self._say(f"the bus connection: {error!r}"),
        )

    def send(self, message: Any) -> None:
        """To the thread. While there is no connection it is dropped: the outbox keeps what matters."""
        if self._client is None:
            return
        corr = next(self._numbers) if isinstance(message, HostHello) else 0
        try:
            self._client.send(self._thread, message, corr, sender=self._spec.address)
        except VibeAroundError as error:
            self._say(str(error))

    def close(self) -> None:
        """Send what waits and leave."""
        if self._client is not None:
            self._client.close()

    def _on_message(self, delivery: Delivery) -> None:
        if self._core is not None:
            self._loop.post(self._core.deliver, delivery.message, lambda answer: self._reply(delivery, answer))

    def _on_state(self, state: str) -> None:
        if self._core is not None:
            self._loop.post(self._core.link_up if state == "up" else self._core.link_down)

    def _reply(self, delivery: Delivery, answer: Any) -> None:
        if self._client is not None and delivery.corr > 0:
            self._client.reply(delivery, answer)

    def _say(self, text: str) -> None:
        sys.stderr.write(f"host {self._spec.thread}: {text}\n")
        sys.stderr.flush()
