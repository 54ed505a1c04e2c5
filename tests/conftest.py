"""What holds for every test: nothing of the person who runs the tests is read or changed, and long tests run only when asked."""

from __future__ import annotations

import faulthandler
import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

# The same examples in every run, and no wall clock: what fails here fails everywhere.
settings.register_profile("same", derandomize=True, deadline=None)
settings.load_profile("same")

_PERSONAL = (
    "ANTHROPIC_",
    "CLAUDE",
    "CODEX_",
    "GEMINI_",
    "OPENAI_",
    "QWEN_",
    "KIMI_",
    "PI_",
    "OPENCODE",
    "VIBEAROUND_",
    "XDG_",
)


@pytest.fixture(scope="session", autouse=True)
def _no_personal_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """HOME is an empty folder, and no variable points to agents' stores, keys or a running daemon."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith(_PERSONAL)]:
            patch.delenv(name)
        patch.setenv("HOME", str(tmp_path_factory.mktemp("home")))
        patch.setenv("NO_PROXY", "127.0.0.1,localhost")
        yield


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests marked `stress` run only where the marker is asked for."""
    if "stress" in str(config.getoption("-m")):
        return
    long = [item for item in items if item.get_closest_marker("stress")]
    if long:
        config.hook.pytest_deselected(items=long)
        items[:] = [item for item in items if item not in long]


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish() -> None:
    """A socket that a failed test left open must not keep the run from ending: where everything hangs is shown, and it fails."""
    faulthandler.dump_traceback_later(60, exit=True)
