"""An agent that a command starts over ACP for a moment, outside of any host: no turn, and ended again whatever happens."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import IO, BinaryIO, cast

from agents_registry.errors import AgentError
from agents_registry.launch import LaunchSpec, acp_command, clean_environment, install_advice
from agents_registry.model import AgentSpec
from transports.acp.client import AcpClient
from transports.acp.errors import AgentGone
from transports.acp.permission import Permission
from transports.acp.updates import Event

_STDERR_KEPT = 16 * 1024
_END_S = 3.0


@contextmanager
def running(spec: AgentSpec, environ: Mapping[str, str], data_dir: Path, cwd: str | None) -> Iterator[tuple[LaunchSpec, AcpClient]]:
    """The agent, started in `cwd` and not yet initialized; its process group is gone afterwards.

    Raises:
        AgentError: it cannot be started here; the hint says what to do.
    """
    launch = acp_command(spec, environ, data_dir)
    try:
        launch.write_files()
        child = subprocess.Popen(
            launch.argv,
            env={**clean_environment(environ), **launch.env},
            cwd=cwd,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        raise AgentError(f"{spec.name} cannot be started: {error.strerror or error}.", hint=install_advice(spec)) from error
    assert child.stdin is not None
    assert child.stdout is not None
    assert child.stderr is not None
    tail = _Tail(child.stderr)

    def exit_code(limit: float) -> int | None:
        try:
            return child.wait(timeout=limit)
        except subprocess.TimeoutExpired:
            return None

    listener = _Deaf()
    client = AcpClient(cast(BinaryIO, child.stdin), cast(BinaryIO, child.stdout), listener, exit_code=exit_code, stderr_tail=tail.text)
    listener.client = client
    try:
        client.start()
        yield launch, client
    finally:
        client.close()
        _end(child)
        client.join(1.0)


class _Deaf:
    """A listener for a handshake: there is no turn, so nothing has to be heard."""

    def __init__(self) -> None:
        self.client: AcpClient | None = None

    def on_update(self, session: str, event: Event) -> None:
        pass

    def on_permission(self, permission: Permission) -> None:
        if self.client is not None:
            self.client.answer(permission, None)

    def on_withdrawn(self, permission: Permission) -> None:
        pass

    def on_noise(self, what: str) -> None:
        pass

    def on_gone(self, gone: AgentGone) -> None:
        pass


class _Tail:
    """Keeps the end of the agent's error output; reading it on keeps the agent from blocking."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._kept = b""
        self._thread = Thread(target=self._read, name="agent-stderr", daemon=True)
        self._thread.start()

    def _read(self) -> None:
        with contextlib.suppress(ValueError, OSError):
            while data := os.read(self._stream.fileno(), 65536):
                self._kept = (self._kept + data)[-_STDERR_KEPT:]

    def text(self) -> str:
        self._thread.join(0.5)
        return self._kept.decode("utf-8", "replace")


def _end(child: subprocess.Popen[bytes]) -> None:
    """Its input is closed already; then TERM and KILL to its group, each with a limit."""
    for sign in (None, signal.SIGTERM, signal.SIGKILL):
        if sign is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, sign)
        try:
            child.wait(timeout=_END_S)
        except subprocess.TimeoutExpired:
            continue
        break
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)  # what the agent started and left behind
