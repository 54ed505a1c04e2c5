"""The handshake of `va agents check`: start one agent, ask what it can, end it again, everything with a limit."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Thread
from typing import IO, Any, BinaryIO, cast

from agents_registry.errors import AgentError
from agents_registry.launch import acp_command, clean_environment, install_advice
from agents_registry.model import AgentSpec
from transports.acp.client import AcpClient
from transports.acp.errors import AgentGone, AgentRefused
from transports.acp.permission import Permission
from transports.acp.updates import Event

_CLAIMS = ("load", "resume", "fork", "list", "close", "delete")
_STDERR_KEPT = 16 * 1024
_END_S = 3.0


class _Deaf:
    """A listener for a handshake: there is no turn, so nothing has to be heard."""

    def __init__(self) -> None:
        self.client: AcpClient | None = None

    def on_update(self, session: str, event: Event) -> None:
        pass

    def on_permission(self, permission: Permission) -> None:
        if self.client is not None:
            self.client.answer(permission, None)

    def on_withdrawn(self, permission: Permission) -> None:
        pass

    def on_noise(self, what: str) -> None:
        pass

    def on_gone(self, gone: AgentGone) -> None:
        pass


class _Tail:
    """Keeps the end of the agent's error output; reading it on keeps the agent from blocking."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._kept = b""
        self._thread = Thread(target=self._read, name="agent-stderr", daemon=True)
        self._thread.start()

    def _read(self) -> None:
        with contextlib.suppress(ValueError, OSError):
            while data := os.read(self._stream.fileno(), 65536):
                self._kept = (self._kept + data)[-_STDERR_KEPT:]

    def text(self) -> str:
        self._thread.join(0.5)
        return self._kept.decode("utf-8", "replace")


def check(
    spec: AgentSpec,
    environ: Mapping[str, str],
    data_dir: Path,
    *,
    cwd: str | None,
    limit_s: float,
    clock: Callable[[], float] = time.monotonic,
) -> dict[str, Any]:
    """Start the agent, initialize, with `cwd` also open a session there. Times are seconds since the start.

    Raises:
        AgentError: it cannot be started, does not answer within `limit_s`, or refuses; the hint says what to do.
    """
    launch = acp_command(spec, environ, data_dir)
    try:
        launch.write_files()
        began = clock()
        child = subprocess.Popen(
            launch.argv,
            env={**clean_environment(environ), **launch.env},
            cwd=cwd,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        raise AgentError(f"{spec.name} cannot be started: {error.strerror or error}.", hint=install_advice(spec)) from error
    assert child.stdin is not None
    assert child.stdout is not None
    assert child.stderr is not None
    tail = _Tail(child.stderr)

    def exit_code(limit: float) -> int | None:
        try:
            return child.wait(timeout=limit)
        except subprocess.TimeoutExpired:
            return None

    listener = _Deaf()
    client = AcpClient(cast(BinaryIO, child.stdin), cast(BinaryIO, child.stdout), listener, exit_code=exit_code, stderr_tail=tail.text)
    listener.client = client
    try:
        client.start()
        info = client.initialize(limit_s)
        result: dict[str, Any] = {
            "agent": spec.id,
            "command": list(launch.argv),
            "name": info.name,
            "version": info.version,
            "protocol": info.protocol,
            "initialize_s": round(clock() - began, 3),
            "can": {what: info.can(what) for what in _CLAIMS},
            "capabilities": info.capabilities,
            "auth_methods": list(info.auth_methods),
            "resume_by": spec.sessions.resume,
        }
        if cwd is not None:
            try:
                if spec.acp is not None and spec.acp.authenticate:
                    client.authenticate(spec.acp.authenticate, limit_s)
                opened = client.new(cwd, [], limit_s)
            except AgentRefused as error:
                hint = f"It may want a login: start {spec.name} in a terminal once." if info.auth_methods else "Start it in a terminal to see why."
                raise AgentError(error.message, hint=hint, code=error.code) from error
            modes = [mode for mode, _name in opened.modes]
            result["session"] = {
                "id": opened.session,
                "ready_s": round(clock() - began, 3),
                "mode": opened.mode,
                "modes": modes,
                "model": opened.model,
                "problems": _mode_problems(spec, modes),
            }
        return result
    finally:
        client.close()
        _end(child)
        client.join(1.0)


def _mode_problems(spec: AgentSpec, modes: list[str]) -> list[str]:
    problems = []
    for what, mode in (("that asks", spec.modes.ask), ("for planning", spec.modes.plan)):
        if mode and modes and mode not in modes:
            problems.append(f"the mode {what}, '{mode}', is not among its modes; set [{spec.id}.modes] in agents.toml")
    if not spec.modes.can_ask:
        problems.append("it never asks before it acts")
    return problems


def _end(child: subprocess.Popen[bytes]) -> None:
    """Its input is closed already; then TERM and KILL to its group, each with a limit."""
    for sign in (None, signal.SIGTERM, signal.SIGKILL):
        if sign is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, sign)
        try:
            child.wait(timeout=_END_S)
        except subprocess.TimeoutExpired:
            continue
        break
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)  # what the agent started and left behind
