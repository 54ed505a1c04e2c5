"""Fixtures for the tests with real agents."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agents.rig import AgentHome, FakeModel, why_no_agents


@pytest.fixture(autouse=True)
def _agents_are_there(request: pytest.FixtureRequest) -> None:
    """A test marked `agents` needs the pinned CLIs. Where `make test` did not install them it is skipped, but never in CI."""
    if request.node.get_closest_marker("agents") and (reason := why_no_agents()):
        if os.environ.get("CI"):
            pytest.fail(f"the real agents are needed in CI: {reason}")
        pytest.skip(reason)


@pytest.fixture
def model(tmp_path: Path) -> Iterator[FakeModel]:
    """A fake model of this test alone."""
    with FakeModel(tmp_path / "model") as fake:
        yield fake


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """An empty directory to work in, in its real spelling."""
    place = tmp_path.resolve() / "work"
    place.mkdir()
    return place


@pytest.fixture
def home(tmp_path: Path, model: FakeModel, work: Path) -> AgentHome:
    """A home for the agents of this test."""
    return AgentHome(tmp_path / "agents", model, trusted=(work,))
