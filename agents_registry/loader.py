"""The registry of agents: the built-in `agents.toml`, and what the user's file adds to it or changes.

An error in the user's file names the file, the line and, for a misspelt word, the nearest known one.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from agents_registry.errors import NotFoundError, UsageError
from agents_registry.model import (
    EVIDENCE,
    RESUME_METHODS,
    AcpSpec,
    AgentSpec,
    McpSpec,
    ModeSpec,
    NpmPackage,
    SessionSpec,
    SettingsFile,
    SkillSpec,
    StoreSpec,
    TerminalSpec,
)

BUILT_IN = Path(__file__).with_name("agents.toml")
USER_FILE = "agents.toml"
"""Its name in the data directory."""

_ID = re.compile(r"[a-z][a-z0-9-]{0,39}")
_Where = tuple[str, ...]


class Registry:
    """All agents known here, in the order of the files."""

    def __init__(self, specs: Iterable[AgentSpec]) -> None:
        self._specs = {spec.id: spec for spec in specs}
        self._names: dict[str, str] = {}
        for spec in self._specs.values():
            for alias in spec.aliases:
                self._names.setdefault(alias, spec.id)
        self._names.update({agent_id: agent_id for agent_id in self._specs})

    def all(self) -> list[AgentSpec]:
        return list(self._specs.values())

    def ids(self) -> list[str]:
        return list(self._specs)

    def here(self, platform: str = sys.platform) -> list[AgentSpec]:
        """Those that exist on `platform`."""
        return [spec for spec in self.all() if not spec.platforms or platform in spec.platforms]

    def get(self, id_or_alias: str) -> AgentSpec:
        """The agent of exactly this id or alias (letter case and outer spaces aside).

        Raises:
            NotFoundError: nothing has that name; the hint names the nearest one and the list.
        """
        wanted = id_or_alias.strip().lower()
        if wanted in self._names:
            return self._specs[self._names[wanted]]
        near = _nearest(wanted, self._names)
        hint = f"Did you mean '{near}'? " if near else ""
        raise NotFoundError(
            f"No agent is called '{id_or_alias.strip()}'.",
            hint=f"{hint}Known agents: {', '.join(self._specs)}.",
            code="unknown_agent",
        )

    def default(self, installed: Iterable[str], preferred: str = "") -> AgentSpec | None:
        """The agent of a new conversation: `preferred` if it is installed, else the first installed real agent,
        else an installed demo agent, else None. Desktop programs are never chosen."""
        there = {self._names.get(name, name) for name in installed}
        if preferred:
            chosen = self.get(preferred)
            if chosen.id in there:
                return chosen
        candidates = [spec for spec in self.all() if spec.id in there and spec.acp is not None]
        real = [spec for spec in candidates if spec.kind == "cli"]
        return next(iter(real or candidates), None)


def load_registry(data_dir: Path | None) -> Registry:
    """The built-in agents with the user's `<data_dir>/agents.toml` merged over them, where it exists.

    Raises:
        UsageError: the user's file is unreadable, no TOML, or names something unknown; it says file and line.
    """
    tables = tomllib.loads(BUILT_IN.read_text(encoding="utf-8"))
    changed: dict[str, str] = {}
    report = _Report(BUILT_IN, "")
    user_file = data_dir / USER_FILE if data_dir is not None else None
    if user_file is not None:
        text = _read(user_file)
        if text is not None:
            report = _Report(user_file, text)
            added = report.parse()
            for agent_id, table in added.items():
                if not isinstance(table, dict):
                    raise report.error((agent_id,), f"'{agent_id}' is not a table: write [{agent_id}] above its fields")
                if not _ID.fullmatch(agent_id):
                    raise report.error((agent_id,), f"'{agent_id}' is no agent id: small letters, digits and '-' only")
                _agent(agent_id, table, report, complete=False)
                tables[agent_id] = _merged(tables.get(agent_id, {}), table)
                changed[agent_id] = str(user_file)
    specs = [_agent(agent_id, table, report, source=changed.get(agent_id, "built in")) for agent_id, table in tables.items()]
    _check_names(specs, report)
    return Registry(specs)


def _read(path: Path) -> str | None:
    if path.is_fifo():  # reading it would wait for a writer, for ever
        raise UsageError(f"{path} cannot be read: it is a pipe, not a file.", hint="Put a file in its place.")
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {error}.", hint="It must be a readable UTF-8 text file.") from error


def _merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Tables are merged, everything else (lists too) is replaced."""
    result = dict(base)
    for key, value in over.items():
        known = result.get(key)
        result[key] = _merged(known, value) if isinstance(known, dict) and isinstance(value, dict) else value
    return result


def _nearest(word: str, known: Iterable[str]) -> str:
    import difflib  # loaded only for an error message

    return next(iter(difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)), "")


def _check_names(specs: list[AgentSpec], report: _Report) -> None:
    owners: dict[str, str] = {}
    for name, owner in ((name, spec.id) for spec in specs for name in (spec.id, *spec.aliases)):
        other = owners.setdefault(name, owner)
        if other != owner:
            culprit = owner if (owner,) in report.lines() else other
            raise report.error((culprit, "aliases"), f"'{name}' names two agents, {other} and {owner}")


class _Report:
    """Says where in the user's file something is wrong."""

    def __init__(self, path: Path, text: str) -> None:
        self.path = path
        self._text = text
        self._lines: dict[_Where, int] | None = None

    def parse(self) -> dict[str, Any]:
        try:
            return tomllib.loads(self._text)
        except tomllib.TOMLDecodeError as error:
            line = re.search(r"at line (\d+)", str(error))
            at = f"{self.path}:{line.group(1)}" if line else f"{self.path}"
            raise UsageError(f"{at}: this is not valid TOML: {error}.", hint="Correct that line, or move the file away.") from error

    def lines(self) -> dict[_Where, int]:
        """1-based line of each table header and key, by its path."""
        if self._lines is None:
            self._lines = {}
            for where, line in _positions(self._text):
                self._lines.setdefault(where, line)
        return self._lines

    def error(self, where: _Where, what: str, hint: str = "") -> UsageError:
        known = self.lines()
        line = next((known[where[:n]] for n in range(len(where), 0, -1) if where[:n] in known), 0)
        at = f"{self.path}:{line}" if line else f"{self.path}"
        return UsageError(f"{at}: {what}.", hint=hint or "Correct that line; the fields are those of the built-in agents.toml.")


def _positions(text: str) -> Iterator[tuple[_Where, int]]:
    table: _Where = ()
    for number, line in enumerate(text.splitlines(), 1):
        header = re.match(r"\s*\[{1,2}\s*([^\]]+?)\s*\]", line)
        if header:
            table = _keys(header.group(1))
            for n in range(1, len(table) + 1):
                yield table[:n], number
            continue
        key = re.match(r"""\s*((?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*'))*)\s*=""", line)
        if key:
            yield table + _keys(key.group(1)), number


def _keys(dotted: str) -> _Where:
    return tuple(part.strip().strip("\"'") for part in dotted.split("."))


_Check = Callable[[Any], bool]
_CHECKS: dict[str, tuple[str, _Check]] = {
    "text": ("a text in quotes", lambda value: isinstance(value, str)),
    "flag": ("true or false", lambda value: isinstance(value, bool)),
    "words": (
        'a list of texts, like ["a", "b"]',
        lambda value: isinstance(value, list) and all(isinstance(item, str) for item in value),
    ),
    "texts": (
        'a table of texts, like { NAME = "value" }',
        lambda value: isinstance(value, dict) and all(isinstance(item, str) for item in value.values()),
    ),
    "lists": (
        'a table of lists, like { linux = ["program"] }',
        lambda value: isinstance(value, dict) and all(_CHECKS["words"][1](item) for item in value.values()),
    ),
    "table": ("a table", lambda value: isinstance(value, dict)),
    "tables": ("a list of tables", lambda value: isinstance(value, list) and all(isinstance(item, dict) for item in value)),
    "version": ('a version, like "22.19"', lambda value: isinstance(value, str) and re.fullmatch(r"\d+(\.\d+)*", value) is not None),
    "evidence": (
        f"a list out of {', '.join(EVIDENCE)}",
        lambda value: _CHECKS["words"][1](value) and all(item in EVIDENCE for item in value),
    ),
    "resume": (f"one of {', '.join(RESUME_METHODS)}", lambda value: value in RESUME_METHODS),
    "kind": ("one of cli, desktop, demo", lambda value: value in ("cli", "desktop", "demo")),
    "format": ("json or toml", lambda value: value in ("json", "toml")),
    "shape": ("one of command-args, stdio, command-list", lambda value: value in ("command-args", "stdio", "command-list")),
    "ask_by": ("one of mode, env, never", lambda value: value in ("mode", "env", "never")),
    "command": (
        'a list of texts that starts with a program, like ["program", "argument"]',
        lambda value: _CHECKS["words"][1](value) and bool(value) and bool(value[0]),
    ),
}
_AGENT = {
    "name": "text", "aliases": "words", "description": "text", "kind": "kind", "platforms": "words", "identity": "evidence",
    "session_env": "words", "install_hint": "text", "min_node": "version", "incompatible": "words", "npm": "tables",
    "acp": "table", "terminal": "table", "modes": "table", "sessions": "table", "store": "table", "mcp": "table", "skills": "table",
}  # fmt: skip
_NPM = {"package": "text", "version": "text", "bin": "text"}
_ACP = {
    "command": "command", "env": "texts", "settings_file": "table", "own_cli_env": "text", "authenticate": "text", "reads_user_mcp": "flag", "takes_mcp": "flag",
}  # fmt: skip
_SETTINGS_FILE = {"env": "text", "over": "text", "content": "table"}
_TERMINAL = {
    "command": "command", "resume": "command", "fork": "command", "per_platform": "lists", "version": "words", "resume_in_cwd": "flag",
}  # fmt: skip
_MODES = {"ask": "text", "plan": "text", "via": "text", "config_id": "text", "ask_by": "ask_by"}
_SESSIONS = {
    "resume": "resume", "fork": "flag", "one_writer": "flag", "unknown_id_silent": "flag", "needs_cwd": "flag", "daemon_tested": "words",
}  # fmt: skip
_STORE = {"kind": "text", "env": "words", "root": "words"}
_MCP = {"user": "words", "project": "text", "key": "text", "format": "format", "shape": "shape", "extra": "table"}
_SKILLS = {"user": "words", "project": "text", "layout": "text", "project_layout": "text", "text": "text"}


def _fields(
    table: Mapping[str, Any], shape: Mapping[str, str], where: _Where, report: _Report, needed: tuple[str, ...] = ()
) -> dict[str, Any]:
    """The fields of `table`, checked against `shape`, lists as tuples."""
    for key, value in table.items():
        if key not in shape:
            near = _nearest(key, shape)
            advice = f" Did you mean '{near}'?" if near else ""
            raise report.error((*where, key), f"[{'.'.join(where)}] has no field '{key}'", f"{advice} Known: {', '.join(shape)}.".strip())
        wanted, holds = _CHECKS[shape[key]]
        if not holds(value):
            raise report.error((*where, key), f"'{key}' of [{'.'.join(where)}] must be {wanted}, not {value!r}")
    for key in needed:
        if key not in table:
            raise report.error(where, f"[{'.'.join(where)}] needs the field '{key}'")
    return {key: tuple(value) if isinstance(value, list) else value for key, value in table.items()}


def _agent(agent_id: str, table: Mapping[str, Any], report: _Report, *, complete: bool = True, source: str = "built in") -> AgentSpec:
    """Build one entry. With `complete` false only what is there is checked: an override may name a single field."""
    where = (agent_id,)
    flat = _fields(table, _AGENT, where, report, ("name",) if complete else ())
    flat.setdefault("name", agent_id)

    def part(key: str, shape: Mapping[str, str], *needed: str) -> dict[str, Any]:
        return _fields(table[key], shape, (*where, key), report, needed if complete else ())

    placeholders: dict[str, Any] = {} if complete else {"command": ("",), "kind": "", "env": (), "root": (), "user": (), "project": "", "key": ""}

    def filled(values: dict[str, Any], *needed: str) -> dict[str, Any]:
        return {**{name: placeholders[name] for name in needed if name in placeholders}, **values}

    if "npm" in table:
        flat["npm"] = tuple(
            NpmPackage(**_fields(entry, _NPM, (*where, "npm"), report, ("package", "version", "bin"))) for entry in table["npm"]
        )
    if "min_node" in table:
        flat["min_node"] = tuple(int(number) for number in table["min_node"].split("."))
    if "acp" in table:
        acp = filled(part("acp", _ACP, "command"), "command")
        if "settings_file" in acp:
            fields = _fields(acp["settings_file"], _SETTINGS_FILE, (*where, "acp", "settings_file"), report, ("env", "over", "content"))
            acp["settings_file"] = SettingsFile(**fields)
        flat["acp"] = AcpSpec(**acp)
    if "terminal" in table:
        terminal = part("terminal", _TERMINAL)
        if complete and "command" not in terminal and "per_platform" not in terminal:
            raise report.error((*where, "terminal"), f"[{agent_id}.terminal] needs the field 'command'")
        terminal.setdefault("command", ())
        terminal["per_platform"] = {key: tuple(value) for key, value in terminal.get("per_platform", {}).items()}
        flat["terminal"] = TerminalSpec(**terminal)
    if "modes" in table:
        flat["modes"] = ModeSpec(**part("modes", _MODES))
    if "sessions" in table:
        flat["sessions"] = SessionSpec(**part("sessions", _SESSIONS))
    if "store" in table:
        flat["store"] = StoreSpec(**filled(part("store", _STORE, "kind", "env", "root"), "kind", "env", "root"))
    if "mcp" in table:
        flat["mcp"] = McpSpec(**filled(part("mcp", _MCP, "user", "project", "key"), "user", "project", "key"))
    if "skills" in table:
        flat["skills"] = SkillSpec(**filled(part("skills", _SKILLS, "user", "project"), "user", "project"))
    spec = AgentSpec(id=agent_id, source=source, **flat)
    if complete and spec.acp is None and spec.terminal is None:
        raise report.error(where, f"[{agent_id}] can neither be hosted nor launched", f"Add [{agent_id}.acp] or [{agent_id}.terminal] with a command.")
    return spec
