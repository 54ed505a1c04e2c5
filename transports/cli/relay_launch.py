"""The start of the receiving agent in this terminal, behind a relay."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from agents_registry.errors import AgentError, UsageError
from agents_registry.launch import (
    Identity,
    clean_environment,
    find_program,
    install_advice,
    resume_command,
    terminal_command,
)

if TYPE_CHECKING:
    from agents_registry.model import AgentSpec

_PROMPT: dict[str, tuple[str, ...]] = {
    "claude": ("{}",), "codex": ("{}",), "cursor": ("{}",), "pi": ("{}",), "gemini": ("-i", "{}"), "qwen-code": ("-i", "{}"),
    "opencode": ("--prompt", "{}"),
}  # fmt: skip
"""How a terminal agent takes a first prompt and stays open (each one's own --help)."""


def command(spec: AgentSpec, session: str, cwd: str, pointer: str = "") -> list[str]:
    """The command that opens `session` ("" for a new one), with `pointer` as its first prompt.

    Raises:
        UsageError: the agent has no such command, or takes no first prompt.
    """
    argv = resume_command(spec, session, cwd) if session else terminal_command(spec)
    if pointer:
        template = _PROMPT.get(spec.id)
        if template is None:
            raise UsageError(f"{spec.name} takes no first prompt on its command line.", hint="Use --out FILE, start it, and paste the text.")
        argv += [word.replace("{}", pointer) for word in template]
    return argv


def pointer(opening: str, path: Path) -> str:
    """The short first prompt: what it is, and which file holds it."""
    return f"{opening} Read all of the file {path} first, then do what its last lines say."


@contextlib.contextmanager
def private_file(data_dir: Path, text: str) -> Iterator[Path]:
    """The text in a file that only this user reads (0600), gone afterwards."""
    place = data_dir / "files"
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = place / f"relay-{secrets.token_hex(6)}.md"
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with open(descriptor, "w", encoding="utf-8", errors="replace") as file:
            file.write(text)
        yield path
    finally:
        path.unlink(missing_ok=True)


def start(spec: AgentSpec, argv: list[str], cwd: str, session: str, data_dir: Path) -> int:
    """Run the agent here until it ends; its exit code. The supervisor can know it by the record of this process.

    Raises:
        AgentError: it is not installed, or cannot be started.
    """
    from agents_registry.evidence import process
    from agents_registry.launch_record import LaunchRecord, new_launch_id, write_launch
    from transports.cli.agents import search_environment

    program = find_program(spec, argv[0], os.environ, data_dir) or find_program(spec, argv[0], search_environment(os.environ), data_dir)
    if program is None:
        raise AgentError(f"{spec.name} is not installed: {argv[0]!r} was not found.", hint=install_advice(spec), code="agent_missing")
    who = Identity(spec.id, launch=new_launch_id())
    me = process(os.getpid())
    write_launch(data_dir, LaunchRecord(who.launch, os.getpid(), me[0].start_time if me else 0, spec.id, cwd, session=session, at=time.time()))
    sys.stdout.flush()
    sys.stderr.flush()
    # The terminal's Ctrl-C is for the agent; this process only waits for it.
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        child = subprocess.Popen(
            argv, executable=program, cwd=cwd, env={**clean_environment(os.environ), **who.variables(), "PWD": cwd}, restore_signals=True,
            preexec_fn=_listen,
        )  # fmt: skip
        code = child.wait()
    except OSError as error:
        raise AgentError(f"{argv[0]} cannot be started: {error.strerror or error}.", hint=install_advice(spec)) from error
    finally:
        signal.signal(signal.SIGINT, before)
    return code if code >= 0 else 128 - code


def _listen() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # an ignored signal would stay ignored in the agent
