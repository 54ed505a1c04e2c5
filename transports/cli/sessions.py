"""`va sessions`: the agents' own sessions, listed, looked into, exported, searched. Works without a supervisor."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from transports.cli.output import clean, emit, emit_json, json_option, remark, table, when, write

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agents_registry.sessions.port import SessionInfo


@click.group()
def sessions() -> None:
    """List, read and search the sessions of the coding agents."""


@sessions.command("list")
@click.option("--agent", default="", help="Only this agent's.")
@click.option("--cwd", default="", help="Only sessions of this directory.")
@click.option("--limit", default=20, show_default=True, type=click.IntRange(1, 100_000), help="At most so many.")
@click.option("--subagents", is_flag=True, help="Transcripts of sub-agents too.")
@json_option
def list_command(agent: str, cwd: str, limit: int, subagents: bool, as_json: bool) -> None:
    """Sessions of all agents, newest first; those that are open in a terminal are marked."""
    found = _listed(_agent_id(agent) if agent else None, _directory(cwd), limit, subagents)
    if as_json:
        emit_json([_row(info) for info in found])
        return
    if not found:
        place = f" in {cwd}" if cwd else ""
        remark(f"No sessions{place}.")
        return
    rows = [
        (
            info.agent,
            info.id,
            when(info.updated_at),
            "live" if info.live else "",
            info.cwd or "directory unknown",
            " ".join(clean(info.title or info.first_prompt).split())[:60],
        )
        for info in found
    ]
    emit(table(rows, ("AGENT", "ID", "LAST USED", "", "DIRECTORY", "TITLE")))


@sessions.command()
@click.argument("path", type=click.Path(path_type=None))
@click.option("--agent", default="", help="Read it as this agent's; otherwise the content tells.")
@json_option
def inspect(path: str, agent: str, as_json: bool) -> None:
    """Count what is in one session file."""
    from dataclasses import asdict
    from pathlib import Path

    from agents_registry.sessions import catalog

    found = catalog.inspect(Path(path).expanduser(), _agent_id(agent) if agent else "")
    document = asdict(found)
    document["skipped"] = [{"line": one.line, "why": one.why} for one in found.skipped]
    for key in ("id", "cwd"):
        document[key] = document[key].encode("utf-8", "replace").decode()
    if as_json:
        emit_json(document)
        return
    skipped = document.pop("skipped")
    emit(table([(name.replace("_", " "), clean(str(value))) for name, value in document.items()]))
    for one in skipped[:20]:
        remark(f"line {one['line']}: {one['why']}")
    if len(skipped) > 20:
        remark(f"… and {len(skipped) - 20} more.")


@sessions.command()
@click.argument("session")
@click.option("--agent", default="", help="Whose session it is; needed when several agents have the id.")
@click.option("--cwd", default="", help="Its directory, where an id or `latest` is not enough.")
@click.option("--format", "form", type=click.Choice(["json", "md", "html"]), default="md", show_default=True)
@click.option("--out", default="", help="Write to this file instead of stdout (refused when it exists).")
def export(session: str, agent: str, cwd: str, form: str, out: str) -> None:
    """Print a whole session (an id, a prefix of one, a title, `latest`, or a file) in one of three forms."""
    from agents_registry.sessions import catalog

    info = _chosen(session, _agent_id(agent) if agent else "", _directory(cwd))
    conversation = catalog.need(info.agent).read(info)
    if form == "json":
        from agents_registry.sessions.schema import to_json

        text = to_json(conversation) + "\n"
    elif form == "html":
        from agents_registry.sessions.html import to_html

        text = to_html(conversation)
    else:
        from agents_registry.sessions.markdown import to_markdown

        text = clean(to_markdown(conversation))
    if conversation.skipped_count:
        lines = ", ".join(str(one.line) for one in conversation.skipped[:5])
        remark(f"{conversation.skipped_count} damaged records were left out (lines {lines}).")
    if out:
        _save(out, text)
    else:
        write(text.encode("utf-8", "replace").decode())


@sessions.command()
@click.argument("words", nargs=-1, required=True)
@click.option("--agent", default="", help="Only this agent's.")
@click.option("--cwd", default="", help="Only sessions of this directory.")
@click.option("--since", default="", help="Only changed on or after this day (YYYY-MM-DD).")
@click.option("--until", default="", help="Only changed on or before this day (YYYY-MM-DD).")
@click.option("--limit", default=20, show_default=True, type=click.IntRange(1, 1000))
@json_option
def search(words: Sequence[str], agent: str, cwd: str, since: str, until: str, limit: int, as_json: bool) -> None:
    """Find sessions by what was said in them."""
    import os

    from agents_registry.sessions.index import SessionIndex
    from agents_registry.sessions.search import Filters, day, find
    from transports import paths

    chosen = _agent_id(agent) if agent else None
    filters = Filters(chosen, _directory(cwd), day(since), day(until, end=True))
    with SessionIndex(paths.ensure_data_dir(paths.data_dir()) / "sessions.db") as index:
        report = index.refresh(os.environ, agent=chosen)
        if report.failed and not as_json:
            remark(f"{report.failed} sessions could not be read and are not searched.")
        hits = find(index, " ".join(words), filters, limit=limit)
    if as_json:
        emit_json(
            [
                {
                    "agent": hit.agent,
                    "id": hit.id,
                    "cwd": hit.cwd,
                    "title": hit.title,
                    "updated_at": hit.updated_at,
                    "snippet": hit.snippet,
                    "path": str(hit.path),
                }
                for hit in hits
            ]
        )
        return
    if not hits:
        remark("Nothing found.")
        return
    for hit in hits:
        emit(f"{hit.agent}  {hit.id}  {when(hit.updated_at)}  {clean(hit.cwd)}")
        emit(f"    {' '.join(clean(hit.title).split())}")
        emit(f"    {' '.join(clean(hit.snippet).split())}")


def _listed(agent: str | None, cwd: str | None, limit: int, subagents: bool) -> list[SessionInfo]:
    """What did not change since the last time comes from the index; without a usable one all comes from the stores."""
    import os
    import sqlite3

    from agents_registry.errors import BusyError, UsageError
    from agents_registry.sessions import catalog
    from agents_registry.sessions.index import SessionIndex
    from transports import paths

    data = paths.data_dir()
    if not subagents and data.is_dir():
        try:
            with SessionIndex(data / "sessions.db") as index:
                return index.listing(os.environ, agent=agent, cwd=cwd, limit=limit)
        except (UsageError, BusyError, sqlite3.Error):
            pass  # the list is worth more than its cache; `va sessions search` and `va doctor` say what is wrong with it
    return catalog.list_sessions(os.environ, agent=agent, cwd=cwd, limit=limit, subagents=subagents)


def _row(info: SessionInfo) -> dict[str, object]:
    return {
        "agent": info.agent,
        "id": info.id,
        "cwd": info.cwd,
        "title": info.title or info.first_prompt[:120],
        "updated_at": info.updated_at,
        "live": info.live,
    }


def _agent_id(name: str) -> str:
    """The id behind a name or alias. An agent that is read but not in the registry keeps its own id."""
    from agents_registry.sessions import catalog

    if name in catalog.AGENTS:
        return name
    from agents_registry.loader import load_registry
    from transports import paths

    return load_registry(paths.data_dir()).get(name).id


def _directory(cwd: str) -> str | None:
    """Absolute, in the spelling given; it need not exist (a session's directory may be gone)."""
    if not cwd:
        return None
    from pathlib import Path

    return str(Path(cwd).expanduser().absolute())


def _chosen(session: str, agent: str, cwd: str | None) -> SessionInfo:
    import os
    from pathlib import Path

    from agents_registry.errors import NotFoundError, UsageError
    from agents_registry.sessions import catalog

    path = Path(session).expanduser()
    if ("/" in session or session.endswith(".jsonl")) and path.is_file():
        return catalog.info_of(path.absolute(), agent)
    if ":" in session and not agent:
        named, _, rest = session.partition(":")
        if named in catalog.AGENTS:
            agent, session = named, rest
    if agent:
        return catalog.resolve_one(os.environ, agent, session, cwd)
    if session == "latest":
        listed = catalog.list_sessions(os.environ, cwd=cwd, limit=1)
        if not listed:
            raise NotFoundError("There is no session yet.", hint="va sessions list shows what there is.")
        return listed[0]
    found = [info for one in catalog.stores() for info in catalog.resolve(os.environ, one, session, cwd)]
    if not found:
        raise NotFoundError(f"No agent has a session {session!r}.", hint="va sessions list shows what there is.")
    exact = [info for info in found if info.id == session]
    if len(exact or found) > 1:
        listed_text = ", ".join(f"{info.agent}:{info.id} ({info.path})" for info in (exact or found)[:8])
        raise UsageError(f"{session!r} may mean several sessions: {listed_text}.", hint="Name the agent with --agent.", code="ambiguous")
    return (exact or found)[0]


def _save(out: str, text: str) -> None:
    import os
    from pathlib import Path

    from agents_registry.errors import RefusedError, UsageError

    path = Path(out).expanduser()
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise RefusedError(f"{path} exists and is not overwritten.", hint="Name another file.") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}.", hint="Name a file in a directory of yours.") from error
    with open(descriptor, "w", encoding="utf-8", errors="replace") as file:
        file.write(text)
