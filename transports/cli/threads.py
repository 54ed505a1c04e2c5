"""`va threads`: conversations as the supervisor knows them."""

from __future__ import annotations

from typing import Any

import click

from transports.cli.output import clean, emit, emit_json, json_option, table, when
from transports.human import shorten


@click.group("threads")
def threads() -> None:
    """List conversations, or show one with its sessions and turns."""


@threads.command("list")
@click.option("--all", "closed", is_flag=True, help="Closed ones too.")
@click.option("--limit", type=click.IntRange(1, 1000), default=100, show_default=True, help="At most so many.")
@json_option
def list_threads(closed: bool, limit: int, as_json: bool) -> None:
    """List conversations, the latest first."""
    from transports.bus.vocabulary.lists import ListThreads
    from transports.cli.connect import ask

    rows: list[dict[str, Any]] = ask("catalog", ListThreads(limit, closed)).data["threads"]
    if as_json:
        emit_json(rows)
        return
    if not rows:
        emit("No conversations yet.")
        return
    lines = [
        (r["id"], r["host"]["agent"], r["status"], when(r["updated_at"]), str(len(r["routes"])),
         shorten(clean(r.get("title") or "untitled"), 40), r["cwd"])
        for r in rows
    ]
    emit(table(lines, ("THREAD", "AGENT", "STATUS", "LAST", "CHATS", "TITLE", "DIRECTORY")))


@threads.command("show")
@click.argument("id_", metavar="ID")
@json_option
def show_thread(id_: str, as_json: bool) -> None:
    """Show one conversation. ID may be any unique beginning of its id."""
    from transports.bus.vocabulary.lists import ShowThread
    from transports.cli.connect import ask

    data: dict[str, Any] = ask("catalog", ShowThread(id_)).data
    if as_json:
        emit_json(data)
        return
    emit(f"{data['id']}  {clean(data.get('title') or 'untitled')}  ({data['status']})")
    emit(f"  directory  {data['cwd']}")
    emit(f"  agent      {data['host']['agent']} (profile {data['host']['profile']})")
    emit(f"  chats      {', '.join(data['routes']) or 'none'}")
    for session in data["sessions"]:
        emit(f"  session    {session['id']}{'  (current)' if session['current'] else ''}, seen {when(session['observed_at'])}")
    for turn in data["turns"]:
        ended = turn.get("stop_reason") or turn["state"]
        emit(f"\n[{when(turn['started_at'])}] {turn['route']} asked: {clean(turn.get('prompt') or '')}")
        if turn.get("text"):
            emit(clean(turn["text"]))
        emit(f"({ended})")
