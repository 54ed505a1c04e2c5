"""An agent that acts without asking: it starts in a workspace only after an owner has said yes to that, once.

The yes is kept in the journal, by workspace and agent, and is said in /status. Nobody else's answer counts, and no answer is no.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from agents_registry.errors import RefusedError
from transports.bus.vocabulary.conversation import Failed, Ok
from transports.bus.vocabulary.storage import Load
from transports.bus.vocabulary.threads import RouteAsk

if TYPE_CHECKING:
    from actors.threads import ThreadSupervisor

EXPIRE_S = 600.0
"""An owner may have to be fetched: longer than other questions wait."""


class Consent:
    """`asks(agent)`: whether the agent can be hosted in a mode in which it asks before it acts."""

    def __init__(self, thread: ThreadSupervisor, asks: Callable[[str], bool]) -> None:
        self._t = thread
        self._asks = asks
        self._looking = False
        self._given = False
        self.by = ""
        """Who said yes; "" where no yes is needed, or none is known yet."""

    def clear(self) -> bool:
        """Whether the host may start now; else it is looked up or asked, and the thread goes on by itself."""
        t = self._t
        if self._given or self._asks(t.row["agent"]):
            return True
        if not self._looking:
            self._looking = True
            t.ask("history", Load("agent_yes", [t.row["workspace"], t.row["agent"]]), self._known)
        return False

    def mode(self, mode: Any) -> Any:
        """The mode as /status shows it."""
        if not self.by:
            return mode
        return f"acts without asking (allowed in this workspace by {self.by})"

    def _known(self, answer: Any) -> None:
        self._looking = False
        t = self._t
        if isinstance(answer, Failed):
            self._refuse("it is not known whether that was allowed")
            return
        if answer.data["by"]:
            self._take(str(answer.data["by"]))
            return
        waiting = next(iter(t.queue), None)
        if waiting is None:
            return
        t.deciding = True
        title = (
            f"{t.row['agent']} runs commands and changes files WITHOUT asking first. Allow that in {t.row['cwd']}, for good? "
            "Only an owner can allow it."
        )
        options = [["no", "no"], ["yes", "yes, allow it in this workspace"]]
        question = RouteAsk(t.new_id("q"), title, options, "no", EXPIRE_S, waiting.key, True)
        t.ask(f"route/{waiting.route}", question, self._answered, limit_s=EXPIRE_S + 10)

    def _answered(self, answer: Any) -> None:
        t = self._t
        if not isinstance(answer, Ok) or answer.data.get("option") != "yes":
            t.deciding = False
            self._refuse("nobody who may allow it did")
            return
        by = str(answer.data.get("by") or "an owner")

        def written(stored: Any) -> None:
            t.deciding = False
            if isinstance(stored, Failed):
                self._refuse("the yes could not be written down")
            else:
                self._take(by)

        t.record([["agent_yes", t.row["workspace"], t.row["agent"], by, t.now()]], written)

    def _take(self, by: str) -> None:
        self._given, self.by = True, by
        self._t.pump()

    def _refuse(self, why: str) -> None:
        agent = self._t.row["agent"]
        self._t.host_failed(RefusedError(
            f"{agent} acts without asking, and may not do so in this workspace: {why}.",
            hint="Send the message again to be asked again, or choose another agent: /agent.", code="acts_unasked",
        ))
