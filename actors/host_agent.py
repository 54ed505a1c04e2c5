"""The agent behind the host's core: client, handshake, ladder, each on a thread of its own where it can wait.

Everything comes back to the core through the loop; nothing here decides anything.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from threading import Thread, Timer
from typing import TYPE_CHECKING, Any

from actors.host_guards import guard_for
from actors.host_handshake import HandshakeFailed, Ready, reload_session, shake_hands
from actors.host_images import with_images
from actors.host_loop import HostLoop
from actors.host_process import AgentProcess
from actors.host_spec import HostSpec
from agents_registry.errors import AgentError, VibeAroundError
from transports.acp import updates
from transports.acp.client import AcpClient, mode_request
from transports.acp.errors import AgentGone, AgentSilent
from transports.acp.permission import Permission
from transports.acp.sessions import AgentInfo

if TYPE_CHECKING:
    from actors.agent import HostCore


class HostedAgent:
    """`AgentPort` over a process; `process` None = it could not be started."""

    def __init__(self, spec: HostSpec, process: AgentProcess | None, loop: HostLoop) -> None:
        self._spec, self._process, self._loop = spec, process, loop
        self._core: HostCore | None = None
        self._info: AgentInfo | None = None
        self._mode_option = ""
        self._client: AcpClient | None = None
        self._guard = guard_for(spec, self._note)
        if process is not None:
            self._client = AcpClient(
                process.stdin, process.stdout, self, exit_code=process.exit_code, stderr_tail=process.stderr_tail
            )

    def attach(self, core: HostCore) -> None:
        """Begin to read what the agent says."""
        self._core = core
        if self._client is not None:
            self._client.start()

    @property
    def _c(self) -> HostCore:
        if self._core is None:
            raise RuntimeError("the agent was used before attach")
        return self._core

    @property
    def _live(self) -> AcpClient:
        if self._client is None:
            raise AgentError("The agent is not running.", hint="Send the message again.", code="agent_gone")
        return self._client

    # --- the port of the core

    def open(self) -> None:
        self._thread("handshake", self._open)

    def _open(self) -> None:
        try:
            ready = shake_hands(self._live, self._spec, self._guard)
            self._info, self._mode_option = ready.info, ready.opened.mode_option
        except HandshakeFailed as failed:
            # After the agent's own words, so that what it said on the way is not taken for something later.
            self._loop.post_agent(self._c.open_failed, failed.phase, failed.error)
            return
        except VibeAroundError as error:
            self._loop.post_agent(self._c.open_failed, "initialize", error)
            return
        self._loop.post_agent(self._c.opened, ready)

    def reload(self, session: str) -> None:
        self._thread("reload", self._reload, session)

    def _reload(self, session: str) -> None:
        ready: Ready | None = None
        error: VibeAroundError | None = None
        try:
            if self._info is None:
                raise AgentError("The agent has no session yet.", code="agent_failed")
            ready = reload_session(self._live, self._spec, self._info, self._guard, session)
            self._mode_option = ready.opened.mode_option
        except HandshakeFailed as failed:
            error = failed.error
        except VibeAroundError as failure:
            error = failure
        self._loop.post_agent(self._c.reloaded, ready, error)

    def begin_turn(self) -> None:
        if self._process is not None:
            self._process.mark()

    def prompt(self, turn: str, session: str, blocks: list[Any]) -> None:
        if self._info is not None:
            blocks = with_images(blocks, self._info.capabilities, Path(self._spec.data_dir) / "files")
        future = self._live.prompt(session, blocks)
        future.add_done_callback(lambda done: self._turn_over(turn, done))

    def _turn_over(self, turn: str, future: Future[Any]) -> None:
        error = future.exception()
        if error is None:
            result = future.result()
            self._loop.post_agent(self._c.turn_over, turn, result if isinstance(result, dict) else {}, None)
        elif isinstance(error, VibeAroundError):
            self._loop.post_agent(self._c.turn_over, turn, None, error)
        else:
            wrapped = AgentError(f"The turn failed: {error}.", hint="Send the message again.")
            self._loop.post_agent(self._c.turn_over, turn, None, wrapped)

    def cancel(self, session: str) -> list[Permission]:
        return self._client.cancel(session) if self._client is not None else []

    def answer(self, permission: Permission, option: str | None) -> bool:
        return self._client.answer(permission, option) if self._client is not None else False

    def set_mode(self, session: str, mode: str, then: Callable[[VibeAroundError | None], None]) -> None:
        limit = self._spec.limits.mode_s
        method, params = mode_request(session, mode, self._mode_option)
        future = self._live.request(method, params)
        watchdog = Timer(limit, future.cancel)
        watchdog.daemon = True
        watchdog.start()

        def over(done: Future[Any]) -> None:
            watchdog.cancel()
            error = AgentSilent(method, limit) if done.cancelled() else done.exception()
            if error is not None and not isinstance(error, VibeAroundError):
                error = AgentError(f"The mode was not changed: {error}.")
            self._loop.post(then, error)

        future.add_done_callback(over)

    def end_commands(self, turn: str) -> None:
        self._thread("end-commands", self._end_commands, turn)

    def _end_commands(self, turn: str) -> None:
        names = self._process.end_commands() if self._process is not None else []
        self._loop.post(self._c.commands_ended, turn, names)

    def stop(self) -> None:
        self._thread("stop", self._stop)

    def _stop(self) -> None:
        if self._process is None:
            self._loop.post_agent(self._c.stopped, None, "", [])
            return
        if self._client is not None:
            self._client.close()
        code, detached = self._process.stop(self._spec.limits.stop_s, end_detached=self._spec.end_detached)
        if self._client is not None:
            self._client.join(self._spec.limits.stop_s)  # what the agent said last comes before its end
        self._guard.at_end()
        self._loop.post_agent(self._c.stopped, code, self._process.stderr_tail(), detached)

    # --- what the client hears, on its reader thread

    def on_update(self, session: str, event: updates.Event) -> None:
        self._loop.post_agent(self._c.update, session, event)

    def on_permission(self, permission: Permission) -> None:
        self._loop.post_agent(self._c.permission, permission)

    def on_withdrawn(self, permission: Permission) -> None:
        self._loop.post_agent(self._c.withdrawn, permission)

    def on_noise(self, what: str) -> None:
        sys.stderr.write(f"host {self._spec.thread}: the agent: {what}\n")
        sys.stderr.flush()

    def on_gone(self, gone: AgentGone) -> None:
        self._loop.post_agent(self._c.gone, gone)

    def _note(self, text: str) -> None:
        if self._core is not None:
            self._loop.post_agent(self._core.noted, text)

    def _thread(self, name: str, target: Callable[..., None], *arguments: Any) -> None:
        Thread(target=target, args=arguments, name=name, daemon=True).start()
