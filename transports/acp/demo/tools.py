"""The demo agent's two tools: a shell command and a file, both in the session's directory and both bounded."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

MAX_OUTPUT = 256 << 10
"""Bytes of a command's output that are kept."""
COMMAND_LIMIT_S = 3600.0


def run_command(command: str, cwd: str, cancelled: Callable[[], bool]) -> tuple[int, str]:
    """Exit code and output of a shell command; it is ended with its group when the turn is cancelled (code -15)."""
    process = subprocess.Popen(
        ["/bin/sh", "-c", command],
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    waited = 0.0
    while True:
        try:
            output, _ = process.communicate(timeout=0.1)
            break
        except subprocess.TimeoutExpired:
            waited += 0.1
            if cancelled() or waited > COMMAND_LIMIT_S:
                os.killpg(process.pid, signal.SIGKILL)
                output, _ = process.communicate()
                break
    text = output[:MAX_OUTPUT].decode("utf-8", "replace")
    if len(output) > MAX_OUTPUT:
        text += f"\n({len(output) - MAX_OUTPUT} more bytes)"
    return process.returncode, text


def write_file(cwd: str, name: str, text: str) -> str:
    """Write a file below the session's directory and say what was done. Raises OSError, ValueError."""
    base = Path(cwd).resolve()
    path = (base / name).resolve()
    if not path.is_relative_to(base):
        raise ValueError(f"{name} lies outside {cwd}")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return f"{len(text.encode())} bytes written to {name}"
