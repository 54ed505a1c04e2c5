"""`va down` without a supervisor: `python -m actors.end_hosts --data-dir DIR [--session AGENT ID] [--json]`.

Ends the hosts that the journal records, with their agents, and nothing else. The journal is not written: the next
supervisor finds the hosts dead and says so in their threads.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sqlite3
import sys
from pathlib import Path
from typing import Any

from actors.children import alive, end_group, end_leftovers, group_alive
from agents_registry.errors import RefusedError, VibeAroundError
from transports import paths, settings

_QUERY = """
    SELECT h.*, s.id AS session, t.agent AS kind FROM hosts h JOIN threads t ON t.id = h.thread
    LEFT JOIN sessions s ON s.thread = h.thread AND s.current = 1 WHERE h.state != 'gone'
"""


def recorded(data_dir: Path, agent: str = "", session: str = "") -> list[dict[str, Any]]:
    """Hosts that the journal does not know to be gone; of one session only, where it is given."""
    path = data_dir / "state" / "journal.db"
    if not path.exists():
        return []
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        connection.row_factory = sqlite3.Row
        rows = [dict(row) for row in connection.execute(_QUERY)]
    return [r for r in rows if not session or (r["session"] == session and r["kind"] == agent)]


def end(rows: list[dict[str, Any]], step_s: float) -> list[dict[str, Any]]:
    """End each living one; what was ended."""
    ended = []
    for row in rows:
        host = alive(row["host_pid"], row["host_start"])
        agent = alive(row["agent_pid"], row["agent_start"]) or (row["agent_pid"] and group_alive(row["agent_pgid"]))
        if host:
            end_group(row["host_pid"], row["host_start"], step_s)
        if agent:
            end_group(row["agent_pid"], row["agent_start"], step_s, group=row["agent_pgid"])
        if host or agent:
            ended.append({"thread": row["thread"], "agent": row["kind"], "session": row["session"] or "", "pid": row["host_pid"]})
    return ended


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m actors.end_hosts")
    parser.add_argument("--data-dir", type=Path, default=None)
    parser.add_argument("--session", nargs=2, metavar=("AGENT", "ID"), default=("", ""))
    parser.add_argument("--step-s", type=float, default=5.0)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(argv)
    data_dir = options.data_dir or paths.data_dir()
    try:
        holder = paths.lock_holder(data_dir)
        if holder is not None:
            raise RefusedError(f"A supervisor runs (pid {holder}); it ends its hosts itself.", hint="Use `va down`.")
        ended = end(recorded(data_dir, *options.session), options.step_s)
        if not options.session[1] and settings.load(data_dir, os.environ).hosts.end_detached:
            end_leftovers(data_dir, options.step_s)
    except VibeAroundError as error:
        sys.stderr.write(f"{error.message}\n{error.hint}\n")
        return error.exit_code
    except sqlite3.Error as error:
        sys.stderr.write(f"The journal in {data_dir} cannot be read: {error}.\n")
        return 1
    if options.json:
        sys.stdout.write(json.dumps(ended) + "\n")
    else:
        for one in ended:
            sys.stdout.write(f"ended the {one['agent']} host of {one['thread']} (pid {one['pid']})\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
