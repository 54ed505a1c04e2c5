"""Drives a real ACP agent process with the client, and keeps what was heard."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from transports.acp import updates
from transports.acp.client import AcpClient
from transports.acp.errors import AgentGone
from transports.acp.permission import Permission, choose

REPO = Path(__file__).resolve().parents[2]
FAKE = [sys.executable, str(REPO / "tests" / "fakes" / "fake_agent.py")]
LIMIT_S = 10.0


class Driven:
    """One agent and one client. `decide`: the kind of option to answer with, "" = keep it open."""

    def __init__(
        self, argv: Sequence[str], env: Mapping[str, str] | None = None, *, decide: str = "", **client: Any
    ) -> None:
        self.heard: list[tuple[str, updates.Event]] = []
        self.asked: queue.SimpleQueue[Permission] = queue.SimpleQueue()
        self.withdrawn: list[Permission] = []
        self.noise: list[str] = []
        self.gone: queue.SimpleQueue[AgentGone] = queue.SimpleQueue()
        self._decide = decide
        self._said = threading.Condition()
        self.process = subprocess.Popen(
            list(argv),
            env={"PATH": os.environ["PATH"], "PYTHONPATH": str(REPO), **(env or {})},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert self.process.stdin and self.process.stdout and self.process.stderr
        tail: list[bytes] = []
        stderr = self.process.stderr
        self._stderr = threading.Thread(target=lambda: tail.append(stderr.read()), daemon=True)
        self._stderr.start()

        def last_words() -> str:
            self._stderr.join(LIMIT_S)
            return b"".join(tail).decode()

        self.client = AcpClient(
            self.process.stdin, self.process.stdout, self, exit_code=self._exit_code, stderr_tail=last_words, **client
        )
        self.client.start()

    def _exit_code(self, limit_s: float) -> int | None:
        try:
            return self.process.wait(limit_s)
        except subprocess.TimeoutExpired:
            return None

    def prompt(self, session: str, text: str) -> Any:
        return self.client.prompt(session, [{"type": "text", "text": text}])

    def texts(self) -> list[str]:
        return [e.text for _, e in self.heard if isinstance(e, updates.Text)]

    def said(self, text: str) -> None:
        """Wait until the agent has said this."""
        with self._said:
            assert self._said.wait_for(lambda: text in "".join(self.texts()), LIMIT_S), f"never said {text!r}"

    def close(self) -> None:
        self.client.close()
        self.process.kill()
        self.process.wait()
        self.client.join(LIMIT_S)
        self._stderr.join(LIMIT_S)
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            if pipe is not None:
                try:
                    pipe.close()
                except OSError:
                    pass  # the agent is gone

    # --- the listener

    def on_update(self, session: str, event: updates.Event) -> None:
        with self._said:
            self.heard.append((session, event))
            self._said.notify_all()

    def on_permission(self, permission: Permission) -> None:
        if self._decide:
            option = choose(permission, self._decide)
            assert option is not None
            self.client.answer(permission, option.id)
        self.asked.put(permission)

    def on_withdrawn(self, permission: Permission) -> None:
        self.withdrawn.append(permission)

    def on_noise(self, what: str) -> None:
        self.noise.append(what)

    def on_gone(self, gone: AgentGone) -> None:
        self.gone.put(gone)


def fake(knobs: Mapping[str, Any] | None = None, **more: Any) -> Driven:
    """The fake agent with knobs, initialized."""
    return Driven(FAKE, {"FAKE_AGENT": json.dumps(knobs or {})}, **more)
