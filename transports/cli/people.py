"""What only people may do and no actor guards, because it lies in a file: the command itself asks who it runs for.

A running supervisor says it (and shows the people what an agent tried). Without one the same rules are looked up here:
agents' hosts in the journal, launched agents in their records, and the marks in a process's environment.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from agents_registry.errors import BusyError, NotRunningError, RefusedError

_LIMIT_S = 5.0


def only_people(what: str) -> None:
    """Raises RefusedError (exit 5) when this process runs for an agent."""
    from transports.bus.vocabulary.lists import MayChange
    from transports.cli.connect import ask

    try:
        ask("supervisor", MayChange(what), _LIMIT_S)
    except (NotRunningError, BusyError):
        _by_ourselves(what)


def _by_ourselves(what: str) -> None:
    from agents_registry.launch_record import read_launches
    from transports import paths
    from transports.bus.access import Access

    data_dir = paths.data_dir()
    access = Access(
        policy=lambda *_: None, known_hosts=lambda: _recorded_hosts(data_dir),
        launches=lambda: {(r.pid, r.start_time) for r in read_launches(data_dir)},
    )
    if access.classify(os.getpid()).role != "owner":
        raise RefusedError(
            f"An agent, or a command that an agent runs, may not change {what}: that is for the person at the keyboard.",
            hint="Run it in a terminal of your own.", code="agent_refused",
        )


def _recorded_hosts(data_dir: Path) -> dict[tuple[int, int], str]:
    import sqlite3

    path = data_dir / "state" / "journal.db"
    if not path.is_file():
        return {}
    # A journal that cannot be read names no host; ancestors and marks still count.
    with contextlib.suppress(sqlite3.Error), contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as journal:
        rows = journal.execute("SELECT host_pid, host_start, thread FROM hosts WHERE state != 'gone'")
        return {(int(pid), int(start)): str(thread) for pid, start, thread in rows}
    return {}
