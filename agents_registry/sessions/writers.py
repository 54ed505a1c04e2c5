"""Who has a session open: the processes, and for Codex whether it is a window, or a daemon and what window it serves.

Claude Code says it in its register of live sessions. For Codex the kernel's list of locks names the process that holds
the thread's writer lock: the window itself, or the background daemon, which keeps a thread for about a minute after the
window that had it is closed (facts measured with 0.166 and 0.171).
"""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

from agents_registry.evidence import ancestors
from agents_registry.sessions import claude_live, codex_live
from agents_registry.sessions.port import SessionInfo

SOCKET = "app-server-control/app-server-control.sock"
_NO_WINDOW = frozenset({"app-server", "exec", "e", "exec-server", "mcp-server", "mcp", "queue"})


class LiveWriter(NamedTuple):
    """`pids`: whoever has the session open; () = nobody, or not known. `daemon`: socket of the daemon that has it, or "".
    `window`: whether a person may have it on the screen."""

    pids: tuple[int, ...] = ()
    daemon: str = ""
    window: bool = False


def live_writer(info: SessionInfo) -> LiveWriter:
    """For agents that do not tell: nobody."""
    if info.agent == "claude":
        pids = tuple(entry.pid for entry in claude_live.register(info.store_root) if entry.session_id == info.id)
        return LiveWriter(pids, "", bool(pids))
    if info.agent == "codex":
        return _codex(info)
    return LiveWriter()


def busy_elsewhere(info: SessionInfo, ours: Collection[int]) -> int:
    """Pid of a process that runs a turn in the session now and does not descend from one of `ours`; 0 = none is known.

    Only Claude Code tells; elsewhere a second writer is locked out, or nothing says who is at work.
    """
    if info.agent != "claude":
        return 0
    for entry in claude_live.register(info.store_root):
        at_work = entry.session_id == info.id and entry.status in ("busy", "waiting")
        if at_work and not any(pid in ours for pid, _ in ancestors(entry.pid)):
            return entry.pid
    return 0


def _codex(info: SessionInfo) -> LiveWriter:
    holder = codex_live.holder(info.store_root, info.id)
    if not holder:
        return LiveWriter()
    socket = info.store_root / SOCKET
    words = _words(holder)
    if "app-server" not in words:
        return LiveWriter((holder,), "", True)
    # A hosted adapter's app-server talks over its own pipes; the daemon listens.
    daemon = any(word.startswith("--listen") for word in words) and socket.exists()
    return LiveWriter((holder,), str(socket) if daemon else "", not daemon or bool(codex_windows(info.store_root)))


def codex_windows(root: Path) -> list[int]:
    """Interactive Codex processes of this user that use the store `root`."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if entry.stat().st_uid != os.getuid():
                continue
        except OSError:
            continue
        words = _words(int(entry.name))
        if not words or Path(words[0]).name != "codex" or _NO_WINDOW & set(words[1:]):
            continue
        if os.path.realpath(_home_of(entry)) == os.path.realpath(root):
            found.append(int(entry.name))
    return found


def _home_of(entry: Path) -> str:
    try:
        pairs = (entry / "environ").read_bytes().split(b"\0")
    except OSError:
        return ""
    env = dict(pair.split(b"=", 1) for pair in pairs if b"=" in pair)
    if env.get(b"CODEX_HOME"):
        return os.fsdecode(env[b"CODEX_HOME"])
    return os.fsdecode(env[b"HOME"]) + "/.codex" if env.get(b"HOME") else ""


def _words(pid: int) -> list[str]:
    try:
        return [os.fsdecode(word) for word in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0") if word]
    except OSError:
        return []
