"""Run a short program with a limit: its group is killed when the limit is over. Never raises for what the program does."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

KEEP = 64 * 1024
"""Bytes of output that are kept."""


@dataclass(frozen=True, slots=True)
class Ran:
    """`code` is None when the program could not be started or was stopped at the limit; `why` then says which."""

    code: int | None
    out: str
    err: str
    why: str = ""

    @property
    def ok(self) -> bool:
        return self.code == 0


def run_bounded(argv: Sequence[str], env: Mapping[str, str], limit_s: float, *, cwd: str | None = None) -> Ran:
    """Run `argv` in a process group of its own without a terminal, for at most `limit_s` seconds."""
    try:
        child = subprocess.Popen(
            list(argv), env=dict(env), cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
        )
    except OSError as error:
        return Ran(None, "", "", f"{argv[0]} cannot be started: {error.strerror or error}")
    why = ""
    try:
        out, err = child.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        why = f"{argv[0]} did not answer within {limit_s:g} s"
        out, err = _stopped(child)
    except BaseException:
        _stopped(child)
        raise
    return Ran(None if why else child.returncode, _text(out), _text(err), why)


def _stopped(child: subprocess.Popen[bytes]) -> tuple[bytes, bytes]:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    try:
        # A grandchild that left the group may hold the pipes open: what came so far is enough then.
        return child.communicate(timeout=1.0)
    except subprocess.TimeoutExpired:
        for pipe in (child.stdout, child.stderr):
            if pipe is not None:
                pipe.close()
        return b"", b""


def _text(data: bytes) -> str:
    return data[-KEEP:].decode("utf-8", "replace")
