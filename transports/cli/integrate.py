"""`va integrate`: enter VibeAround in the agents' own configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from agents_registry.loader import Registry
    from agents_registry.model import AgentSpec


@click.command("integrate")
@click.argument("agent", nargs=-1)
@click.option("--project", metavar="DIR", default="", help="Into this project's files instead of your own.")
@click.option("--remove", is_flag=True, help="Take it out again.")
@click.option("--print", "only_print", is_flag=True, help="Show what would be entered where; change nothing.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def integrate(agent: tuple[str, ...], project: str, remove: bool, only_print: bool, as_json: bool) -> None:
    """Give agents the tool and the skill by which they hand a conversation over.

    Without AGENT: all that are installed. Everything else in their files stays as it is; no secret is written.
    """
    import json
    import os
    from pathlib import Path

    from agents_registry.errors import UsageError, VibeAroundError
    from agents_registry.integrate import apply
    from agents_registry.loader import load_registry
    from transports import paths
    from transports.cli.agents import search_environment

    if remove and only_print:
        raise UsageError("--print and --remove exclude each other.", hint="--print alone shows what stands where.")
    data_dir = paths.data_dir()
    registry = load_registry(data_dir)
    directory = Path(project).expanduser().absolute() if project else None
    environ = search_environment(os.environ) if not agent and not only_print else dict(os.environ)
    chosen = _chosen(registry, agent, environ, data_dir, everything=only_print or remove)
    command = _command(data_dir, os.environ)
    if only_print:
        _print(chosen, command, environ, directory, as_json=as_json)
        return
    changes: list[apply.Change] = []
    failed: VibeAroundError | None = None
    for spec in chosen:
        try:
            if remove:
                changes += apply.remove(spec, environ, project=directory, data_dir=data_dir)
            else:
                changes += apply.integrate(spec, command, environ, project=directory, data_dir=data_dir)
        except VibeAroundError as error:
            if len(chosen) == 1:
                raise
            # The other agents are served all the same; the first failure decides the exit code.
            click.echo(f"{spec.id}: {error}", err=True)
            failed = failed or error
    if not agent:
        changes = [change for change in changes if change.done != "absent"]
    if as_json:
        listed = [{"agent": change.agent, "what": change.what, "file": str(change.file), "done": change.done} for change in changes]
        click.echo(json.dumps(listed, ensure_ascii=False))
    else:
        for change in changes:
            click.echo(f"{change.agent:<10} {change.what:<6} {change.done:<10} {change.file}")
        if remove and not changes:
            click.echo("Nothing of VibeAround was found in the agents' files.")
        if any(change.done in ("added", "changed") for change in changes):
            click.echo('Restart agents that are open. Then say "hand over" in one, or type /vibearound handover.')
    if failed is not None:
        raise failed


def _chosen(registry: Registry, names: tuple[str, ...], environ: Mapping[str, str], data_dir: Path, *, everything: bool) -> list[AgentSpec]:
    from agents_registry.detect import detect_all
    from agents_registry.errors import NotFoundError

    if names:
        return list({spec.id: spec for spec in (registry.get(name) for name in names)}.values())
    able = [spec for spec in registry.here() if spec.mcp is not None or spec.skills is not None]
    if everything:
        return able
    installed = [one.spec for one in detect_all(able, environ, data_dir, versions=False) if one.installed]
    if not installed:
        raise NotFoundError(
            "No coding agent was found that could be integrated.",
            hint="Name one to enter it all the same (va integrate claude), or see va agents list.",
        )
    return installed


def _command(data_dir: Path, environ: Mapping[str, str]) -> list[str]:
    """The shim's command; agents strip VIBEAROUND_DATA_DIR, so a data directory that is not the default is named."""
    from agents_registry.launch import shim_command
    from transports import paths
    from transports.cli.agents import shim_file

    default = paths.data_dir({name: value for name, value in environ.items() if name != "VIBEAROUND_DATA_DIR"})
    return shim_command(shim_file(), None if data_dir == default else data_dir)


def _print(specs: list[AgentSpec], command: list[str], environ: Mapping[str, str], project: Path | None, *, as_json: bool) -> None:
    import json

    from agents_registry.errors import UsageError
    from agents_registry.integrate.entry import mcp_file, with_entry
    from agents_registry.integrate.skill import skill_file

    listed = []
    for spec in specs:
        config, skill = mcp_file(spec, environ, project), skill_file(spec, environ, project)
        if config is None and skill is None:
            raise UsageError(f"{spec.name} has no place for a tool server or a skill.", hint="See va agents list.", code="not_integrable")
        listed.append({"agent": spec.id, "file": str(config or skill), "command": command if config is not None else []})
        if as_json:
            continue
        click.echo(f"# {spec.name}")
        if config is not None and spec.mcp is not None:
            click.echo(f"# {config}")
            click.echo(with_entry(spec.mcp, "", command, config).rstrip())
        if skill is not None:
            click.echo(f"# skill: {skill}")
        click.echo("")
    if as_json:
        click.echo(json.dumps(listed, ensure_ascii=False))
