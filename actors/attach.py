"""The attacher: the one place where routes, threads and sessions are bound to one another.

New threads, joins, moves and detaches are single journal records, so that a crash leaves either the old binding or
the new one. Slow questions (stores, directories) are asked before, so that one hung store delays no other chat.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from actors.attach_external import ExternalAttach
from actors.mailbox import Clock, Mailbox
from actors.pickup_terminal import TerminalLaunch, TerminalPickup
from agents_registry.errors import AgentError, NotFoundError, RefusedError, UsageError
from agents_registry.loader import Registry
from transports.bus.api import Bus, Delivery, Peer
from transports.bus.routes import Route
from transports.bus.vocabulary.conversation import Failed, Ok
from transports.bus.vocabulary.handover import (
    Attached,
    AttachExternal,
    AttachThread,
    ClaimCode,
    Claimed,
    Detach,
    HandoverThread,
    IssueCode,
    ListSessions,
    NewThread,
    PickupTerminal,
    PrepareHandover,
    ReadCode,
    SettleClaim,
)
from transports.bus.vocabulary.lists import EndSessionHost, FindWorkspace
from transports.bus.vocabulary.storage import Load, Read, Record
from transports.bus.vocabulary.threads import (
    DefaultWorkspace,
    IdentifySession,
    RouteAttachment,
    RouteNotice,
    SetProfile,
    ThreadClose,
    ThreadRoutes,
)
from transports.settings import Settings


class Attacher(Mailbox):
    """`default_agent()` names the agent of a new thread, or "" when none is installed."""

    def __init__(
        self, bus: Bus, clock: Clock, settings: Settings, registry: Registry, new_id: Callable[[str], str],
        default_agent: Callable[[], str],
    ) -> None:
        super().__init__("attacher", bus, clock)
        self.settings = settings
        self.registry = registry
        self.new_id = new_id
        self._default_agent = default_agent

    def handle(self, delivery: Delivery) -> None:
        message = delivery.message
        if isinstance(message, NewThread):
            self._new_thread(delivery, message)
        elif isinstance(message, AttachExternal):
            ExternalAttach(self, delivery, message).begin()
        elif isinstance(message, AttachThread):
            self.bind(message.route, message.thread, [], message.sender, lambda a: self.reply(delivery, a))
        elif isinstance(message, Detach):
            self._detach(delivery, message)
        elif isinstance(message, PickupTerminal):
            TerminalPickup(self, delivery, message).begin()
        elif isinstance(message, PrepareHandover):
            self._prepare(delivery, message)
        elif isinstance(message, ReadCode):
            self._read_code(delivery, message)
        elif isinstance(message, IdentifySession):
            self._identify(delivery.peer, message, lambda a: self.reply(delivery, a))
        elif isinstance(message, HandoverThread):
            self._handover_thread(delivery, message)
        elif isinstance(message, ListSessions):
            read = Read("list", {"agent": message.agent, "cwd": message.cwd, "limit": message.limit})
            self.ask("reader", read, lambda a: self.reply(delivery, a), limit_s=20.0)
        elif isinstance(message, EndSessionHost):
            TerminalLaunch(self, delivery, message).begin()
        elif isinstance(message, SetProfile):
            if message.profile != "direct":
                raise NotFoundError(f"There is no profile {message.profile!r}.", hint="`direct` is the only profile for now.")
            self.reply(delivery, Ok({"profile": "direct"}))
        elif not isinstance(message, Failed):
            raise UsageError("the attacher does not know this message.", code="unknown_message")

    # --- new threads ---

    def _new_thread(self, delivery: Delivery, request: NewThread) -> None:
        agent = request.agent or self._default_agent()
        if not agent:
            raise AgentError(
                "No coding agent is installed here.",
                hint="Install one (see `va agents list`), or choose the built-in demo agent: /agent demo.", code="no_agent",
            )
        spec = self.registry.get(agent)
        if spec.acp is None:
            raise RefusedError(f"{spec.name} cannot be hosted in a chat; it can only be launched.", hint="Choose another: /agent.")
        if request.profile not in ("", "direct"):
            raise NotFoundError(f"There is no profile {request.profile!r}.", hint="`direct` is the only profile for now.")

        def placed(answer: Any) -> None:
            if isinstance(answer, Failed):
                self.reply(delivery, answer)
                return
            self._create(delivery, request, spec.id, answer.data["id"], answer.data["cwd"])

        if request.workspace:
            self.ask("workspaces", FindWorkspace(request.workspace), placed)
        elif request.cwd:
            # A terminal gives its directory resolved; the host checks that it is there.
            self._create(delivery, request, spec.id, f"real:{request.cwd}", request.cwd)
        else:
            channel = Route.parse(request.route).channel
            self.ask("workspaces", DefaultWorkspace(channel), placed, limit_s=25.0)

    def _create(self, delivery: Delivery, request: NewThread, agent: str, workspace: str, cwd: str) -> None:
        thread, now = self.new_id("wt"), self.clock.now()
        ops: list[Any] = []
        if workspace.startswith("real:"):
            name = cwd.rstrip("/").rpartition("/")[2] or "Workspace"
            ops.append(["workspace_add", self.new_id("ws"), cwd, cwd, name, False, now])
        ops.append(["thread_create", thread, workspace, cwd, agent, "direct", "", "new", {}, now])
        self.bind(request.route, thread, ops, request.sender, lambda a: self.reply(delivery, a), agent=agent)

    def bind(
        self, route: str, thread: str, ops: list[Any], sender: dict[str, Any], then: Callable[[Any], None], *,
        agent: str = "", session: str = "", title: str = "", joined: bool = False, note: str = "",
    ) -> None:
        """Attach in one record with what made the thread; then tell the route, the thread it left and the one it joined."""
        now = self.clock.now()
        record = Record([["detach", route, now], *ops, ["attach", route, thread, 0, now], ["thread_members", thread]])

        def bound(answer: Any) -> None:
            if isinstance(answer, Failed):
                then(answer)
                return
            left = str(answer.results[0])
            joined_seq, workspace, cwd = answer.results[-2]
            members = answer.results[-1]
            self.tell(f"route/{route}", RouteAttachment(thread, workspace, cwd, joined_seq))
            if left and left != thread:
                self.announce(left, left_route=route, sender=sender)
            others = [r for r in members["routes"] if r[0] != route]
            if others or joined:
                self.tell(f"thread/{thread}", ThreadRoutes(members["routes"], joined=route if left != thread else "", sender=sender))
            then(
                Attached(
                    route, thread, agent or members["agent"], session or members["session"], cwd, workspace,
                    title or members["title"], joined, [r[0] for r in others], note,
                )
            )

        self.ask("journal", record, bound, limit_s=60.0)

    def announce(self, thread: str, *, left_route: str, sender: dict[str, Any]) -> None:
        """Tell a thread that a route left it."""

        def read(answer: Any) -> None:
            if not isinstance(answer, Failed):
                self.tell(f"thread/{thread}", ThreadRoutes(answer.results[0]["routes"], left=left_route, sender=sender))

        self.ask("journal", Record([["thread_members", thread]]), read)

    def _detach(self, delivery: Delivery, request: Detach) -> None:
        now = self.clock.now()
        ops = [["detach_or_close" if request.close else "detach", request.route, now]]

        def done(answer: Any) -> None:
            if isinstance(answer, Failed):
                self.reply(delivery, answer)
                return
            result = answer.results[0]
            thread, closed, unheard = result if request.close else (str(result), False, [])
            if thread:
                self.tell(f"route/{request.route}", RouteAttachment(""))
                if closed:
                    self.tell(f"thread/{thread}", ThreadClose("/close"))
                    for other in unheard:
                        self.tell(f"route/{other}", RouteAttachment(""))
                        self.tell(f"route/{other}", RouteNotice(f"{request.route} closed the conversation; nobody was here."))
                else:
                    self.announce(thread, left_route=request.route, sender=request.sender)
            self.reply(delivery, Ok({"thread": thread, "closed": closed}))

        self.ask("journal", Record(ops), done, limit_s=60.0)

    # --- handing over ---

    def _prepare(self, delivery: Delivery, request: PrepareHandover) -> None:
        """Whose session is it, is it in the store, is its directory there: only then a code."""

        def found(answer: Any) -> None:
            if isinstance(answer, Failed):
                self.reply(delivery, answer)
                return
            data = answer.data
            issue = IssueCode(
                data["agent"], data["id"], data["cwd"], request.profile or "direct", data["store_root"], data["title"],
                data.get("env") or {}, {**request.issuer, **(data.get("issuer") or {})}, data.get("note", ""),
            )
            self.ask("handover", issue, lambda a: self.reply(delivery, a))

        who = IdentifySession(request.agent, request.session, request.cwd, request.evidence, request.env, request.issuer)
        self._identify(delivery.peer, who, found)

    def _identify(self, peer: Peer | None, request: IdentifySession, then: Callable[[Any], None]) -> None:
        spec = self.registry.get(request.agent)
        hosted = peer.host_thread if peer is not None else ""

        def current(answer: Any) -> None:
            evidence = list(request.evidence)
            if isinstance(answer, Ok):
                session = next((s["id"] for s in answer.data["sessions"] if s["current"]), "")
                if session and answer.data["thread"]["agent"] == spec.id:
                    evidence.append(["hosted", session])
            ask(evidence)

        def ask(evidence: list[Any]) -> None:
            args = {
                "agent": spec.id, "session": request.session, "cwd": request.cwd, "evidence": evidence, "env": request.env,
                "pid": int(request.issuer.get("pid") or (peer.pid if peer is not None else 0)),
            }
            self.ask("reader", Read("identify", args, 10.0), done, limit_s=25.0)

        def done(answer: Any) -> None:
            then(Ok({**answer.data, "agent": spec.id}) if isinstance(answer, Ok) else answer)

        if hosted:
            self.ask("history", Load("thread", [hosted]), current)
        else:
            ask(list(request.evidence))

    def _read_code(self, delivery: Delivery, request: ReadCode) -> None:
        """For a relay from a terminal, which only reads the session: the code stays good for a pickup."""
        reader = "cli:relay:terminal"

        def claimed(answer: Any) -> None:
            if isinstance(answer, Claimed):
                self.tell("handover", SettleClaim(answer.code, reader, False))
            self.reply(delivery, Ok(dict(answer.payload)) if isinstance(answer, Claimed) else answer)

        self.ask("handover", ClaimCode(request.code, reader, "", self.clock.monotonic()), claimed)

    def _handover_thread(self, delivery: Delivery, request: HandoverThread) -> None:
        def loaded(answer: Any) -> None:
            thread = (answer.data["route"] or {}).get("thread") if isinstance(answer, Ok) else ""
            if not thread:
                self.fail(delivery, NotFoundError("This chat has no conversation yet.", hint="Write something, or /pickup CODE."))
                return
            self.ask("history", Load("thread", [thread]), thread_loaded)

        def thread_loaded(answer: Any) -> None:
            if isinstance(answer, Failed):
                self.reply(delivery, answer)
                return
            row = answer.data["thread"]
            current = next((s for s in answer.data["sessions"] if s["current"]), None)
            if current is None:
                none = NotFoundError("The agent has not begun its session yet.", hint="Send it a message first.")
                self.fail(delivery, none)
                return
            issue = IssueCode(
                row["agent"], current["id"], row["cwd"], row["profile"], current["store_root"], row["title"], row["env"],
            )
            self.ask("handover", issue, lambda a: self.reply(delivery, a))

        self.ask("history", Load("route", [request.route]), loaded)
