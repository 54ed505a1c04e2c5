"""A route's position: where its listeners begin, what is no longer kept for them, and how acks move it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from agents_registry.errors import RefusedError
from transports.bus.api import Delivery
from transports.bus.vocabulary.conversation import Failed, Ok
from transports.bus.vocabulary.storage import Load, Record
from transports.bus.vocabulary.surface import Listen

if TYPE_CHECKING:
    from actors.routes import RouteActor


class RouteFeed:
    """One write of the position at a time; the newest wins."""

    def __init__(self, route: RouteActor) -> None:
        self._r = route
        self.position = 0
        self._due = 0
        self._busy = False
        self._coming: dict[str, bool] = {}
        """Peers that asked to listen and have not been answered yet; True = alone."""

    def left(self, peer: str) -> None:
        """The peer went, perhaps before it was answered."""
        self._coming.pop(peer, None)

    def listen(self, delivery: Delivery, request: Listen) -> None:
        holder = self._r.listeners.exclusive or next((peer for peer, alone in self._coming.items() if alone), "")
        if request.exclusive and holder and holder != delivery.sender:
            raise RefusedError(
                "Somebody listens to this chat already.", hint="End the other `va chat listen`, or use another --chat name.",
                code="listener_taken",
            )
        peer = delivery.sender
        self._coming[peer] = request.exclusive

        def known(answer: Any) -> None:
            if isinstance(answer, Failed):
                self.left(peer)
                self._r.reply(delivery, answer)
                return
            if self.position == 0:
                self.position = int(answer.results[1] or 0)
            keep = Load("feed_skip", [self._r.route, self.position, self._r.settings.routes.keep_items, self._keep_after()])
            self._r.ask("history", keep, begin)

        def begin(answer: Any) -> None:
            if self._coming.pop(peer, None) is None:
                return  # it is gone: registered now it would hold the chat for ever
            skipped = 0
            if isinstance(answer, Ok) and answer.data["skipped"]:
                skipped, self.position = int(answer.data["skipped"]), int(answer.data["position"])
            self._r.reply(delivery, Ok({"position": self.position, "thread": self._r.thread}))
            if skipped:
                self._r.listeners.passing({"event": "notice", "text": f"{skipped} older messages, see the history."})
            self._r.listeners.listen(peer, request.credit, request.exclusive, request.previews, self.position)
            self._r.seen()
            for ask in self._r.choices.asked():
                self._r.listeners.passing({**self._r.choices.event(ask), "key": ask.turn}, "", self._r.thread)

        now = self._r.clock.now()
        self._r.ask("journal", Record([["route_known", self._r.route, now], ["route_at", self._r.route]]), known, limit_s=60.0)

    def _keep_after(self) -> float:
        return self._r.clock.now() - self._r.settings.routes.keep_days * 86400.0

    def moved(self, seq: int) -> None:
        """The position follows the acks; one write at a time, the newest wins."""
        self._due = max(self._due, seq)
        self.position = max(self.position, seq)
        if self._busy:
            return
        self._busy = True
        due = self._due

        def written(_: Any) -> None:
            self._busy = False
            if self._due > due:
                self.moved(self._due)

        self._r.ask("journal", Record([["route_position", self._r.route, due, self._r.clock.now()]]), written, limit_s=60.0)

    def fetch(self, after: int, then: Callable[[Any], None]) -> None:
        self._r.ask("history", Load("feed", [self._r.route, after]), then)
