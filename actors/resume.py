"""How a thread's host begins: the session is looked for in its store first, and what cannot be resumed becomes a question.

There are agents that answer an unknown id with an empty session, or say "resumed" and fail at the prompt; so whether the
session is there is never left to them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agents_registry.errors import NotFoundError, VibeAroundError
from transports.bus.vocabulary.conversation import Ok
from transports.bus.vocabulary.storage import Read
from transports.bus.vocabulary.threads import RouteAsk

if TYPE_CHECKING:
    from actors.threads import ThreadSupervisor


class Resume:
    def __init__(self, thread: ThreadSupervisor) -> None:
        self._t = thread
        self._checking = False

    def start(self) -> None:
        """Start the host, after the look into the store where there is a session to come back to."""
        t = self._t
        if self._checking:
            return
        if not t.session:
            t.host.start()
            return
        self._checking = True
        args = {
            "agent": t.row["agent"], "wanted": t.session, "cwd": t.row["cwd"], "env": t.row["env"], "store_root": t.store_root,
        }
        t.ask("reader", Read("resolve", args, 10.0), self._looked, limit_s=25.0)

    def _looked(self, answer: Any) -> None:
        self._checking = False
        t = self._t
        # A store that cannot be read or does not answer is no proof: then the agent is asked.
        if isinstance(answer, Ok) and not answer.data["matches"] and t.host.state == "dead":
            waiting = next(iter(t.queue), None)
            if waiting is not None:
                gone = NotFoundError(
                    f"The session {t.session} is not in the store of {t.row['agent']} any more.",
                    hint="It may have been deleted; /session lists what there is.", code="no_session",
                )
                self.ask_how(waiting.route, waiting.key, gone)
            return
        if t.host.state == "dead":
            t.host.start()

    def ask_how(self, route: str, key: str, error: VibeAroundError) -> None:
        """The session cannot be resumed: the reason, and the choice; its id is kept whatever is chosen."""
        t = self._t
        t.deciding = True
        limit = t.settings.choices.expire_s
        options = [["retry", "try again"], ["fresh", "start a fresh session here"], ["cancel", "do nothing now"]]
        title = f"{error.message} The session {t.session} is kept. What now?"

        def answered(answer: Any) -> None:
            t.deciding = False
            choice = answer.data.get("option") if isinstance(answer, Ok) else "cancel"
            if choice == "fresh":
                t.row["start"] = "new"
                t.session = ""
            if choice in ("fresh", "retry"):
                t.host.stop("starting again", t.pump)
            else:
                t.host_failed(error)

        question = RouteAsk(t.new_id("q"), title, options, "cancel", limit, key)
        t.ask(f"route/{route}", question, answered, limit_s=limit + 10)
