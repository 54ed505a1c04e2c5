"""A supervisor that answers by script: the real endpoint of the bus, and a table of answers instead of actors."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from actors.clock import SystemClock
from agents_registry.errors import NotFoundError, VibeAroundError
from transports import paths
from transports.bus.access import Access
from transports.bus.api import Delivery, Receiver
from transports.bus.endpoint import Endpoint
from transports.bus.switch import Switch
from transports.bus.vocabulary.conversation import Failed
from transports.bus.vocabulary.surface import Preview, RouteItem

Answer = Callable[[Delivery, "ScriptedSupervisor"], Any]


class ScriptedSupervisor:
    """`answers[(address, message class)]` is called with each such message; what it returns is the answer (None: none).

    `seen` holds every message with its address. Announces itself in `run.json` of `data_dir` as this process.
    """

    def __init__(self, data_dir: Path) -> None:
        self.data_dir = data_dir
        self.answers: dict[tuple[str, type[Any]], Answer] = {}
        self.seen: list[tuple[str, Any]] = []
        self._directory = Path(tempfile.mkdtemp(prefix="va-", dir="/tmp"))
        self._endpoint: Endpoint | None = None
        self._clock = SystemClock()
        self._switch = Switch()
        self._switch.register_prefix("", self._receiver)

    def start(self) -> None:
        self._endpoint = Endpoint(
            self._directory / "bus.sock", self._switch, access=Access(policy=lambda peer, address, message: None),
            bind_names=lambda peer, hello: [], on_gone=lambda peer, reason: None, clock=self._clock, version="test",
        )
        self._endpoint.start()
        self.data_dir.mkdir(exist_ok=True)
        paths.write_run(self.data_dir, self._directory, "test", time.time())

    def stop(self) -> None:
        if self._endpoint is not None:
            self._endpoint.close()
            self._endpoint = None
        paths.clear_run(self.data_dir)

    def close(self) -> None:
        self.stop()
        self._clock.close()
        shutil.rmtree(self._directory, ignore_errors=True)

    def _receiver(self, address: str) -> Receiver | None:
        return self._receive if not address.startswith("peer/") else None

    def _receive(self, delivery: Delivery) -> None:
        self.seen.append((delivery.address, delivery.message))
        answer = self.answers.get((delivery.address, type(delivery.message)))
        try:
            if answer is None:
                raise NotFoundError(f"nothing is scripted for {delivery.address}")
            result = answer(delivery, self)
        except VibeAroundError as error:
            result = Failed(error.to_wire())
        if result is not None and delivery.corr:
            self._switch.send(delivery.sender, result, sender=delivery.address, corr=-delivery.corr)

    def later(self, delay_s: float, act: Callable[[], None]) -> None:
        """Run `act` on the clock's thread, when what is being answered now is on its way."""
        self._clock.call_later(delay_s, act)

    def reply(self, delivery: Delivery, message: Any) -> None:
        self._switch.send(delivery.sender, message, sender=delivery.address, corr=-delivery.corr)

    def item(self, peer: str, route: str, event: dict[str, Any], *, turn: str = "", seq: int = 0) -> None:
        self._switch.send(peer, RouteItem(route, seq, turn, "wt_1", event), sender=f"route/{route}")

    def preview(self, peer: str, route: str, event: dict[str, Any], *, turn: str = "") -> None:
        self._switch.send(peer, Preview(route, turn, "wt_1", event), sender=f"route/{route}")


