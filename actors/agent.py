"""The logic of an agent host: one agent, one session, one turn at a time, and a life of its own (DESIGN: hosts).

Plain and single-threaded: the host's loop calls it, one thing after the other. The agent, the link to the thread and
the clock are handed in, so that all of it is tested without a process.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from actors.host_files import HostFiles
from actors.host_foreign import ForeignTurns
from actors.host_handshake import Ready
from actors.host_lease import Lease
from actors.host_permissions import OpenPermissions
from actors.host_port import AgentPort
from actors.host_spec import HostSpec
from actors.host_turns import HostTurns
from actors.host_voice import HostVoice
from agents_registry.errors import BusyError, UsageError, VibeAroundError
from transports.acp import updates
from transports.acp.errors import AgentGone
from transports.acp.permission import Permission
from transports.acp.sessions import option_of
from transports.bus.vocabulary import conversation, hosting

MAX_EARLY = 1000
FLUSH_S = 5.0
"""At its end a host waits so long for the acks of its last events; what is left goes to the spool."""
STRAY_S = 1.0
"""Text that comes outside of a turn is a finished block after so long in silence: no end of a turn will finish it."""
HELLO_S = 5.0
"""An unanswered HELLO is said again after so long."""
Reply = Callable[[Any], None]


class HostCore:
    """`send(message)` goes to the thread's address. `pids`: agent pid, group and start time (0 = never started)."""

    def __init__(
        self,
        spec: HostSpec,
        agent: AgentPort,
        send: Callable[[Any], None],
        files: HostFiles,
        *,
        clock: Callable[[], float],
        new_id: Callable[[], str],
        host: tuple[int, int],
        pids: tuple[int, int, int],
    ) -> None:
        self.spec = spec
        self._agent, self._send, self._clock = agent, send, clock
        self._host, self._pids = host, pids
        self._phase = "starting"
        self.session = ""
        self._modes: tuple[tuple[str, str], ...] = ()
        self._mode = ""
        self._info: dict[str, Any] = {}
        self._opening = False
        self._reloading: Reply | None = None
        self._early: list[tuple[str, updates.Event]] = []
        self._failure: tuple[str, VibeAroundError] | None = None
        self._linked = False
        self._hello_at: float | None = None
        self._fenced_off = False
        self._dead = False
        self._stirred_at = clock()
        self._end_by: float | None = None
        self._voice = HostVoice(spec, send, files, clock=clock)
        self._assembler, self.outbox = self._voice.assembler, self._voice.outbox
        self._permissions = OpenPermissions(agent, self._voice, new_id, clock)
        self._lease = Lease(spec.limits, clock)
        self.foreign = ForeignTurns(self._voice, clock)
        self._turns = HostTurns(
            spec, agent, self._voice, self._permissions, self._lease, clock=clock, session=self._runs_in
        )

    @property
    def state(self) -> str:
        """starting, idle, busy, stopping or ended."""
        if self._phase != "open":
            return self._phase
        return "busy" if self._turns.running else "idle"

    # --- what the loop asks

    @property
    def wants_agent(self) -> bool:
        """False while the agent's output must wait: too much is not acked."""
        return not self.outbox.full or self.state == "stopping"

    @property
    def done(self) -> bool:
        """The process may exit."""
        if self.state != "ended":
            return False
        return self._fenced_off or self.outbox.empty or self._clock() >= (self._end_by or 0.0)

    @property
    def must_spool(self) -> bool:
        """At the end: something was not handed over (a host of an older epoch has nothing to say)."""
        return not self._fenced_off and not self.outbox.empty

    @property
    def turns(self) -> list[str]:
        """Keys of the turns seen, waiting ones included, newest last."""
        return self._turns.keys

    def deadline(self) -> float:
        """Clock time by which `tick` must be called again."""
        now = self._clock()
        cancel_by = self._turns.cancel_by if self._phase == "open" else None
        times = [t for t in (self._assembler.flush_due, cancel_by, self._end_by, self.foreign.due) if t is not None]
        return max(now, min([now + 1.0, *times]))

    def tick(self) -> None:
        """Whatever time brings."""
        now = self._clock()
        due = self._assembler.flush_due
        if due is not None and now >= due:
            self._assembler.flush()
        self.outbox.check()
        if self.foreign.tick():
            self._turns.next()
        if self._hello_at is not None and now >= self._hello_at:
            self._hello()
        cancel_by = self._turns.cancel_by
        if cancel_by is not None and now >= cancel_by and self._phase == "open":
            self._voice.notice(f"The agent did not stop within {self.spec.limits.cancel_s:g} s and was ended.")
            self._stop()
        if not self._turns.running and self._assembler.open_size and now - self._stirred_at >= STRAY_S:
            self._assembler.finish_block()
        if self._linked:
            self._lease.heard()
            return
        self._without_supervisor()

    def _without_supervisor(self) -> None:
        self._permissions.cancel_older(self._lease.since)
        if self._turns.running and self._lease.turn_is_orphan and self._turns.cancel_by is None:
            self._voice.notice("The supervisor was away for too long; the turn was cancelled.")
            self._turns.cancel()
        if not self._turns.running and self._lease.is_over and self.state not in ("stopping", "ended"):
            self._stop()

    # --- the link

    def link_up(self) -> None:
        """Connected to a supervisor: say who we are."""
        self._hello()

    def link_down(self) -> None:
        """The supervisor does not answer any more."""
        self._linked = self._voice.listened = False
        self._hello_at = None
        self.outbox.unlinked()

    def _hello(self) -> None:
        self._hello_at = self._clock() + HELLO_S
        self._send(
            hosting.HostHello(
                self.spec.thread,
                self.spec.instance,
                self.spec.epoch,
                *self._host,
                *self._pids,
                "stopping" if self.state == "ended" else self.state,
                self.session,
                self._turns.running,
                self.turns,
                self.outbox.last_seq,
                self._told(),
            )
        )

    def _told(self) -> dict[str, Any]:
        """What a supervisor that was not there at our ready event must know."""
        if not self.session:
            return {}
        return self._info | {"modes": [{"id": mode, "name": name} for mode, name in self._modes], "mode": self._mode}

    def deliver(self, message: Any, reply: Reply) -> None:
        """A message from the supervisor. `reply` answers it where an answer is awaited."""
        self._lease.heard()
        match message:
            case hosting.HostWelcome():
                self._welcome(message)
            case hosting.HostAck(upto):
                self.outbox.ack(upto)
            case hosting.HostPrompt(turn, blocks):
                self._prompt(turn, blocks, reply)
            case hosting.HostCancel(turn):
                self._turns.cancel_key(turn)
                reply(conversation.Ok())
            case hosting.HostAnswer(request, option):
                reply(conversation.Ok({"applied": self._permissions.answer(request, option)}))
            case hosting.HostSetMode(mode):
                self._change_mode(mode, reply)
            case hosting.HostReload(session):
                self._reload(session, reply)
            case hosting.HostStop():
                reply(conversation.Ok())
                self._stop()
            case conversation.Failed():
                pass  # the thread is not there (yet); the HELLO is said again
            case _:
                reply(conversation.Failed(UsageError("A host does not know this message.", code="unknown_message").to_wire()))

    def _welcome(self, welcome: hosting.HostWelcome) -> None:
        self._hello_at = None
        if welcome.end:
            self._fenced_off = True
            self._stop()
            return
        self._linked = self._voice.listened = True
        self.outbox.linked(welcome.acked)
        self._assembler.snapshot()
        if self.state == "starting" and not self._opening:
            self._opening = True
            if self._failure is not None:
                self.open_failed(*self._failure)
            else:
                self._agent.open()

    def never_started(self, phase: str, error: VibeAroundError) -> None:
        """The agent could not even be spawned; told as soon as somebody listens."""
        self._failure = (phase, error)

    # --- opening

    def opened(self, ready: Ready) -> None:
        """The handshake is done."""
        if self.state != "starting":
            return
        self.session = ready.opened.session
        self._modes, self._mode = ready.opened.modes, ready.mode
        self._phase = "open"
        commands: list[dict[str, str]] = []
        for session, event in self._early:
            if isinstance(event, updates.Commands) and session in ("", self.session):
                commands = event.commands
        self._info = {
            "agent_name": ready.info.name,
            "agent_version": ready.info.version,
            "model": ready.opened.model,
            "commands": commands,
            "joined": self.spec.joined,
        }
        self._voice.event(
            "ready",
            {
                "session": self.session,
                "start": ready.start,
                "forked_from": self.spec.session if ready.start == "forked" else "",
                "capabilities": ready.info.capabilities,
                **self._told(),
            },
        )
        early, self._early = self._early, []
        for session, event in early:
            if not isinstance(event, updates.Commands | updates.Mode):
                self.update(session, event)
        self._lease.idle()
        self._turns.next()

    def open_failed(self, phase: str, error: VibeAroundError) -> None:
        """The agent could not start or resume; the reason is told, and the host ends."""
        if self.state == "starting":
            words = {"code": error.code, "message": error.message, "hint": error.hint, "exit_code": error.exit_code}
            self._voice.event("failed", {"phase": phase, **words, "keep_session": bool(self.spec.session)})
        self._stop()

    def _reload(self, session: str, reply: Reply) -> None:
        if self.state != "idle" or self._reloading is not None:
            reply(conversation.Failed(BusyError("The agent is at work; its session cannot be loaded again now.").to_wire()))
            return
        self._reloading = reply
        self._agent.reload(session or self.session)

    def reloaded(self, ready: Ready | None, error: VibeAroundError | None) -> None:
        """The result of a reload; with an error the session stands as it was."""
        reply, self._reloading = self._reloading, None
        if ready is not None:
            before, self.session = self.session, ready.opened.session
            if before != self.session:
                self._voice.event("session", {"session": self.session, "alias_of": before})
            self._modes, self._mode = ready.opened.modes, ready.mode
        if reply is not None:
            reply(conversation.Failed(error.to_wire()) if error is not None else conversation.Ok({"session": self.session}))
        self._turns.next()

    # --- turns

    def _runs_in(self) -> str:
        """The session where a turn can run now, "" = it must wait."""
        free = not self._dead and self._reloading is None and not self.foreign.running
        return self.session if self._phase == "open" and free else ""

    def _prompt(self, turn: str, blocks: list[Any], reply: Reply) -> None:
        try:
            fresh = self._turns.take(turn, blocks)
        except BusyError as error:
            reply(conversation.Failed(error.to_wire()))
            return
        reply(conversation.Ok() if fresh else conversation.Ok({"duplicate": True}))

    def turn_over(self, turn: str, result: dict[str, Any] | None, error: VibeAroundError | None) -> None:
        """The agent's answer to a prompt."""
        self._dead = self._dead or isinstance(error, AgentGone)
        self._turns.over(turn, result, error)

    def commands_ended(self, turn: str, names: list[str]) -> None:
        """What a cancelled turn had left running is gone."""
        self._turns.commands_ended(turn, names)

    # --- what the agent says

    def update(self, session: str, event: updates.Event) -> None:
        """One update, in wire order."""
        if self.state == "starting":
            if len(self._early) < MAX_EARLY:
                self._early.append((session, event))
            return
        if session not in ("", self.session):
            return  # a session of the agent's own making (a sub-agent); its work shows in our session's tool calls
        if isinstance(event, updates.Options):
            option = option_of(event.options, "mode")
            if option is None or not isinstance(option.get("currentValue"), str):
                return
            event = updates.Mode(option["currentValue"])
        if isinstance(event, updates.Mode):
            if event.mode == self._mode:
                return
            self._mode = event.mode
        if isinstance(event, updates.Commands):
            self._info["commands"] = event.commands
        self._lease.stirred()
        self._stirred_at = self._clock()
        self._assembler.take(event)

    def permission(self, permission: Permission) -> None:
        """The agent asks."""
        if self.state == "stopping":
            self._agent.answer(permission, None)
            return
        self._permissions.ask(permission)

    def withdrawn(self, permission: Permission) -> None:
        """The agent asks no longer."""
        self._permissions.settled([permission], "agent")

    def _change_mode(self, mode: str, reply: Reply) -> None:
        offered = [known for known, _ in self._modes]
        if self.state not in ("idle", "busy"):
            reply(conversation.Failed(BusyError("The agent is not ready; its mode cannot be changed now.").to_wire()))
        elif mode not in offered:
            names = ", ".join(offered) or "none"
            reply(conversation.Failed(UsageError(f"The agent has no mode {mode!r}.", hint=f"Its modes: {names}.").to_wire()))
        else:
            self._agent.set_mode(self.session, mode, lambda error: self._mode_changed(mode, error, reply))

    def _mode_changed(self, mode: str, error: VibeAroundError | None, reply: Reply) -> None:
        if error is not None:
            reply(conversation.Failed(error.to_wire()))
            return
        if mode != self._mode:
            self._mode = mode
            self._voice.event("mode", {"mode": mode})
        reply(conversation.Ok({"mode": mode}))

    # --- the end

    def gone(self, error: AgentGone) -> None:
        """The agent's output has ended. During the handshake, the handshake itself reports it."""
        self._dead = True
        if self.state in ("idle", "busy"):
            self._turns.over(self._turns.running, None, error)
            self._stop()

    def end(self) -> None:
        """Somebody asks the process itself to end (a signal): the same as a stop."""
        self._stop()

    def _stop(self) -> None:
        if self.state in ("stopping", "ended"):
            return
        self._phase = "stopping"
        self._turns.close()
        if self._reloading is not None:
            self.reloaded(None, BusyError("The agent's host is stopping."))
        self._agent.stop()

    def stopped(self, exit_code: int | None, stderr_tail: str, detached: list[str]) -> None:
        """The agent is gone for certain. `exit_code` as `subprocess` has it, None when it never started."""
        self._turns.end()
        by_signal = exit_code is not None and exit_code < 0
        how = {"exit_code": None if by_signal else exit_code, "signal": -(exit_code or 0) if by_signal else None}
        self._voice.event("agent_gone", {**how, "stderr_tail": stderr_tail[-8192:], "detached": detached})
        self._phase = "ended"
        self._end_by = self._clock() + (FLUSH_S if self._linked else 0.0)

    def noted(self, text: str) -> None:
        """A word for the people in the chat from the handshake or a guard."""
        self._voice.notice(text)
