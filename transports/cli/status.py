"""`va status`: what runs."""

from __future__ import annotations

from typing import Any

import click

from transports.cli.output import clean, emit, emit_json, json_option, table, when
from transports.human import duration, shorten


@click.command("status")
@click.option("--wait", "wait_s", type=click.FloatRange(0, 3600), default=0.0, metavar="S", help="Wait up to S seconds for it to run.")
@json_option
def status(wait_s: float, as_json: bool) -> None:
    """Show the supervisor, its conversations, chats and agents."""
    from transports.bus.vocabulary.lists import GetStatus
    from transports.cli.connect import connect

    with connect(wait_s=wait_s) as client:
        data: dict[str, Any] = client.request("catalog", GetStatus(), max(10.0, wait_s)).data
    if as_json:
        emit_json(data)
        return
    emit(
        f"VibeAround {data['version']}, pid {data['pid']}, up for {duration(float(data['uptime_s']))}, data in {data['data_dir']}"
    )
    hosts = data.get("hosts") or []
    threads = data.get("threads") or []
    if not threads:
        emit("\nNo conversations yet. Say \"hand over\" to an agent, or try `va chat repl`.")
    else:
        state = {host["thread"]: host for host in hosts}
        rows = []
        for thread in threads:
            host = state.get(thread["id"])
            doing = f"{host['state']}, pid {host['pid']}, {float(host.get('rss_mb') or 0):.0f} MB" if host else "asleep"
            rows.append(
                (thread["id"], str(thread["host"]["agent"]), doing, shorten(thread.get("title") or "untitled", 40),
                 when(thread["updated_at"]), str(thread["cwd"]))
            )
        emit("")
        emit(table(rows, ("THREAD", "AGENT", "STATE", "TITLE", "LAST", "DIRECTORY")))
    routes = [(route, str(thread["id"])) for thread in data.get("threads") or [] for route in thread.get("routes") or []]
    if routes:
        emit("")
        emit(table(routes, ("CHAT", "THREAD")))
    for bridge in data.get("bridges") or []:
        emit(f"bridge {bridge.get('name', '')}: {bridge.get('state', '')}" + (f" ({clean(bridge['error'])})" if bridge.get("error") else ""))
