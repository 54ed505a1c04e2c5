"""Operations of the journal: workspaces, what their owner agreed to, and the people of bridges."""

from __future__ import annotations

import sqlite3
from typing import Any

from actors.journal.operation import operation
from agents_registry.errors import NotFoundError, RefusedError, UsageError


@operation
def workspace_add(
    c: sqlite3.Connection, wid: str, cwd: str, real: str, name: str, general: bool, at: float
) -> list[Any]:
    """[id, known]: the active workspace of this real path, made when there is none."""
    row = c.execute("SELECT id FROM workspaces WHERE real = ? AND archived = 0", (real,)).fetchone()
    if row is not None:
        return [row["id"], True]
    c.execute(
        "INSERT INTO workspaces (id, cwd, real, name, general, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?, ?)",
        (wid, cwd, real, name, int(general), at, at),
    )
    return [wid, False]


@operation
def workspace_change(c: sqlite3.Connection, wid: str, action: str, name: str, at: float) -> None:
    row = c.execute("SELECT general FROM workspaces WHERE id = ?", (wid,)).fetchone()
    if row is None:
        raise NotFoundError(f"there is no workspace {wid}.", hint="See `va workspace list`.")
    if action == "archive":
        if row["general"]:
            raise RefusedError("the general workspace cannot be archived.")
        c.execute("UPDATE workspaces SET archived = 1, updated_at = ? WHERE id = ?", (at, wid))
    elif action == "restore":
        c.execute("UPDATE workspaces SET archived = 0, updated_at = ? WHERE id = ?", (at, wid))
    elif action == "rename":
        c.execute("UPDATE workspaces SET name = ?, updated_at = ? WHERE id = ?", (name, at, wid))
    else:
        raise UsageError(f"a workspace cannot be {action!r}.", hint="archive, restore or rename.")


@operation
def agent_yes(c: sqlite3.Connection, workspace: str, agent: str, by: str, at: float) -> None:
    """An owner allows an agent that never asks to act in a workspace."""
    c.execute("INSERT INTO agent_yes (workspace, agent, by, at) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING", (workspace, agent, by, at))


@operation
def bridge_person(c: sqlite3.Connection, bridge: str, user: str, name: str, role: str, at: float) -> None:
    c.execute(
        "INSERT INTO bridge_people (bridge, user_id, user_name, role, approved_at) VALUES (?, ?, ?, ?, ?)"
        " ON CONFLICT DO UPDATE SET user_name = excluded.user_name, role = excluded.role, approved_at = excluded.approved_at",
        (bridge, user, name, role, at),
    )


@operation
def bridge_person_gone(c: sqlite3.Connection, bridge: str, user: str) -> None:
    c.execute("DELETE FROM bridge_people WHERE bridge = ? AND user_id = ?", (bridge, user))


@operation
def bridge_forget(c: sqlite3.Connection, bridge: str) -> None:
    c.execute("DELETE FROM bridge_people WHERE bridge = ?", (bridge,))
