"""What is remembered of one route over a crash: how far its items are handled, and which messages belong to which turn. Pure.

An item is *handled* when the platform has what it means. Acknowledgements are cumulative, and a turn's items are handled at
its end, while what comes in between (a permission, a notice) is handled at once: those lie `beyond` and are not shown again.
"""

from __future__ import annotations

from typing import Any, Literal

from transports.im.inbound import Chat


class RouteRecord:
    """A view of one route's entry in the state file; all fields of `data` are JSON types."""

    def __init__(self, data: dict[str, Any], chat: Chat | None = None) -> None:
        self.data = data
        data.setdefault("through", 0)
        data.setdefault("beyond", [])
        data.setdefault("turns", {})
        data.setdefault("questions", {})
        data.setdefault("language", "en")
        if chat is not None:
            data.update(chat=chat.id, topic=chat.topic, direct=chat.direct)
        self._beyond: set[int] = set(data["beyond"])
        self._pending: set[int] = set()
        self._top = int(data["through"])
        self._began: set[str] = set()
        """Sends begun by this process: a second try of theirs is not one over a crash."""

    @property
    def chat(self) -> Chat:
        return Chat(str(self.data["chat"]), str(self.data.get("topic") or ""), bool(self.data.get("direct", True)))

    @property
    def through(self) -> int:
        """Everything up to here is handled: the number to acknowledge."""
        return int(self.data["through"])

    @property
    def open(self) -> int:
        """Items received that are not acknowledged."""
        return len(self._pending) + len(self._beyond)

    def received(self, seq: int) -> bool:
        """Note an item; False when it was received or handled before."""
        if seq <= self.through or seq in self._beyond or seq in self._pending:
            return False
        self._pending.add(seq)
        self._top = max(self._top, seq)
        return True

    def handled(self, *seqs: int) -> bool:
        """The platform has them; True when `through` moved."""
        for seq in seqs:
            if seq in self._pending:
                self._pending.discard(seq)
                self._beyond.add(seq)
        before = self.through
        through = min(self._pending) - 1 if self._pending else self._top
        self.data["through"] = max(before, through)
        self._beyond = {seq for seq in self._beyond if seq > self.through}
        self.data["beyond"] = sorted(self._beyond)
        return self.through > before

    # --- turns ---

    def turn(self, key: str, now: float, token: str) -> dict[str, Any]:
        """The entry of a turn: `messages` (ids, in order), `started`, `token` of its stop button, `sent` (parts and files
        that are out for good), `sending` (the part that was under way), `dump`."""
        turns: dict[str, Any] = self.data["turns"]
        return turns.setdefault(key, {"messages": [], "started": now, "token": token, "sent": 0})  # type: ignore[no-any-return]

    def end_turn(self, key: str) -> None:
        self.data["turns"].pop(key, None)

    # --- one message outside of turns ---

    def sending(self, name: str, piece: int) -> Literal["new", "again", "done"]:
        """Note that a piece of the send `name` begins. again: it had begun before a crash, so it may be there already;
        done: a later piece had begun, so this one is there."""
        before = self.data.get("sending")
        if isinstance(before, list) and len(before) == 2 and before[0] == name:
            if piece < before[1]:
                return "done"
            if piece == before[1] and name not in self._began:
                self._began.add(name)
                return "again"
        self._began = {name}
        self.data["sending"] = [name, piece]
        return "new"

    def sent(self) -> None:
        self.data.pop("sending", None)
