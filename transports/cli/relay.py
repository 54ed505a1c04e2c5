"""`va relay`: go on with a conversation in another agent. Works without a supervisor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from transports.cli.output import clean, emit, emit_json, remark, table, when, write

if TYPE_CHECKING:
    from pathlib import Path

    from agents_registry.model import AgentSpec
    from agents_registry.relay.moving import Moved, Prepared, Way
    from agents_registry.relay.relay_map import RelayMap
    from agents_registry.sessions.port import SessionInfo


@click.command("relay")
@click.argument("source", metavar="FROM")
@click.option("--to", "target", metavar="AGENT", default="", help="The agent that goes on.")
@click.option("--native", "wanted", flag_value="native", default=None, help="As a new session in its own store (the default where that can be written).")
@click.option("--brief", "wanted", flag_value="brief", help="As one text, on stdout or for its first turn.")
@click.option("--full", is_flag=True, help="All of it word by word, instead of a brief and the last turns.")
@click.option("--force", is_flag=True, help="Also when a fresh session would be cleaner, or --full is too large.")
@click.option("--no-redact", is_flag=True, help="Leave secrets in. Asks.")
@click.option("--recent", type=click.IntRange(0, 1000), default=None, help="Rounds that are carried word by word (default 6; setting relay.recent_turns).")
@click.option("--budget", type=click.IntRange(500, 2_000_000), default=None, help="Tokens in all. Default: a fifth of what the agent takes, at most 16,000.")
@click.option("--language", type=click.Choice(["en", "zh"]), default=None, help="Of the brief; otherwise as you write.")
@click.option("--next", "next_step", metavar="TEXT", default="", help="What the agent is to do next. Without it, it is asked to wait.")
@click.option("--cwd", default="", help="Another directory than the recorded one.")
@click.option("--new", is_flag=True, help="A new session, though an earlier one knows the first part.")
@click.option("--out", metavar="FILE", default="", help="Write the text to this file (refused when it exists). Goes with --brief.")
@click.option("--print-cwd", is_flag=True, help="Print only the directory that the agent must be started in.")
@click.option("--launch", is_flag=True, help="Start the agent in this terminal.")
@click.option("--dry-run", is_flag=True, help="Show what would be carried, dropped and redacted; change nothing.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def relay(
    source: str, target: str, wanted: str | None, full: bool, force: bool, no_redact: bool, recent: int | None, budget: int | None,
    language: str | None, next_step: str, cwd: str, new: bool, out: str, print_cwd: bool, launch: bool, dry_run: bool, as_json: bool,
) -> int:  # fmt: skip
    """Go on with the conversation FROM in another agent.

    FROM is AGENT:latest (of this directory), AGENT:ID, a session file, a thread's id, or a live handover code. `va relay map` lists what was
    relayed, and which of its files changed since.
    """
    if source == "map":
        _show_map(as_json)
        return 0
    if not target:
        raise click.UsageError("Name the agent that goes on: --to AGENT.")
    if out and (wanted == "native" or launch):
        raise click.UsageError("--out writes the text to a file; it does not go with --native or --launch.")
    if no_redact and not dry_run:
        _ask_for_secrets(force)
    import os

    from agents_registry.loader import load_registry
    from agents_registry.relay.moving import deliver, prepare
    from agents_registry.relay.relay_map import RelayMap
    from transports import paths
    from transports.carrying import carry_options

    data_dir = paths.data_dir()
    spec = load_registry(data_dir).get(target)
    info = _source(source, _directory(cwd))
    options = carry_options(
        spec.id, data_dir, os.environ, budget=budget, recent=recent, full=full, force=force, redact=not no_redact,
        language=language or "", next_step=next_step, cwd=_directory(cwd) or "",
    )  # fmt: skip
    if dry_run and not (data_dir / "sessions.db").exists():
        return _dry(prepare(info, spec.id, options, os.environ), _way_word(wanted, out), as_json)
    paths.ensure_data_dir(data_dir)
    with RelayMap(data_dir / "sessions.db") as links:
        prepared = prepare(info, spec.id, options, os.environ, links, new=new)
        way = _way_word(wanted, out)
        if dry_run:
            return _dry(prepared, way, as_json)
        _worth_it(prepared, force)
        version = _version(spec, data_dir) if prepared.way(way) == "native" else ""
        moved = deliver(prepared, way, os.environ, links, version=version, prove=_prover(spec, data_dir))
    return _told(prepared, moved, spec, data_dir, out=out, print_cwd=print_cwd, launch=launch, as_json=as_json)


def _way_word(wanted: str | None, out: str) -> str:
    return "brief" if out else wanted or ""


def _told(
    prepared: Prepared, moved: Moved, spec: AgentSpec, data_dir: Path, *, out: str, print_cwd: bool, launch: bool, as_json: bool
) -> int:
    from agents_registry.launch import shell_line
    from transports.cli import relay_launch
    from transports.cli.sessions import _save

    session = moved.session.id if moved.session is not None else ""
    argv = _command(spec, session, prepared.cwd)
    line = shell_line(argv, prepared.cwd) if argv else ""
    if out:
        _save(out, moved.text)
    if as_json:
        emit_json({
            **_document(prepared, moved.way), "session": session or None, "path": str(moved.session.path) if moved.session else None,
            "command": argv, "line": line, "text": moved.text or None, "out": out or None, "notes": moved.notes,
        })  # fmt: skip
    elif print_cwd:
        write(prepared.cwd + "\n")
    _remarks(prepared, moved.notes)
    if launch:
        words = prepared.carried.words
        if not moved.text:
            return relay_launch.start(spec, relay_launch.command(spec, session, prepared.cwd), prepared.cwd, session, data_dir)
        with relay_launch.private_file(data_dir, moved.text) as path:
            told = relay_launch.pointer(words.opening, path)
            return relay_launch.start(spec, relay_launch.command(spec, session, prepared.cwd, told), prepared.cwd, session, data_dir)
    if as_json or print_cwd:
        return 0
    if moved.text and not out:
        write(clean(moved.text))
    if moved.way == "native":
        emit(f"{spec.name} has it as session {session}. Go on with:\n    {line}")
    elif moved.way == "resume":
        remark(f"{spec.name} knows the earlier part. Give it this text in the session {session}:\n    {line}")
    elif out:
        remark(f"The text is in {out}. Start {spec.name} in {prepared.cwd} and give it that file.")
    return 0


def _command(spec: AgentSpec, session: str, cwd: str) -> list[str]:
    from agents_registry.errors import UsageError
    from agents_registry.launch import resume_command, terminal_command

    try:
        return resume_command(spec, session, cwd) if session else terminal_command(spec)
    except UsageError:
        return []


def _dry(prepared: Prepared, wanted: str, as_json: bool) -> int:
    way = prepared.way(wanted)
    if as_json:
        emit_json({**_document(prepared, way), "text": prepared.carried.as_text()})
        return 0
    report = prepared.carried.report
    emit(table([
        ("from", report.source), ("to", f"{report.target} ({_WAYS[way]})"), ("directory", prepared.cwd), ("requests", str(report.user_turns)),
        ("word by word", f"{report.recent} rounds"), ("tokens", f"about {report.tokens} of {report.budget}"),
        ("dropped", ", ".join(f"{name}: {what}" for name, what in report.dropped.items()) or "nothing"),
        ("redacted", _redacted(prepared) or "nothing"), ("files", str(len(report.files))),
    ]))  # fmt: skip
    for change in report.drift:
        emit(f"{change.what}: {change.path}")
    if report.advice:
        remark(f"{report.advice}: a fresh session is cleaner. Without --force it is not carried.")
    emit("")
    write(clean(prepared.carried.as_text()))
    return 0


_WAYS = {
    "native": "a new session in its own store",
    "brief": "one text",
    "resume": "what is new, into the session that knows the rest",
}


def _document(prepared: Prepared, way: Way) -> dict[str, Any]:
    return {"way": way, "cwd": prepared.cwd, **prepared.carried.report.as_json()}


def _remarks(prepared: Prepared, notes: list[str]) -> None:
    report = prepared.carried.report
    if report.redacted:
        remark(f"Redacted: {_redacted(prepared)}.")
    if report.dropped:
        remark("Dropped: " + "; ".join(f"{name}: {what}" for name, what in report.dropped.items()) + ".")
    if report.lost:
        remark(f"Not held by {report.target}: {', '.join(report.lost)}.")
    if report.skipped:
        remark(f"{report.skipped} damaged records of the source were left out.")
    for change in report.drift:
        remark(f"{change.what} since the last relay: {change.path}")
    for note in notes:
        remark(clean(note))


def _redacted(prepared: Prepared) -> str:
    return ", ".join(f"{one.kind} ({one.place}{f', {one.count} times' if one.count > 1 else ''})" for one in prepared.carried.report.redacted)


def _worth_it(prepared: Prepared, force: bool) -> None:
    from agents_registry.errors import RefusedError

    advice = prepared.carried.report.advice
    if advice and not force:
        raise RefusedError(
            f"{advice}: a fresh session of {prepared.target} is cleaner.", hint="Add --force to carry it all the same.", code="not_worth"
        )


def _ask_for_secrets(force: bool) -> None:
    import sys

    from agents_registry.errors import RefusedError

    if sys.stdin.isatty():
        click.confirm("Keys and passwords of the session will be given to the other agent. Go on?", abort=True, err=True)
    elif not force:
        raise RefusedError("--no-redact asks, and nobody is there to answer.", hint="Add --force.", code="unasked")


def _prover(spec: AgentSpec, data_dir: Path) -> Any:
    def prove(agent: str, session: str, cwd: str) -> str:
        import os

        from transports.cli.relay_proof import prove as run

        del agent  # it is that of `spec`
        return run(spec, session, cwd, os.environ, data_dir)

    return prove


def _version(spec: AgentSpec, data_dir: Path) -> str:
    """The installed version where the form of its store depends on it, else ""."""
    import os

    from agents_registry.detect import detect

    return detect(spec, os.environ, data_dir).version if spec.id == "codex" else ""


def _source(source: str, cwd: str | None) -> SessionInfo:
    """What FROM names. Raises NotFoundError as the catalog does."""
    import os
    from pathlib import Path

    from agents_registry.errors import NotFoundError
    from agents_registry.sessions import catalog
    from transports.cli.sessions import _agent_id, _chosen

    if Path(source).expanduser().is_file():
        return catalog.info_of(Path(source).expanduser().absolute())
    agent, colon, wanted = source.partition(":")
    if colon:
        here = os.environ.get("PWD") or str(Path.cwd())
        return catalog.resolve_one(os.environ, _agent_id(agent), wanted, (cwd or here) if wanted == "latest" else None)
    if source.startswith("wt_"):
        from transports.bus.vocabulary.lists import ShowThread
        from transports.cli.connect import ask

        data: dict[str, Any] = ask("catalog", ShowThread(source)).data
        current = next((one["id"] for one in data["sessions"] if one["current"]), None)
        if current is None:
            raise NotFoundError(f"The thread {source} has no session yet.", hint="Say something in it first.")
        return catalog.resolve_one(os.environ, str(data["host"]["agent"]), str(current))
    if _may_be_code(source):
        return _of_code(source)
    return _chosen(source, "", None)


def _may_be_code(source: str) -> bool:
    from transports.codes import read_code

    return len(source.replace("/pickup", "").strip()) <= _LONGEST_CODE and bool(read_code(source).code)


_LONGEST_CODE = 8
"""As people type one: with a blank or a dash in it."""


def _of_code(typed: str) -> SessionInfo:
    """The session that a live handover code names; the code stays good. Raises CodeError, NotRunningError."""
    import os

    from agents_registry.sessions import catalog
    from transports.bus.vocabulary.handover import ReadCode
    from transports.cli.connect import ask
    from transports.cli.pickup import code_of

    named: dict[str, Any] = ask("attacher", ReadCode(code_of(typed))).data
    places = {str(name): str(value) for name, value in (named.get("env") or {}).items()}
    return catalog.resolve_one({**os.environ, **places}, str(named["agent"]), str(named["session"]))


def _directory(cwd: str) -> str | None:
    from transports.cli.sessions import _directory as absolute

    return absolute(cwd)


def _show_map(as_json: bool) -> None:
    from agents_registry.relay.drift import compare
    from transports import paths

    data_dir = paths.data_dir()
    rows: list[dict[str, Any]] = []
    if (data_dir / "sessions.db").exists():
        with _links(data_dir) as links:
            found = links.links()
        rows = [
            {
                "a": {"agent": link.mine.agent, "id": link.mine.id, "requests": link.mine.seen.requests},
                "b": {"agent": link.other.agent, "id": link.other.id, "requests": link.other.seen.requests},
                "cwd": link.cwd,
                "at": link.at,
                "changed": [{"path": change.path, "what": change.what} for change in compare(link.files)],
            }
            for link in found
        ]
    if as_json:
        emit_json(rows)
        return
    if not rows:
        remark("Nothing was relayed yet.")
        return
    for row in rows:
        a, b = row["a"], row["b"]
        emit(f"{a['agent']}:{a['id']} ({a['requests']} requests) ↔ {b['agent']}:{b['id']} ({b['requests']} requests)  {when(row['at'])}")
        emit(f"    {clean(row['cwd'])}")
        for change in row["changed"]:
            emit(f"    {change['what']}: {clean(change['path'])}")


def _links(data_dir: Path) -> RelayMap:
    from agents_registry.relay.relay_map import RelayMap

    return RelayMap(data_dir / "sessions.db")
