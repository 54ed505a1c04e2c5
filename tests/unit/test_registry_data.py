"""The registry of agents: what is built in, what a user's file may change, how a mistake in it is told."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agents_registry.errors import NotFoundError, UsageError
from agents_registry.integrate.skill import TEXTS
from agents_registry.loader import load_registry
from agents_registry.model import EVIDENCE, place, store_root

HOSTED = ["claude", "codex", "gemini", "opencode", "qwen-code", "cursor", "kiro", "pi", "kimi"]


def user_file(data_dir: Path, text: str) -> Path:
    (data_dir / "agents.toml").write_text(text, "utf-8")
    return data_dir


@pytest.mark.requires("H3.registry")
def test_the_built_in_registry_holds_all_agents_and_each_entry_is_complete() -> None:
    registry = load_registry(None)
    assert registry.ids() == [*HOSTED, "claude-desktop", "codex-desktop", "demo"]
    for spec in registry.all():
        assert spec.name
        assert spec.install_hint or spec.kind == "demo", spec.id
        if spec.id not in HOSTED:
            continue
        assert spec.acp is not None, spec.id
        assert spec.terminal is not None, spec.id
        assert spec.store is not None, spec.id
        assert spec.skills is not None, spec.id
        assert (TEXTS / spec.skills.text).is_file(), spec.id
        assert spec.mcp is not None or spec.id == "pi", spec.id
        assert spec.terminal.resume or spec.id == "kiro", spec.id
        assert spec.modes.ask or spec.id in ("opencode", "pi", "kiro"), spec.id
        assert spec.identity[0] == "hosted", spec.id
        assert set(spec.identity) <= set(EVIDENCE)
        for package in spec.npm:
            assert package.version.count(".") == 2, package
    for desktop in ("claude-desktop", "codex-desktop"):
        spec = registry.get(desktop)
        assert spec.acp is None
        assert spec.terminal is not None
        assert set(spec.terminal.per_platform) == set(spec.platforms)


def test_facts_that_hosting_relies_on_stand_in_the_registry() -> None:
    registry = load_registry(None)
    assert registry.get("codex").sessions.one_writer
    assert registry.get("codex").sessions.daemon_tested == ("0.166", "0.171")
    assert registry.get("codex").identity.index("call_meta") < registry.get("codex").identity.index("caller_word")
    assert registry.get("claude").identity.index("live_registry") < registry.get("claude").identity.index("launch_env")
    assert registry.get("gemini").sessions.resume == "load-guarded"
    assert registry.get("qwen-code").sessions.resume == "load"
    assert registry.get("qwen-code").sessions.unknown_id_silent
    assert not registry.get("pi").modes.can_ask
    assert registry.get("kimi").min_node == (22, 19)


def test_an_agent_is_found_by_exact_id_or_alias_only_and_the_nearest_name_is_offered() -> None:
    registry = load_registry(None)
    assert registry.get("claude-code").id == "claude"
    assert registry.get(" Codex ").id == "codex"
    with pytest.raises(NotFoundError, match=r"Did you mean 'claude'\?") as caught:
        registry.get("claud")
    assert caught.value.exit_code == 4
    with pytest.raises(NotFoundError, match="Known agents: claude, codex"):
        registry.get("c")


@pytest.mark.requires("H3.demo-not-chosen")
def test_the_demo_agent_is_the_default_only_when_no_real_agent_is_there() -> None:
    registry = load_registry(None)

    def default(*installed: str, preferred: str = "") -> str | None:
        spec = registry.default(installed, preferred)
        return spec.id if spec else None

    assert default("demo", "codex", "pi") == "codex"
    assert default("demo") == "demo"
    assert default("demo", "claude-desktop") == "demo"
    assert default() is None
    assert default("claude", "codex", preferred="openai-codex") == "codex"
    assert default("claude", preferred="gemini") == "claude"
    assert default("claude", "demo", preferred="demo") == "demo"


@pytest.mark.requires("H3.user-file")
class TestUserFile:
    def test_it_overrides_single_fields_and_keeps_the_rest(self, tmp_path: Path) -> None:
        spec = load_registry(user_file(tmp_path, '[claude.acp.env]\nCLAUDE_CODE_EXECUTABLE = "/opt/claude"\n[codex]\naliases = ["cx"]\n'))
        claude = spec.get("claude")
        assert claude.acp is not None
        assert claude.acp.env == {"CLAUDE_CODE_EXECUTABLE": "/opt/claude"}
        assert claude.acp.command == ("claude-agent-acp",)
        assert claude.source == str(tmp_path / "agents.toml")
        assert spec.get("cx").id == "codex"
        assert spec.get("gemini").source == "built in"

    def test_it_adds_an_agent(self, tmp_path: Path) -> None:
        registry = load_registry(user_file(tmp_path, '[mine]\nname = "Mine"\n[mine.acp]\ncommand = ["mine", "--acp"]\n'))
        spec = registry.get("mine")
        assert spec.acp is not None
        assert spec.acp.command == ("mine", "--acp")
        assert spec.sessions.resume == "load"
        assert registry.ids()[-1] == "mine"

    @pytest.mark.parametrize(
        ("text", "line", "words"),
        [
            ('[claude]\nname = "C"\nalias = ["x"]\n', 3, "has no field 'alias'.*Did you mean 'aliases'"),
            ('# one\n[claude.acp]\ncommand = "claude-agent-acp"\n', 3, "'command' of .claude.acp. must be a list of texts that starts"),
            ('[claude]\n\n[[claude.npm]]\npackage = "p"\nversion = "1"\n', 3, "needs the field 'bin'"),
            ('[claude.sessions]\nresume = "always"\n', 2, "must be one of resume, load, load-guarded"),
            ('[claude]\nidentity = ["hosted", "guess"]\n', 2, "must be a list out of hosted"),
            ('[claude]\nmin_node = 22\n', 2, 'must be a version, like "22.19"'),
            ('[mine]\nname = "M"\n', 1, "can neither be hosted nor launched"),
            ('[mine]\n[mine.acp]\ncommand = ["m"]\n', 1, "needs the field 'name'"),
            ('x = 1\n', 1, "'x' is not a table"),
            ('[Mine]\nname = "M"\n', 1, "is no agent id"),
            ('[codex]\naliases = ["claude"]\n', 2, "'claude' names two agents"),
            ('[claude]\nname = "C\n', 2, "not valid TOML"),
            ('[claude.acp]\nenv = { A = 1 }\n', 2, "must be a table of texts"),
        ],
    )
    def test_a_mistake_is_told_with_file_line_and_what_was_expected(self, tmp_path: Path, text: str, line: int, words: str) -> None:
        with pytest.raises(UsageError, match=f"(?s){words}") as caught:
            load_registry(user_file(tmp_path, text))
        assert str(caught.value).startswith(f"{tmp_path / 'agents.toml'}:{line}: ")

    def test_a_file_that_is_no_text_is_told_and_no_file_is_fine(self, tmp_path: Path) -> None:
        assert load_registry(tmp_path).ids()[0] == "claude"
        (tmp_path / "agents.toml").write_bytes(b"\xff\xfe")
        with pytest.raises(UsageError, match="cannot be read"):
            load_registry(tmp_path)


def test_a_pipe_in_place_of_the_users_file_is_named_instead_of_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "agents.toml")
    with pytest.raises(UsageError, match="it is a pipe, not a file"):
        load_registry(tmp_path)


def test_a_place_is_the_first_candidate_whose_variables_are_set() -> None:
    candidates = ("$CODEX_HOME/config.toml", "~/.codex/config.toml")
    assert place(candidates, {"CODEX_HOME": "/c", "HOME": "/h"}) == Path("/c/config.toml")
    assert place(candidates, {"CODEX_HOME": "", "HOME": "/h"}) == Path("/h/.codex/config.toml")
    assert place(candidates, {}) is None


def test_the_store_follows_the_environment_that_is_asked_about_not_this_process() -> None:
    claude = load_registry(None).get("claude")
    assert store_root(claude, {"HOME": "/somebody"}) == Path("/somebody/.claude")
    assert store_root(claude, {"HOME": "/somebody", "CLAUDE_CONFIG_DIR": "/else where"}) == Path("/else where")
