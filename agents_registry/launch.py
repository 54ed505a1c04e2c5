"""How an agent is started: its command, its variables, its resume command. Everything here only computes.

The variables that a launched or hosted agent gets are one table, `AGENT_VARIABLES`; they are how an agent's skill or
tool knows where it runs. Channel and chat are not among them: a thread's routes change, so they are asked for.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agents_registry.errors import AgentError, UsageError
from agents_registry.model import AgentSpec

AGENTS_DIR_ENV = "VIBEAROUND_AGENTS_DIR"
"""A directory whose node_modules/.bin is looked into before all others (a checkout's pinned agents)."""

AGENT_VARIABLES: Mapping[str, str] = {
    "VIBEAROUND_AGENT_KIND": "id of the agent in the registry",
    "VIBEAROUND_PROFILE_ID": "profile it runs with; `direct` is the agent's own login",
    "VIBEAROUND_LAUNCH_ID": "this start of the agent: a `va launch`, or one host",
    "VIBEAROUND_THREAD_ID": "thread that it hosts; absent after a plain `va launch`",
    "VIBEAROUND_WORKSPACE_ID": "workspace of that thread; absent after a plain `va launch`",
}
"""What launched and hosted agents are told, and what each one means."""

HOST_VARIABLE = "VIBEAROUND_HOST_ID"
"""Only in hosted processes: how leftovers of a host are recognised. Never in a launched terminal."""

_STARTED_BY = (*AGENT_VARIABLES, HOST_VARIABLE)
_INSIDE_AN_AGENT = (
    "AGENT", "AI_AGENT", "CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SESSION_ID", "CLAUDE_PID", "CLAUDE_PROJECT_DIR",
    "CODEX_SANDBOX", "CODEX_SANDBOX_NETWORK_DISABLED", "CODEX_SESSION_ID", "CODEX_THREAD_ID", "CODEX_TOOL_CALL_ID", "GEMINI_CLI",
    "OPENCODE", "OPENCODE_CLIENT", "OPENCODE_PID", "PI_CODING_AGENT", "PI_SESSION_FILE", "PI_SESSION_ID", "QWEN_CODE",
    "QWEN_CODE_PROJECT_DIR", "QWEN_CODE_PROMPT_ID", "QWEN_CODE_SESSION_ID",
)  # fmt: skip
"""What agents put into the environment of the commands they run: it speaks of that agent's session, not of a new one."""
_SAFE_WORD = re.compile(r"[A-Za-z0-9_@%+=:,./-]+")


@dataclass(frozen=True, slots=True)
class LaunchSpec:
    """A command with absolute program, the variables to add, and the settings files to write before the start."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    files: tuple[tuple[Path, str], ...] = field(default=())

    def write_files(self) -> None:
        """Put the settings files in place (0600, replaced atomically). Raises OSError."""
        from agents_registry.integrate.files import replace_file

        for path, text in self.files:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            replace_file(path, text.encode(), mode=0o600)


@dataclass(frozen=True, slots=True)
class Identity:
    """Who a started agent is; empty fields are left out of its environment."""

    agent: str
    profile: str = "direct"
    launch: str = ""
    thread: str = ""
    workspace: str = ""
    host: str = ""

    def variables(self) -> dict[str, str]:
        values = {
            "VIBEAROUND_AGENT_KIND": self.agent,
            "VIBEAROUND_PROFILE_ID": self.profile,
            "VIBEAROUND_LAUNCH_ID": self.launch,
            "VIBEAROUND_THREAD_ID": self.thread,
            "VIBEAROUND_WORKSPACE_ID": self.workspace,
            HOST_VARIABLE: self.host,
        }
        return {name: value for name, value in values.items() if value}


def clean_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """`environ` without what another agent left in it: one that is begun from inside an agent (`va up` or `va launch`
    in its shell tool) is not that agent, and some refuse to start where they believe themselves nested."""
    return {name: value for name, value in environ.items() if name not in _STARTED_BY and name not in _INSIDE_AN_AGENT}


def bin_dirs(env: Mapping[str, str], data_dir: Path) -> list[Path]:
    """Where pinned packages put their programs, best first. They need not exist."""
    pinned = env.get(AGENTS_DIR_ENV, "")
    return [*([Path(pinned) / "node_modules" / ".bin"] if pinned else []), data_dir / "agents" / "node_modules" / ".bin"]


def find_program(spec: AgentSpec, word: str, env: Mapping[str, str], data_dir: Path) -> str | None:
    """The absolute path of a command's first word, or None.

    An adapter that VibeAround pins itself is taken from the pinned packages first; the agent's own command line from
    the user's PATH first, so that terminal and chat run the same version.
    """
    import shutil  # loads the compression modules: not for those who only resume or print a command

    if word == "{python}":
        return sys.executable
    if word == "va":
        beside = Path(sys.executable).with_name("va")
        return str(beside) if beside.exists() else shutil.which("va", path=env.get("PATH", os.defpath))
    if os.sep in word:
        return word if os.access(word, os.X_OK) else None
    pinned = os.pathsep.join(str(directory) for directory in bin_dirs(env, data_dir))
    path = env.get("PATH", os.defpath)
    own_adapter = bool(spec.npm) and spec.npm[0].bin == word and spec.terminal is not None and word != spec.terminal.command[0]
    for where in (pinned, path) if own_adapter or env.get(AGENTS_DIR_ENV) else (path, pinned):
        found = shutil.which(word, path=where)
        if found:
            return found
    return None


def acp_command(spec: AgentSpec, env: Mapping[str, str], data_dir: Path) -> LaunchSpec:
    """The ACP server's command. `env` is the environment it will be started with (its PATH is searched).

    The result's `env` holds only additions that `env` does not set itself, so a user's own choice wins.

    Raises:
        AgentError: the agent cannot be hosted, or its program is not there; the hint says how to install it.
    """
    if spec.acp is None:
        raise AgentError(f"{spec.name} cannot be hosted: it speaks no agent protocol.", hint="It can only be launched: va launch " + spec.id)
    word, *arguments = spec.acp.command
    program = find_program(spec, word, env, data_dir)
    if program is None:
        raise AgentError(f"{spec.name} is not installed: '{word}' was not found.", hint=install_advice(spec), code="agent_missing")
    additions = {name: value for name, value in spec.acp.env.items() if name not in env}
    files: tuple[tuple[Path, str], ...] = ()
    settings = spec.acp.settings_file
    if settings is not None:
        path = data_dir / "agents" / f"{spec.id}-settings.json"
        over = Path(env.get(settings.env) or settings.over)
        if over != path:
            files = ((path, _settings_over(over, settings.content)),)
        additions[settings.env] = str(path)
    if spec.acp.own_cli_env and spec.acp.own_cli_env not in env and len(spec.npm) > 1:
        # A pinned pair of adapter and agent belongs together (Pi): the adapter is told which one to run.
        partner = find_program(spec, spec.npm[1].bin, {**env, AGENTS_DIR_ENV: env.get(AGENTS_DIR_ENV) or str(data_dir / "agents")}, data_dir)
        if partner is not None:
            additions[spec.acp.own_cli_env] = partner
    return LaunchSpec((program, *arguments), additions, files)


def _settings_over(base: Path, content: Mapping[str, object]) -> str:
    """`content` merged over the JSON file `base`, which is kept beneath it. One that cannot be read counts as empty:
    the agent itself would not have been able to use it either."""
    from agents_registry.integrate.json_text import strip_comments

    try:
        known = json.loads(strip_comments(base.read_text(encoding="utf-8")))
    except (OSError, ValueError):
        known = {}
    return json.dumps(_over(known if isinstance(known, dict) else {}, content), indent=2, ensure_ascii=False) + "\n"


def _over(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    result = dict(base)
    for key, value in over.items():
        known = result.get(key)
        result[key] = _over(known, value) if isinstance(known, dict) and isinstance(value, dict) else value
    return result


def install_advice(spec: AgentSpec) -> str:
    """What to do when the agent is not there."""
    advice = spec.install_hint or (f"va agents install {spec.id}" if spec.npm else f"Install {spec.name}, so that its command is on PATH.")
    return advice if advice.endswith(".") else advice + "."


def terminal_command(spec: AgentSpec, platform: str = sys.platform) -> list[str]:
    """The command of a new conversation in a terminal (program name as the user would type it).

    Raises:
        UsageError: there is none on this platform.
    """
    if spec.terminal is not None:
        command = spec.terminal.per_platform.get(platform) or spec.terminal.command
        if command and (not spec.platforms or platform in spec.platforms):
            return list(command)
    where = f" on {platform}" if spec.platforms else ""
    raise UsageError(f"{spec.name} cannot be launched{where}.", hint=install_advice(spec))


def resume_command(spec: AgentSpec, session_id: str, cwd: str, *, fork: bool = False) -> list[str]:
    """The agent's own command that goes on with a session; to be run in `cwd`, the directory that its store records.

    Raises:
        UsageError: the agent has no such command, or the id could be taken for an option.
    """
    template = (spec.terminal.fork if fork else spec.terminal.resume) if spec.terminal else ()
    if not template:
        what = "fork" if fork else "resume"
        raise UsageError(f"{spec.name} has no command that can {what} a session.", hint=f"Start it in {cwd} and choose the session there.")
    if not session_id or session_id.startswith("-") or any(ord(char) < 32 for char in session_id):
        raise UsageError(f"'{session_id}' is no session id.", hint="List the sessions of this directory: va launch sessions")
    return [word.replace("{id}", session_id) for word in template]


def shell_line(argv: Sequence[str], cwd: str = "") -> str:
    """One line to paste into a shell: `cd 'DIR' && command …`. Only words that need it are quoted."""
    line = " ".join(_quoted(word) for word in argv)
    return f"cd {_quoted(cwd)} && {line}" if cwd else line


def _quoted(word: str) -> str:
    if _SAFE_WORD.fullmatch(word):
        return word
    return "'" + word.replace("'", "'\"'\"'") + "'"


def store_env(spec: AgentSpec, environ: Mapping[str, str]) -> dict[str, str]:
    """The variables of `environ` that place the agent's store; none of them is a secret."""
    names = spec.store.env if spec.store else ()
    return {name: environ[name] for name in names if environ.get(name)}


def shim_command(shim_file: Path, data_dir: Path | None, *, python: str = sys.executable) -> list[str]:
    """The command by which an agent starts our MCP server.

    `-I -S`: no site packages, no variables, no directory of the project in the way; the shim needs only the standard
    library. `data_dir` is None where it is the default one.
    """
    return [python, "-I", "-S", str(shim_file), *(["--data-dir", str(data_dir)] if data_dir is not None else [])]


def acp_mcp_servers(spec: AgentSpec, shim: Sequence[str], *, configured: bool) -> list[dict[str, Any]]:
    """`mcpServers` for session/new, load and resume of a hosted agent.

    `configured` says whether the agent's own configuration already has our server (see `integrate.is_integrated`):
    then nothing is given, since a second one of that name is not started (Codex reports it as a failed tool).
    """
    if spec.acp is None or not spec.acp.takes_mcp or (configured and spec.acp.reads_user_mcp):
        return []
    return [{"name": "vibearound", "command": shim[0], "args": list(shim[1:]), "env": []}]
