"""`va launch`: start an agent in this terminal, known to the daemon; list this directory's sessions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from pathlib import Path

    from agents_registry.model import AgentSpec

_END_LIMIT_S = 40.0


def _named(ctx: click.Context, option: click.Parameter, value: str) -> str:
    """An empty id is a script's unset variable: a fresh session in its place would lose the context without a word."""
    if not value.strip() and ctx.get_parameter_source("resume") is not click.core.ParameterSource.DEFAULT:
        raise click.BadParameter("the session's id is empty.", ctx=ctx, param=option)
    return value


@click.command("launch")
@click.argument("agent")
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
@click.option("--workspace", metavar="DIR", default="", help="Directory to work in; the current one by default.")
@click.option("--resume", metavar="ID", default="", callback=_named, help="Go on with this session, in the directory it belongs to.")
@click.option("--dry-run", is_flag=True, help="Print the command instead of running it.")
@click.option("--agent", "only", metavar="AGENT", default="", help="With `sessions`: only this agent's.")
@click.option("--limit", type=click.IntRange(1, 1000), default=20, show_default=True, help="With `sessions`: at most so many.")
@click.option("--json", "as_json", is_flag=True, help="With `sessions` or --dry-run: one JSON document on stdout.")
def launch(
    agent: str, args: tuple[str, ...], workspace: str, resume: str, dry_run: bool, only: str, limit: int, as_json: bool
) -> None:
    """Start AGENT in this terminal; what follows `--` is passed on to it.

    `va launch sessions` lists the sessions of this directory, each with the command that resumes it.
    """
    if agent == "sessions":
        if args or resume or dry_run:
            raise click.UsageError("`va launch sessions` takes --workspace, --agent, --limit and --json only.")
        _sessions(workspace, only, limit, as_json=as_json)
        return
    if only:
        raise click.UsageError("--agent belongs to `va launch sessions`.")
    _launch(agent, list(args), workspace, resume, dry_run=dry_run, as_json=as_json)


def _launch(agent: str, args: list[str], workspace: str, resume: str, *, dry_run: bool, as_json: bool) -> None:
    import json
    import os
    import time

    from agents_registry.errors import AgentError, VibeAroundError
    from agents_registry.evidence import process
    from agents_registry.launch import (
        Identity,
        clean_environment,
        find_program,
        install_advice,
        resume_command,
        shell_line,
        terminal_command,
    )
    from agents_registry.launch_record import LaunchRecord, new_launch_id, write_launch
    from agents_registry.loader import load_registry
    from transports import paths
    from transports.cli.agents import search_environment

    data_dir = paths.data_dir()
    spec = load_registry(data_dir).get(agent)
    cwd = _directory(workspace)
    session = ""
    if resume:
        session, recorded = _resolved(spec, resume, os.environ, workspace)
        if recorded and workspace and os.path.realpath(recorded) != os.path.realpath(cwd):
            click.echo(f"The session belongs to {recorded}; it is resumed there.", err=True)
        cwd = recorded or cwd
        argv = resume_command(spec, session, cwd)
    else:
        argv = terminal_command(spec)
    argv += args
    identity = Identity(spec.id, launch=new_launch_id())
    if dry_run:
        if as_json:
            document = {"agent": spec.id, "argv": argv, "cwd": cwd, "session": session or None, "line": shell_line(argv, cwd)}
            click.echo(json.dumps(document, ensure_ascii=False))
        else:
            click.echo(shell_line(argv, cwd))
        return
    if spec.kind == "desktop":
        program: str | None = argv[0]
    else:
        program = find_program(spec, argv[0], os.environ, data_dir) or find_program(spec, argv[0], search_environment(os.environ), data_dir)
    if program is None:
        raise AgentError(f"{spec.name} is not installed: '{argv[0]}' was not found.", hint=install_advice(spec), code="agent_missing")
    if session:
        _end_recorded_host(data_dir, spec.id, session)
    paths.ensure_data_dir(data_dir)
    me = process(os.getpid())
    write_launch(data_dir, LaunchRecord(identity.launch, os.getpid(), me[0].start_time if me else 0, spec.id, cwd, session=session, at=time.time()))
    try:
        os.chdir(cwd)
        os.execvpe(program, argv, {**clean_environment(os.environ), **identity.variables(), "PWD": cwd})
    except OSError as error:
        raise VibeAroundError(f"{program} cannot be started: {error.strerror or error}.", hint=install_advice(spec), code="exec_failed") from error


def _directory(workspace: str) -> str:
    """The working directory as the user spelt it, absolute."""
    import os
    from pathlib import Path

    from agents_registry.errors import NotFoundError

    if not workspace:
        spelt = os.environ.get("PWD", "")
        here = str(Path.cwd())
        return spelt if spelt and os.path.isabs(spelt) and os.path.realpath(spelt) == here else here  # noqa: PTH117
    path = Path(workspace).expanduser().absolute()
    if not path.is_dir():
        raise NotFoundError(f"{path} is not a directory.", hint="Make it first, or name another one with --workspace.")
    return str(path)


def _resolved(spec: AgentSpec, wanted: str, environ: Any, workspace: str) -> tuple[str, str]:
    """(session id, its recorded directory). An agent whose store is not read is taken at the user's word."""
    from pathlib import Path

    from agents_registry.errors import NotFoundError
    from agents_registry.sessions import catalog

    if catalog.store(spec.id) is None:
        return wanted, ""
    info = catalog.resolve_one(environ, spec.id, wanted, cwd=_directory(workspace) if workspace or wanted == "latest" else None)
    if info.cwd and not Path(info.cwd).is_dir():
        raise NotFoundError(
            f"The directory of session {info.id}, {info.cwd}, is gone.",
            hint="Restore it (nothing is created in its place), or start a new conversation: va launch " + spec.id,
            code="cwd_gone",
        )
    return info.id, info.cwd


def _end_recorded_host(data_dir: Path, agent: str, session: str) -> None:
    """A session has one writer: its host ends before the terminal opens it, and its thread waits for this process."""
    import os
    from pathlib import Path

    from transports import paths

    run = paths.load_run(data_dir)
    if run is None or not paths.is_alive(run):
        _end_without_supervisor(data_dir, agent, session)
        return
    from transports.bus.syncclient import SyncClient
    from transports.bus.vocabulary.lists import EndSessionHost

    me = os.getpid()  # stays the same when this process becomes the agent
    with SyncClient(Path(run.socket("bus.sock"))) as client:
        answer = client.request("attacher", EndSessionHost(agent, session, me, paths.process_start_time(me) or 0), timeout=_END_LIMIT_S)
    if isinstance(getattr(answer, "data", None), dict) and answer.data.get("ended"):
        click.echo("The chat's process of this session was ended; the conversation goes on here.", err=True)


def _end_without_supervisor(data_dir: Path, agent: str, session: str) -> None:
    """A host that outlived its supervisor is ended by a process of the top floor, as `va down` does."""
    import os
    import subprocess

    from agents_registry.errors import BusyError
    from transports.cli.serve import module_argv

    if not (data_dir / "state" / "journal.db").exists():
        return
    argv = module_argv("actors.end_hosts", "--data-dir", str(data_dir), "--session", agent, session)
    try:
        ran = subprocess.run(argv, env=dict(os.environ), timeout=_END_LIMIT_S, check=False, capture_output=True, text=True)
    except subprocess.TimeoutExpired as error:
        raise BusyError("The chat's process of this session does not end.", hint="Run `va down`, then try again.") from error
    if ran.returncode:
        raise BusyError(f"The chat's process of this session could not be ended: {ran.stderr.strip()}", hint="Run `va down`, then try again.")
    if ran.stdout:
        click.echo("The chat's process of this session was ended; the conversation goes on here.", err=True)


def _sessions(workspace: str, only: str, limit: int, *, as_json: bool) -> None:
    import json
    import os
    import time

    from agents_registry.errors import UsageError
    from agents_registry.launch import resume_command, shell_line
    from agents_registry.loader import load_registry
    from agents_registry.sessions import catalog
    from transports import paths

    registry = load_registry(paths.data_dir())
    cwd = _directory(workspace)
    agent = registry.get(only).id if only else None
    known = set(registry.ids())
    found = [info for info in catalog.list_sessions(os.environ, agent=agent, cwd=cwd, limit=limit) if info.agent in known]
    listed = []
    for info in found:
        try:
            argv = resume_command(registry.get(info.agent), info.id, info.cwd or cwd)
        except UsageError:
            argv = []
        listed.append(
            {
                "agent": info.agent,
                "id": info.id,
                "cwd": info.cwd,
                "title": info.title or info.first_prompt,
                "updated_at": info.updated_at,
                "live": info.live,
                "command": argv,
                "line": shell_line(argv, info.cwd or cwd) if argv else "",
            }
        )
    if as_json:
        click.echo(json.dumps(listed, ensure_ascii=False))
        return
    if not listed:
        click.echo(f"No sessions in {cwd}.")
        return
    now = time.time()
    for entry, info in zip(listed, found, strict=True):
        title = " ".join((info.title or info.first_prompt or "(no title)").split())
        click.echo(f"{info.agent}  {_ago(now - info.updated_at)}{'  open now' if info.live else ''}  {title[:80]}")
        click.echo(f"  {entry['line'] or info.id + '  (no command resumes it)'}")


def _ago(seconds: float) -> str:
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{int(seconds // size)} {unit} ago"
    return "just now"
