"""Show that an agent loads a session that was just written for it: started over ACP, the session opened, ended again."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO, cast

from agents_registry.errors import AgentError
from agents_registry.launch import acp_command, clean_environment, install_advice
from agents_registry.model import AgentSpec
from transports.acp.client import AcpClient
from transports.cli.agent_check import _Deaf, _end, _Tail

LIMIT_S = 60.0
"""Of each step. A first start reads much from a cold disk."""


def prove(spec: AgentSpec, session: str, cwd: str, environ: Mapping[str, str], data_dir: Path, limit_s: float = LIMIT_S) -> str:
    """"" when the agent has loaded `session` in `cwd`; else its reason. No prompt is sent.

    Raises:
        AgentError: the agent cannot be started here at all, so nothing is known.
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
        client.initialize(limit_s)
        if spec.acp is not None and spec.acp.authenticate:
            client.authenticate(spec.acp.authenticate, limit_s)
        opened = client.load(session, os.path.realpath(cwd), [], limit_s)
        return "" if opened.session in ("", session) else f"it opened another session, {opened.session}"
    except AgentError as error:
        return error.message
    finally:
        client.close()
        _end(child)
        client.join(1.0)
