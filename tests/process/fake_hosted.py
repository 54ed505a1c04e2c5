"""A daemon whose demo agent is the scripted one of tests/fakes, for what only an agent with knobs shows."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from tests.daemon import Daemon, plain_env

FAKE = Path(__file__).resolve().parents[1] / "fakes" / "fake_agent.py"


def fake_daemon(folder: Path, knobs: dict[str, Any] | None = None, **settings: object) -> Daemon:
    """Not started yet; a prompt of its chats is a program of the fake agent."""
    daemon = Daemon(folder / "va", plain_env(folder), agents__default="demo", **settings)
    daemon.data.mkdir(parents=True, mode=0o700)
    env = json.dumps({"modes": ["ask", "plan"], **(knobs or {})})
    command = json.dumps([sys.executable, str(FAKE)])
    entry = f"[demo.acp]\ncommand = {command}\nenv = {{ FAKE_AGENT = {json.dumps(env)} }}\n"
    (daemon.data / "agents.toml").write_text(entry)
    return daemon
