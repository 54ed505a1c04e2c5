"""Gather what says whose session a call belongs to: the caller's ancestors, Claude's live registry, call metadata.

These functions look into /proc and the agents' stores, so they run in the reader process, never in the supervisor.
/proc and the clock are injected; a process that ends meanwhile is simply no evidence.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agents_registry.identify import Evidence

PROC = Path("/proc")
_MAX_ANCESTORS = 64
_MAX_REGISTRY_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True)
class Process:
    """A process pinned against reuse of its number. `start_time` is field 22 of /proc/<pid>/stat (clock ticks)."""

    pid: int
    start_time: int


def process(pid: int, proc: Path = PROC) -> tuple[Process, int] | None:
    """The process and its parent's pid; None when it is gone. Without /proc (macOS) `ps` is asked."""
    if not (proc / "self").exists() and proc == PROC:
        return _by_ps(pid)
    try:
        # proc(5): the name in parentheses may hold anything, so fields are counted from the last ')'.
        fields = (proc / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()
        return Process(pid, int(fields[19])), int(fields[1])
    except (OSError, IndexError, ValueError):
        return None


def _by_ps(pid: int) -> tuple[Process, int] | None:
    import subprocess

    try:
        told = subprocess.run(
            ["ps", "-o", "ppid=", "-p", str(pid)], capture_output=True, text=True, timeout=2, check=True
        ).stdout
        return Process(pid, 0), int(told)
    except (OSError, ValueError, subprocess.SubprocessError):
        return None


def ancestors(pid: int, proc: Path = PROC) -> list[tuple[int, int]]:
    """[(pid, start time)] of `pid` and all processes above it, nearest first, at most 64."""
    chain: list[tuple[int, int]] = []
    while pid > 1 and len(chain) < _MAX_ANCESTORS:
        found = process(pid, proc)
        if found is None:
            break
        chain.append((found[0].pid, found[0].start_time))
        pid = found[1]
    return chain


def claude_live_session(config_dir: Path, pids: Sequence[tuple[int, int]], proc: Path = PROC) -> Evidence | None:
    """The session that Claude Code itself notes for the nearest of `pids` (as `ancestors` gives them).

    `<config_dir>/sessions/<pid>.json` holds {pid, sessionId, cwd, ...} and is kept current through /clear and
    /resume (seen in 2.1.197 and 2.1.332). A note older than the process of that number is a leftover of an earlier
    one and does not count.
    """
    for pid, start_time in pids:
        path = config_dir / "sessions" / f"{pid}.json"
        note = _json(path)
        session_id = note.get("sessionId") if note else None
        if note is None or not isinstance(session_id, str) or not session_id or note.get("pid", pid) != pid:
            continue
        if _older_than_process(path, start_time, proc):
            continue
        return Evidence("live_registry", session_id, detail=f"sessions/{pid}.json")
    return None


def _older_than_process(path: Path, start_time: int, proc: Path) -> bool:
    """Whether the file was last written before the process began (2 s tolerance: ticks and file clock are coarse)."""
    try:
        boot = next(line for line in (proc / "stat").read_text().splitlines() if line.startswith("btime "))
        began = int(boot.split()[1]) + start_time / os.sysconf("SC_CLK_TCK")
        return path.stat().st_mtime < began - 2.0
    except (OSError, StopIteration, ValueError):
        return False


def call_meta_session(agent: str, meta: Mapping[str, Any] | None) -> Evidence | None:
    """The session that the metadata (`_meta`) of an MCP tools/call names.

    Codex 0.166+ sends `threadId`; 0.137 only `x-codex-turn-metadata`, an object or its JSON text, with `thread_id`
    (older: `session_id`). When both are there they are the same thread; `threadId` is taken.
    """
    if agent != "codex" or not meta:
        return None
    inner = meta.get("x-codex-turn-metadata")
    if isinstance(inner, str):
        try:
            inner = json.loads(inner)
        except ValueError:
            inner = None
    turn: Mapping[str, Any] = inner if isinstance(inner, Mapping) else {}
    for source, key in ((meta, "threadId"), (turn, "thread_id"), (turn, "session_id"), (meta, "thread_id"), (meta, "sessionId")):
        value = source.get(key)
        if isinstance(value, str) and value:
            return Evidence("call_meta", value, detail=key)
    return None


def environment_session(names: Iterable[str], environ: Mapping[str, str], *, superseded: bool) -> Evidence | None:
    """The session that an agent told its children at their start, from the variables of the registry entry.

    `superseded`: the store shows a later session of that process or directory, so the variable may be stale
    (Claude's MCP servers keep the first id after /clear).
    """
    for name in names:
        if environ.get(name):
            return Evidence("launch_env", environ[name], confirmed=not superseded, detail=name)
    return None


def process_environment(pid: int, names: Iterable[str], proc: Path = PROC) -> dict[str, str]:
    """Those of `names` that are in the environment `pid` was started with; {} when it may not be read."""
    try:
        data = (proc / str(pid) / "environ").read_bytes()
    except OSError:
        return {}
    found = dict(item.split(b"=", 1) for item in data.split(b"\0") if b"=" in item)
    return {name: found[name.encode()].decode("utf-8", "surrogateescape") for name in names if name.encode() in found}


def _json(path: Path) -> dict[str, Any] | None:
    try:
        if path.stat().st_size > _MAX_REGISTRY_BYTES:
            return None
        value = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None
