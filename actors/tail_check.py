"""Did somebody else write to the session since our last turn? Then the agent loads it again before it is asked anything.

Claude Code has no lock: a terminal that writes on an older state makes a second branch, and what was said here would
vanish without a word. So the end of the session in the agent's own store is noted a moment after each turn (agents
write late) and compared before the next one. Only words of a person count: an agent's own late records change nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from transports.bus.vocabulary.conversation import Failed, Ok
from transports.bus.vocabulary.hosting import HostReload
from transports.bus.vocabulary.storage import Read
from transports.bus.vocabulary.threads import RouteAsk, RouteUnask

if TYPE_CHECKING:
    from actors.threads import ThreadSupervisor

TIMER = "tail"
SETTLE_S = 2.0
"""Claude Code writes its transcript a moment after it has ended the turn."""
RELOAD_S = 120.0
POLL_S = 1.0
MAX_LOOK = 32 << 20
"""Bytes of a session that is read whole after each turn; a larger one is compared by its end only."""
WRITTEN = "written by somebody else"


class TailCheck:
    def __init__(self, thread: ThreadSupervisor) -> None:
        self._t = thread
        self._known = ""
        """The end as it was after our last turn; "" = not noted (yet)."""
        self._since = 0.0
        """When our last turn on this host ended; 0 = none did: the host has just loaded the session."""
        self._looking = False
        self._clear = False
        self._question: tuple[str, ...] = ()
        """Route and id of the question about somebody who is at work; stays when it was answered with "wait"."""
        self._round = 0
        self._unchecked: tuple[Any, ...] = ()
        """Begin (seconds since the epoch) of the first turn after which nobody looked for a fork yet, and the last prompt."""
        self._foreign = self._left = self._told = False
        """A terminal whose thread is joined runs a turn; it has left."""

    def forget(self) -> None:
        """The host is gone; the next one loads what is there."""
        self._known, self._clear, self._since = "", False, 0.0
        self._foreign = self._left = self._looking = False
        self._question = self._unchecked = ()
        self._round += 1
        self._t.cancel_timer(TIMER)

    def reclaimed(self, last_turn: float) -> None:
        """A host of an earlier supervisor goes on; its last turn ended at `last_turn` (seconds since the epoch), and who wrote
        since then is not known."""
        self._since = last_turn

    def joined_terminal(self, what: str) -> None:
        """begin and end of its turns, and its leaving: then this host, which lives in the terminal's own server, makes room
        for one with a server of its own."""
        if what in ("begin", "end"):
            self._foreign, self._told = what == "begin", False
            self._t.host.working(self._foreign or self._t.turn is not None)
        self._left = self._left or what == "left"
        self._move_out()

    def _move_out(self) -> None:
        if self._left and not self._foreign and self._t.turn is None:
            self._t.host.stop("the terminal has left")

    def turn_over(self) -> None:
        self._since = self._t.now()
        self._known, self._clear = "", False
        if self._t.info.get("joined"):
            self._move_out()
            return
        self._t.set_timer(TIMER, SETTLE_S)

    def alarm(self) -> None:
        """Note the end. A turn that began meanwhile is ours: its end will be noted."""
        if self._t.turn is None and self._t.host.ready and not self._looking:
            if self._unchecked:
                self._looking = True
                since, prompt = self._unchecked
                self._ask("split", {"since": since, "prompt": prompt}, self._split)
                return
            self._ask("tail", {}, self._noted)

    # --- after a turn: did it fork? ---

    def _split(self, answer: Any) -> None:
        t, self._looking, self._unchecked = self._t, False, ()
        # A store that cannot be read shows no fork.
        ends = answer.data if isinstance(answer, Ok) else {}
        ours, theirs = str(ends.get("ours") or ""), str(ends.get("theirs") or "")
        if not ours:
            self._ask("tail", {}, self._noted)
            if len(t.queue):
                t.pump()
            return
        before, t.session = t.session, ours
        shown = {"event": "notice", "what": "forked", "ours": ours, "theirs": theirs, "text": (
            f"Somebody wrote to the session {before} while the turn ran, so it forked. This chat goes on in {ours}, with its "
            f"own turn; the other end is {theirs}, and `/session {theirs}` takes it up. Nothing is lost of either."
        )}
        current = [t.thread_id, t.row["agent"], t.store_root, ours, "", t.now()]
        t.record([["session_current", *current]], None, events=[(None, "notice", shown)])
        t.host.stop("the session forked", t.pump)

    def _noted(self, answer: Any) -> None:
        # Once a look for other writers is under way, the end is no longer that of our turn.
        if isinstance(answer, Ok) and self._t.turn is None and not self._looking:
            self._known = str(answer.data["leaf"])
            if answer.data["size"] <= MAX_LOOK:
                # Somebody who wrote before the end was noted is part of what was noted.
                self._ask("added", {"since": self._since}, self._written_at_once)

    def _written_at_once(self, answer: Any) -> None:
        if isinstance(answer, Ok) and answer.data["texts"] and self._t.turn is None and not self._looking:
            self._known = WRITTEN

    def clear(self) -> bool:
        """Whether the next turn may begin; if not, `pump` is called again when it may."""
        if self._foreign:
            if not self._told:
                self._told = True
                self._say("The terminal is at work; what you wrote waits for the end of its turn.", "waiting")
            return False
        if self._t.info.get("joined"):
            return True
        if not self._ready_for_turn():
            return False
        waiting = next(iter(self._t.queue), None)
        if waiting is not None:
            since = self._unchecked[0] if self._unchecked else self._t.now()
            self._unchecked = (since, waiting.text)
        return True

    def _ready_for_turn(self) -> bool:
        if self._looking:
            return False
        if self._clear or not self._since:
            return True
        self._looking = True
        self._look()
        return False

    def _look(self) -> None:
        if self._known:
            self._ask("tail", {}, self._compared)
        else:
            # So soon after our turn that its end was not noted yet: what people wrote since is looked for itself.
            self._ask("added", {"since": self._since}, self._added)

    def _compared(self, answer: Any) -> None:
        if self._waits_for(answer):
            return
        # A store that does not answer is no proof of another writer.
        if isinstance(answer, Failed) or answer.data["leaf"] == self._known:
            self._go_on()
            return
        self._ask("added", {"since": self._since}, self._added)

    def _added(self, answer: Any) -> None:
        if self._waits_for(answer):
            return
        texts = list(answer.data["texts"]) if isinstance(answer, Ok) else []
        if not texts:
            self._go_on()
            return

        def loaded(reply: Any) -> None:
            shown = "\n".join(f"terminal: {text}" for text in texts)
            if isinstance(reply, Failed):
                why = f"The session could not be loaded again ({reply.error[2]}); what was added is not known to the agent here."
                self._say(f"{shown}\n{why}")
            else:
                self._say(f"{shown}\nSomebody else wrote to this session; it was loaded again.")
            self._go_on()

        self._t.ask(self._t.host.address, HostReload(self._t.session), loaded, limit_s=RELOAD_S)

    # --- somebody is at work in it right now ---

    def _waits_for(self, answer: Any) -> bool:
        """True while another process runs a turn in the session: what waits is told so, may fork, and is looked after."""
        t, busy = self._t, int(answer.data.get("busy") or 0) if isinstance(answer, Ok) else 0
        waiting = next(iter(t.queue), None)
        if waiting is None or not (busy or self._question):
            self._withdraw("nothing waits any more")
            if busy:
                self._looking = False
            return bool(busy)
        if not busy:
            self._withdraw("nobody else is at work in the session any more")
        elif not self._question:
            self._ask_busy(busy, waiting.route, waiting.key)
        round_ = self._round
        # What a turn said is written a moment after its end.
        t.clock.call_later(POLL_S if busy else SETTLE_S, lambda: t.later(lambda: self._look_again(round_)))
        return True

    def _look_again(self, round_: int) -> None:
        if round_ == self._round and self._looking:
            self._look()

    def _ask_busy(self, pid: int, route: str, key: str) -> None:
        t = self._t
        self._say(f"Somebody is at work in this session in a terminal (process {pid}); what you wrote waits for the end.", "waiting")
        options = [["wait", "wait for the end of that turn"], ["fork", "go on here with a copy (fork)"]]
        ident = t.new_id("q")
        self._question = (route, ident)
        title = f"The session is in use by process {pid}; two writers would split it. What now?"

        def answered(answer: Any) -> None:
            if isinstance(answer, Ok) and answer.data.get("option") == "fork" and self._question[1:] == (ident,):
                self._question = ()
                t.row["start"] = "fork"
                t.host.stop("a fork was chosen", t.pump)

        ask = RouteAsk(ident, title, options, "wait", t.settings.choices.expire_s, key)
        t.ask(f"route/{route}", ask, answered, limit_s=t.settings.choices.expire_s + 10)

    def _withdraw(self, why: str) -> None:
        if self._question:
            route, ident = self._question
            self._question = ()
            self._t.tell(f"route/{route}", RouteUnask(ident, why))

    def _go_on(self) -> None:
        self._looking, self._clear = False, True
        self._t.pump()

    def _say(self, text: str, what: str = "added") -> None:
        waiting = next(iter(self._t.queue), None)
        event: dict[str, Any] = {"event": "notice", "text": text, "what": what}
        self._t.record([], None, events=[(waiting, "notice", event)])

    def _ask(self, op: str, more: dict[str, Any], then: Any) -> None:
        t = self._t
        args = {
            "agent": t.row["agent"], "session": t.session, "env": t.row["env"],
            "ours": [pid for pid in (t.host.pids["agent_pid"], t.host.pids["host_pid"]) if pid], **more,
        }
        t.ask("reader", Read(op, args, 5.0), then, limit_s=8.0)
