"""The desk for bridges: which run, who their people are, and the one-time claim of an owner.

Definitions lie in bridges.toml and are written by the command line; what the desk keeps is in the journal (people) or in
memory (states, claims). A bridge that ends is started again by the restart policy; one that reported failed is not, for
only a person can mend it.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from actors.mailbox import Clock, Mailbox
from actors.supervision import RestartPolicy
from agents_registry.errors import BusyError, NotFoundError, RefusedError, UsageError
from transports.bus.api import Bus, Delivery
from transports.bus.vocabulary.bridges import (
    AddBridge,
    ApproveUser,
    BridgeClaim,
    BridgeHello,
    BridgeKnock,
    BridgePeople,
    BridgeState,
    BridgeWelcome,
    ControlBridge,
    ListBridges,
    RemoveBridge,
    RevokeUser,
    StartBridge,
)
from transports.bus.vocabulary.children import ChildExited, HostState, StopChild
from transports.bus.vocabulary.conversation import Failed, Ok, PeerGone
from transports.bus.vocabulary.storage import Load, Record
from transports.bus.vocabulary.threads import RouteNotice

CLAIM_S = 600.0
CLAIM_TRIES = 5
CLAIM_LENGTH = 8
ROLES = ("owner", "member", "viewer")
STATES = ("starting", "running", "retrying", "failed", "stopped")
MAX_BRIDGES = 64
MAX_KNOCKS = 16
KNOCK_S = 3600.0
"""Owners hear of one stranger at most so often."""
KNOCKS_AT_ONCE, KNOCK_REST_S = 3, 600.0
"""And of all strangers of a bridge at most so many in so long: a crowd must not fill their chats."""
MAX_USERS = 1000


@dataclass(slots=True)
class _Claim:
    code: str
    until: float
    tries: int = 0


@dataclass(slots=True)
class _Bridge:
    name: str
    kind: str
    state: str = "stopped"
    since: float = 0.0
    error: str = ""
    pid: int = 0
    wanted: bool = False
    """A person wants it to run."""
    started: float = 0.0
    users: dict[str, dict[str, str]] = field(default_factory=dict)
    claim: _Claim | None = None
    policy: RestartPolicy = field(default_factory=RestartPolicy)
    knocks: dict[str, tuple[str, float, float]] = field(default_factory=dict)
    """Strangers by their id: name, when they last wrote (wall clock), when the owners were told (monotonic)."""
    told: list[float] = field(default_factory=list)
    then: Callable[[], None] | None = None
    """What goes on when the process has ended."""

    @property
    def child(self) -> str:
        return f"bridge/{self.kind}:{self.name}"


class Bridges(Mailbox):
    """`definitions`: (name, kind) of all, as read at the start. `random_letter()`: of the claim's alphabet, from the OS."""

    def __init__(self, bus: Bus, clock: Clock, definitions: Iterable[tuple[str, str]], random_letter: Callable[[], str]) -> None:
        super().__init__("bridges", bus, clock)
        self._letter = random_letter
        self._bridges = {name: _Bridge(name, kind, since=clock.now()) for name, kind in definitions}
        self._waiting: list[Delivery] | None = []
        """What came before the people were known; None: they are."""

    def _load(self) -> None:
        self.ask("history", Load("bridge_people"), self._loaded, limit_s=20.0)

    def _loaded(self, answer: Any) -> None:
        waiting, self._waiting = self._waiting or [], None
        if isinstance(answer, Failed):
            self._waiting = []
            for delivery in waiting:
                self.reply(delivery, answer)
            self.set_timer("load", 5.0)
            return
        for row in answer.data["people"]:
            bridge = self._bridges.get(row["bridge"])
            if bridge is not None:
                bridge.users[row["user_id"]] = {"id": row["user_id"], "name": row["user_name"], "role": row["role"]}
        for bridge in self._bridges.values():
            self._start(bridge)
        for delivery in waiting:
            self.receive(delivery)

    def handle(self, delivery: Delivery) -> None:
        message = delivery.message
        if isinstance(message, HostState):
            self._load()  # the bus is there now
        elif self._waiting is not None and not isinstance(message, ChildExited | PeerGone | Failed):
            if len(self._waiting) >= 256:
                raise BusyError("The bridges are still being loaded.", hint="Try again in a moment.")
            self._waiting.append(delivery)
        elif isinstance(message, BridgeHello | BridgeClaim | BridgeState | BridgeKnock):
            self._from_bridge(delivery, message)
        elif isinstance(message, ListBridges):
            self.reply(delivery, Ok({"bridges": [self._row(b) for b in self._bridges.values()]}))
        elif isinstance(message, AddBridge):
            self._add(delivery, message)
        elif isinstance(message, ControlBridge):
            self._control(delivery, message)
        elif isinstance(message, RemoveBridge):
            self._remove(delivery, message)
        elif isinstance(message, ApproveUser):
            self._approve(delivery, message)
        elif isinstance(message, RevokeUser):
            self._revoke(delivery, message)
        elif isinstance(message, ChildExited):
            self._exited(message)
        elif not isinstance(message, Failed | PeerGone | Ok):
            raise UsageError("the bridges' desk does not know this message.", code="unknown_message")

    def alarm(self, name: str) -> None:
        if name == "load":
            self._load()
            return
        kind, _, bridge = name.partition(":")
        found = self._bridges.get(bridge)
        if found is None:
            return
        if kind == "start" and found.wanted and found.pid == 0:
            self._start(found)
        elif kind == "claim":
            found.claim = None
            self._push(found)

    # --- from the bridge's process ---

    def _from_bridge(self, delivery: Delivery, message: BridgeHello | BridgeClaim | BridgeState | BridgeKnock) -> None:
        # Its name on the bus is proven by a secret; what it says of itself is not looked at.
        name = delivery.peer.name.rpartition(":")[2] if delivery.peer is not None else delivery.sender.rpartition(":")[2]
        bridge = self._get(name)
        if isinstance(message, BridgeHello):
            self.reply(delivery, BridgeWelcome(list(bridge.users.values()), bridge.claim is not None))
        elif isinstance(message, BridgeState):
            if message.state in STATES and bridge.wanted:  # one that is being stopped has nothing to say any more
                self._set(bridge, message.state, message.error)
        elif isinstance(message, BridgeKnock):
            self._knocked(bridge, message)
        else:
            self._claimed(delivery, bridge, message)

    def _knocked(self, bridge: _Bridge, message: BridgeKnock) -> None:
        """Kept for the list, newest last; told to the owners in the chats that the bridge names, if they are its own."""
        user, name = _plain(message.user_id), _plain(message.user_name)
        if not user or message.user_id in bridge.users:
            return
        now = self.clock.monotonic()
        told = bridge.knocks.pop(user, ("", 0.0, -KNOCK_S))[2]
        bridge.told = [at for at in bridge.told if now - at < KNOCK_REST_S]
        if now - told >= KNOCK_S and len(bridge.told) < KNOCKS_AT_ONCE:
            told = now
            bridge.told.append(now)
            text = f"Somebody who is not on the list wrote to {bridge.name}: {name or 'no name'} ({user}). To let them in, run: va bridge approve {bridge.name} {user}"
            for route in message.routes[:8]:
                if str(route).startswith(f"{bridge.kind}:{bridge.name}:"):
                    self.tell(f"route/{route}", RouteNotice(text))
        bridge.knocks[user] = (name, self.clock.now(), told)
        while len(bridge.knocks) > MAX_KNOCKS:
            del bridge.knocks[next(iter(bridge.knocks))]

    def _claimed(self, delivery: Delivery, bridge: _Bridge, message: BridgeClaim) -> None:
        claim, now = bridge.claim, self.clock.monotonic()
        refused = Ok({"outcome": "refused"})
        if claim is None or now > claim.until or not message.user_id:
            self.reply(delivery, refused)
            return
        claim.tries += 1
        if not hmac.compare_digest(message.code.strip().upper().encode(), claim.code.encode()):
            if claim.tries >= CLAIM_TRIES:
                self._close_claim(bridge)
            self.reply(delivery, refused)
            return
        self._close_claim(bridge)  # one winner: gone before anything else happens

        def durable(answer: Any) -> None:
            self.reply(delivery, answer if isinstance(answer, Failed) else Ok({"outcome": "owner"}))

        self._record(bridge, message.user_id, message.user_name, "owner", durable)

    # --- from the owner ---

    def _add(self, delivery: Delivery, message: AddBridge) -> None:
        known = self._bridges.get(message.name)
        if known is None:
            if len(self._bridges) >= MAX_BRIDGES:
                raise RefusedError(f"There are {MAX_BRIDGES} bridges already.", hint="Remove one: `va bridge remove NAME`.")
            known = self._bridges[message.name] = _Bridge(message.name, message.kind, since=self.clock.now())
        elif known.kind != message.kind:
            raise UsageError(f"The bridge {message.name} is one for {known.kind}.", hint="Give the new one another --name.")
        bridge = known
        bridge.policy.reset()
        # Answered when the process is there or cannot be: what its start lacks is said to the one who added it.
        self._again(bridge, lambda: self.reply(delivery, Ok({**self._row(bridge), **self._open_claim(bridge)})))

    def _control(self, delivery: Delivery, message: ControlBridge) -> None:
        bridge = self._get(message.name)
        answer: dict[str, Any] = {}
        if message.action in ("start", "restart"):
            bridge.policy.reset()
            # "start" also means one that is about to end, or that said it failed and still runs.
            if message.action == "restart" or bridge.pid == 0 or not bridge.wanted or bridge.state == "failed":
                self._again(bridge)
        elif message.action == "stop":
            bridge.wanted = False
            self._set(bridge, "stopped", "")
            self._end(bridge)
        elif message.action == "claim":
            answer = self._open_claim(bridge)
        else:
            raise UsageError(f"{message.action!r} is nothing to do with a bridge.", hint="start, stop, restart or claim.")
        self.reply(delivery, Ok({**self._row(bridge), **answer}))

    def _remove(self, delivery: Delivery, message: RemoveBridge) -> None:
        bridge = self._get(message.name)
        bridge.wanted = False
        self._end(bridge)

        def forgotten(answer: Any) -> None:
            if not isinstance(answer, Failed):
                self._bridges.pop(bridge.name, None)
            self.reply(delivery, answer if isinstance(answer, Failed) else Ok())

        self.ask("journal", Record([["bridge_forget", bridge.name]]), forgotten, limit_s=60.0)

    def _approve(self, delivery: Delivery, message: ApproveUser) -> None:
        bridge = self._get(message.name)
        if message.role not in ROLES:
            raise UsageError(f"{message.role!r} is no role.", hint=f"One of: {', '.join(ROLES)}.")
        if not message.user_id.strip() or len(message.user_id) > 200:
            raise UsageError("That is no user id.", hint="Give the platform's own id of the person.")
        if len(bridge.users) >= MAX_USERS and message.user_id not in bridge.users:
            raise RefusedError(f"There are {MAX_USERS} people on the list already.", hint="Revoke somebody first.")
        name = message.user_name or bridge.users.get(message.user_id, {}).get("name", "")

        def durable(answer: Any) -> None:
            self.reply(delivery, answer if isinstance(answer, Failed) else Ok(self._row(bridge)))

        self._record(bridge, message.user_id, name, message.role, durable)

    def _revoke(self, delivery: Delivery, message: RevokeUser) -> None:
        bridge = self._get(message.name)
        if message.user_id not in bridge.users:
            raise NotFoundError(f"{message.user_id} is not on the list of {bridge.name}.", hint="See `va bridge list`.")
        gone = bridge.users.pop(message.user_id)  # first: whoever is taken off may nothing from now on
        self._push(bridge)

        def durable(answer: Any) -> None:
            if isinstance(answer, Failed):
                bridge.users.setdefault(message.user_id, gone)
                self._push(bridge)
            self.reply(delivery, answer if isinstance(answer, Failed) else Ok(self._row(bridge)))

        self.ask("journal", Record([["bridge_person_gone", bridge.name, message.user_id]]), durable, limit_s=60.0)

    # --- people and claims ---

    def _record(self, bridge: _Bridge, user: str, name: str, role: str, then: Callable[[Any], None]) -> None:
        def durable(answer: Any) -> None:
            if not isinstance(answer, Failed):
                bridge.users[user] = {"id": user, "name": name, "role": role}
                bridge.knocks.pop(_plain(user), None)
                self._push(bridge)
            then(answer)

        self.ask("journal", Record([["bridge_person", bridge.name, user, name, role, self.clock.now()]]), durable, limit_s=60.0)

    def _open_claim(self, bridge: _Bridge) -> dict[str, Any]:
        code = "".join(self._letter() for _ in range(CLAIM_LENGTH))
        bridge.claim = _Claim(code, self.clock.monotonic() + CLAIM_S)
        self.set_timer(f"claim:{bridge.name}", CLAIM_S)
        self._push(bridge)
        return {"code": code, "expires_in_s": CLAIM_S}

    def _close_claim(self, bridge: _Bridge) -> None:
        bridge.claim = None
        self.cancel_timer(f"claim:{bridge.name}")
        self._push(bridge)

    def _push(self, bridge: _Bridge) -> None:
        if bridge.pid:
            self.tell(bridge.child, BridgePeople(list(bridge.users.values()), bridge.claim is not None))

    # --- the process ---

    def _start(self, bridge: _Bridge, then: Callable[[], None] = lambda: None) -> None:
        """`then()` when its process is there, or cannot be started."""
        bridge.wanted = True
        if bridge.pid:
            then()
            return
        bridge.pid = -1  # on its way
        bridge.started = self.clock.monotonic()
        self._set(bridge, "starting", "")

        def started(answer: Any) -> None:
            if isinstance(answer, Failed):
                bridge.pid = 0
                self._set(bridge, "failed", " ".join(str(part) for part in answer.error[2:4]).strip())
                self._go_on(bridge)
            elif bridge.pid == -1:
                bridge.pid = int(answer.data["pid"])
            then()

        self.ask("spawner", StartBridge(bridge.name, bridge.kind), started, limit_s=60.0)

    def _again(self, bridge: _Bridge, then: Callable[[], None] = lambda: None) -> None:
        """Start it, or end the running process first."""
        self.cancel_timer(f"start:{bridge.name}")
        if bridge.pid == 0:
            self._start(bridge, then)
            return
        bridge.wanted = True
        before = bridge.then

        def ended() -> None:
            if before is not None:
                before()
            if bridge.wanted:
                self._start(bridge, then)
            else:
                then()

        bridge.then = ended
        self._end(bridge)

    def _end(self, bridge: _Bridge) -> None:
        self.cancel_timer(f"start:{bridge.name}")
        if bridge.pid:
            self.tell("spawner", StopChild(bridge.child))

    def _exited(self, message: ChildExited) -> None:
        bridge = next((b for b in self._bridges.values() if b.child == message.name), None)
        if bridge is None:
            return
        bridge.pid = 0
        if self._go_on(bridge):
            return
        if not bridge.wanted:
            self._set(bridge, "stopped", "")
            return
        if bridge.state == "failed":
            return  # it said why; a person must look
        delay = bridge.policy.next_delay(bridge.started, self.clock.monotonic())
        if delay is None:
            self._set(bridge, "failed", f"it ended again and again: {message.reason}")
            return
        self._set(bridge, "retrying", message.reason)
        self.set_timer(f"start:{bridge.name}", delay)

    @staticmethod
    def _go_on(bridge: _Bridge) -> bool:
        then, bridge.then = bridge.then, None
        if then is not None:
            then()
        return then is not None

    def _set(self, bridge: _Bridge, state: str, error: str) -> None:
        if bridge.state != state:
            bridge.since = self.clock.now()
        bridge.state, bridge.error = state, error[:500]

    def _get(self, name: str) -> _Bridge:
        bridge = self._bridges.get(name)
        if bridge is None:
            raise NotFoundError(f"There is no bridge {name[:40]!r}.", hint="See `va bridge list`.", code="no_bridge")
        return bridge

    @staticmethod
    def _row(bridge: _Bridge) -> dict[str, Any]:
        return {
            "name": bridge.name, "kind": bridge.kind, "state": bridge.state, "since": bridge.since, "error": bridge.error,
            "pid": max(0, bridge.pid), "users": list(bridge.users.values()),
            "knocks": [{"id": user, "name": name, "at": at} for user, (name, at, _) in bridge.knocks.items()],
        }


def _plain(text: str) -> str:
    """What a stranger calls himself, as harmless words: letters, digits and a few signs, at most 60."""
    return "".join(c for c in text if c.isalnum() or c in " -_.:+@")[:60].strip()
