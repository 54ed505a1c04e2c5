"""What is known about one coding agent: plain data, filled from `agents.toml` by `loader`.

Paths in the data are *places*: a list of candidates such as `["$CLAUDE_CONFIG_DIR/.claude.json", "~/.claude.json"]`.
The first candidate whose variables are all set is the place; `~` is `$HOME` of the environment asked about, not of
this process (a hosted agent may live in another home than the one who asks).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

_VARIABLE = re.compile(r"\$([A-Z_][A-Z0-9_]*)")

EVIDENCE = ("hosted", "call_meta", "live_registry", "caller_word", "launch_env", "newest_of_cwd")
"""Kinds of evidence about whose session a call belongs to, most current first (see `identify`)."""

RESUME_METHODS = ("resume", "load", "load-guarded")
"""How a hosted session is brought back. `resume`: session/resume is real. `load`: only session/load (its replay is
dropped). `load-guarded`: load destroys sessions unless the store file is protected first (Gemini)."""


@dataclass(frozen=True, slots=True)
class NpmPackage:
    """One pinned package. Plain `npm i NAME` picks another version by the Node it finds, so the version is exact."""

    package: str
    version: str
    bin: str

    @property
    def pinned(self) -> str:
        return f"{self.package}@{self.version}"


@dataclass(frozen=True, slots=True)
class SettingsFile:
    """A settings file of ours that an agent reads besides the user's own, named by an environment variable.

    `over` is where the agent would look without the variable; what stands there is kept beneath `content`.
    """

    env: str
    over: str
    content: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class AcpSpec:
    """How the agent is started as an ACP server. `command[0]` is a bare program name, or `{python}`."""

    command: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    """Set for the hosted process unless the environment already sets it."""
    settings_file: SettingsFile | None = None
    own_cli_env: str = ""
    """The variable by which the adapter drives another CLI than the one it brings (a full path)."""
    authenticate: str = ""
    """The login method to name before the first session, where the agent insists (Cursor)."""
    reads_user_mcp: bool = True
    """Whether the agent under ACP also starts the MCP servers of the user's own configuration."""
    takes_mcp: bool = True
    """Whether it starts the servers given in session/new (Pi ignores them)."""


@dataclass(frozen=True, slots=True)
class TerminalSpec:
    """How the agent is used in a terminal. In templates `{id}` is the native session id."""

    command: tuple[str, ...]
    resume: tuple[str, ...] = ()
    fork: tuple[str, ...] = ()
    per_platform: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Commands by `sys.platform`, where they differ (desktop programs)."""
    version: tuple[str, ...] = ("--version",)
    resume_in_cwd: bool = True
    """The resume command must run in the directory that the store records."""


@dataclass(frozen=True, slots=True)
class ModeSpec:
    """Ids of the agent's own modes. Hosted sessions are put into `ask` after every new, load and resume."""

    ask: str = ""
    """Mode in which the agent asks before it acts; "" when it has no such mode (see `ask_by`)."""
    plan: str = ""
    via: str = "session/set_mode"
    """`session/set_mode`, or `session/set_config_option` with `config_id`."""
    config_id: str = ""
    ask_by: str = "mode"
    """What makes it ask: `mode`, `env` (its spawn environment does), or `never` (it cannot ask: Pi)."""

    @property
    def can_ask(self) -> bool:
        return self.ask_by != "never"


@dataclass(frozen=True, slots=True)
class SessionSpec:
    """What the agent's ACP side does with earlier sessions, as observed, not as advertised."""

    resume: str = "load"
    fork: bool = False
    one_writer: bool = False
    """A second process is refused while one has the session open (Codex)."""
    unknown_id_silent: bool = False
    """Loading an unknown id succeeds with an empty session (Qwen 0.15): existence is checked in the store first."""
    needs_cwd: bool = False
    """Load finds the session only with the cwd it was made in."""
    daemon_tested: tuple[str, ...] = ()
    """First and last version of the agent's own background daemon that joining a live thread was tested with."""


@dataclass(frozen=True, slots=True)
class StoreSpec:
    """Where the native sessions are. `env` names the non-secret variables that place the store."""

    kind: str
    env: tuple[str, ...]
    root: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class McpSpec:
    """Where and how an MCP server is entered in the agent's configuration."""

    user: tuple[str, ...]
    project: str
    key: str
    """The table that holds servers by name: `mcpServers`, `mcp_servers`, `mcp`."""
    format: str = "json"
    """`json` (comments tolerated), or `toml`."""
    shape: str = "command-args"
    """`command-args`: {command, args}; `stdio`: the same with type "stdio"; `command-list`: {type: local, command: [...]}."""
    extra: Mapping[str, object] = field(default_factory=dict)
    """Further fixed fields of the entry."""


@dataclass(frozen=True, slots=True)
class SkillSpec:
    """Where skills are looked for. `text` names a file of `agents_registry/skills/`."""

    user: tuple[str, ...]
    project: str
    layout: str = "folder"
    """`folder`: DIR/vibearound/SKILL.md; otherwise the extension of a flat file: DIR/vibearound.EXT."""
    project_layout: str = ""
    """Layout at project level where it differs."""
    text: str = "generic.md"


@dataclass(frozen=True, slots=True)
class AgentSpec:
    """One agent of the registry."""

    id: str
    name: str
    aliases: tuple[str, ...] = ()
    description: str = ""
    kind: str = "cli"
    """`cli`; `desktop` (a launch target only); `demo` (never chosen by default when a real agent is installed)."""
    platforms: tuple[str, ...] = ()
    """Values of `sys.platform`; empty = everywhere."""
    acp: AcpSpec | None = None
    terminal: TerminalSpec | None = None
    npm: tuple[NpmPackage, ...] = ()
    """What `va agents install` puts into the data directory; the first one carries the ACP command."""
    modes: ModeSpec = ModeSpec()
    sessions: SessionSpec = SessionSpec()
    store: StoreSpec | None = None
    mcp: McpSpec | None = None
    skills: SkillSpec | None = None
    identity: tuple[str, ...] = EVIDENCE
    session_env: tuple[str, ...] = ()
    """Variables in which the agent tells its children the session id, most trustworthy first."""
    install_hint: str = ""
    min_node: tuple[int, ...] = ()
    """Minimum Node version, e.g. (22, 19); empty when the agent needs no Node."""
    incompatible: tuple[str, ...] = ()
    """Known incompatibilities, one sentence each."""
    source: str = "built in"
    """`built in`, or the user's file that added or changed it."""


def place(candidates: tuple[str, ...], env: Mapping[str, str]) -> Path | None:
    """The first candidate whose variables are all set (and not empty) in `env`, expanded; None when there is none.

    Without HOME in `env`, `~` stays out of reach and its candidates are passed over.
    """
    for candidate in candidates:
        text = candidate
        if text == "~" or text.startswith("~/"):
            text = "$HOME" + text[1:]
        names = _VARIABLE.findall(text)
        if all(env.get(name) for name in names):
            return Path(_VARIABLE.sub(lambda match: env[match.group(1)], text))
    return None


def store_root(spec: AgentSpec, env: Mapping[str, str]) -> Path | None:
    """The directory (or database) that holds the agent's sessions as `env` places it; it need not exist."""
    return place(spec.store.root, env) if spec.store else None
