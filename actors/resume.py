"""How a thread's host begins: the session is looked for in its store first, and what cannot be resumed becomes a question.

There are agents that answer an unknown id with an empty session, or say "resumed" and fail at the prompt; so whether the
session is there is never left to them. And there is an agent (Codex) that lets one process write: where another one has
the session, it is joined where that can be, else its lock is waited for, with notices; never is a second writer tried.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agents_registry.errors import BusyError, NotFoundError, VibeAroundError
from transports.bus.vocabulary.conversation import Ok
from transports.bus.vocabulary.storage import Read
from transports.bus.vocabulary.threads import RouteAsk, RouteNotice

if TYPE_CHECKING:
    from actors.threads import ThreadSupervisor

POLL_S = 2.0
TOLD_EVERY_S = 20.0
LEFT_S = 90.0
"""Codex's daemon keeps a thread for about 60 s after its window closed (63 s measured)."""


class Resume:
    def __init__(self, thread: ThreadSupervisor) -> None:
        self._t = thread
        self._checking = False
        self._waiting_since: float | None = None
        self._told_at: float | None = None
        self._patient = False
        """A person chose to wait, however long the window stays open."""

    def start(self) -> None:
        """Start the host, after the look into the store where there is a session to come back to."""
        t = self._t
        if self._checking or not t.consent.clear():
            return
        if not t.session:
            t.host.start()
            return
        self._checking = True
        args = {
            "agent": t.row["agent"], "wanted": t.session, "cwd": t.row["cwd"], "env": t.row["env"], "store_root": t.store_root,
            "writer": True,
        }
        t.ask("reader", Read("resolve", args, 10.0), self._looked, limit_s=25.0)

    def _looked(self, answer: Any) -> None:
        self._checking = False
        t = self._t
        waiting = next(iter(t.queue), None)
        # A store that cannot be read or does not answer is no proof: then the agent is asked.
        if isinstance(answer, Ok) and not answer.data["matches"] and t.host.state == "dead":
            if waiting is not None:
                gone = NotFoundError(
                    f"The session {t.session} is not in the store of {t.row['agent']} any more.",
                    hint="It may have been deleted; /session lists what there is.", code="no_session",
                )
                self.ask_how(waiting.route, waiting.key, gone)
            return
        if t.host.state != "dead":
            return
        matches = answer.data["matches"] if isinstance(answer, Ok) else []
        writer = (matches[0].get("writer") or {}) if len(matches) == 1 else {}
        live = writer.get("live") or {}
        # Where no lock says so, a turn that runs in another process does.
        if (writer.get("locked") or (writer.get("running") and live.get("pids"))) and t.row.get("start") != "fork":
            if waiting is None:
                self._forget()
                return
            self._held(live, bool(writer.get("locked")), waiting.route, waiting.key)
            return
        self._begin("resume" if t.row.get("start") in ("join", "wait") else "")

    def _begin(self, start: str) -> None:
        self._forget()
        if start:
            self._t.row["start"] = start
        self._t.host.start()

    def _forget(self) -> None:
        self._waiting_since = self._told_at = None
        self._patient = False

    # --- somebody else has it ---

    def _held(self, live: dict[str, Any], locked: bool, route: str, key: str) -> None:
        t, now = self._t, self._t.clock.monotonic()
        open_here = bool(live.get("window", True))
        chose_to_wait = t.row.get("start") == "wait"
        if open_here and live.get("joinable") and not chose_to_wait:
            self._begin("join")
            return
        if self._waiting_since is None:
            self._waiting_since = now
        if not self._patient and not chose_to_wait and (open_here or now - self._waiting_since > LEFT_S):
            self._ask_held(open_here, locked, live.get("pids") or [], route, key)
            return
        if self._told_at is None or now - self._told_at >= TOLD_EVERY_S:
            self._told_at = now
            left = "until its window is closed, or its turn is over" if open_here else "at most about a minute after its window was closed"
            gone = int(now - self._waiting_since)
            text = f"Waiting for the session: {t.row['agent']} keeps it {left} ({gone} s so far). /stop drops what waits."
            t.tell(f"route/{route}", RouteNotice(text, key))
        t.deciding = True
        t.clock.call_later(POLL_S, lambda: t.later(self._again))

    def _again(self) -> None:
        self._t.deciding = False
        if not len(self._t.queue):
            self._forget()
        self._t.pump()

    def _ask_held(self, open_here: bool, locked: bool, pids: list[Any], route: str, key: str) -> None:
        t = self._t
        t.deciding = True
        limit = t.settings.choices.expire_s
        who = f" (process {pids[0]})" if pids else ""
        state = f"is open in a window{who}, which alone may write" if open_here else f"is still kept by another process{who}"
        if not locked:
            state = f"is in use: a turn runs in another window{who}"
        options = [["wait", "wait until it is free"], ["fork", "go on here with a copy (fork)"], ["cancel", "do nothing now"]]
        title = f"The session {t.session} {state}. What now?"

        def answered(answer: Any) -> None:
            t.deciding = False
            choice = answer.data.get("option") if isinstance(answer, Ok) else "cancel"
            if choice == "fork":
                self._begin("fork")
            elif choice == "wait":
                self._patient = True
                t.pump()
            else:
                self._forget()
                why = f"Not sent: the session {t.session} {state}."
                t.host_failed(BusyError(why, hint="Close that window, then write again.", code="locked"))

        t.ask(f"route/{route}", RouteAsk(t.new_id("q"), title, options, "cancel", limit, key), answered, limit_s=limit + 10)

    # --- it cannot be resumed ---

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
