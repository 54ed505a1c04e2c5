"""Install an agent's pinned npm packages into the data directory: `npm install --prefix <data>/agents`.

Nothing global is touched. npm's own cache and registry settings are the user's; a run is bounded, shown, and leaves
either the programs or an error that says what was missing.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from queue import Empty, Queue
from threading import Thread

from agents_registry.detect import node_problem, node_version
from agents_registry.errors import AgentError, BusyError, UsageError
from agents_registry.launch import install_advice
from agents_registry.model import AgentSpec

LIMIT_S = 900.0
"""Longest install; 460 MB over a slow line."""
_TICK_S = 5.0
_KEPT_LINES = 40
_NETWORK = re.compile(r"ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ERR_SOCKET_TIMEOUT|network|CERT_|self.signed", re.IGNORECASE)
_NOISE = re.compile(r"^npm (warn|notice)\b|^$", re.IGNORECASE)

Progress = Callable[[str], None]


def install(
    spec: AgentSpec,
    data_dir: Path,
    env: Mapping[str, str],
    progress: Progress,
    *,
    limit_s: float = LIMIT_S,
    clock: Callable[[], float] = time.monotonic,
) -> list[Path]:
    """Install what `spec` pins; the programs' paths. `progress` gets one line at a time.

    Raises:
        UsageError: nothing is pinned for this agent; the hint says how its maker installs it.
        AgentError: npm or Node is missing or too old, the network or the registry did not answer, the disk is full.
        BusyError: another install into this data directory is running.
    """
    if not spec.npm:
        raise UsageError(f"{spec.name} is not installed by VibeAround.", hint=install_advice(spec))
    npm = shutil.which("npm", path=env.get("PATH", os.defpath))
    if npm is None:
        raise AgentError("npm was not found.", hint="Install Node.js (it brings npm), then run the command again.", code="npm_missing")
    node = node_problem(spec, node_version(env))
    if not node.ok:
        raise AgentError(f"{spec.name} {node.why}.", hint=node.fix, code="node_too_old")
    root = data_dir / "agents"
    root.mkdir(parents=True, exist_ok=True, mode=0o700)
    with _only_one(root):
        names = [package.pinned for package in spec.npm]
        progress(f"Installing {', '.join(names)} into {root} …")
        command = [npm, "install", "--prefix", str(root), "--no-audit", "--no-fund", "--save-exact", "--loglevel=http", *names]
        # A package.json of its own: without one npm would look for a project above the directory.
        if not (root / "package.json").exists():
            (root / "package.json").write_text('{"private": true}\n')
        code, tail = _run(command, env, root, progress, limit_s, clock)
    if code != 0:
        raise _failed(spec, code, tail, limit_s)
    programs = [root / "node_modules" / ".bin" / package.bin for package in spec.npm]
    missing = [path for path in programs if not os.access(path, os.X_OK)]
    if missing:
        raise AgentError(
            f"npm finished, but {missing[0]} is not there.",
            hint="Its install script may have been switched off (npm config get ignore-scripts). Remove "
            f"{root} and run va agents install {spec.id} again.",
            code="install_incomplete",
        )
    progress(f"{spec.name} is ready: {programs[0]}")
    return programs


@contextlib.contextmanager
def _only_one(root: Path) -> Iterator[None]:
    descriptor = os.open(root / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BusyError("Another install is running.", hint="Wait until it is done, then try again.") from None
        yield
    finally:
        os.close(descriptor)


def _run(
    command: list[str], env: Mapping[str, str], root: Path, progress: Progress, limit_s: float, clock: Callable[[], float]
) -> tuple[int | None, list[str]]:
    """(exit code, last lines); the code is None when the limit was over or npm could not be started."""
    try:
        child = subprocess.Popen(
            command,
            env={**env, "npm_config_progress": "false", "npm_config_update_notifier": "false"},
            cwd=root,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
    except OSError as error:
        return None, [str(error)]
    lines: Queue[str | None] = Queue(maxsize=1000)

    def read() -> None:
        assert child.stdout is not None
        for line in child.stdout:
            lines.put(line.rstrip())
        lines.put(None)

    reader = Thread(target=read, name="npm-output", daemon=True)
    reader.start()
    began = last_word = clock()
    tail: list[str] = []
    fetched = 0
    try:
        while True:
            now = clock()
            if now - began > limit_s:
                _end(child)
                return None, tail
            if now - last_word >= _TICK_S:
                last_word = now
                progress(f"… {int(now - began)} s, {fetched} files looked at")
            try:
                line = lines.get(timeout=min(1.0, limit_s))
            except Empty:
                continue
            if line is None:
                return child.wait(timeout=10), tail
            if line.startswith("npm http "):
                fetched += 1
                continue
            tail = [*tail[-_KEPT_LINES:], line]
            if not _NOISE.search(line):
                progress(line)
    except BaseException:
        _end(child)
        raise


def _end(child: subprocess.Popen[str]) -> None:
    for sign in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, sign)
        try:
            child.wait(timeout=3)
        except subprocess.TimeoutExpired:
            continue
        return


def _failed(spec: AgentSpec, code: int | None, tail: list[str], limit_s: float) -> AgentError:
    text = "\n".join(tail)
    shown = next((line for line in tail if "npm error" in line.lower() or "npm err!" in line.lower()), tail[-1] if tail else "")
    again = f"va agents install {spec.id}"
    if code is None and not tail:
        return AgentError(f"npm gave no answer within {limit_s:g} s.", hint=f"Check the network, then: {again}", code="install_timeout")
    if code is None:
        return AgentError(f"npm was not done within {limit_s:g} s: {shown}", hint=f"Check the network, then: {again}", code="install_timeout")
    if "ENOSPC" in text:
        return AgentError("The disk is full.", hint=f"Make room, then: {again}", code="disk_full")
    if "EACCES" in text or "EPERM" in text:
        return AgentError(f"npm may not write there: {shown}", hint="Check the owner of the data directory.", code="no_permission")
    if "E404" in text or "ETARGET" in text:
        return AgentError(
            f"The registry does not have {', '.join(package.pinned for package in spec.npm)}: {shown}",
            hint="If npm uses a mirror (npm config get registry), it may lag behind. Another version can be set in agents.toml.",
            code="package_missing",
        )
    if _NETWORK.search(text):
        return AgentError(f"The package registry cannot be reached: {shown}", hint=f"Check network and proxy (npm ping), then: {again}", code="network")
    return AgentError(f"npm failed with exit code {code}: {shown}", hint=f"Its whole log is named above; after mending: {again}", code="install_failed")
