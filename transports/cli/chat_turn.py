"""One message sent from a terminal, followed to its end; also over a restart of the supervisor."""

from __future__ import annotations

import json
import os
from collections import Counter
from typing import Any, Protocol

from agents_registry.errors import NotRunningError, VibeAroundError
from transports.bus.routes import terminal_route
from transports.bus.syncclient import SyncClient
from transports.bus.vocabulary.conversation import Ok
from transports.bus.vocabulary.surface import Accepted, Answer, Preview, RouteItem, StopTurn, Submit
from transports.cli.connect import connect, person, real_directory

LAST = frozenset({"done", "reply", "error"})
INTERRUPTED = 130
_BACK_S = 60.0
"""How long a turn waits for a supervisor that went away; its host goes on meanwhile."""
_TICK_S = 0.1
_IDLE_TICK_S = 30.0


class View(Protocol):
    """Where the events of a turn go."""

    def show(self, event: dict[str, Any]) -> None: ...

    def wants_input(self) -> bool:
        """A question is open that this terminal may answer: `poll_input` is asked often."""
        ...

    def poll_input(self) -> tuple[str, str] | None:
        """The (id, option) that was chosen here meanwhile, if any; does not wait."""
        ...


class Turn:
    """`run` shows the turn's events and returns the exit code. Raises VibeAroundError when it was not accepted."""

    def __init__(self, name: str, text: str, directory: str | None, key: str = "") -> None:
        self.key = key or os.urandom(9).hex()
        self._address = terminal_route(name).address
        self._submit = Submit(self.key, text, person(), real_directory(directory), [], True)
        self._seen: Counter[str] = Counter()
        self._replayed: Counter[str] = Counter()
        self._last_place = ""
        self._pieces: dict[tuple[Any, Any], int] = {}
        self._accepted = False

    def run(self, view: View) -> int:
        """Follow the turn. Ctrl-C stops it, and its end is still shown; pressed a second time it is raised."""
        client = connect()
        stopping = False
        try:
            while True:
                try:
                    code = self._start(client, view)
                    while code is None:
                        code = self._step(client, view)
                    return INTERRUPTED if stopping else code
                except NotRunningError:  # the key makes it harmless to ask again, accepted or not
                    client.close()
                    client = self._again(view)
                except KeyboardInterrupt:
                    if stopping or not self._accepted:
                        raise
                    stopping = True
                    client.send(self._address, StopTurn(person()))
        finally:
            client.close()

    def _again(self, view: View) -> SyncClient:
        view.show({"event": "notice", "text": "The supervisor went away; waiting for it to come back."})
        try:
            return connect(wait_s=_BACK_S)
        except NotRunningError as error:
            raise NotRunningError(
                "The supervisor went away during the turn and has not come back.",
                hint=f"Start it with `va up`; the turn goes on: va chat send --key {self.key} with the same text shows it.",
            ) from error

    def _start(self, client: SyncClient, view: View) -> int | None:
        self._replayed = Counter()  # whatever was shown before is told again from its first event
        answer = client.request(self._address, self._submit, 90.0)
        if isinstance(answer, Ok):
            event = {"event": "reply", **answer.data}
            view.show(event)
            return exit_code(event)
        if isinstance(answer, Accepted) and not self._accepted:
            self._accepted = True
            view.show({"event": "accepted", "key": answer.key, "duplicate": answer.duplicate})
            if answer.position > 0 and not answer.duplicate:
                self._show(view, {"event": "queued", "position": answer.position})
        return None

    def _step(self, client: SyncClient, view: View) -> int | None:
        asking = view.wants_input()
        delivery = client.receive(_TICK_S if asking else _IDLE_TICK_S)
        if asking and (chosen := view.poll_input()) is not None:
            self._answer(client, view, *chosen)
        if delivery is None or not isinstance(delivery.message, (RouteItem, Preview)):
            return None
        item = delivery.message
        if item.turn != self.key and item.event.get("key") != self.key:
            return None
        event = item.event
        if isinstance(item, Preview):
            fresh = self._fresh(event)
            if fresh is not None:
                view.show(fresh)
            return None
        if self._known(event):
            return None
        self._show(view, event)
        return exit_code(event) if event.get("event") in LAST else None

    def _answer(self, client: SyncClient, view: View, ident: str, option: str) -> None:
        try:
            client.request(self._address, Answer(ident, option, person()), 15.0)
        except NotRunningError:
            raise
        except VibeAroundError as error:  # answered elsewhere meanwhile, or gone: said, and the turn goes on
            view.show({"event": "notice", "text": error.message})

    def _show(self, view: View, event: dict[str, Any]) -> None:
        kind = event.get("event")
        if kind == "queued":
            mark = json.dumps(event.get("position"))
            if self._last_place == mark:
                return
            self._last_place = mark
        view.show(event)

    def _known(self, event: dict[str, Any]) -> bool:
        """After a reconnect the turn is shown from its first event: what was shown before is passed over."""
        if event.get("event") == "accepted":
            return True
        mark = json.dumps(event, sort_keys=True, default=str)
        self._replayed[mark] += 1
        if self._replayed[mark] <= self._seen[mark]:
            return True
        self._seen[mark] += 1
        return False


    def _fresh(self, event: dict[str, Any]) -> dict[str, Any] | None:
        """The part of a text piece that was not shown yet: after a reconnect the open block comes from its start."""
        offset, text = event.get("offset"), str(event.get("text") or "")
        if not isinstance(offset, int):
            return event
        block = (event.get("event"), event.get("block"))
        shown = self._pieces.get(block, 0)
        end = offset + len(text)
        if end <= shown:
            return None
        self._pieces[block] = end
        return event if offset >= shown else {**event, "offset": shown, "text": text[shown - offset :]}


_BY_WORD = {
    "usage": 2, "not_running": 3, "not_found": 4, "refused": 5, "not_authorised": 5, "code_invalid": 6, "agent_failed": 7, "busy": 8,
    "interrupted": 7,
}


def exit_code(event: dict[str, Any]) -> int:
    """The exit code that fits the last event of a turn."""
    if event.get("event") != "error":
        return 0
    told = event.get("exit_code")
    if isinstance(told, int) and 0 < told < 9:
        return told
    return _BY_WORD.get(str(event.get("code")), 1)


