"""The turns of a host: one runs, few wait, no key runs twice; a turn ends with all that belongs to it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from actors.host_lease import Lease
from actors.host_permissions import OpenPermissions
from actors.host_port import AgentPort
from actors.host_spec import HostSpec
from actors.host_voice import HostVoice
from agents_registry.errors import AgentError, BusyError, VibeAroundError
from transports.acp.errors import AgentGone

MAX_HELD = 16
"""Prompts that wait for the agent to be ready or for the turn before them."""
MAX_SEEN = 256


class HostTurns:
    """`session()` is where the next turn runs, "" = it cannot run now. `keys` are what a supervisor asks for."""

    def __init__(
        self,
        spec: HostSpec,
        agent: AgentPort,
        voice: HostVoice,
        permissions: OpenPermissions,
        lease: Lease,
        *,
        clock: Callable[[], float],
        session: Callable[[], str],
    ) -> None:
        self._spec, self._agent, self._voice = spec, agent, voice
        self._permissions, self._lease = permissions, lease
        self._clock, self._session = clock, session
        self._in = ""
        """The session of the running turn."""
        self._held: deque[tuple[str, list[Any]]] = deque()
        self._seen: deque[str] = deque(maxlen=MAX_SEEN)
        self._over: dict[str, Any] | None = None
        self._closed = False
        self.cancel_by: float | None = None
        """When a cancelled turn must have ended; None = none is being cancelled."""

    @property
    def running(self) -> str:
        """Key of the running turn, "" while there is none."""
        return self._voice.turn

    @property
    def keys(self) -> list[str]:
        """Of the turns seen, waiting ones included, newest last."""
        return [*self._seen, *(turn for turn, _ in self._held)][-MAX_SEEN:]

    def take(self, turn: str, blocks: list[Any]) -> bool:
        """Run a prompt, now or later. False = its key is known. Raises BusyError when it cannot wait here."""
        if turn in self._seen or any(turn == held for held, _ in self._held):
            return False
        if self._closed:
            raise BusyError("The agent's host is stopping.", hint="Send it again.")
        if len(self._held) >= MAX_HELD:
            raise BusyError(f"{MAX_HELD} prompts wait for this agent already.", hint="Wait for one of them to end.")
        self._held.append((turn, blocks))
        self.next()
        return True

    def next(self) -> None:
        """Run the next waiting prompt if that is possible now."""
        session = self._session()
        if self.running or self._closed or not session or not self._held:
            return
        turn, blocks = self._held.popleft()
        self._seen.append(turn)
        self._voice.assembler.reset()
        self._voice.turn, self._in = turn, session
        self._over, self.cancel_by = None, None
        if self._spec.end_commands_on_cancel:
            self._agent.begin_turn()
        self._agent.prompt(turn, session, blocks)

    def over(self, turn: str, result: dict[str, Any] | None, error: VibeAroundError | None) -> None:
        """The agent's answer to a prompt."""
        if turn != self.running or not turn or self._over is not None:
            return
        last = isinstance(error, AgentGone)
        if isinstance(error, AgentGone) and (self.cancel_by is not None or self._closed):
            result, error = {"stopReason": "cancelled"}, None  # it was ended for this very turn
        result = result or {}
        reason = "error" if error is not None else str(result.get("stopReason") or "end_turn")
        self.cancel_by = None
        self._voice.assembler.end_turn(cancelled=reason in ("cancelled", "error"))
        self._permissions.cancel_all("turn")
        usage = result.get("usage")
        self._over = {
            "stop_reason": reason,
            "error": {"code": error.code, "message": error.message, "hint": error.hint} if error is not None else None,
            "usage": {**self._voice.assembler.usage, **(usage if isinstance(usage, dict) else {})},
        }
        if last or self._closed:
            self._over["host_ends"] = True  # what waits at the supervisor waits for the next host
        if reason == "cancelled" and self._spec.end_commands_on_cancel and not self._closed:
            self._agent.end_commands(turn)
        else:
            self.finish()

    def commands_ended(self, turn: str, names: list[str]) -> None:
        """What a cancelled turn had left running is gone."""
        if turn == self.running and self._over is not None:
            if names:
                self._voice.notice(f"Ended what the stopped turn had left running: {', '.join(names)}.")
            self.finish()

    def finish(self) -> None:
        """Tell the end of a turn whose end is known."""
        if self._over is None:
            return
        body, self._over = self._over, None
        self._voice.event("turn_end", body)
        self._voice.turn = ""
        self._lease.idle()
        self.next()

    def cancel_key(self, turn: str) -> None:
        """Cancel a turn, running or waiting; one that is neither has ended already."""
        waiting = next((entry for entry in self._held if entry[0] == turn), None)
        if waiting is not None:
            self._held.remove(waiting)
            self._seen.append(turn)
            self._voice.event_of(turn, "turn_end", {"stop_reason": "cancelled", "error": None, "usage": {}})
        elif turn == self.running:
            self.cancel()

    def cancel(self) -> None:
        """Stop the running turn; twice is the same as once."""
        if self.running and self.cancel_by is None and self._over is None:
            self.cancel_by = self._clock() + self._spec.limits.cancel_s
            self._permissions.settled(self._agent.cancel(self._in), "cancel")

    def close(self) -> None:
        """The host stops: nothing new is run, what runs is cancelled, what waits is told so."""
        self._closed = True
        if self.running:
            self._permissions.settled(self._agent.cancel(self._in), "cancel")
        self._permissions.cancel_all("stop")
        for turn, _ in self._held:
            self._seen.append(turn)
            self._voice.event_of(turn, "turn_end", _not_run())
        self._held.clear()

    def end(self) -> None:
        """The agent is gone for certain; a turn that is still open ends here."""
        self.over(self.running, {"stopReason": "cancelled"}, None)
        self.finish()


def _not_run() -> dict[str, Any]:
    error = AgentError("The agent stopped before this prompt was run.", hint="Send it again.", code="not_run")
    return {"stop_reason": "error", "error": {"code": error.code, "message": error.message, "hint": error.hint}, "usage": {}}
