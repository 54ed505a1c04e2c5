"""A whole supervisor without processes: real routes, threads, attacher, codes and journal over `Loop`, and stand-ins at
the two edges where processes begin: a spawner that says what it was told, and a host that does as the test says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from actors.attach import Attacher
from actors.attempts import Attempts
from actors.catalog import Catalog
from actors.handover import ALPHABET, HandoverStore
from actors.hosts import Hosts
from actors.routes import RouteActor
from actors.threads import ThreadSupervisor
from actors.workspaces import Workspaces
from agents_registry.errors import AgentError, VibeAroundError
from agents_registry.loader import load_registry
from tests.unit.support import OWNER, Loop
from transports.bus.api import Delivery, Peer
from transports.bus.vocabulary.children import EndHost, HostExited, MemoryOf, ProbeHost, ProbeProcess, SpawnHost
from transports.bus.vocabulary.conversation import Failed, Ok
from transports.bus.vocabulary.handover import CodeIssued, IssueCode
from transports.bus.vocabulary.hosting import (
    HostAck,
    HostAnswer,
    HostCancel,
    HostDelta,
    HostEvent,
    HostHello,
    HostPrompt,
    HostReload,
    HostSetMode,
    HostStop,
    HostWelcome,
)
from transports.bus.vocabulary.storage import Read
from transports.bus.vocabulary.surface import Listen, Preview, RouteItem, Submit
from transports.settings import Settings


class Host:
    """One agent host as its thread sees it. It says hello and ready by itself unless told otherwise."""

    def __init__(self, world: World, request: SpawnHost) -> None:
        self.world = world
        self.request = request
        self.seq = 0
        self.acked = 0
        self.session = request.session or f"native-{world.loop.new_id('s')}"
        self.prompts: list[HostPrompt] = []
        self.answers: list[HostAnswer] = []
        self.cancelled: list[str] = []
        self.stopped = ""
        self.reloads: list[str] = []
        self.told_to_end = False
        self.turns: list[str] = []
        self.state = "starting"
        self.obeys_stop = True
        self.over = False
        """Its process has ended."""

    @property
    def address(self) -> str:
        return f"agent/{self.request.thread}/{self.request.instance}"

    def receive(self, delivery: Delivery) -> None:
        message = delivery.message
        if isinstance(message, HostPrompt):
            self.prompts.append(message)
            self.turns.append(message.turn)
            self.state = "busy"
        elif isinstance(message, HostCancel):
            self.cancelled.append(message.turn)
        elif isinstance(message, HostAnswer):
            self.answers.append(message)
        elif isinstance(message, HostAck):
            self.acked = max(self.acked, message.upto)
        elif isinstance(message, HostWelcome):
            self.told_to_end = message.end
        elif isinstance(message, HostSetMode):
            self.world.loop.switch.send(delivery.sender, Ok({"mode": message.mode}), sender=self.address, corr=-delivery.corr)
        elif isinstance(message, HostReload):
            self.reloads.append(message.session)
            self.world.loop.switch.send(delivery.sender, Ok({}), sender=self.address, corr=-delivery.corr)
        elif isinstance(message, HostStop):
            self.stopped = message.reason
            if self.obeys_stop:
                self.die("exit 0")

    def say_hello(self, *, epoch: int | None = None, turn: str = "") -> None:
        hello = HostHello(
            self.request.thread, self.request.instance, self.request.epoch if epoch is None else epoch, 100, 1, 200, 200, 2,
            self.state, self.session if self.state != "starting" else "", turn, list(self.turns), self.seq,
        )
        self.world.loop._corr += 1
        address = self.address
        if not self.world.loop.switch.known(address) or self is not self.world.hosts[-1]:
            address = f"peer/host-{self.request.epoch}"
            self.world.loop.switch.register(address, self.receive)
        self.world.loop.switch.send(f"thread/{self.request.thread}", hello, sender=address, corr=self.world.loop._corr)
        self.world.loop.run()

    def event(self, kind: str, body: dict[str, Any], turn: str = "") -> None:
        self.seq += 1
        event = HostEvent(self.seq, self.request.epoch, turn, kind, body)
        self.world.loop.switch.send(f"thread/{self.request.thread}", event, sender=self.address)
        self.world.loop.run()

    def ready(self, start: str = "") -> None:
        self.state = "idle"
        start = start or {"new": "new", "resume": "resumed", "fork": "forked", "join": "resumed"}[self.request.start]
        modes = [{"id": "ask", "name": "Ask"}, {"id": "plan", "name": "Plan"}]
        self.event("ready", {"session": self.session, "start": start, "modes": modes, "mode": "ask", "model": "m"})

    def delta(self, text: str, block: int = 0, offset: int = 0) -> None:
        delta = HostDelta(self.request.epoch, self.prompts[-1].turn, "text", block, offset, text)
        self.world.loop.switch.send(f"thread/{self.request.thread}", delta, sender=self.address)
        self.world.loop.run()

    def say(self, text: str, block: int = 0) -> None:
        self.event("text", {"block": block, "text": text}, self.prompts[-1].turn)

    def ask(self, request: str = "rq1") -> None:
        options = [
            {"id": "yes", "name": "Allow", "kind": "allow_once"}, {"id": "always", "name": "Always", "kind": "allow_always"},
            {"id": "no", "name": "Reject", "kind": "reject_once"},
        ]
        self.event("permission", {"id": request, "title": "run ls", "options": options}, self.prompts[-1].turn)

    def end(self, stop_reason: str = "end_turn") -> None:
        self.state = "idle"
        self.event("turn_end", {"stop_reason": stop_reason}, self.prompts[-1].turn)

    def answer(self, text: str) -> None:
        self.say(text)
        self.end()

    def die(self, reason: str = "killed by SIGKILL") -> None:
        loop = self.world.loop
        self.over = True
        loop.switch.unregister(self.address)
        exited = HostExited(self.request.instance, self.request.epoch, reason)
        loop.switch.send(f"thread/{self.request.thread}", exited, sender="spawner")
        loop.run()


class World:
    """`hosts` are all ever spawned, newest last. `sessions` is what the reader finds in the stores."""

    def __init__(self, tmp_path: Path, settings: Settings | None = None) -> None:
        self.loop = Loop(tmp_path)
        self.settings = settings or Settings()
        self.hosts: list[Host] = []
        self.spawn_error: VibeAroundError | None = None
        self.automatic = True
        self.alive_after_restart = False
        self.ended: list[EndHost] = []
        self.living: set[int] = set()
        self.installed = ["demo"]
        self.leaf = "leaf-1"
        self.added: list[str] = []
        self.deleted: set[str] = set()
        """Sessions that somebody removed from the store."""
        self.sessions: list[dict[str, Any]] = []
        self.running_turns = 0
        self.locked = False
        self.reader_hangs = False
        self.reads: list[Read] = []
        self.logged: list[str] = []
        self.shown: dict[str, list[dict[str, Any]]] = {}
        self.registry = load_registry(None)
        self.letters = iter(ALPHABET * 1000)
        self._keys = 0
        self.start()

    def start(self) -> None:
        """The actors of one supervisor's life."""
        loop, s = self.loop, self.settings
        self.numbers: dict[str, Any] = {}
        loop.add("spawner", self._spawner)
        loop.add("reader", self._reader)
        for logic in (
            Hosts(loop.switch, loop.clock, max_live=s.hosts.max_live, wait_s=s.hosts.start_s),
            HandoverStore(
                loop.switch, loop.clock, random_letter=lambda: next(self.letters), ttl_s=s.handover.ttl_s,
                max_misses=s.handover.max_misses, lockout_s=s.handover.lockout_s,
            ),
            Workspaces(loop.switch, loop.clock, Path("/default"), loop.new_id),
            Attempts(loop.switch, loop.clock, self.logged.append),
            Attacher(loop.switch, loop.clock, s, self.registry, loop.new_id, lambda: "demo"),
            Catalog(loop.switch, loop.clock, self.registry, lambda: {"version": "t"}, lambda: self.installed),
        ):
            loop.add(logic.address, logic.receive)
        loop.prefix("route/", self._route)
        loop.prefix("thread/", self._thread)

    def _route(self, address: str) -> Any:
        name = address.removeprefix("route/")
        return RouteActor(name, self.loop.switch, self.loop.clock, self.settings, self.loop.new_id, lambda: self.leave(address)).receive

    def _thread(self, address: str) -> Any:
        name = address.removeprefix("thread/")
        return ThreadSupervisor(name, self.loop.switch, self.loop.clock, self.settings, self.loop.new_id, lambda: self.leave(address), lambda agent: self.registry.get(agent).modes.can_ask).receive

    def leave(self, address: str) -> None:
        self.loop.switch.unregister(address)

    def restart(self) -> None:
        """kill -9 of the supervisor and a new one: all memory is gone, journal and hosts stay."""
        switch = self.loop.switch
        for address in switch.addresses():
            if address.split("/")[0] not in ("journal", "history", "agent"):
                switch.unregister(address)
        switch._prefixes.clear()
        for host in self.hosts:
            if not self.alive_after_restart and switch.known(host.address):
                switch.unregister(host.address)
        self.shown.clear()
        self.loop.clock = type(self.loop.clock)(self.loop.clock.now())
        self.start()

    def wake(self, address: str) -> None:
        from transports.bus.vocabulary.children import HostState

        self.loop.switch.send(address, HostState("", "wake"))
        self.loop.run()

    # --- the edges ---

    def _spawner(self, delivery: Delivery) -> None:
        message = delivery.message
        answer: Any = None
        if isinstance(message, SpawnHost):
            if self.spawn_error is not None:
                answer = Failed(self.spawn_error.to_wire())
            else:
                host = Host(self, message)
                self.hosts.append(host)
                self.loop.add(host.address, host.receive)
                answer = Ok({"pid": 100, "start_time": 1, "secret_hash": "h", "plan_mode": "plan"})
        elif isinstance(message, ProbeHost):
            answer = Ok({"alive": self.alive_after_restart, "spooled": []})
        elif isinstance(message, EndHost):
            self.ended.append(message)
            for host in self.hosts:
                if (host.request.thread, host.request.epoch) == (message.thread, message.epoch):
                    host.die("killed by SIGKILL")
        elif isinstance(message, ProbeProcess):
            answer = Ok({"alive": message.pid in self.living})
        elif isinstance(message, MemoryOf):
            answer = Ok({"mb": [1.0 for _ in message.pids]})
        if answer is not None:
            self.loop.switch.send(delivery.sender, answer, sender="spawner", corr=-delivery.corr)
        if isinstance(message, SpawnHost) and self.spawn_error is None and self.automatic:
            self.loop.run()
            self.hosts[-1].say_hello()
            self.hosts[-1].ready()

    def _reader(self, delivery: Delivery) -> None:
        request: Read = delivery.message
        self.reads.append(request)
        if self.reader_hangs:
            return
        data: dict[str, Any]
        if request.op == "resolve":
            wanted = request.args["wanted"]
            matches = [s for s in self.sessions if s["id"].startswith(wanted)]
            if not matches and any(h.session == wanted and h.prompts for h in self.hosts):
                matches = [{"id": wanted}]
            data = {"matches": [] if wanted in self.deleted else matches}
        elif request.op == "writer":
            self.running_turns -= 1
            data = {"running": self.running_turns >= 0, "locked": self.locked}
        elif request.op == "tail":
            data = {"leaf": self.leaf, "size": 0, "mtime_ns": 0}
        elif request.op == "added":
            data = {"texts": self.added}
        elif request.op == "list":
            data = {"sessions": self.sessions}
        elif request.op == "check_cwd":
            data = {"exists": not request.args["cwd"].startswith("/gone"), "real": request.args["cwd"]}
        else:
            data = {"real": request.args.get("cwd", "")}
        self.loop.switch.send(delivery.sender, Ok(data), sender="reader", corr=-delivery.corr)

    def session(self, sid: str, cwd: str = "/w", **more: Any) -> dict[str, Any]:
        made = {
            "id": sid, "cwd": cwd, "real": cwd, "cwd_exists": True, "title": f"title of {sid}", "store_root": "/store", "aliases": [],
            "path": f"/store/{sid}", "updated_at": 1.0, "live": False, "cwd_same": True, **more,
        }
        self.sessions.append(made)
        return made

    # --- what people do ---

    def listen(self, name: str) -> list[dict[str, Any]]:
        """All that reaches the chat from now on, as a listener sees it."""
        route, peer = f"cli:local:{name}", f"peer/listen-{name}"
        events = self.shown.setdefault(name, [])
        if not self.loop.switch.known(peer):

            def hear(delivery: Delivery) -> None:
                if isinstance(delivery.message, RouteItem | Preview):
                    events.append(delivery.message.event)

            self.loop.switch.register(peer, hear)
        self.loop._corr += 1
        self.loop.switch.send(f"route/{route}", Listen(credit=1000), sender=peer, corr=self.loop._corr, peer=OWNER)
        self.loop.run()
        return events

    def write(self, name: str, text: str, *, key: str = "", workspace: str = "/w", role: str = "") -> Any:
        """Send a message; the answer to the submit (Accepted, Ok or Failed). `role`: as a bridge's person of that role."""
        self._keys += 1
        peer = Peer("peer/b", 1, 0, "bridge", "bridge/x") if role else OWNER
        sender = {"id": f"{role or 'owner'}-1", "name": role or "ann", "role": role}
        return self.loop.ask(f"route/cli:local:{name}", Submit(key or f"k{self._keys}", text, sender, workspace), peer=peer)

    def code(self, session: str, agent: str = "demo", cwd: str = "/w") -> str:
        answer = self.loop.ask("handover", IssueCode(agent, session, cwd))
        assert isinstance(answer, CodeIssued)
        return answer.code

    @property
    def host(self) -> Host:
        return self.hosts[-1]

    def close(self) -> None:
        self.loop.close()


def words(events: list[dict[str, Any]]) -> list[str]:
    """The texts of finished blocks, replies and errors, in order."""
    return [
        str(e.get("text") or e.get("message") or "")
        for e in events
        if e["event"] in ("reply", "error") or (e["event"] == "text" and e.get("final"))
    ]


def kinds(events: list[dict[str, Any]]) -> list[str]:
    return [str(e["event"]) for e in events]


__all__ = ["AgentError", "Host", "World", "kinds", "words"]
