"""`attach_external_session`: the one function in which every doorway of a handover ends.

In order: the agent is known, the store has the session, its recorded directory is there, the issuing turn is over (or
the person decides), and only then one record that makes or joins the thread and attaches the route. Until that record
nothing has changed, so a failure costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from actors.mailbox import Continue
from agents_registry.errors import BusyError, NotFoundError, RefusedError, UsageError, VibeAroundError
from transports.bus.api import Delivery
from transports.bus.vocabulary.conversation import Failed, Ok
from transports.bus.vocabulary.handover import AttachExternal
from transports.bus.vocabulary.storage import Load, Read
from transports.bus.vocabulary.threads import RouteAsk, RouteNotice

if TYPE_CHECKING:
    from actors.attach import Attacher

POLL_S = 0.4


class SessionLookup:
    """Shared by the doorways: from a code's payload to one session of the store whose directory exists."""

    def __init__(self, attacher: Attacher, payload: dict[str, Any]) -> None:
        self._attacher = attacher
        self.payload = payload
        self.spec = attacher.registry.get(str(payload["agent"]))

    def find(self, then: Continue, fail: Continue, *, writer: bool = False) -> None:
        """Continues with {id, cwd, real, store_root, title, aliases, ...}, or `fail(VibeAroundError)`. With `writer` it says
        under that name who writes the session now."""
        p = self.payload
        args = {
            "agent": self.spec.id, "wanted": p["session"], "cwd": p.get("cwd", ""), "env": p.get("env") or {},
            "store_root": p.get("store_root", ""), "writer": writer,
        }

        def resolved(answer: Any) -> None:
            if isinstance(answer, Failed):
                from agents_registry.errors import from_wire

                fail(from_wire(answer.error))
                return
            try:
                then(self._one(answer.data["matches"]))
            except VibeAroundError as error:
                fail(error)

        self._attacher.ask("reader", Read("resolve", args, 10.0), resolved, limit_s=25.0)

    def _one(self, matches: list[dict[str, Any]]) -> dict[str, Any]:
        wanted, name = self.payload["session"], self.spec.name
        if not matches:
            raise NotFoundError(
                f"{name} has no session {wanted}.", hint="It may have been deleted, or never written: send it a message there first.",
                code="no_session",
            )
        if len(matches) > 1:
            listed = "; ".join(f"{m['id']} ({m['title'] or 'untitled'}, {m['cwd']})" for m in matches[:6])
            raise UsageError(f"{wanted!r} may mean {len(matches)} sessions of {name}: {listed}.", hint="Give the whole id.", code="ambiguous")
        found = matches[0]
        if not found["cwd"]:
            raise NotFoundError(
                f"The store of {name} does not say in which directory the session {found['id']} ran.",
                hint=f"Resume it in a terminal once: `va launch {self.spec.id} --resume {found['id']}`.", code="no_cwd",
            )
        if not found["cwd_exists"]:
            raise NotFoundError(
                f"The directory of this session is gone: {found['cwd']}. Nothing was created and nothing changed.",
                hint="Bring the directory back and try again while the code is valid.", code="no_directory",
            )
        return found


class ExternalAttach:
    """One attach on its way; lives as long as its answers come."""

    def __init__(self, attacher: Attacher, delivery: Delivery, request: AttachExternal) -> None:
        self._a = attacher
        self._delivery = delivery
        self._request = request
        self._lookup = SessionLookup(attacher, request.payload)
        self._session: dict[str, Any] = {}
        self._told_waiting = False
        self._note = ""

    def begin(self) -> None:
        self._lookup.find(self._found, self._fail, writer=True)

    def _fail(self, error: VibeAroundError) -> None:
        self._a.fail(self._delivery, error)

    def _found(self, session: dict[str, Any]) -> None:
        self._session = session
        named = str(self._request.payload.get("cwd", ""))
        if named and session["real"] and named not in (session["cwd"], session["real"]) and not session.get("cwd_same"):
            self._note = f"The call named {named}; the session belongs to {session['cwd']}, and goes on there."
        self._look_for_thread(self._thread_known)

    def _look_for_thread(self, then: Continue) -> None:
        s = self._session
        ids = [s["id"], *s.get("aliases", [])]
        query = Load("thread_of_session", [self._lookup.spec.id, ids, s["store_root"]])
        self._a.ask("history", query, lambda a: then(a.data["thread"] if isinstance(a, Ok) else ""))

    def _thread_known(self, thread: str) -> None:
        if thread:
            self._join(thread)
        else:
            until = self._a.clock.monotonic() + self._a.settings.threads.pickup_wait_s
            if "writer" in self._session:
                self._seen(self._session.pop("writer"), until)
            else:
                self._wait(until)

    def _join(self, thread: str) -> None:
        """Its host runs (or resumes) this very session: nothing to wait for."""
        r = self._request
        self._a.bind(
            r.route, thread, [], r.sender, lambda answer: self._a.reply(self._delivery, answer),
            agent=self._lookup.spec.id, title=self._session["title"], joined=True, note=self._note,
        )

    # --- the issuing terminal ---

    def _wait(self, until: float) -> None:
        args = {"agent": self._lookup.spec.id, "session": self._session, "env": self._request.payload.get("env") or {}}

        def seen(answer: Any) -> None:
            self._seen(answer.data if isinstance(answer, Ok) else {}, until)

        self._a.ask("reader", Read("writer", args, 5.0), seen, limit_s=10.0)

    def _seen(self, data: dict[str, Any], until: float) -> None:
        if not data.get("running"):
            self._writer(bool(data.get("locked")), data.get("live") or {})
            return
        if self._a.clock.monotonic() >= until:
            self._ask_running()
            return
        if not self._told_waiting:
            self._told_waiting = True
            text = f"Waiting for the turn in the terminal to end (at most {self._a.settings.threads.pickup_wait_s:g} s)…"
            self._a.tell(f"route/{self._request.route}", RouteNotice(text, self._request.key))
        self._a.clock.call_later(POLL_S, lambda: self._poll(until))

    def _poll(self, until: float) -> None:
        # Back onto the attacher's own turn: a timer fires on the clock's thread.
        self._a.later(lambda: self._wait(until))

    def _ask_running(self) -> None:
        options = [["go_on", "go on here anyway"], ["fork", "go on here with a copy (fork)"], ["cancel", "do nothing"]]
        if not self._lookup.spec.sessions.fork:
            options = [o for o in options if o[0] != "fork"]
        if self._lookup.spec.sessions.one_writer:
            options = [o for o in options if o[0] != "go_on"]
        title = "The turn in the terminal still runs. Two writers would split the conversation. What now?"
        self._ask_person(title, options, {
            "fork": lambda: self._create("fork", "It goes on as a fork: the turn in the terminal runs on by itself."),
            "go_on": lambda: self._create("resume", ""),
        }, BusyError("Not picked up: the turn in the terminal still runs.", hint="Try again when it has ended.", code="turn_running"))

    def _writer(self, locked: bool, live: dict[str, Any]) -> None:
        """No turn runs. Who has the session open decides: nobody, the issuing window (no question), or another one."""
        issuer = self._request.payload.get("issuer") or {}
        above = {int(issuer.get("pid") or 0), *(int(p) for p in issuer.get("above") or [])}
        pids = [int(p) for p in live.get("pids") or []]
        strange = bool(pids) and not above.intersection(pids)
        if strange and (live.get("window") or not locked):
            self._ask_open(locked, pids[0], bool(live.get("joinable")))
        elif not locked:
            self._create("resume", "")
        elif live.get("joinable") and live.get("window"):
            self._join_live()
        elif pids and live.get("daemon") and not live.get("window"):
            self._after_lock()
        else:
            self._fork_of_open()

    def _ask_open(self, locked: bool, pid: int, joinable: bool) -> None:
        """The session is open in a process that did not hand it over: the person decides."""
        name = self._lookup.spec.name
        options = [["fork", "go on here with a copy (fork)"], ["cancel", "do nothing"]]
        if not self._lookup.spec.sessions.fork:
            options = options[1:]
        if locked:
            options.insert(-1, ["wait", "wait until that window is closed"])
        else:
            options.insert(0, ["go_on", "go on here (do not type on there)"])
        if joinable:
            options.insert(0, ["join", "join it: both windows show everything"])
        why = "which alone may write" if locked else "and two writers would split the conversation"
        title = f"This session is open in another window of {name} (process {pid}), {why}. What now?"
        self._ask_person(title, options, {
            "go_on": lambda: self._create("resume", f"It is still open in process {pid}: do not type on there."),
            "fork": lambda: self._create("fork", f"It goes on here as a fork; the window of process {pid} keeps its own session."),
            "join": self._join_live,
            "wait": lambda: self._create("wait", "Your first message waits until that window is closed."),
        }, BusyError(f"Not picked up: the session is open in process {pid}.", hint="Close that window, or choose another way.", code="open_elsewhere"))

    def _ask_person(
        self, title: str, options: list[list[str]], ways: dict[str, Callable[[], None]], otherwise: VibeAroundError
    ) -> None:
        limit = self._a.settings.choices.expire_s
        ask = RouteAsk(self._a.new_id("q"), title, options, "cancel", limit, self._request.key)

        def answered(answer: Any) -> None:
            way = ways.get(str(answer.data["option"])) if isinstance(answer, Ok) else None
            if way is None:
                self._fail(otherwise)
            else:
                way()

        self._a.ask(f"route/{self._request.route}", ask, answered, limit_s=limit + 10)

    def _join_live(self) -> None:
        note = "It is joined: what you write here appears in the open window, and what is typed there appears here."
        self._create("resume", note)

    def _after_lock(self) -> None:
        name = self._lookup.spec.name
        note = f"{name} keeps the session for about a minute after its window is closed; your first message waits for that."
        self._create("resume", note)

    def _fork_of_open(self) -> None:
        """A store with one writer whose window is still open is forked when the host first starts."""
        if not self._lookup.spec.sessions.fork:
            error = RefusedError("The session is open in another window, which alone may write.", hint="Close that window first.", code="locked")
            self._fail(error)
            return
        note = (
            f"{self._lookup.spec.name} keeps the session {self._session['id']} for its open window, so it goes on here as a fork: "
            "full context, new id. `va pickup` brings the fork back to the terminal."
        )
        self._create("fork", note)

    def _create(self, start: str, note: str) -> None:
        a, s, r = self._a, self._session, self._request
        if note:
            self._note = f"{self._note} {note}".strip()
        thread, now = a.new_id("wt"), a.clock.now()
        real = s["real"] or s["cwd"]
        name = real.rstrip("/").rpartition("/")[2] or "Workspace"
        spec = self._lookup.spec
        ops = [
            ["workspace_add", a.new_id("ws"), s["cwd"], real, name, False, now],
            ["thread_create", thread, f"real:{real}", s["cwd"], spec.id, "direct", s["title"], start, r.payload.get("env") or {}, now],
            ["session_current", thread, spec.id, s["store_root"], s["id"], "", now],
        ]

        def bound(answer: Any) -> None:
            # Somebody else picked the same session up in the meantime: join what they made.
            if isinstance(answer, Failed) and answer.error[1] == "session_taken":
                self._look_for_thread(lambda found: self._join(found) if found else a.reply(self._delivery, answer))
                return
            a.reply(self._delivery, answer)

        a.bind(r.route, thread, ops, r.sender, bound, agent=spec.id, session=s["id"], title=s["title"], note=self._note)
