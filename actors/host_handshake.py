"""From a started agent process to an open session, each step with its limit, each failure with its phase.

Blocking: runs on a thread of its own in the host. A session that cannot be resumed is told, never replaced.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from actors.host_spec import HostSpec
from agents_registry.errors import AgentError, VibeAroundError
from transports.acp.errors import AUTH_REQUIRED, METHOD_NOT_FOUND, AgentGone, AgentRefused, AgentSilent
from transports.acp.sessions import AgentInfo, Opened

T = TypeVar("T")
QUIET_S = 0.06
"""After session/load: no further history for so long means that it is over (some send its end after the answer)."""
QUIET_LIMIT_S = 5.0


class Client(Protocol):
    """What the handshake needs of `AcpClient`."""

    def initialize(self, limit: float) -> AgentInfo: ...
    def authenticate(self, method: str, limit: float) -> None: ...
    def new(self, cwd: str, mcp_servers: list[Any], limit: float) -> Opened: ...
    def load(self, session: str, cwd: str, mcp_servers: list[Any], limit: float) -> Opened: ...
    def resume(self, session: str, cwd: str, mcp_servers: list[Any], limit: float) -> Opened: ...
    def fork(self, session: str, cwd: str, mcp_servers: list[Any], limit: float) -> Opened: ...
    def settle(self, quiet_s: float, limit_s: float, clock: Callable[[], float]) -> None: ...
    def hear(self, session: str) -> None: ...
    def set_mode(self, session: str, mode: str, limit: float, *, option: str = "") -> None: ...
    def close_session(self, session: str, limit: float) -> None: ...


class Guard(Protocol):
    """Keeps a session's file safe while an agent loads it (see host_guards)."""

    def before_load(self) -> None: ...
    def after_load(self) -> None: ...


class NoGuard:
    """For agents that do no harm."""

    def before_load(self) -> None:
        """Nothing to do."""

    def after_load(self) -> None:
        """Nothing to do."""


class HandshakeFailed(Exception):
    """`phase`: initialize, authenticate, new, resume, load, fork or mode."""

    def __init__(self, phase: str, error: VibeAroundError) -> None:
        super().__init__(str(error))
        self.phase, self.error = phase, error


@dataclass(frozen=True, slots=True)
class Ready:
    """An open session of an agent."""

    info: AgentInfo
    opened: Opened
    start: str
    """new, resumed or forked."""
    mode: str


def shake_hands(client: Client, spec: HostSpec, guard: Guard, *, clock: Callable[[], float] = time.monotonic) -> Ready:
    """initialize, authenticate where the spec says so, open the session, set its mode. Raises HandshakeFailed."""
    info = _step("initialize", lambda: client.initialize(spec.limits.initialize_s), spec)
    if spec.authenticate:
        _step("authenticate", lambda: client.authenticate(spec.authenticate, spec.limits.session_s), spec)
    return open_session(client, spec, info, guard, clock=clock)


def open_session(
    client: Client, spec: HostSpec, info: AgentInfo, guard: Guard, *, session: str = "", clock: Callable[[], float] = time.monotonic
) -> Ready:
    """The session part alone; `session` overrides what the spec starts with (a reload)."""
    servers, limit = spec.mcp_servers, spec.limits.session_s
    wanted = session or spec.session
    if session or spec.start == "resume":
        opened = _resume(client, spec, info, guard, wanted, clock)
        start = "resumed"
    elif spec.start == "fork":
        opened = _step("fork", lambda: client.fork(wanted, spec.cwd, servers, limit), spec, wanted)
        start = "forked"
    else:
        opened = _step("new", lambda: client.new(spec.cwd, servers, limit), spec)
        start = "new"
    mode = _set_mode(client, spec, opened)
    if opened.start in ("loaded", "forked"):
        client.settle(QUIET_S, QUIET_LIMIT_S, clock)
    if spec.joined:
        client.hear(opened.session)
    return Ready(info, opened, start, mode)


def reload_session(client: Client, spec: HostSpec, info: AgentInfo, guard: Guard, session: str) -> Ready:
    """Open the session again, because somebody else wrote to it. Raises HandshakeFailed; then the old state stands."""
    if info.can("close"):
        try:
            client.close_session(session, spec.limits.mode_s)
        except AgentRefused:
            pass  # it is opened again in any case; an agent that cannot close reads the file anew on load
    return open_session(client, spec, info, guard, session=session)


def _resume(
    client: Client, spec: HostSpec, info: AgentInfo, guard: Guard, session: str, clock: Callable[[], float]
) -> Opened:
    """By the methods of the spec in their order. The next one is tried only when the agent does not have the first
    (-32601): any other refusal is about the session, and is told."""
    methods = [m for m in spec.methods if info.can(m)] or ["load"]
    for number, method in enumerate(methods):
        try:
            if method == "resume":
                return _step(
                    "resume", lambda: client.resume(session, spec.cwd, spec.mcp_servers, spec.limits.session_s), spec, session
                )
            return _load(client, spec, guard, session, clock)
        except HandshakeFailed as failed:
            lied = isinstance(failed.error, AgentError) and failed.error.code == "not_offered"
            if not lied or number == len(methods) - 1:
                raise
    raise AssertionError("unreachable: the last method returns or raises")


def _load(client: Client, spec: HostSpec, guard: Guard, session: str, clock: Callable[[], float]) -> Opened:
    try:
        guard.before_load()
        try:
            opened = _step(
                "load", lambda: client.load(session, spec.cwd, spec.mcp_servers, spec.limits.session_s), spec, session
            )
        finally:
            guard.after_load()
    except VibeAroundError as error:
        raise HandshakeFailed("load", error) from error
    if spec.expect_history and not opened.replayed:
        client.settle(QUIET_S * 4, QUIET_LIMIT_S, clock)
        if not getattr(client, "replayed", 1):
            raise HandshakeFailed("load", _empty(session))
    return opened


def _empty(session: str) -> AgentError:
    return AgentError(
        f"The agent opened the session {session} without its history, so it does not know that session.",
        hint="Try again, or start a fresh session here; the old one is kept.",
        code="resume_empty",
    )


def _set_mode(client: Client, spec: HostSpec, opened: Opened) -> str:
    if not spec.mode:
        return opened.mode
    offered = [mode for mode, _ in opened.modes]
    if offered and spec.mode not in offered:
        error = AgentError(
            f"The agent has no mode {spec.mode!r}, in which it would ask before it acts (it has {', '.join(offered)}).",
            hint="Its version may be too new: set `modes.ask` for it in agents.toml.",
            code="mode_unknown",
        )
        raise HandshakeFailed("mode", error)
    _step(
        "mode",
        lambda: client.set_mode(opened.session, spec.mode, spec.limits.mode_s, option=opened.mode_option),
        spec,
        opened.session,
    )
    return spec.mode


def _step(phase: str, call: Callable[[], T], spec: HostSpec, session: str = "") -> T:
    try:
        return call()
    except AgentRefused as refused:
        raise HandshakeFailed(phase, _explained(phase, refused, spec, session)) from refused
    except AgentGone as gone:
        hint = f"{gone.hint} {spec.install_hint}".strip()
        raise HandshakeFailed(phase, AgentError(f"{gone.message[:-1]} during {phase}.", hint=hint, code="agent_gone")) from gone
    except AgentSilent as silent:
        raise HandshakeFailed(phase, silent) from silent
    except AgentError as error:
        raise HandshakeFailed(phase, error) from error


def _explained(phase: str, refused: AgentRefused, spec: HostSpec, session: str) -> AgentError:
    text = refused.rpc_message
    if refused.rpc_code == METHOD_NOT_FOUND:
        return AgentError(refused.message, hint="The agent claims what it cannot do; try another way.", code="not_offered")
    if refused.rpc_code == AUTH_REQUIRED and "auth" in text.lower():
        return AgentError(
            f"The agent wants a login first: {text}", hint="Start it once in a terminal and log in there.", code="login_needed"
        )
    if phase in ("resume", "load", "fork"):
        return AgentError(
            f"The agent could not {phase} the session {session}: {text} ({refused.rpc_code}).",
            hint="Try again, or start a fresh session; the old one is kept.",
            code="resume_refused",
        )
    return AgentError(refused.message, hint=spec.install_hint, code="agent_refused")
