"""`va agents`: which coding agents are here, install their adapters, try the handshake."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from agents_registry.detect import Detection


def complete_agent(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Agent ids for the shell's completion; none when the user's registry file is damaged."""
    from agents_registry.errors import VibeAroundError
    from agents_registry.loader import load_registry
    from transports import paths

    try:
        return [agent_id for agent_id in load_registry(paths.data_dir()).ids() if agent_id.startswith(incomplete)]
    except VibeAroundError:
        return []


@click.group("agents")
def agents() -> None:
    """Look at the coding agents on this machine, and install what hosting them needs."""


@agents.command("list")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def list_agents(as_json: bool) -> None:
    """Print all known agents: installed, version, usable for chat, terminal and handover; if not, why and what helps."""
    import json
    import os

    from agents_registry.detect import detect_all
    from agents_registry.loader import load_registry
    from transports import paths

    data_dir = paths.data_dir()
    registry = load_registry(data_dir)
    found = detect_all(registry.all(), search_environment(os.environ), data_dir)
    if as_json:
        click.echo(json.dumps([one.as_json() for one in found], ensure_ascii=False))
        return
    rows: list[tuple[str, ...]] = [("AGENT", "VERSION", "CHAT", "TERMINAL", "HANDOVER", "NAME")]
    for one in found:
        version = (one.version or "yes") if one.installed else "not installed"
        marks = ["yes" if usable.ok else "no" for usable in (one.acp, one.terminal, one.handover)]
        rows.append((one.spec.id, version, *marks, one.spec.name))
    widths = [max(len(row[column]) for row in rows) for column in range(5)]
    for row in rows:
        click.echo("  ".join([cell.ljust(width) for cell, width in zip(row, widths, strict=False)] + [row[5]]))
    lines = [line for one in found for line in _advice(one)]
    if lines:
        click.echo("")
        for line in lines:
            click.echo(line)


def _advice(one: Detection) -> list[str]:
    """What does not work, why, and what helps; each reason once."""
    told: dict[tuple[str, str], list[str]] = {}
    for what, usable in (("chat", one.acp), ("terminal", one.terminal), ("handover", one.handover)):
        if not usable.ok:
            told.setdefault((usable.why, usable.fix), []).append(what)
    if not one.installed:  # one line is enough for what is not there at all
        told = {(one.terminal.why, one.terminal.fix): ["chat", "terminal", "handover"]}
    lines = [f"{one.spec.id}: no {', '.join(words)}: {why}.{' ' + fix if fix else ''}" for (why, fix), words in told.items()]
    return lines + [f"{one.spec.id}: {note}." for note in one.notes]


@agents.command("install")
@click.argument("agent", shell_complete=complete_agent)
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout, when it is done.")
def install_agent(agent: str, as_json: bool) -> None:
    """Install the pinned packages of AGENT into the data directory (npm; nothing global is touched)."""
    import json
    import os

    from agents_registry.install import install
    from agents_registry.loader import load_registry
    from transports import paths

    data_dir = paths.data_dir()
    spec = load_registry(data_dir).get(agent)
    paths.ensure_data_dir(data_dir)
    programs = install(spec, data_dir, search_environment(os.environ), lambda line: click.echo(line, err=True))
    if as_json:
        document = {"agent": spec.id, "packages": [package.pinned for package in spec.npm], "programs": [str(path) for path in programs]}
        click.echo(json.dumps(document, ensure_ascii=False))
    elif spec.mcp is not None or spec.skills is not None:
        click.echo(f"Next: va integrate {spec.id}")


@agents.command("check")
@click.argument("agent", shell_complete=complete_agent)
@click.option("--session", is_flag=True, help="Also open a new, empty session in the current directory.")
@click.option("--limit", "limit_s", type=click.FloatRange(1, 600), default=60.0, show_default=True, help="Seconds each answer may take.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def check_agent(agent: str, session: bool, limit_s: float, as_json: bool) -> None:
    """Start AGENT as a host would, shake hands, and report what it can do and how long it took."""
    import json
    import os
    from pathlib import Path

    from agents_registry.loader import load_registry
    from transports import paths
    from transports.cli.agent_check import check

    data_dir = paths.data_dir()
    spec = load_registry(data_dir).get(agent)
    environ = search_environment(os.environ)
    result = check(spec, environ, data_dir, cwd=str(Path.cwd()) if session else None, limit_s=limit_s)
    if as_json:
        click.echo(json.dumps(result, ensure_ascii=False))
        return
    _show_check(spec.name, result)


def _show_check(name: str, result: Mapping[str, Any]) -> None:
    claims = ", ".join(word for word, can in result["can"].items() if can) or "nothing beyond new sessions"
    click.echo(f"{name}: {result['name'] or '(gives no name)'} {result['version']}".rstrip())
    click.echo(f"  command       {' '.join(result['command'])}")
    click.echo(f"  handshake     {result['initialize_s']:.2f} s after the start, protocol {result['protocol']}")
    click.echo(f"  claims        {claims}")
    click.echo(f"  resumed by    {result['resume_by']}")
    if result["auth_methods"]:
        click.echo(f"  login ways    {', '.join(result['auth_methods'])}")
    opened = result.get("session")
    if opened:
        click.echo(f"  session       {opened['id']} after {opened['ready_s']:.2f} s, mode {opened['mode'] or 'not told'}")
        click.echo(f"  modes         {', '.join(opened['modes']) or 'none'}")
        for problem in opened["problems"]:
            click.echo(f"  problem       {problem}")


def search_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment that agents are looked for in: this one, with the login shell's PATH after its own."""
    from agents_registry.login_env import joined_path, login_environment

    told = login_environment(environ).variables
    return {**environ, "PATH": joined_path(environ.get("PATH", ""), told.get("PATH", ""))}


def shim_file() -> Path:
    """The MCP shim that agents are told to start."""
    from pathlib import Path

    from transports import paths

    return Path(paths.__file__).resolve().parent / "mcp" / "shim.py"
