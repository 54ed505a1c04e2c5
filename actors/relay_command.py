"""`/relay AGENT`: the chat's conversation goes on in another agent.

The reader reads the session and makes what is carried; here the chat is moved to it: to the session that was written, to
the earlier one that knows the beginning, or to a new conversation whose first turn is the brief. The old conversation
stays open.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from actors.commands import Command
from agents_registry.errors import AgentError, NotFoundError, UsageError, VibeAroundError, from_wire
from transports.bus.vocabulary.conversation import Ok
from transports.bus.vocabulary.handover import AttachExternal, NewThread
from transports.bus.vocabulary.storage import Read
from transports.bus.vocabulary.threads import GetAgents, RouteAsk, ThreadNotice, ThreadStatus

if TYPE_CHECKING:
    from actors.route_commands import RouteCommands
    from actors.routes import Item, RouteActor


RELAY_S = 150.0
"""Of one relay in the reader: the longest session is read in seconds, the rest is for the agent's start in the proof."""

_DRIFT_S = 10.0
_AGAIN_S = (0.5, 1.0, 2.0, 4.0)
"""Pauses between the looks at the agent's store: an agent may tell the end of its turn before it has written it."""


class RelayCommand:
    """One relay on its way; lives as long as its answers come."""

    def __init__(self, commands: RouteCommands, route: RouteActor, item: Item, command: Command) -> None:
        self._c = commands
        self._r = route
        self._item = item
        self._next = command.rest.strip()
        self._wanted = command.arg.casefold()
        self._profile = command.profile
        self._to = ""
        self._name = ""
        self._old: dict[str, Any] = {}

    def begin(self) -> None:
        if self._profile not in ("", "direct"):
            raise NotFoundError(f"There is no profile {self._profile!r}.", hint="`direct` is the only profile for now.")
        self._c.call(self._item, "catalog", GetAgents(), self._agents)

    def _agents(self, answer: Any) -> None:
        rows = answer.data["agents"]
        row = next((a for a in rows if self._wanted in (a["id"], *a["aliases"])), None)
        if row is None:
            raise NotFoundError(f"There is no agent {self._wanted!r}.", hint="/agent lists them.")
        if not row["installed"]:
            raise AgentError(f"{row['name']} is not installed here.", hint=row["why"], code="agent_missing")
        self._to, self._name = row["id"], row["name"]
        self._c.with_status(self._known, self._fail)

    def _known(self, status: dict[str, Any]) -> None:
        if not status or not status.get("session"):
            raise NotFoundError("This chat has no session yet that could go on elsewhere.", hint=f"/agent {self._to} begins one.")
        if status["agent"] == self._to:
            raise UsageError(f"This conversation is with {self._name} already.", hint="/session goes on in another session of it.")
        self._old = status
        self._read(force=False)

    def _args(self, **more: Any) -> dict[str, Any]:
        old = self._old
        return {"agent": old["agent"], "session": old["session"], "cwd": old["cwd"], "to": self._to, **more}

    def _read(self, *, force: bool) -> None:
        read = Read("relay", self._args(force=force, next_step=self._next), RELAY_S)
        self._c.call(self._item, "reader", read, self._carried, limit_s=RELAY_S + 15)

    def _carried(self, answer: Any) -> None:
        data = answer.data
        if data.get("advice"):
            self._ask_fresh(str(data["advice"]))
        elif data["session"]:
            payload = {
                "agent": self._to, "session": data["session"], "cwd": data["cwd"], "profile": "direct",
                "store_root": data["store_root"], "env": {},
            }
            attach = AttachExternal(self._r.route, payload, self._item.sender, key=self._item.key)
            limit = self._r.settings.threads.pickup_wait_s + self._r.settings.choices.expire_s + 60
            self._c.call(self._item, "attacher", attach, lambda a: self._moved(a, data), limit_s=limit)
        else:
            self._begin(lambda a: self._moved(a, data))

    def _begin(self, then: Callable[[Any], None]) -> None:
        new = NewThread(self._r.route, workspace=self._old.get("workspace", ""), agent=self._to, sender=self._item.sender)
        self._c.call(self._item, "attacher", new, then)

    def _ask_fresh(self, why: str) -> None:
        options = [["go_on", "carry it all the same"], ["fresh", f"a fresh conversation with {self._name}"], ["cancel", "do nothing"]]
        ask = RouteAsk(
            self._r.new_id("q"), f"{why}: a fresh conversation is cleaner. What now?", options, "cancel",
            self._r.settings.choices.expire_s, self._item.key,
        )

        def answered(option: str, by: str) -> None:
            if option == "go_on":
                self._read(force=True)
            elif option == "fresh":
                self._begin(self._fresh)
            else:
                self._c.reply(self._item, "Nothing was carried; this conversation stays as it is.")

        self._r.question(ask, answered)

    def _fresh(self, attached: Any) -> None:
        self._arrived(attached)
        self._finish(f"New conversation with {self._name} in {attached.cwd} (thread {attached.thread}).", self._next)

    def _moved(self, attached: Any, data: dict[str, Any]) -> None:
        old, way = self._old, data["way"]
        self._arrived(attached)
        came = f"from {old['agent']} (session {old['session']}, thread {old['id']}, which stays open)"
        what = {
            "native": f"{self._name} has what was said and done {came} in its session {data['session']}.",
            "resume": f"{self._name} goes on in its earlier session {data['session']} with what is new {came}.",
            "brief": f"{self._name} gets a brief of what was said and done {came} as its first turn.",
        }[way]
        self._r.tell(f"thread/{old['id']}", ThreadNotice(f"Goes on with {self._name} in the thread {attached.thread}.", "relay"))
        self._r.tell(f"thread/{attached.thread}", ThreadNotice(f"Goes on {came}.", "relay"))
        words = "\n".join([what, f"Directory: {attached.cwd}", *data["notes"]])
        if data["text"]:
            self._r.after[self._item.key] = lambda: self._check(attached.thread, data["text"])
            self._finish(words, data["text"], "relay")
        else:
            if way == "native":
                self._r.first[attached.thread] = self._first
            self._finish(words, self._next)

    def _first(self, item: Item, text: str) -> None:
        """The agent starts for its first request, perhaps hours later: what changed of the files is named to both."""

        def looked(answer: Any) -> None:
            changes = answer.data["changes"] if isinstance(answer, Ok) else []
            if not changes:
                self._r.forward(item, text)
                return
            lines = "\n".join(f"- {path}: {what}" for path, what in changes)
            told = f"Since the conversation was carried over, these files are not as its record says:\n{lines}"
            self._r.say({"event": "notice", "text": told, "what": "relay", "key": item.key})
            self._r.forward(item, f"{told}\n\n{text}")

        # A store that hangs holds the request up for that long, and no longer.
        self._r.ask("reader", Read("relay_drift", self._args(), _DRIFT_S), looked, limit_s=_DRIFT_S + 5)

    def _check(self, thread: str, text: str) -> None:
        """The turn is over: does the agent's own store hold what was sent? Only then the map counts it as given."""
        pauses = iter(_AGAIN_S)

        def look(session: str) -> None:
            given = Read("relay_given", self._args(there=session, text=text), RELAY_S)
            self._r.ask("reader", given, lambda answer: checked(answer, session), limit_s=RELAY_S + 15)

        def known(answer: Any) -> None:
            session = str(answer.data.get("session") or "") if isinstance(answer, Ok) else ""
            if session:
                look(session)

        def checked(answer: Any, session: str) -> None:
            if isinstance(answer, Ok) and answer.data["kept"] == answer.data["whole"]:
                return
            pause = next(pauses, None)
            if pause is not None:
                self._r.clock.call_later(pause, lambda: self._r.later(lambda: look(session)))
                return
            if isinstance(answer, Ok):
                told = (
                    f"{self._name} recorded only {answer.data['kept']} of {answer.data['whole']} characters of what was carried. "
                    "For a shorter one lower relay.budget_tokens (va settings) and give /relay again in the old conversation."
                )
            else:
                told = f"Whether {self._name} recorded all that was carried is not known: {from_wire(answer.error).message}"
            self._r.say({"event": "notice", "text": told, "what": "relay"})

        self._r.ask(f"thread/{thread}", ThreadStatus(), known, limit_s=25.0)

    def _arrived(self, attached: Any) -> None:
        # The attacher says the same, but perhaps only after this goes on.
        self._r.thread, self._r.cwd = attached.thread, attached.cwd

    def _finish(self, words: str, prompt: str, kind: str = "prompt") -> None:
        """Answer; or, when something is to be said to the agent, that becomes this message's turn, and what comes later
        waits for its end."""
        if not prompt:
            self._r.finish(self._item, {"event": "reply", "text": words})
            return
        self._r.say({"event": "notice", "text": words, "what": "relay", "key": self._item.key})
        self._r.forward(self._item, prompt, kind)

    def _fail(self, error: VibeAroundError) -> None:
        self._c.fail(self._item, error)
