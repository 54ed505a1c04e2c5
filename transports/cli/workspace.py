"""`va workspace`: the directories that agents work in. Records only: no directory is made, changed or removed."""

from __future__ import annotations

from typing import Any

import click

from transports.cli.output import emit, emit_json, json_option, table


@click.group("workspace")
def workspace() -> None:
    """Manage the directories that agents work in. The directories themselves are never touched."""


@workspace.command("add")
@click.argument("directory", default=".")
@click.option("--name", default="", help="A short name; else the directory's.")
@json_option
def add(directory: str, name: str, as_json: bool) -> None:
    """Register DIRECTORY (it must exist)."""
    from transports.bus.vocabulary.lists import AddWorkspace
    from transports.cli.connect import ask, real_directory

    data: dict[str, Any] = ask("workspaces", AddWorkspace(real_directory(directory), name)).data
    if as_json:
        emit_json(data)
    else:
        emit(f"{'Known already' if data.get('known') else 'Added'}: {data['name']}  {data['id']}  {data['cwd']}")


@workspace.command("list")
@click.option("--all", "archived", is_flag=True, help="Archived ones too.")
@json_option
def list_workspaces(archived: bool, as_json: bool) -> None:
    """List the registered directories."""
    from transports.bus.vocabulary.lists import ListWorkspaces
    from transports.cli.connect import ask

    rows: list[dict[str, Any]] = ask("workspaces", ListWorkspaces(archived)).data["workspaces"]
    if as_json:
        emit_json(rows)
        return
    if not rows:
        emit("No workspaces yet: `va workspace add DIR`.")
        return
    lines = []
    for row in rows:
        marks = ", ".join(word for word in ("general", "archived") if row.get(word)) or "-"
        lines.append((row["id"], row["name"], str(row.get("threads", row.get("open", 0))), marks, row["cwd"]))
    emit(table(lines, ("WORKSPACE", "NAME", "OPEN THREADS", "MARKS", "DIRECTORY")))


def _change(wanted: str, action: str, name: str, as_json: bool, words: str) -> None:
    from transports.bus.vocabulary.lists import ChangeWorkspace, FindWorkspace
    from transports.cli.connect import connect

    with connect() as client:
        found: dict[str, Any] = client.request("workspaces", FindWorkspace(wanted)).data
        client.request("workspaces", ChangeWorkspace(found["id"], action, name))
    if as_json:
        emit_json({**found, "action": action, **({"name": name} if name else {})})
    else:
        emit(words.format(name=found["name"], cwd=found["cwd"], new=name))


@workspace.command("archive")
@click.argument("wanted", metavar="WORKSPACE")
@click.option("--undo", is_flag=True, help="Show it in lists again.")
@json_option
def archive(wanted: str, undo: bool, as_json: bool) -> None:
    """Take WORKSPACE (id, name, beginning of the id, or path) out of the lists."""
    if undo:
        _change(wanted, "restore", "", as_json, "Restored {name} ({cwd}).")
    else:
        _change(wanted, "archive", "", as_json, "Archived {name}. The directory {cwd} is untouched.")


@workspace.command("rename")
@click.argument("wanted", metavar="WORKSPACE")
@click.argument("name")
@json_option
def rename(wanted: str, name: str, as_json: bool) -> None:
    """Give WORKSPACE another name."""
    _change(wanted, "rename", name, as_json, "{name} is now called {new}.")
