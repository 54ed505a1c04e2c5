"""`va handover`: a code for a session of an agent, from the command line."""

from __future__ import annotations

import os

import click

from transports.cli.output import emit, emit_json, json_option


@click.command("handover")
@click.option("--agent", required=True, help="The agent's id, for example claude or codex.")
@click.option("--session", default="", metavar="ID", help="The session's id in the agent's own store; without it, the caller's own session is looked for.")
@click.option("--cwd", "directory", required=True, metavar="DIR", help="The directory of the session.")
@click.option("--profile", default="direct", show_default=True, help="The profile to go on with.")
@json_option
def handover(agent: str, session: str, directory: str, profile: str, as_json: bool) -> None:
    """Issue a code for a session, to be picked up in a chat (/pickup CODE) or a terminal (va pickup CODE)."""
    from transports.bus.vocabulary.handover import CodeIssued, PrepareHandover
    from transports.cli.connect import ask

    cwd = os.path.abspath(os.path.expanduser(directory))  # noqa: PTH100,PTH111 - the store's spelling decides, so not resolved
    issued: CodeIssued = ask("attacher", PrepareHandover(agent, session, cwd, profile, env=_store_places(agent), issuer=_issuer()))
    command = f"/pickup {issued.code}"
    if as_json:
        emit_json({"code": issued.code, "command": command, "expires_in_s": issued.expires_in_s, "note": issued.note})
        return
    emit(command)
    emit(f"\nType it in a chat within {issued.expires_in_s:.0f} seconds, or in another terminal: va pickup {issued.code}")
    if issued.note:
        emit(issued.note)


def _issuer() -> dict[str, int]:
    """The process that called us: an agent that runs this as a tool is in the midst of a turn, which a pickup awaits."""
    from transports.paths import process_start_time

    pid = os.getppid()
    return {"pid": pid, "start_time": process_start_time(pid) or 0}


def _store_places(agent: str) -> dict[str, str]:
    """The non-secret variables that place the agent's store, as seen here."""
    from agents_registry.launch import store_env
    from agents_registry.loader import load_registry
    from transports import paths

    return store_env(load_registry(paths.data_dir()).get(agent), os.environ)
