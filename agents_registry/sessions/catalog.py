"""All stores at once: which agents can be read, whose file this is, lists over all, and an id looked up.

A store is a module of this package named after its agent (`-` as `_`) that holds a class whose `agent` is it; it is imported when
it is first asked for. An agent without such a module is not listed yet, and saying so is the caller's business.
"""

from __future__ import annotations

import heapq
import importlib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from agents_registry.errors import NotFoundError, VibeAroundError
from agents_registry.sessions.paths import home
from agents_registry.sessions.port import Inspection, SessionInfo, SessionStore, SessionWriter

AGENTS: tuple[str, ...] = (
    "claude",
    "codex",
    "demo",
    "gemini",
    "qwen-code",
    "opencode",
    "pi",
    "kimi",
    "cursor",
    "kiro",
    "copilot",
    "droid",
    "amp",
    "vibe",
    "cline",
    "roo-code",
    "kilo-code",
    "aider",
    "goose",
    "crush",
    "antigravity",
    "grok",
    "hermes",
    "openclaw",
)
"""Agents that this package means to read."""
_WEAK = ("codex",)
"""Tried last when a file's agent is guessed: its oldest records have so little shape that others' look like them."""


# Where each store lies by default, below the home, and the variables that move it. Only to leave out, without loading
# its reader, an agent that was never used here; what is not named in this table is always asked.
_PLACES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "claude": ((".claude",), ("CLAUDE_CONFIG_DIR",)),
    "codex": ((".codex",), ("CODEX_HOME",)),
    "gemini": ((".gemini",), ("GEMINI_CLI_HOME",)),
    "qwen-code": ((".qwen",), ("QWEN_HOME", "QWEN_RUNTIME_DIR")),
    "opencode": ((".local/share/opencode",), ("OPENCODE_DB", "XDG_DATA_HOME")),
    "pi": ((".pi",), ("PI_CODING_AGENT_DIR", "PI_CODING_AGENT_SESSION_DIR")),
    "kimi": ((".kimi-code", ".kimi"), ("KIMI_CODE_HOME", "KIMI_SHARE_DIR")),
    "cursor": ((".cursor",), ("CURSOR_CONFIG_DIR", "XDG_CONFIG_HOME")),
    "kiro": (
        (".kiro", ".local/share/kiro-cli", ".local/share/amazon-q", ".config/Kiro", "Library/Application Support"),
        ("KIRO_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"),
    ),
    "copilot": ((".copilot",), ("COPILOT_HOME",)),
    "droid": ((".factory",), ("FACTORY_HOME",)),
    "amp": ((".local/share/amp",), ("AMP_DATA_HOME", "XDG_DATA_HOME")),
    "vibe": ((".vibe",), ("VIBE_HOME",)),
    "cline": ((".config/Code", ".cline", "Library/Application Support"), ("XDG_CONFIG_HOME",)),
    "roo-code": ((".config/Code", "Library/Application Support"), ("XDG_CONFIG_HOME",)),
    "kilo-code": ((".config/Code", "Library/Application Support"), ("XDG_CONFIG_HOME",)),
    "goose": ((".local/share/goose", "Library/Application Support"), ("GOOSE_PATH_ROOT", "XDG_DATA_HOME")),
    "antigravity": ((".gemini",), ("GEMINI_CLI_HOME",)),
    "grok": ((".grok",), ("GROK_HOME",)),
    "hermes": ((".hermes",), ("HERMES_HOME",)),
    "openclaw": ((".openclaw",), ("OPENCLAW_STATE_DIR",)),
    "aider": ((".aider.chat.history.md",), ("AIDER_CHAT_HISTORY_FILE",)),
    "crush": ((".local/share/crush",), ("CRUSH_GLOBAL_DATA", "XDG_DATA_HOME")),
}
_NEAR = {"aider": ".aider.chat.history.md", "crush": ".crush"}
"""What agents that keep their sessions in the project itself leave there (or above)."""


def stores_here(env: Mapping[str, str]) -> dict[str, SessionStore]:
    """The stores of agents that may have sessions in this environment: the others are not even loaded."""
    base = home(env)
    found = {}
    for agent in AGENTS:
        places, names = _PLACES.get(agent, ((), ()))
        here = any(env.get(name) for name in names) or any((base / place).exists() for place in places)
        if places and not here and not _near(agent, env):
            continue
        one = store(agent)
        if one is not None:
            found[agent] = one
    return found


def _near(agent: str, env: Mapping[str, str]) -> bool:
    name, here = _NEAR.get(agent), Path(env.get("PWD") or ".")
    return name is not None and any((folder / name).exists() for folder in (here, *here.parents))


@cache
def store(agent: str) -> SessionStore | None:
    """The store of one agent, None when this package does not read it (yet)."""
    if agent not in AGENTS:
        return None
    module_name = f"agents_registry.sessions.{agent.replace('-', '_')}"
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name != module_name:
            raise
        return None
    for found in vars(module).values():
        if isinstance(found, type) and found.__module__ == module_name and getattr(found, "agent", "") == agent:
            made: SessionStore = found()
            return made
    raise VibeAroundError(f"{module_name} has no store of {agent}.", hint="This is a fault of the installation; please report it.")


def stores() -> dict[str, SessionStore]:
    """Every store this package has, by agent."""
    return {agent: found for agent in AGENTS if (found := store(agent)) is not None}


def writer(agent: str) -> SessionWriter | None:
    """What writes new sessions for `agent`, None where its store cannot be written by others.

    A writer is a class whose `agent` is it, in the module named after the agent with `_write` behind.
    """
    if agent not in AGENTS:
        return None
    module_name = f"agents_registry.sessions.{agent.replace('-', '_')}_write"
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name != module_name:
            raise
        return None
    found = next((c for c in vars(module).values() if isinstance(c, type) and c.__module__ == module_name and getattr(c, "agent", "") == agent), None)
    made: SessionWriter | None = found() if found is not None else None
    return made


def need(agent: str) -> SessionStore:
    """The store of `agent`; raises `NotFoundError` with the agents that can be read."""
    found = store(agent)
    if found is None:
        raise NotFoundError(f"Sessions of {agent} are not listed yet.", hint=f"Readable are: {', '.join(stores())}.", code="not_listed")
    return found


def recognise(path: Path) -> str:
    """The agent whose session `path` is by its content, "" when it is none's. Raises OSError as open()."""
    found = stores()
    order = [agent for agent in found if agent not in _WEAK] + [agent for agent in _WEAK if agent in found]
    return next((agent for agent in order if found[agent].recognises(path)), "")


def inspect(path: Path, agent: str = "") -> Inspection:
    """Counts of one file; the agent is recognised from the content when not given.

    Raises `NotFoundError` for a file that is missing or no session, with what it is instead.
    """
    from agents_registry.sessions.whatis import what_is

    if not path.exists():
        raise NotFoundError(f"{path} does not exist.")
    try:
        named = agent or recognise(path)
        if not named:
            raise NotFoundError(
                f"{path} is no session of any agent: it is {what_is(path)}.",
                hint="Give --agent to read it as one agent's all the same.",
                code="no_session",
            )
        try:
            return need(named).inspect(path)
        except NotFoundError as error:
            if error.code == "not_listed":
                raise
            raise NotFoundError(f"{path} is no session of {named}: it is {what_is(path)}.", code="no_session") from error
    except OSError as error:
        raise NotFoundError(f"{path} cannot be read: {error.strerror or error}.", hint="Name a session file that you may read.") from error


def info_of(path: Path, agent: str = "") -> SessionInfo:
    """What a listing would show of one file, wherever it lies. The agent is recognised when not given.

    Raises `NotFoundError` for a file that is missing or no session.
    """
    found = inspect(path, agent)
    one = need(found.agent)
    look = getattr(one, "describe", None)
    root = one.root_of(path) if hasattr(one, "root_of") else path.parent
    made: SessionInfo | None = look(path, root) if look is not None else None
    if made is not None:
        return made
    return SessionInfo(found.agent, found.id or path.stem, found.cwd, "", path.stat().st_mtime, path, root)


def list_sessions(
    env: Mapping[str, str],
    *,
    agent: str | None = None,
    cwd: str | None = None,
    limit: int = 20,
    subagents: bool = False,
) -> list[SessionInfo]:
    """Sessions of one agent or of all, newest first, at most `limit`. A store that cannot be read lists nothing."""
    chosen = {agent: need(agent)} if agent is not None else stores_here(env)
    flows = [
        _guarded(one, root, cwd, limit, subagents) for one in chosen.values() for root in dict.fromkeys(one.roots(env)) if root.exists()
    ]
    merged = heapq.merge(*flows, key=lambda info: -info.updated_at)
    found: list[SessionInfo] = []
    seen: set[tuple[str, str, Path]] = set()
    for info in merged:
        key = (info.agent, info.id, info.path)
        if key in seen:
            continue
        seen.add(key)
        found.append(info)
        if len(found) >= limit:
            break
    return found


def resolve(env: Mapping[str, str], agent: str, wanted: str, cwd: str | None = None) -> Sequence[SessionInfo]:
    """What `wanted` may mean for `agent`, over all its roots. An exact id anywhere beats prefixes elsewhere; the same id
    in two roots is an ambiguity that lists both. Empty = unknown.
    """
    one = need(agent)
    found = [info for root in dict.fromkeys(one.roots(env)) if root.exists() for info in one.resolve(root, wanted, cwd=cwd)]
    exact = [info for info in found if info.id.lower() == wanted.strip().lower()]
    return exact or found


def resolve_one(env: Mapping[str, str], agent: str, wanted: str, cwd: str | None = None) -> SessionInfo:
    """The one session meant. `latest` means the newest of `cwd` (of all, without a cwd).

    Raises `NotFoundError` when there is none, or when there are several, naming them.
    """
    if wanted == "latest":
        listed = list_sessions(env, agent=agent, cwd=cwd, limit=1)
        if not listed:
            place = f" in {cwd}" if cwd else ""
            raise NotFoundError(f"{agent} has no session{place}.", hint=f"va sessions list --agent {agent} shows what there is.")
        return listed[0]
    found = resolve(env, agent, wanted, cwd)
    if len(found) == 1:
        return found[0]
    if not found:
        raise NotFoundError(f"{agent} has no session {wanted!r}.", hint=f"va sessions list --agent {agent} shows what there is.")
    listed_text = "; ".join(f"{info.id} ({info.cwd or 'directory unknown'}, {info.path})" for info in found[:8])
    raise NotFoundError(f"{wanted!r} may mean {len(found)} sessions of {agent}: {listed_text}.", hint="Give the whole id, and the directory.", code="ambiguous")


def _guarded(one: SessionStore, root: Path, cwd: str | None, limit: int, subagents: bool) -> Iterator[SessionInfo]:
    try:
        yield from one.list(root, cwd=cwd, limit=limit, subagents=subagents)
    except OSError:
        return  # an unreadable store must not hide the others; `va doctor` names it
