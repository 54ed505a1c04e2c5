"""What the chat commands do on a route: those that answer at once, and those that run in the lane's order.

The grammar and the table of roles are `actors.commands`; the words of the longer replies are `actors.commands.text`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from actors.commands import Command, read_code, rule, text
from actors.relay_command import RelayCommand
from actors.turns import error_event
from agents_registry.errors import AgentError, NotFoundError, UsageError, VibeAroundError, from_wire
from transports.bus.api import Delivery
from transports.bus.vocabulary.conversation import Failed, Ok
from transports.bus.vocabulary.handover import (
    Attached,
    AttachExternal,
    AttachThread,
    ClaimCode,
    Claimed,
    CodeIssued,
    Detach,
    HandoverThread,
    ListSessions,
    NewThread,
    SettleClaim,
)
from transports.bus.vocabulary.lists import FindWorkspace, ListWorkspaces
from transports.bus.vocabulary.storage import Load, Read
from transports.bus.vocabulary.surface import Submit
from transports.bus.vocabulary.threads import GetAgents, RouteAsk, SetProfile, ThreadStatus

if TYPE_CHECKING:
    from actors.routes import Item, RouteActor

Say = Callable[[str], None]
_SEARCH_S = 60.0


class RouteCommands:
    def __init__(self, route: RouteActor) -> None:
        self._r = route

    # --- at once ---

    def at_once(self, delivery: Delivery, request: Submit, command: Command, sender: dict[str, Any]) -> None:
        """Answers the submit itself; creates nothing and waits for no lane."""

        def say(words: str) -> None:
            self._r.reply(delivery, Ok({"event": "reply", "text": words, "key": request.key}))

        def fail(error: VibeAroundError) -> None:
            self._r.fail(delivery, error)

        name = command.name
        if name == "help":
            say(text.help_text(str(sender.get("role", "owner"))))
        elif name == "route":
            say(f"This chat is {self._r.route}.")
        elif name == "stop":
            self._r.stop(sender, lambda answer: say(_stopped(answer.data)) if isinstance(answer, Ok) else self._r.reply(delivery, answer))
        elif name == "status":
            self._status(say, fail)
        elif name == "handover":
            self._handover(say, fail)
        elif name == "workspace":
            self._ask("workspaces", ListWorkspaces(), lambda d: say(text.workspace_list(d["workspaces"], self._r.cwd)), fail)
        elif name == "agent":
            self.with_status(lambda s: self._agents(say, fail, s.get("agent", "")), fail)
        elif name == "profile":
            say("Profiles:\n* direct  the agent's own login")
        elif name == "session" and command.form == "search":
            self._search(say, fail, command.arg)
        elif name == "session":
            self.with_status(lambda s: self._sessions(say, fail, s), fail)
        elif name == "mode":
            self.with_status(lambda s: say(text.mode_list(s.get("modes") or [], s.get("mode") or "")), fail)
        else:
            fail(UsageError(f"/{name} does not answer at once.", code="unknown_command"))

    def _ask(self, address: str, message: Any, then: Callable[[dict[str, Any]], None], fail: Callable[[VibeAroundError], None]) -> None:
        def answered(answer: Any) -> None:
            if isinstance(answer, Ok):
                try:
                    then(answer.data)
                except VibeAroundError as error:
                    fail(error)
            else:
                fail(from_wire(answer.error))

        self._r.ask(address, message, answered, limit_s=25.0)

    def with_status(self, then: Callable[[dict[str, Any]], None], fail: Callable[[VibeAroundError], None]) -> None:
        """The attached thread's state, or {} without one."""
        if not self._r.thread:
            then({})
            return
        self._ask(f"thread/{self._r.thread}", ThreadStatus(), then, fail)

    def _status(self, say: Say, fail: Callable[[VibeAroundError], None]) -> None:
        self.with_status(lambda s: say(text.status_text(s, self._r.route, len(self._r.lane))), fail)

    def _agents(self, say: Say, fail: Callable[[VibeAroundError], None], current: str) -> None:
        self._ask("catalog", GetAgents(), lambda d: say(text.agent_list(d["agents"], current)), fail)

    def _sessions(self, say: Say, fail: Callable[[VibeAroundError], None], status: dict[str, Any]) -> None:
        if not status:
            raise NotFoundError("This chat has no conversation yet, so there is no agent to list sessions of.", hint="Write something first.")
        listing = ListSessions(status["agent"], status["cwd"], 10)
        now = self._r.clock.now()
        self._ask("attacher", listing, lambda d: say(text.session_list(d["sessions"], status.get("session", ""), now)), fail)

    def _search(self, say: Say, fail: Callable[[VibeAroundError], None], words: str) -> None:
        now = self._r.clock.now()
        # The first search reads every session there is. It goes on when nobody waits any more, so that the next one is quick.
        read = Read("search", {"words": words, "limit": 8}, _SEARCH_S)
        self._ask("reader", read, lambda d: say(text.hit_list(d["hits"], words, now)), fail)

    def _handover(self, say: Say, fail: Callable[[VibeAroundError], None]) -> None:
        def issued(answer: Any) -> None:
            if isinstance(answer, CodeIssued):
                say(text.code_text(answer.code, answer.expires_in_s))
            else:
                fail(from_wire(answer.error))

        self._r.ask("attacher", HandoverThread(self._r.route), issued, limit_s=20.0)

    # --- claimed at receipt ---

    def claim(self, item: Item, then: Callable[[], None]) -> None:
        """Claim the code now, so that it does not expire while the message waits its turn; what came of it is told in order."""
        typed = read_code(item.parsed.arg if isinstance(item.parsed, Command) else "")
        if typed.problem:
            item.claim = Failed(UsageError(typed.problem, code="no_code").to_wire())
            then()
            return
        # The user's own terminals are one person in many chats: a chat that guesses must not lock out the others.
        person = str(item.sender.get("id", ""))
        claim = ClaimCode(typed.code, self._r.route, "" if person.startswith("uid:") else person, item.received_at)

        def claimed(answer: Any) -> None:
            item.claim = answer
            then()

        self._r.ask("handover", claim, claimed, limit_s=15.0)

    def unclaim(self, item: Item) -> None:
        if isinstance(item.claim, Claimed):
            self._r.tell("handover", SettleClaim(item.claim.code, self._r.route, False))

    # --- in order ---

    def in_order(self, item: Item) -> bool:
        """Work on the head of the lane. False: it waits for something, and `pump` looks at it again."""
        command = item.parsed
        assert isinstance(command, Command)
        if (rule(command.name, command.form).changes_binding or command.name == "pickup") and self._r.open_turns and not item.agreed:
            return self._during_turn(item, command)
        if item.question:
            # The turn ended before anybody answered: what was asked is moot.
            self._r.withdraw(item.question, "the turn has ended")
            item.question = ""
        self._r.working()
        handler = getattr(self, f"_do_{command.name}", None)
        if handler is None:
            self.fail(item, UsageError(f"/{command.name} cannot be used like that.", hint="See /help."))
        else:
            try:
                handler(item, command)
            except VibeAroundError as error:
                self.fail(item, error)
        return True

    def _during_turn(self, item: Item, command: Command) -> bool:
        """A change of binding while the route's own turn runs: wait, stop the turn and do it, or drop it."""
        if item.waiting:
            return False
        item.waiting = True
        options = [["wait", "wait for the turn to end"], ["stop", "stop the turn and do it"], ["drop", "drop it"]]
        ask = RouteAsk(
            self._r.new_id("q"), f"A turn is running. /{command.name} now?", options, "drop",
            self._r.settings.choices.expire_s, item.key,
        )

        item.question = ask.id

        def answered(option: str, by: str) -> None:
            item.question = ""
            if option == "withdrawn":
                return
            if option == "drop":
                self._r.working()
                self.unclaim(item)
                self.reply(item, f"Dropped /{command.name}: the turn goes on.")
            elif option == "stop":
                # `waiting` stays: the lane goes on when the turn is over.
                self._r.stop({**item.sender, "role": item.sender.get("role", "owner")}, lambda _: None)

        self._r.question(ask, answered)
        return False

    def reply(self, item: Item, words: str) -> None:
        rest = text.rest_note(item.parsed.rest) if isinstance(item.parsed, Command) else ""
        self._r.finish(item, {"event": "reply", "text": f"{words}\n{rest}" if rest else words})

    def fail(self, item: Item, error: VibeAroundError) -> None:
        self._r.finish(item, error_event(error.to_wire()))

    def call(self, item: Item, address: str, message: Any, then: Callable[[Any], None], *, limit_s: float = 60.0) -> None:
        """Ask on behalf of a lane item; a failure is its answer."""

        def answered(answer: Any) -> None:
            if isinstance(answer, Failed):
                self.fail(item, from_wire(answer.error))
                return
            try:
                then(answer)
            except VibeAroundError as error:
                self.fail(item, error)

        self._r.ask(address, message, answered, limit_s=limit_s)

    def _do_pickup(self, item: Item, command: Command) -> None:
        claim = item.claim
        if claim is None:
            # Taken up again after a restart: codes do not outlive one.
            self.claim(item, lambda: self._do_pickup(item, command))
            return
        if isinstance(claim, Failed):
            self.fail(item, from_wire(claim.error))
            return
        attach = AttachExternal(self._r.route, claim.payload, item.sender, key=item.key)

        def done(answer: Any) -> None:
            ok = isinstance(answer, Attached)
            self._r.tell("handover", SettleClaim(claim.code, self._r.route, ok))
            if ok:
                self.reply(item, text.attached_text(answer))
            else:
                self.fail(item, from_wire(answer.error))

        self._r.ask("attacher", attach, done, limit_s=self._r.settings.threads.pickup_wait_s + self._r.settings.choices.expire_s + 60)

    def _do_new(self, item: Item, command: Command) -> None:
        def made(answer: Any) -> None:
            self.reply(item, text.started_text(answer))

        def known(status: dict[str, Any]) -> None:
            new = NewThread(
                self._r.route, workspace=status.get("workspace", ""), agent=status.get("agent", ""), sender=item.sender,
                cwd="" if status else item.workspace,
            )
            # The thread left behind is closed when nobody else is on it.
            leave = Detach(self._r.route, True, item.sender)
            if status:
                self.call(item, "attacher", leave, lambda _: self.call(item, "attacher", new, made))
            else:
                self.call(item, "attacher", new, made)

        self.with_status(known, lambda error: self.fail(item, error))

    def _do_close(self, item: Item, command: Command) -> None:
        def done(answer: Any) -> None:
            if not answer.data["thread"]:
                self.reply(item, "Nothing is open in this chat.")
            elif answer.data["closed"]:
                self.reply(item, "Conversation closed. Write something, or /new, to start another.")
            else:
                self.reply(item, "This chat has left the conversation; it stays open for the others on it.")

        self.call(item, "attacher", Detach(self._r.route, True, item.sender), done)

    def _do_workspace(self, item: Item, command: Command) -> None:
        def found(answer: Any) -> None:
            self.with_status(lambda s: earlier(answer.data, s), lambda e: self.fail(item, e))

        def earlier(workspace: dict[str, Any], status: dict[str, Any]) -> None:
            agent = status.get("agent", "")
            if status.get("workspace") == workspace["id"]:
                self.reply(item, f"This chat is in {workspace['cwd']} already. /new starts another conversation there.")
                return
            load = Load("open_threads", [workspace["id"], agent])
            self.call(item, "history", load, lambda a: self._offer_earlier(item, workspace["id"], agent, a.data["threads"]))

        self.call(item, "workspaces", FindWorkspace(command.arg), found)

    def _offer_earlier(self, item: Item, workspace: str, agent: str, threads: list[dict[str, Any]]) -> None:
        """Coming back to a workspace: its open conversations are offered before another one is begun."""
        if not threads:
            self._start(item, workspace, agent)
            return
        options = [[t["id"], f"go on: {t['title'] or 'untitled'} ({text.short(t['id'])})"] for t in threads[:3]]
        options.append(["new", "a new conversation"])
        ask = RouteAsk(
            self._r.new_id("q"), "There are open conversations in that workspace.", options, "new",
            self._r.settings.choices.expire_s, item.key,
        )

        def answered(option: str, by: str) -> None:
            if option == "new":
                self._start(item, workspace, agent)
                return
            attach = AttachThread(self._r.route, option, item.sender)
            self.call(item, "attacher", attach, lambda a: self.reply(item, text.attached_text(a)))

        self._r.question(ask, answered)

    def _start(self, item: Item, workspace: str, agent: str) -> None:
        new = NewThread(self._r.route, workspace=workspace, agent=agent, cwd="" if workspace else item.workspace, sender=item.sender)
        self.call(item, "attacher", new, lambda a: self.reply(item, text.started_text(a)))

    def _do_agent(self, item: Item, command: Command) -> None:
        if command.form == "pass":
            self._r.forward(item, command.arg)
            return
        if command.profile not in ("", "direct"):
            raise NotFoundError(f"There is no profile {command.profile!r}.", hint="`direct` is the only profile for now.")

        def listed(answer: Any) -> None:
            row = next((a for a in answer.data["agents"] if command.arg.casefold() in (a["id"], *a["aliases"])), None)
            if row is not None and not row["installed"]:
                raise AgentError(f"{row['name']} is not installed here.", hint=row["why"], code="agent_missing")
            self.with_status(lambda s: self._start(item, s.get("workspace", ""), command.arg), lambda e: self.fail(item, e))

        self.call(item, "catalog", GetAgents(), listed)

    def _do_relay(self, item: Item, command: Command) -> None:
        RelayCommand(self, self._r, item, command).begin()

    def _do_profile(self, item: Item, command: Command) -> None:
        self.call(item, "attacher", SetProfile(self._r.route, command.arg), lambda _: self.reply(item, "Profile is direct."))

    def _do_session(self, item: Item, command: Command) -> None:
        def known(status: dict[str, Any]) -> None:
            if not status:
                self.fail(item, NotFoundError("This chat has no conversation yet.", hint="Write something first, or /pickup CODE."))
                return
            self.call(item, "attacher", ListSessions(status["agent"], status["cwd"], 50), lambda a: listed(status, a.data["sessions"]))

        def listed(status: dict[str, Any], sessions: list[dict[str, Any]]) -> None:
            chosen = text.select_session(sessions, command.arg)
            payload = {
                "agent": status["agent"], "session": chosen["id"] if chosen else command.arg, "cwd": status["cwd"], "profile": "direct",
                "store_root": chosen["store_root"] if chosen else "", "env": {},
            }
            attach = AttachExternal(self._r.route, payload, item.sender, key=item.key)
            limit = self._r.settings.threads.pickup_wait_s + self._r.settings.choices.expire_s + 60
            self.call(item, "attacher", attach, lambda a: self.reply(item, text.attached_text(a)), limit_s=limit)

        self.with_status(known, lambda error: self.fail(item, error))

    def _do_mode(self, item: Item, command: Command) -> None:
        if not self._r.thread:
            raise NotFoundError("This chat has no conversation yet.", hint="Write something first; then /mode lists the agent's modes.")
        self._r.forward(item, command.arg, "mode")

    def _do_plan(self, item: Item, command: Command) -> None:
        if not self._r.thread:
            raise NotFoundError("This chat has no conversation yet.", hint="Write something first.")
        self._r.forward(item, "", "plan")


def _stopped(counts: dict[str, Any]) -> str:
    cancelled, dropped = int(counts.get("cancelled", 0)), int(counts.get("dropped", 0))
    if not cancelled and not dropped:
        return "Nothing is running or waiting here."
    parts = ["The running turn is being stopped." if cancelled else "No turn of this chat was running."]
    if dropped:
        parts.append(f"{dropped} waiting message{'s' if dropped != 1 else ''} dropped.")
    return " ".join(parts)
