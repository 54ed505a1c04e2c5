"""The checks of `va doctor`, each on its own: what it looked at, whether that is well, and what to do if not.

Nothing is created or changed, except one file that is written to see whether the disk takes it, and removed. A check
that breaks is itself reported; the others go on.
"""

from __future__ import annotations

import os
import shutil
import socket
import stat
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Literal, NamedTuple

from agents_registry.errors import VibeAroundError
from transports import paths

_SLOW_FSYNC_S = 0.1
_LITTLE_SPACE = 200 * 1024 * 1024
_ANSWER_S = 2.0
_PRIVATE = ("run.json", "settings.toml", "*.db*", "state/*", "spool/*", "files/*", "launches/*")


class Check(NamedTuple):
    """One finding. `warn` works but is not as it should be; `fail` keeps something from working."""

    name: str
    state: Literal["ok", "warn", "fail"]
    detail: str
    fix: str = ""


def examine(data_dir: Path, environ: Mapping[str, str]) -> Iterator[Check]:
    """All checks, yielded as they are done (the login shell and the agents take seconds). Never raises."""
    shell: dict[str, Mapping[str, str]] = {}
    checks: list[tuple[str, Callable[[], Iterator[Check]]]] = [
        ("python", _python),
        ("data directory", lambda: _data_dir(data_dir)),
        ("disk", lambda: _disk(data_dir)),
        ("settings", lambda: _settings(data_dir, environ)),
        ("journal", lambda: _journal(data_dir)),
        ("sockets", lambda: _sockets(data_dir, environ)),
        ("supervisor", lambda: _supervisor(data_dir)),
        ("service", lambda: _service(data_dir, environ)),
        ("login shell", lambda: _login_shell(environ, shell)),
        ("agents", lambda: _agents(data_dir, shell.get("environment", environ))),
    ]
    for name, check in checks:
        try:
            yield from check()
        except VibeAroundError as error:
            yield Check(name, "fail", error.message, error.hint)
        except Exception as error:  # noqa: BLE001 - a doctor that dies of one illness tells nothing of the others
            yield Check(name, "fail", f"the check itself failed: {type(error).__name__}: {error}", "Please report this.")


def _python() -> Iterator[Check]:
    version = ".".join(str(part) for part in sys.version_info[:3])
    yield Check("python", "ok", f"{version} at {sys.executable}")


def _data_dir(data_dir: Path) -> Iterator[Check]:
    try:
        info = data_dir.stat()
    except FileNotFoundError:
        yield Check("data directory", "ok", f"{data_dir} does not exist yet; `va up` makes it")
        return
    if not stat.S_ISDIR(info.st_mode):
        yield Check("data directory", "fail", f"{data_dir} is not a directory", "Move it away, or set VIBEAROUND_DATA_DIR.")
    elif info.st_uid != os.geteuid():
        yield Check("data directory", "fail", f"{data_dir} belongs to uid {info.st_uid}", "Set VIBEAROUND_DATA_DIR.")
    elif info.st_mode & 0o077:
        yield Check("data directory", "warn", f"others may look into {data_dir}", f"chmod 700 {data_dir}")
    else:
        yield Check("data directory", "ok", str(data_dir))
    for path in sorted(path for pattern in _PRIVATE for path in data_dir.glob(pattern)):
        if path.stat().st_mode & 0o077:
            yield Check("data directory", "warn", f"others may read {path}", f"chmod go= {path}")


def _disk(data_dir: Path) -> Iterator[Check]:
    where = next(path for path in (data_dir, *data_dir.parents) if path.exists())
    if where == data_dir:
        probe = data_dir / f".doctor.{os.getpid()}"
        started = time.monotonic()
        try:
            paths.atomic_write(probe, b"x" * 4096)
        except OSError as error:
            yield Check("disk", "fail", f"{data_dir} cannot be written: {error.strerror}", "Free space, or mend its mode.")
            return
        finally:
            probe.unlink(missing_ok=True)
        took = time.monotonic() - started
        if took > _SLOW_FSYNC_S:
            yield Check("disk", "warn", f"a safe write took {took * 1000:.0f} ms", "Put VIBEAROUND_DATA_DIR on a local disk.")
    free = shutil.disk_usage(where).free
    if free < _LITTLE_SPACE:
        yield Check("disk", "warn", f"{free // 2**20} MiB are free at {where}", "Free some space.")
    else:
        yield Check("disk", "ok", f"{free // 2**30} GiB free at {where}")


def _settings(data_dir: Path, environ: Mapping[str, str]) -> Iterator[Check]:
    from transports import settings

    described = settings.describe(data_dir, environ)
    changed = [f"{one.setting.key} ({one.source})" for one in described if one.source != "default"]
    yield Check("settings", "ok", f"changed: {', '.join(changed)}" if changed else "all defaults")


def _journal(data_dir: Path) -> Iterator[Check]:
    path = data_dir / "state" / "journal.db"
    if not path.exists():
        yield Check("journal", "ok", "none yet; the first `va up` makes it")
        return
    away = f"Move {path} away to start with an empty journal; the agents' own sessions are not touched by that."
    if not path.is_file():  # SQLite would wait for ever in the open() of a pipe
        yield Check("journal", "fail", f"{path} is not a regular file", away)
        return
    import sqlite3
    from contextlib import closing
    from urllib.parse import quote

    try:
        with closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True, timeout=_ANSWER_S)) as connection:
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.OperationalError as error:
        yield Check("journal", "fail", f"{path} cannot be opened: {error}", "Check its mode, its directory and the disk.")
    except sqlite3.DatabaseError as error:
        yield Check("journal", "fail", f"{path} is damaged: {error}", away)
    else:
        yield Check("journal", "ok", f"{path.stat().st_size / 1e6:.1f} MB, schema {version}")


def _sockets(data_dir: Path, environ: Mapping[str, str]) -> Iterator[Check]:
    chosen = paths.socket_dir(data_dir, environ)
    runtime = environ.get("XDG_RUNTIME_DIR", "")
    why = "" if not runtime or str(chosen).startswith(runtime) else f" (XDG_RUNTIME_DIR {runtime} is too long or not yours)"
    try:
        info = chosen.lstat()
    except FileNotFoundError:
        yield Check("sockets", "ok", f"{chosen}{why}")
        return
    if not stat.S_ISDIR(info.st_mode) or info.st_uid != os.geteuid():
        yield Check("sockets", "fail", f"{chosen} is not a directory of yours", f"Remove {chosen}, or set XDG_RUNTIME_DIR.")
    elif info.st_mode & 0o077:
        yield Check("sockets", "warn", f"others may enter {chosen}", f"chmod 700 {chosen}")
    else:
        yield Check("sockets", "ok", f"{chosen}{why}")


def _supervisor(data_dir: Path) -> Iterator[Check]:
    run = paths.load_run(data_dir)
    holder = paths.lock_holder(data_dir)
    if run is None and (data_dir / paths.RUN_FILE).exists():
        yield Check("supervisor", "warn", f"{data_dir / paths.RUN_FILE} is damaged", "Run `va down`, then `va up`.")
    elif run is None or not paths.is_alive(run):
        if holder is not None:
            yield Check("supervisor", "warn", f"starting, or hung (pid {holder} has the lock)", "Wait, or run `va down`.")
        elif run is None:
            yield Check("supervisor", "warn", "not running", "Run `va up`.")
        else:
            yield Check("supervisor", "warn", f"not running; it ended without saying so (pid {run.pid})", "Run `va up`.")
    elif holder is None:
        yield Check("supervisor", "warn", f"pid {run.pid} runs without its lock", "Run `va down`, then `va up`.")
    else:
        problem = _ask(run.socket("mcp.sock"))
        if problem:
            yield Check("supervisor", "fail", f"pid {run.pid} does not answer: {problem}", "Run `va down`, then `va up`.")
        else:
            yield Check("supervisor", "ok", f"pid {run.pid}, version {run.version}, answers")


def _ask(path: str) -> str:
    """Why the supervisor's MCP socket does not answer a ping in time; empty when it does."""
    with socket.socket(socket.AF_UNIX) as peer:
        peer.settimeout(_ANSWER_S)
        try:
            peer.connect(path)
            peer.sendall(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
            return "" if b'"result"' in peer.recv(4096) else "an odd answer"
        except TimeoutError:
            return f"nothing within {_ANSWER_S:g} s"
        except OSError as error:
            return f"{path}: {error.strerror or error}"


def _service(data_dir: Path, environ: Mapping[str, str]) -> Iterator[Check]:
    from transports.service import manage

    manager = manage.find(data_dir, environ)
    state = manager.state()
    if not state.installed:
        yield Check("service", "ok", "not installed; `va up` runs the supervisor until you log out or it is ended")
        return
    if not state.current:
        yield Check("service", "warn", f"{state.path} is not what this version writes", "Run `va service install` again.")
    if not state.active:
        yield Check("service", "warn", f"{state.name}: {state.detail}", "Run `va up`, or look at its log.")
    else:
        yield Check("service", "ok", f"{state.name}: {state.detail}, pid {state.pid}")
    if state.lingers is False:
        user = environ.get("USER") or str(os.geteuid())
        yield Check("service", "warn", "ends when you log out", f"sudo loginctl enable-linger {user}")


def _login_shell(environ: Mapping[str, str], found: dict[str, Mapping[str, str]]) -> Iterator[Check]:
    from agents_registry.login_env import login_environment

    told = login_environment(environ)
    found["environment"] = told.variables
    path = told.variables.get("PATH", "")
    if told.problem:
        fix = "Agents are looked for on this PATH; set SHELL, or mend the shell's start files."
        yield Check("login shell", "warn", f"{told.problem}; using {told.source}, PATH {path}", fix)
    else:
        yield Check("login shell", "ok", f"{told.source}, PATH {path}")
    if not told.variables.get("HOME"):
        yield Check("login shell", "fail", "HOME is not set", "Set HOME: agents keep their sessions below it.")


def _agents(data_dir: Path, environ: Mapping[str, str]) -> Iterator[Check]:
    from agents_registry.detect import detect_all, node_version
    from agents_registry.loader import load_registry

    node = node_version(environ)
    if node:
        yield Check("node", "ok", ".".join(str(part) for part in node))
    else:
        yield Check("node", "warn", "no `node` on PATH; most agents' adapters need it", "Install Node 22 or newer.")
    here = [found for found in detect_all(load_registry(data_dir).here(), environ, data_dir) if found.installed]
    if not any(found.acp.ok and found.spec.id != "demo" for found in here):
        yield Check("agents", "warn", "no coding agent that can be hosted was found", "See `va agents list`; `va demo` needs none.")
    for found in here:
        name = f"{found.spec.name} {found.version}".strip()
        if found.acp.ok:
            yield Check("agents", "ok", name)
        elif found.spec.acp is not None:
            yield Check("agents", "warn", f"{name}: cannot be hosted, {found.acp.why}", found.acp.fix)
