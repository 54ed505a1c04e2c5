"""Which agents are here: found where, in which version, usable for what, and if not, why and what helps."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agents_registry.bounded import run_bounded
from agents_registry.errors import VibeAroundError
from agents_registry.integrate.entry import is_integrated
from agents_registry.integrate.skill import skill_file
from agents_registry.launch import acp_command, find_program, install_advice, terminal_command
from agents_registry.model import AgentSpec

VERSION_LIMIT_S = 15.0
"""An agent's first start can read hundreds of MB from a cold disk."""
_NODE_LIMIT_S = 5.0
_PARALLEL = 4
_VERSION = re.compile(r"\d+\.\d+(?:\.\d+)*(?:[-+.][0-9A-Za-z.-]+)?")


@dataclass(frozen=True, slots=True)
class Usable:
    """Whether something works; if not, `why` and `fix` say it in words."""

    ok: bool
    why: str = ""
    fix: str = ""


@dataclass(frozen=True, slots=True)
class Detection:
    """One agent as it is on this machine."""

    spec: AgentSpec
    installed: bool
    version: str
    """Of the agent's own program where there is one, else of the adapter; "" when it does not tell."""
    program: str
    """The terminal program's path, or ""."""
    adapter: str
    """The ACP program's path, or ""."""
    acp: Usable
    terminal: Usable
    handover: Usable
    notes: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        return {
            "id": self.spec.id,
            "name": self.spec.name,
            "aliases": list(self.spec.aliases),
            "kind": self.spec.kind,
            "installed": self.installed,
            "version": self.version or None,
            "program": self.program or None,
            "adapter": self.adapter or None,
            **{
                what: {"ok": usable.ok, "why": usable.why or None, "fix": usable.fix or None}
                for what, usable in (("acp", self.acp), ("terminal", self.terminal), ("handover", self.handover))
            },
            "notes": list(self.notes),
            "source": self.spec.source,
        }


def detect_all(
    specs: Iterable[AgentSpec],
    env: Mapping[str, str],
    data_dir: Path,
    *,
    versions: bool = True,
    platform: str = sys.platform,
) -> list[Detection]:
    """Look for all of `specs` at once; `env` is the environment whose PATH counts (the login shell's).

    Without `versions` no agent program is started. Every program that is started is bounded.
    """
    listed = list(specs)
    node = _Node(env)
    if any(spec.min_node for spec in listed):
        node.version()
    with ThreadPoolExecutor(_PARALLEL) as pool:
        return list(pool.map(lambda spec: detect(spec, env, data_dir, node=node, versions=versions, platform=platform), listed))


def installed_ids(specs: Iterable[AgentSpec], env: Mapping[str, str], data_dir: Path) -> list[str]:
    """Ids of the agents whose ACP program is here; starts nothing (for `Registry.default`)."""
    return [spec.id for spec in specs if spec.acp is not None and find_program(spec, spec.acp.command[0], env, data_dir)]


class _Node:
    """The Node that the packages would run on; asked once."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._env = env
        self._version: tuple[int, ...] | None = None

    def version(self) -> tuple[int, ...]:
        """E.g. (20, 19, 2); () when there is none."""
        if self._version is None:
            self._version = node_version(self._env)
        return self._version


def node_version(env: Mapping[str, str]) -> tuple[int, ...]:
    """The version of the `node` on `env`'s PATH; () when there is none or it does not answer."""
    import shutil

    node = shutil.which("node", path=env.get("PATH", os.defpath))
    if node is None:
        return ()
    ran = run_bounded([node, "--version"], env, _NODE_LIMIT_S)
    found = re.search(r"(\d+)\.(\d+)\.(\d+)", ran.out) if ran.ok else None
    return tuple(int(part) for part in found.groups()) if found else ()


def node_problem(spec: AgentSpec, found: tuple[int, ...]) -> Usable:
    """Whether this Node will do for `spec`."""
    if not spec.min_node or found[: len(spec.min_node)] >= spec.min_node:
        return Usable(True)
    wanted = ".".join(str(part) for part in spec.min_node)
    has = f"it is {'.'.join(str(part) for part in found)}" if found else "there is none on PATH"
    return Usable(False, f"needs Node {wanted} or newer; {has}", f"Install Node {wanted} or newer, so that `node --version` finds it.")


def detect(
    spec: AgentSpec,
    env: Mapping[str, str],
    data_dir: Path,
    *,
    node: _Node | None = None,
    versions: bool = True,
    platform: str = sys.platform,
) -> Detection:
    """Look for one agent. Never raises for what it finds."""
    if spec.platforms and platform not in spec.platforms:
        never = Usable(False, f"does not exist on {platform}")
        return Detection(spec, False, "", "", "", never, never, never)
    program = _terminal_program(spec, env, data_dir, platform)
    adapter = (find_program(spec, spec.acp.command[0], env, data_dir) if spec.acp is not None else None) or ""
    installed = bool(program or adapter)
    missing = Usable(False, f"'{_words(spec)}' was not found", install_advice(spec))
    acp, notes = _acp(spec, env, data_dir, adapter, node or _Node(env))
    terminal = Usable(True) if program else missing
    if not program and adapter and spec.terminal is not None and spec.terminal.command:
        terminal = Usable(False, f"'{spec.terminal.command[0]}' is not on PATH; only the adapter is here", install_advice(spec))
    version = ""
    if versions and spec.kind != "desktop" and (program or adapter):
        version = _version(spec, program or adapter, env, started=bool(program) or spec.kind == "cli")
    if spec.kind == "demo":
        version = ""
    return Detection(spec, installed, version, program, adapter, acp, terminal, _handover(spec, env, installed), tuple(notes))


def _words(spec: AgentSpec) -> str:
    if spec.terminal is not None and spec.terminal.command:
        return spec.terminal.command[0]
    return spec.acp.command[0] if spec.acp is not None else spec.id


def _terminal_program(spec: AgentSpec, env: Mapping[str, str], data_dir: Path, platform: str) -> str:
    try:
        command = terminal_command(spec, platform)
    except VibeAroundError:
        return ""
    if spec.kind == "desktop":
        return _desktop_program(command, platform)
    return find_program(spec, command[0], env, data_dir) or ""


def _desktop_program(command: list[str], platform: str) -> str:
    """Where a desktop program is; on macOS its bundle. Elsewhere the launcher itself is all that can be looked for."""
    if platform == "darwin":
        for root in ("/Applications", str(Path("~/Applications").expanduser())):
            bundle = Path(root) / f"{command[-1]}.app"
            if bundle.is_dir():
                return str(bundle)
        return ""
    import shutil

    return shutil.which(command[0]) or ""


def _acp(spec: AgentSpec, env: Mapping[str, str], data_dir: Path, adapter: str, node: _Node) -> tuple[Usable, list[str]]:
    if spec.acp is None:
        return Usable(False, "speaks no agent protocol", "It can only be launched."), []
    if not adapter:
        fix = f"va agents install {spec.id}" if spec.npm else install_advice(spec)
        return Usable(False, f"'{spec.acp.command[0]}' was not found", fix), []
    try:
        acp_command(spec, env, data_dir)
    except VibeAroundError as error:
        return Usable(False, error.message, error.hint), []
    if spec.min_node and _runs_on_node(adapter):
        problem = node_problem(spec, node.version())
        if not problem.ok:
            return problem, []
    notes = []
    package = _package(adapter)
    if spec.npm and package and package[0] == spec.npm[0].package and package[1] != spec.npm[0].version:
        notes.append(f"{package[0]} is {package[1]}; tested with {spec.npm[0].version} (va agents install {spec.id})")
    if not spec.modes.can_ask:
        notes.append("never asks before it acts: a chat needs the owner's yes once per workspace")
    return Usable(True), notes


def _runs_on_node(program: str) -> bool:
    try:
        with open(program, "rb") as file:
            head = file.readline(200)
    except OSError:
        return False
    return head.startswith(b"#!") and b"node" in head


def _handover(spec: AgentSpec, env: Mapping[str, str], installed: bool) -> Usable:
    if spec.kind == "desktop":
        return Usable(False, "has no session of its own on this machine", "Use the command line program of the same maker.")
    if spec.kind == "demo":
        return Usable(True)
    if not installed:
        return Usable(False, "not installed", install_advice(spec))
    if spec.mcp is not None and is_integrated(spec, env):
        return Usable(True)
    skill = skill_file(spec, env) if spec.mcp is None else None
    if skill is not None and skill.exists():
        return Usable(True)
    return Usable(False, "VibeAround is not entered in its configuration", f"va integrate {spec.id}")


def _version(spec: AgentSpec, program: str, env: Mapping[str, str], *, started: bool) -> str:
    package = _package(program)
    if package is not None:
        return package[1]
    if not started or spec.terminal is None:
        return ""
    ran = run_bounded([program, *spec.terminal.version], env, VERSION_LIMIT_S)
    found = _VERSION.search(ran.out or ran.err) if ran.ok else None
    return found.group(0) if found else ""


def _package(program: str) -> tuple[str, str] | None:
    """(name, version) of the npm package that a program belongs to: no need to start it."""
    path = Path(program).resolve()
    if "node_modules" not in path.parts:
        return None
    for directory in list(path.parents)[:5]:
        try:
            about = json.loads((directory / "package.json").read_bytes())
        except (OSError, ValueError):
            continue
        if isinstance(about, dict) and isinstance(about.get("name"), str) and isinstance(about.get("version"), str):
            return about["name"], about["version"]
    return None
