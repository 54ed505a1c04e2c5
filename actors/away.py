"""A thread whose session a terminal has: nothing is written to it from here until that process ends, or a person decides.

Messages meanwhile wait, with three choices: take it back (the terminal would be a second writer, so close it), go on with
a fork, or wait. When the terminal's process ends the thread is ours again by itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from transports.bus.vocabulary.children import ProbeProcess
from transports.bus.vocabulary.conversation import Ok
from transports.bus.vocabulary.threads import RouteAsk, RouteUnask

if TYPE_CHECKING:
    from actors.threads import ThreadSupervisor

TIMER = "away"
POLL_S = 3.0


class Away:
    """`process` = {pid, start_time} of the terminal's process, {} when the thread is ours."""

    def __init__(self, thread: ThreadSupervisor) -> None:
        self._t = thread
        self.process: dict[str, Any] = {}
        self._asked = False
        self._asking = False
        self._question = ("", "")
        """Route and id of the question that stands open there."""

    def begin(self, process: dict[str, Any]) -> None:
        if process.get("pid"):
            self.process = dict(process)
            self._asked = False
            self._t.tell_state("away")

    def end(self) -> None:
        """It is ours again."""
        self.process = {}
        self._asked = self._asking = False
        route, question = self._question
        if question:
            self._question = ("", "")
            self._t.tell(f"route/{route}", RouteUnask(question, "the terminal is closed"))
        self._t.cancel_timer(TIMER)
        self._t.record([["thread_away", self._t.thread_id, {}]])

    def holds(self) -> bool:
        """Whether a message must wait; looks after the terminal's process, and asks the people once."""
        if not self.process:
            return False
        if not self._asking:
            self._asking = True
            probe = ProbeProcess(int(self.process["pid"]), int(self.process.get("start_time") or 0))
            self._t.ask("spawner", probe, self._probed, limit_s=10.0)
        return True

    def alarm(self) -> None:
        self._t.pump()

    def _probed(self, answer: Any) -> None:
        self._asking = False
        if not self.process:
            return
        if isinstance(answer, Ok) and not answer.data["alive"]:
            self.end()
            self._t.pump()
            return
        self._t.set_timer(TIMER, POLL_S)
        waiting = next(iter(self._t.queue), None)
        if waiting is not None and not self._asked:
            self._asked = True
            self._ask(waiting.route, waiting.key)

    def _ask(self, route: str, key: str) -> None:
        t = self._t
        options = [
            ["wait", "wait until the terminal is closed"], ["take_back", "take it back (close the terminal: it must not write on)"],
            ["fork", "go on here with a copy (fork)"],
        ]
        title = f"This conversation goes on in a terminal (process {self.process['pid']}). What now?"
        ident = t.new_id("q")
        self._question = (route, ident)
        question = RouteAsk(ident, title, options, "wait", t.settings.choices.expire_s, key)

        def answered(answer: Any) -> None:
            if self._question[1] == ident:
                self._question = ("", "")
            option = answer.data.get("option") if isinstance(answer, Ok) else "wait"
            if option == "wait" or not self.process:
                return
            if option == "fork":
                t.row["start"] = "fork"
            self.end()
            t.pump()

        t.ask(f"route/{route}", question, answered, limit_s=t.settings.choices.expire_s + 10)
