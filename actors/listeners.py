"""Who hears a route: listeners with a position and credit, and watchers of one message.

Positions, not copies: a listener that is behind reads the journal from where it stands; one that keeps up gets events
as they are posted. What is under way unacked is bounded by the listener's credit.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from transports.bus.vocabulary.conversation import Ok
from transports.bus.vocabulary.storage import Posted
from transports.bus.vocabulary.surface import Preview, RouteItem

Send = Callable[[str, Any], None]
Fetch = Callable[[int, Callable[[Any], None]], None]


@dataclass(slots=True)
class _Listener:
    credit: int
    exclusive: bool
    previews: bool
    cursor: int
    unacked: deque[int] = field(default_factory=deque)
    live: bool = False
    fetching: bool = False


class Listeners:
    """`send(peer, message)`; `fetch(after, then)` reads one page of the route's feed and continues with its answer."""

    def __init__(self, route: str, send: Send, fetch: Fetch, key_of: Callable[[str], str]) -> None:
        self._route = route
        self._send = send
        self._fetch = fetch
        self._key_of = key_of
        self._listeners: dict[str, _Listener] = {}
        self._watchers: dict[str, dict[str, int]] = {}
        self._latest = 0

    def __bool__(self) -> bool:
        return bool(self._listeners or self._watchers)

    @property
    def listening(self) -> bool:
        return bool(self._listeners)

    @property
    def exclusive(self) -> str:
        """The peer that holds the exclusive subscription, or ""."""
        return next((peer for peer, one in self._listeners.items() if one.exclusive), "")

    def listen(self, peer: str, credit: int, exclusive: bool, previews: bool, position: int) -> None:
        self._listeners[peer] = _Listener(max(1, min(credit, 1024)), exclusive, previews, position)
        self._catch_up(peer)

    def leave(self, peer: str) -> None:
        self._listeners.pop(peer, None)
        for key in list(self._watchers):
            self._watchers[key].pop(peer, None)
            if not self._watchers[key]:
                del self._watchers[key]

    def watch(self, key: str, peer: str) -> None:
        self._watchers.setdefault(key, {})[peer] = 0

    def unwatch(self, key: str) -> None:
        self._watchers.pop(key, None)

    def watched(self, key: str) -> bool:
        return key in self._watchers

    def acked(self, peer: str, seq: int) -> bool:
        """True when this moves the route's position (the exclusive listener's ack)."""
        one = self._listeners.get(peer)
        if one is None:
            return False
        while one.unacked and one.unacked[0] <= seq:
            one.unacked.popleft()
        if not one.live:
            self._catch_up(peer)
        return one.exclusive

    # --- what is shown ---

    def post(self, posted: Posted) -> None:
        """A durable event of this route."""
        self._latest = max(self._latest, posted.seq)
        for peer, one in list(self._listeners.items()):
            if one.live and len(one.unacked) < one.credit:
                self._item(peer, one, posted.seq, posted.turn, posted.thread, posted.body)
            else:
                one.live = False
                self._catch_up(peer)  # a page that failed is asked for again; one under way is not asked for twice
        key = str(posted.body.get("key") or "") or self._key_of(posted.turn)
        self.to_watchers(key, posted.seq, posted.thread, posted.body)

    def to_watchers(self, key: str, seq: int, thread: str, event: dict[str, Any]) -> None:
        """`asked` is left out: a watcher knows its own words."""
        watching = self._watchers.get(key)
        if not watching or event.get("event") == "asked":
            return
        for peer, last in watching.items():
            if seq == 0 or seq > last:
                watching[peer] = max(last, seq)
                self._send(peer, RouteItem(self._route, 0, key, thread, event))
        if event.get("event") in ("done", "reply", "error"):
            self.unwatch(key)

    def preview(self, preview: Preview) -> None:
        for peer, one in self._listeners.items():
            if one.previews and one.live:
                self._send(peer, self._keyed(preview))
        for peer in self._watchers.get(self._key_of(preview.turn), ()):
            self._send(peer, self._keyed(preview))

    def passing(self, event: dict[str, Any], key: str = "", thread: str = "") -> None:
        """An event that is not kept: a place in the queue, a question of ours."""
        for peer in self._listeners:
            self._send(peer, RouteItem(self._route, 0, key, thread, event))
        for peer in self._watchers.get(key, ()):
            if peer not in self._listeners:
                self._send(peer, RouteItem(self._route, 0, key, thread, event))

    def _keyed(self, preview: Preview) -> Preview:
        return Preview(preview.route, self._key_of(preview.turn), preview.thread, preview.event)

    def _item(self, peer: str, one: _Listener, seq: int, turn: str, thread: str, event: dict[str, Any]) -> None:
        one.cursor = seq
        one.unacked.append(seq)
        self._send(peer, RouteItem(self._route, seq, self._key_of(turn), thread, event))

    def _catch_up(self, peer: str) -> None:
        one = self._listeners.get(peer)
        if one is None or one.fetching or one.live or len(one.unacked) >= one.credit:
            return
        one.fetching = True
        asked_at = self._latest

        def page(answer: Any) -> None:
            if self._listeners.get(peer) is not one:
                return
            one.fetching = False
            if not isinstance(answer, Ok):
                return
            events = answer.data["events"]
            sent = 0
            for event in events:
                if len(one.unacked) >= one.credit:
                    break
                self._item(peer, one, event["seq"], event["turn"], event["thread"], event["body"])
                sent += 1
            if sent < len(events):
                return
            if not events and self._latest == asked_at:
                one.live = True
                return
            self._catch_up(peer)

        self._fetch(one.cursor, page)
