"""What a surface (a terminal, a bridge) and its route say to each other, at the address `route/<route>`."""

from __future__ import annotations

from dataclasses import field
from typing import Any

from transports.bus.codec import message


@message("submit")
class Submit:
    """A person's message. Answered with `Accepted`, `Ok` (a command that answers at once) or `Failed`.

    `key` makes a redelivery harmless. `sender`: {id, name, role}; the role counts only from a bridge's own claim of
    its users, a local process is its peer role. `workspace`: directory for a thread that this prompt would create.
    With `watch` the sender gets this turn's `RouteItem`s, ending with a done, reply or error event.
    """

    key: str
    text: str
    sender: dict[str, Any] = field(default_factory=dict)
    workspace: str = ""
    attachments: list[Any] = field(default_factory=list)
    watch: bool = False


@message("accepted")
class Accepted:
    """Durable: the prompt or command will be answered. `duplicate`: the key was known, nothing runs again."""

    key: str
    duplicate: bool = False
    position: int = 0


@message("listen")
class Listen:
    """Subscribe to all that reaches the route, from its stored position; items are to be acked with `ItemAck`.

    `credit`: at most so many unacked items under way. `exclusive`: a second exclusive listener is refused.
    """

    credit: int = 64
    exclusive: bool = True
    previews: bool = True


@message("unlisten")
class Unlisten:
    """End a subscription."""


@message("item")
class RouteItem:
    """What a surface shows. `seq` 0 = a preview, never acked or resent; else the position to ack.

    `event` is one object of the `va chat send --json` contract: {"event": accepted | queued | session | asked | text |
    thought | tool | plan | permission | permission_done | choice | choice_done | reply | notice | error | done, ...}.
    `turn` is the key of the turn it belongs to, "" for none; `thread` its thread.
    """

    route: str
    seq: int
    turn: str
    thread: str
    event: dict[str, Any]


@message("preview", preview=True)
class Preview:
    """Like `RouteItem`, for text in the making; dropped first when a peer is slow."""

    route: str
    turn: str
    thread: str
    event: dict[str, Any]


@message("item_ack")
class ItemAck:
    """All items up to and including `seq` were taken over by the surface; moves the route's stored position."""

    seq: int


@message("answer")
class Answer:
    """The choice of a person for a permission or a question. `option` "" = cancel. Answered with Ok or Failed."""

    id: str
    option: str
    sender: dict[str, Any] = field(default_factory=dict)


@message("stop_turn")
class StopTurn:
    """Cancel the running turn and the waiting prompts of this route. Answered with Ok {cancelled, dropped}."""

    sender: dict[str, Any] = field(default_factory=dict)
