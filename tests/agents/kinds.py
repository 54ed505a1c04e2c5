"""What differs between the real agents, for tests that hold for each: how to run it, how its terminal form looks."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from tests.agents.home import AgentHome
from tests.agents.rig import AgentRun, Tui, claude_tui, codex_tui, run_claude, run_codex
from tests.daemon import Daemon, Turn

CODE = r"/pickup ([A-HJ-NP-Z2-9]{4})\b"


@dataclass(frozen=True, slots=True)
class Kind:
    """One agent. `prompt` matches its terminal's empty input line, `dialog` the question before a tool call."""

    id: str
    run: Callable[..., AgentRun]
    tui: Callable[..., AbstractContextManager[Tui]]
    prompt: str
    dialog: str
    adapter: str

    def session(self, home: AgentHome, cwd: Path, text: str = "remember banana") -> str:
        """A stored session with one turn, made by the agent's own command line; returns its id."""
        run = self.run(home, text, cwd=cwd)
        assert run.code == 0, run
        home.wait_stored(run.session, f"ECHO#1: {text}")
        return run.session


CLAUDE_KIND = Kind("claude", run_claude, claude_tui, r"(?m)^❯", "Do you want to proceed", "claude-agent-acp")
CODEX_KIND = Kind("codex", run_codex, codex_tui, r"(?m)^›", "Would you like to run|Allow .*tool|Approve", "codex-acp")


def daemon_for(folder: Path, home: AgentHome, kind: Kind, **settings: object) -> Daemon:
    """A daemon whose new threads get this agent, and whose agents are the pinned ones with the fake model."""
    return Daemon(folder / "va", home.env(), agents__default=kind.id, **settings)


def code_for(daemon: Daemon, kind: Kind, session: str, cwd: Path) -> str:
    """A handover code as a script gets it: `va handover --json`."""
    words = ["handover", "--agent", kind.id, "--session", session, "--cwd", str(cwd), "--json"]
    return str(daemon.va(*words).json()["code"])


def code_in(text: str) -> str:
    """The code of the line `/pickup CODE` in a text."""
    found = re.search(CODE, text)
    assert found, f"no line /pickup CODE in:\n{text}"
    return found.group(1)


def pick_up(daemon: Daemon, kind: Kind, session: str, cwd: Path, *, chat: str) -> Turn:
    """Issue a code for a session and pick it up in a chat; returns the pickup's turn."""
    return daemon.send(f"/pickup {code_for(daemon, kind, session, cwd)}", chat=chat)
