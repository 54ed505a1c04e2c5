"""From a thread's request to what a host is told: the agent's command, environment, servers and limits."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from actors.host_spec import HostLimits, HostSpec
from agents_registry.integrate.entry import is_integrated
from agents_registry.launch import (
    HOST_VARIABLE,
    Identity,
    acp_command,
    acp_mcp_servers,
    clean_environment,
    install_advice,
    shim_command,
)
from agents_registry.loader import Registry
from agents_registry.model import AgentSpec, store_root
from transports.bus.vocabulary.children import SpawnHost
from transports.settings import Settings

SHIM = Path(__file__).resolve().parent.parent / "transports" / "mcp" / "shim.py"


def host_spec(
    request: SpawnHost, registry: Registry, settings: Settings, environ: Mapping[str, str], data_dir: Path, secret: str
) -> HostSpec:
    """Raises AgentError when the agent is not installed (with the install hint)."""
    spec = registry.get(request.agent)
    env = {**clean_environment(environ), **request.env}
    launch = acp_command(spec, env, data_dir)
    launch.write_files()
    host_id = f"{request.thread}/{request.instance}/{request.epoch}"
    identity = Identity(
        agent=spec.id, profile=request.profile, launch=host_id, thread=request.thread, workspace=request.workspace, host=host_id
    )
    env = {**env, **launch.env, **identity.variables(), "VIBEAROUND_DATA_DIR": str(data_dir)}
    env |= _join(request, spec, env, data_dir)
    if spec.acp is not None and spec.modes.ask_by == "env":
        env |= spec.acp.env  # what makes it ask is not up to the terminal's environment
    assert HOST_VARIABLE in env
    shim = shim_command(SHIM, data_dir)
    hosts, threads = settings.hosts, settings.threads
    methods = {"resume": ["resume", "load"], "load": ["load"], "load-guarded": ["load"]}[spec.sessions.resume]
    limits = HostLimits(
        initialize_s=hosts.handshake_s, session_s=max(hosts.handshake_s, threads.replay_s), cancel_s=threads.cancel_s,
        stop_s=hosts.stop_s, lease_s=hosts.lease_s, orphan_turn_s=hosts.orphan_turn_s,
    )
    return HostSpec(
        thread=request.thread, instance=request.instance, epoch=request.epoch, argv=list(launch.argv), cwd=request.cwd,
        data_dir=str(data_dir), secret=secret, env=env, agent=spec.id, session=request.session,
        start="resume" if request.start == "join" else request.start, joined=request.start == "join",
        authenticate=spec.acp.authenticate if spec.acp else "",
        methods=methods, expect_history=spec.sessions.unknown_id_silent, mode=_mode(spec, request.mode),
        mcp_servers=acp_mcp_servers(spec, shim, configured=is_integrated(spec, env, Path(request.cwd))), limits=limits,
        end_commands_on_cancel=spec.id == "codex", guard="gemini" if spec.sessions.resume == "load-guarded" else "",
        install_hint=install_advice(spec), python_path=[place for place in sys.path if place],
    )


def _join(request: SpawnHost, spec: AgentSpec, env: Mapping[str, str], data_dir: Path) -> dict[str, str]:
    root = store_root(spec, env) if request.start == "join" else None
    if root is None:
        return {}
    from actors.host_join import join_environment

    return join_environment(data_dir, request.thread, request.epoch, root)


def _mode(spec: AgentSpec, chosen: str) -> str:
    """The mode that asks, whatever was chosen before this start; the plan mode, which does less, stays."""
    return chosen if chosen and chosen == spec.modes.plan else spec.modes.ask


def process_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment of our own child processes: enough to start Python; the agent's stands in the spec."""
    keep = ("PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TMPDIR", "XDG_RUNTIME_DIR", "VIRTUAL_ENV", "PYTHONPATH", "TZ")
    return {name: value for name, value in environ.items() if name in keep or name.startswith("VIBEAROUND_")}
