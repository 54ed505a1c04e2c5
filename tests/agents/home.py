"""A home of its own for the coding agents of one test: configuration that asks no question at start, knows only the fake
model, and touches nothing of the person who runs the tests."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.fakes.model_process import FakeModel
from tests.waiting import until

ROOT = Path(__file__).resolve().parents[2]
BIN = ROOT / ".agents" / "node_modules" / ".bin"
CLAUDE = BIN / "claude"
CODEX = BIN / "codex"
CLAUDE_ACP = BIN / "claude-agent-acp"
CODEX_ACP = BIN / "codex-acp"
# Codex looks for bubblewrap on PATH and warns in the chat when it is not there; its package brings one.
_BUBBLEWRAP = ROOT.joinpath(".agents/node_modules/@openai").glob("codex-*/vendor/*/codex-resources/bwrap")
_OWN_BIN = Path(sys.executable).parent
_PATH = os.pathsep.join([str(BIN), str(_OWN_BIN), *(str(path.parent) for path in _BUBBLEWRAP)])
_KEY = "dummy-key"


def why_no_agents() -> str:
    """Why the real agents cannot be driven here, or "" if they can."""
    missing = [path.name for path in (CLAUDE, CODEX, CLAUDE_ACP, CODEX_ACP) if not path.exists()]
    if missing:
        return f"not in .agents: {', '.join(missing)} (make test puts them there)"
    return "" if shutil.which("node") else "node is not installed"


def _path() -> str:
    return f"{_PATH}{os.pathsep}{os.environ.get('PATH', os.defpath)}"


class AgentHome:
    """`home`, `claude_config`, `codex_home` under one folder, and the environment that makes agents use them.

    `trusted` are the directories that the terminal forms of the agents will be started in (their real paths are trusted too).
    """

    def __init__(self, folder: Path, model: FakeModel, *, trusted: tuple[Path, ...] = ()) -> None:
        self.home = folder / "home"
        self.claude_config = self.home / ".claude"
        self.codex_home = self.home / ".codex"
        self.tmp = folder / "tmp"
        self._model = model
        self._codex_config = self.codex_home / "config.toml"
        for path in (self.claude_config, self.codex_home, self.tmp):
            path.mkdir(parents=True, exist_ok=True)
        self._write_json(self.claude_config / "settings.json", {"permissions": {"defaultMode": "default"}})
        # A login shell would put the system's PATH in the place of ours.
        (self.home / ".bash_profile").write_text(f"export PATH={shlex.quote(_path())}\n", "utf-8")
        self._write_codex()
        self.trust(*trusted)

    def trust(self, *directories: Path) -> None:
        """Make the terminal forms of the agents start in these directories without asking whether they may."""
        fresh = dict.fromkeys(path for one in directories for path in (str(one), os.path.realpath(one)))
        state = self._read_json(self.claude_config / ".claude.json")
        projects = state.setdefault("projects", {})
        for path in fresh:
            flags = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
            projects[path] = {**projects.get(path, {}), **flags}
        state |= {"hasCompletedOnboarding": True, "theme": "dark", "customApiKeyResponses": {"approved": [_KEY]}}
        self._write_json(self.claude_config / ".claude.json", state)
        for path in fresh:
            section = f"[projects.{json.dumps(path, ensure_ascii=False)}]\n"
            if section not in self._codex_config.read_text("utf-8"):
                self._add_to_codex(f'{section}trust_level = "trusted"\n')

    def add_mcp_server(self, name: str, command: list[str], env: dict[str, str] | None = None) -> None:
        """Give both agents a stdio MCP server in their own configuration, approved for use."""
        state = self._read_json(self.claude_config / ".claude.json")
        entry = {"type": "stdio", "command": command[0], "args": command[1:], "env": env or {}}
        state.setdefault("mcpServers", {})[name] = entry
        self._write_json(self.claude_config / ".claude.json", state)
        settings = self._read_json(self.claude_config / "settings.json")
        settings.setdefault("permissions", {}).setdefault("allow", []).append(f"mcp__{name}")
        self._write_json(self.claude_config / "settings.json", settings)
        pairs = ", ".join(f"{key} = {json.dumps(value)}" for key, value in (env or {}).items())
        self._add_to_codex(
            f"[mcp_servers.{name}]\ncommand = {json.dumps(command[0])}\nargs = {json.dumps(command[1:])}\n"
            f'default_tools_approval_mode = "approve"\nenv = {{ {pairs} }}\n'
        )

    def env(self, **more: str) -> dict[str, str]:
        """The whole environment for an agent, or for a daemon that will start agents: nothing else is inherited."""
        return {
            "PATH": _path(),
            "VIBEAROUND_AGENTS_DIR": str(ROOT / ".agents"),
            "LANG": "C.UTF-8",
            "TERM": "xterm-256color",
            "SHELL": "/bin/bash",
            "HOME": str(self.home),
            # not a parent of CODEX_HOME, else Codex warns on each start
            "TMPDIR": str(self.tmp),
            "CLAUDE_CONFIG_DIR": str(self.claude_config),
            "CODEX_HOME": str(self.codex_home),
            "ANTHROPIC_BASE_URL": self._model.url,
            "ANTHROPIC_API_KEY": _KEY,
            "FAKE_API_KEY": "dummy",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "CLAUDE_CODE_MAX_RETRIES": "0",
            "DISABLE_AUTOUPDATER": "1",
            "DISABLE_TELEMETRY": "1",
            "DISABLE_ERROR_REPORTING": "1",
            # else newer versions hide MCP tools behind a search tool
            "ENABLE_TOOL_SEARCH": "false",
            "IS_SANDBOX": "1",
            "NO_PROXY": "127.0.0.1,localhost",
            **more,
        }

    def claude_sessions(self) -> list[Path]:
        """The transcripts that Claude Code has written, oldest first."""
        return _by_age((self.claude_config / "projects").glob("*/*.jsonl"))

    def codex_sessions(self) -> list[Path]:
        """The rollouts that Codex has written, oldest first."""
        return _by_age((self.codex_home / "sessions").glob("*/*/*/rollout-*.jsonl"))

    def wait_stored(self, session: str, text: str) -> Path:
        """The file of a session, once it holds `text`: both agents write a turn to disk some time after they ended it."""

        def stored() -> Path | None:
            for path in [*self.claude_sessions(), *self.codex_sessions()]:
                if session in path.name and text in path.read_text("utf-8"):
                    return path
            return None

        return until(stored, f"{text!r} in the stored session {session}")

    # --- files

    def _add_to_codex(self, text: str) -> None:
        """Append to Codex's configuration; what agents and the product put there meanwhile stays."""
        with self._codex_config.open("a", encoding="utf-8") as file:
            file.write(f"\n{text}")

    def _write_codex(self) -> None:
        self._codex_config.write_text(
            f'''model = "fake-model"
model_provider = "fake"
approval_policy = "on-request"
sandbox_mode = "workspace-write"
check_for_update_on_startup = false

[analytics]
enabled = false

[features]
daemon_auto_start = false

[model_providers.fake]
name = "Fake"
base_url = "{self._model.url}/v1"
wire_api = "responses"
env_key = "FAKE_API_KEY"
request_max_retries = 0
stream_max_retries = 0
''',
            "utf-8",
        )

    @staticmethod
    def _read_json(path: Path) -> dict[str, Any]:
        return json.loads(path.read_text("utf-8")) if path.exists() else {}

    @staticmethod
    def _write_json(path: Path, value: object) -> None:
        path.write_text(json.dumps(value, ensure_ascii=False, indent=1), "utf-8")


def _by_age(paths: Iterable[Path]) -> list[Path]:
    return sorted(paths, key=lambda path: path.stat().st_mtime_ns)
