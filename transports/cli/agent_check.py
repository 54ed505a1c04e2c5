"""The handshake of `va agents check`: start one agent, ask what it can, end it again, everything with a limit."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from agents_registry.errors import AgentError
from agents_registry.model import AgentSpec
from transports.acp.errors import AgentRefused
from transports.cli.agent_once import running

_CLAIMS = ("load", "resume", "fork", "list", "close", "delete")


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
    began = clock()
    with running(spec, environ, data_dir, cwd) as (launch, client):
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


def _mode_problems(spec: AgentSpec, modes: list[str]) -> list[str]:
    problems = []
    for what, mode in (("that asks", spec.modes.ask), ("for planning", spec.modes.plan)):
        if mode and modes and mode not in modes:
            problems.append(f"the mode {what}, '{mode}', is not among its modes; set [{spec.id}.modes] in agents.toml")
    if not spec.modes.can_ask:
        problems.append("it never asks before it acts")
    return problems
