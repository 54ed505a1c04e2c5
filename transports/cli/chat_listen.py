"""Listening to a chat: everything that reaches it, acknowledged once it was shown; over restarts of the supervisor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agents_registry.errors import NotRunningError
from transports.bus.routes import terminal_route
from transports.bus.syncclient import SyncClient
from transports.bus.vocabulary.surface import ItemAck, Listen, Preview, RouteItem
from transports.cli.connect import connect

CREDIT = 256
_BACK_S = 86400.0
"""A listener waits a day for its supervisor; `va up` brings both together again."""
_TICK_S = 1.0

Show = Callable[[dict[str, Any]], None]


class Listener:
    """`run` shows events until `end` says so, or for ever. Raises RefusedError when somebody else listens."""

    def __init__(self, name: str) -> None:
        self._address = terminal_route(name).address
        self._last = 0

    def run(self, show: Show, tell: Callable[[str], None], end: Callable[[], bool] = lambda: False, ready: Callable[[], None] = lambda: None) -> None:
        client = connect()
        try:
            while not end():
                try:
                    client.request(self._address, Listen(CREDIT, True, True), 60.0)
                    ready()
                    self._follow(client, show, end)
                except NotRunningError:
                    client.close()
                    tell("the supervisor went away; waiting for it to come back")
                    client = connect(wait_s=_BACK_S)
                    tell("connected again")
        finally:
            client.close()

    def _follow(self, client: SyncClient, show: Show, end: Callable[[], bool]) -> None:
        while not end():
            delivery = client.receive(_TICK_S)
            if delivery is None:
                continue
            item = delivery.message
            if isinstance(item, Preview):
                show(_event(item))
            elif isinstance(item, RouteItem):
                if item.seq == 0 or item.seq > self._last:
                    show(_event(item))
                if item.seq:
                    self._last = max(self._last, item.seq)
                    client.send(self._address, ItemAck(item.seq))


def _event(item: RouteItem | Preview) -> dict[str, Any]:
    """The event with what it belongs to: the key of its turn, and its thread."""
    return {**item.event, "turn": item.turn, "thread": item.thread}
