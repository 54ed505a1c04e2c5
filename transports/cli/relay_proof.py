"""Show that an agent loads a session that was just written for it: started over ACP, the session opened, ended again."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from agents_registry.errors import AgentError
from agents_registry.model import AgentSpec
from transports.cli.agent_once import running

LIMIT_S = 60.0
"""Of each step. A first start reads much from a cold disk."""


def prove(spec: AgentSpec, session: str, cwd: str, environ: Mapping[str, str], data_dir: Path, limit_s: float = LIMIT_S) -> str:
    """"" when the agent has loaded `session` in `cwd`; else its reason. No prompt is sent.

    Raises:
        AgentError: the agent cannot be started here at all, so nothing is known.
    """
    with running(spec, environ, data_dir, cwd) as (_, client):
        try:
            client.initialize(limit_s)
            if spec.acp is not None and spec.acp.authenticate:
                client.authenticate(spec.acp.authenticate, limit_s)
            opened = client.load(session, os.path.realpath(cwd), [], limit_s)
        except AgentError as error:
            return error.message
        return "" if opened.session in ("", session) else f"it opened another session, {opened.session}"
