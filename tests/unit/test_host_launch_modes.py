"""Every agent that can be hosted begins in the mode that asks: after a new session, a resume and a fork, whatever mode was chosen
before, and whatever the terminal's environment says."""

from __future__ import annotations

from pathlib import Path

import pytest

from actors.host_launch import host_spec
from actors.host_spec import HostSpec
from agents_registry.loader import load_registry
from transports.bus.vocabulary.children import SpawnHost
from transports.settings import Settings

REGISTRY = load_registry(None)
HOSTED = [spec.id for spec in REGISTRY.all() if spec.acp is not None]
ASKS_BY_DEFAULT = {"kiro"}
"""It asks unless it is started with an option that we never give."""


def launched(tmp_path: Path, agent: str, start: str, mode: str, **env: str) -> HostSpec:
    spec = REGISTRY.get(agent)
    assert spec.acp is not None
    place = tmp_path / "bin"
    place.mkdir(exist_ok=True)
    program = place / spec.acp.command[0]
    if "{" not in program.name:
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
    request = SpawnHost("wt_1", "host", 1, agent, "direct", str(tmp_path), "ws_1", "" if start == "new" else "s1", start, {}, mode)
    environ = {"PATH": str(place), "HOME": str(tmp_path), **env}
    return host_spec(request, REGISTRY, Settings(), environ, tmp_path / "data", "00")


@pytest.mark.requires("M3.mode-that-asks")
@pytest.mark.parametrize("agent", HOSTED)
@pytest.mark.parametrize("start", ["new", "resume", "fork"])
@pytest.mark.parametrize("mode", ["", "bypassPermissions", "yolo", "full-access"])
def test_each_agent_begins_in_the_mode_that_asks(tmp_path: Path, agent: str, start: str, mode: str) -> None:
    modes = REGISTRY.get(agent).modes
    spec = launched(tmp_path, agent, start, mode)
    assert spec.mode == modes.ask
    if not modes.ask and agent not in ASKS_BY_DEFAULT:
        assert modes.ask_by in ("env", "never")
    assert not [word for word in spec.argv if "trust-all" in word or "skip-permissions" in word or "yolo" in word]


@pytest.mark.requires("M3.mode-that-asks")
def test_what_makes_an_agent_ask_is_not_up_to_the_terminals_environment(tmp_path: Path) -> None:
    spec = launched(tmp_path, "opencode", "new", "", OPENCODE_PERMISSION='{"bash":"allow","edit":"allow"}')
    assert spec.env["OPENCODE_PERMISSION"] == '{"bash":"ask","edit":"ask"}'


def test_the_plan_mode_stays_over_a_resume(tmp_path: Path) -> None:
    assert launched(tmp_path, "claude", "resume", "plan").mode == "plan"
