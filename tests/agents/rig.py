"""Real Claude Code and real Codex in a test: everything from one place.

    def test_something(model, home, work):            # fixtures of conftest.py
        run = run_claude(home, "remember banana", cwd=work)
        run.session, run.text                         # the id, "ECHO#1: remember banana"
        with claude_tui(home, work, "--resume", run.session) as tui:
            tui.type("RECALL{}")
            tui.wait_for("banana")
        assert model.wait_text("RECALL{}").holds("remember banana")

What the model answers is said in the prompt (tests/fakes/model_rules.py). `home.env()` is the environment to give to a
daemon under test, so that the agents that it starts are the pinned ones and know only the fake model.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.agents.acp_probe import AcpProbe, AcpRefusal, result_of
from tests.agents.home import CLAUDE, CLAUDE_ACP, CODEX, CODEX_ACP, ROOT, AgentHome, why_no_agents
from tests.agents.tui import Tui
from tests.fakes.model_process import FakeModel, ModelRequest

__all__ = [
    "CLAUDE",
    "CLAUDE_ACP",
    "CODEX",
    "CODEX_ACP",
    "ROOT",
    "AcpProbe",
    "AcpRefusal",
    "AgentHome",
    "AgentRun",
    "FakeModel",
    "ModelRequest",
    "Tui",
    "claude_acp",
    "claude_tui",
    "codex_acp",
    "codex_tui",
    "result_of",
    "run_claude",
    "run_codex",
    "why_no_agents",
]


@dataclass(frozen=True, slots=True)
class AgentRun:
    """One finished run of an agent without a terminal: exit code, session id ("" if it told none), last text, all output."""

    code: int
    session: str
    text: str
    output: str
    errors: str


def run_claude(
    home: AgentHome,
    prompt: str,
    *,
    cwd: Path,
    resume: str = "",
    session_id: str = "",
    allow: Sequence[str] = (),
    seconds: float = 60.0,
) -> AgentRun:
    """`claude -p PROMPT`. `session_id` chooses the id of a new session; `allow` names tools that need no permission."""
    command = [str(CLAUDE), "-p", prompt, "--output-format", "json"]
    command += ["--resume", resume] if resume else []
    command += ["--session-id", session_id] if session_id else []
    command += ["--allowedTools", *allow] if allow else []
    done = _run(command, home, cwd, seconds)
    told: dict[str, Any] = {}
    if done.stdout.lstrip().startswith("{"):
        told = json.loads(done.stdout)
    text = str(told.get("result", ""))
    return AgentRun(done.returncode, str(told.get("session_id", "")), text, done.stdout, done.stderr)


def run_codex(home: AgentHome, prompt: str, *, cwd: Path, resume: str = "", seconds: float = 60.0) -> AgentRun:
    """`codex exec PROMPT`, or `codex exec resume ID PROMPT`. Approvals are never asked in this form: use RUN, not SHELL."""
    command = [str(CODEX), "exec", *(["resume", resume] if resume else []), "--skip-git-repo-check", "--json", prompt]
    done = _run(command, home, cwd, seconds)
    session, text = "", ""
    for line in done.stdout.splitlines():
        event = json.loads(line)
        if event["type"] == "thread.started":
            session = event["thread_id"]
        elif event["type"] == "item.completed" and event["item"]["type"] == "agent_message":
            text = event["item"]["text"]
    return AgentRun(done.returncode, session, text, done.stdout, done.stderr)


@contextmanager
def claude_tui(home: AgentHome, cwd: Path, *arguments: str, **env: str) -> Iterator[Tui]:
    """Claude Code's terminal form, ready for a prompt. `/clear`, `/exit` and the rest are typed like text."""
    home.trust(cwd)
    with Tui([str(CLAUDE), *arguments], cwd=cwd, env=home.env(**env)) as tui:
        tui.wait_for(r"(?m)^❯")
        yield tui


@contextmanager
def codex_tui(home: AgentHome, cwd: Path, *arguments: str, **env: str) -> Iterator[Tui]:
    """Codex's terminal form, ready for a prompt. The configuration of `home` keeps its background daemon from starting."""
    home.trust(cwd)
    with Tui([str(CODEX), *arguments], cwd=cwd, env=home.env(**env)) as tui:
        tui.wait_for(r"(?m)^›")
        yield tui


@contextmanager
def claude_acp(home: AgentHome, cwd: Path, *, choose: str = "allow_once", **env: str) -> Iterator[AcpProbe]:
    """The ACP adapter of Claude Code, initialized."""
    with AcpProbe([str(CLAUDE_ACP)], cwd=cwd, env=home.env(**env), choose=choose) as probe:
        yield probe


@contextmanager
def codex_acp(home: AgentHome, cwd: Path, *, choose: str = "allow_once", **env: str) -> Iterator[AcpProbe]:
    """The ACP adapter of Codex, initialized, in the mode that asks the client (the default one asks a model)."""
    mode = {"INITIAL_AGENT_MODE": "workspace-write"}
    with AcpProbe([str(CODEX_ACP)], cwd=cwd, env=home.env(**{**mode, **env}), choose=choose) as probe:
        yield probe


def _run(command: list[str], home: AgentHome, cwd: Path, seconds: float) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=cwd,
        env=home.env(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
