"""Operations of the journal: hosts: their epochs, what of them was acked, their end."""

from __future__ import annotations

import sqlite3

from actors.journal.operation import operation
from agents_registry.errors import BusyError


@operation
def host_spawn(c: sqlite3.Connection, thread: str, instance: str, at: float) -> int:
    """The epoch of a new host; the earlier one of this instance is of the past from now on."""
    row = c.execute("SELECT epoch, state FROM hosts WHERE thread = ? AND instance = ?", (thread, instance)).fetchone()
    if row is not None and row["state"] not in ("gone", "spawning"):
        raise BusyError(f"the host {instance} of {thread} is still there.", code="host_alive")
    epoch = (int(row["epoch"]) if row else 0) + 1
    c.execute(
        "INSERT INTO hosts (thread, instance, epoch, secret_hash, state, spawned_at) VALUES (?, ?, ?, '', 'spawning', ?)"
        " ON CONFLICT (thread, instance) DO UPDATE SET epoch = excluded.epoch, secret_hash = '', state = 'spawning',"
        " host_pid = 0, host_start = 0, agent_pid = 0, agent_pgid = 0, agent_start = 0, acked = 0, reason = '',"
        " spawned_at = excluded.spawned_at",
        (thread, instance, epoch, at),
    )
    return epoch


@operation
def host_pids(
    c: sqlite3.Connection, thread: str, instance: str, epoch: int, secret_hash: str, host: list[int], agent: list[int]
) -> None:
    """`host` = [pid, start time], `agent` = [pid, process group, start time]; zeros leave what is known."""
    c.execute(
        "UPDATE hosts SET state = 'alive',"
        " secret_hash = CASE WHEN ? = '' THEN secret_hash ELSE ? END,"
        " host_pid = CASE WHEN ? = 0 THEN host_pid ELSE ? END, host_start = CASE WHEN ? = 0 THEN host_start ELSE ? END,"
        " agent_pid = CASE WHEN ? = 0 THEN agent_pid ELSE ? END, agent_pgid = CASE WHEN ? = 0 THEN agent_pgid ELSE ? END,"
        " agent_start = CASE WHEN ? = 0 THEN agent_start ELSE ? END"
        " WHERE thread = ? AND instance = ? AND epoch = ?",
        (
            secret_hash, secret_hash, host[0], host[0], host[1], host[1],
            agent[0], agent[0], agent[1], agent[1], agent[2], agent[2], thread, instance, epoch,
        ),
    )


@operation
def host_acked(c: sqlite3.Connection, thread: str, instance: str, epoch: int, seq: int) -> bool:
    """False when this event was applied before: the record's events are then not posted again."""
    cursor = c.execute(
        "UPDATE hosts SET acked = ? WHERE thread = ? AND instance = ? AND epoch = ? AND acked < ?",
        (seq, thread, instance, epoch, seq),
    )
    return cursor.rowcount > 0


@operation
def host_gone(c: sqlite3.Connection, thread: str, instance: str, epoch: int, reason: str) -> None:
    c.execute(
        "UPDATE hosts SET state = 'gone', reason = ? WHERE thread = ? AND instance = ? AND epoch = ?",
        (reason, thread, instance, epoch),
    )
