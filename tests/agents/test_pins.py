"""The agents that the tests drive are those that the product pins."""

from __future__ import annotations

import json
import tomllib

from tests.agents.rig import ROOT


def test_the_adapters_under_test_have_the_versions_of_the_registry() -> None:
    registry = tomllib.loads((ROOT / "agents_registry" / "agents.toml").read_text("utf-8"))
    pinned = json.loads((ROOT / "tests/agents/package.json").read_text("utf-8"))["dependencies"]
    adapters = [entry["npm"][0] for entry in (registry["claude"], registry["codex"])]
    assert {adapter["package"]: adapter["version"] for adapter in adapters}.items() <= pinned.items()


def test_the_lock_file_names_no_address_to_download_from() -> None:
    packages = json.loads((ROOT / "tests/agents/package-lock.json").read_text("utf-8"))["packages"]
    assert [name for name, package in packages.items() if "resolved" in package] == []
    assert [name for name, package in packages.items() if name and "integrity" not in package] == []
