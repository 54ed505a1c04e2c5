"""Strangers who wrote and were told the one line: a word for the supervisor's desk, which tells the owners. Pure but for `send`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from transports.bus.vocabulary.bridges import BridgeKnock
from transports.im.inbound import Message
from transports.im.platform import Person, User

MAX_CHATS = 8


class Knocks:
    """`send(knock)` hands it to the desk. Owners are told where they last wrote directly since the bridge started."""

    def __init__(self, send: Callable[[BridgeKnock], None]) -> None:
        self._send = send
        self._direct: dict[str, str] = {}

    def wrote(self, update: Message, person: Person | None, route: str) -> None:
        """Somebody on the list wrote in this chat."""
        if update.chat.direct and person is not None and person.role == "owner" and (person.id in self._direct or len(self._direct) < MAX_CHATS):
            self._direct[person.id] = route

    def knocked(self, user: User, people: Mapping[str, Person]) -> None:
        """Called only as often as the one line is said."""
        routes = [route for ident, route in self._direct.items() if ident in people and people[ident].role == "owner"]
        self._send(BridgeKnock(user.id[:200], user.name[:100], routes))
