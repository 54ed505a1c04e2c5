"""`va integrate`, per agent: where it writes, what it leaves alone, what it refuses, how it takes everything back."""

from __future__ import annotations

import json
import stat
import tomllib
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from agents_registry.errors import RefusedError, UsageError, VibeAroundError
from agents_registry.integrate import apply
from agents_registry.integrate.entry import is_integrated, mcp_file
from agents_registry.integrate.skill import MARK, skill_file, skill_text
from agents_registry.loader import load_registry
from transports.cli.integrate import integrate as command

REGISTRY = load_registry(None)
SHIM = ["/usr/bin/python3", "-I", "-S", "/lib/shim.py"]
ABLE = [spec.id for spec in REGISTRY.all() if spec.mcp is not None or spec.skills is not None]
WITH_MCP = [spec.id for spec in REGISTRY.all() if spec.mcp is not None]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    path = tmp_path / "home"
    path.mkdir()
    return path


@pytest.fixture
def env(home: Path) -> dict[str, str]:
    return {"HOME": str(home), "PATH": "/nowhere"}


def tree(root: Path) -> dict[str, bytes | None]:
    return {str(path.relative_to(root)): path.read_bytes() if path.is_file() else None for path in root.rglob("*")}


def config_of(agent: str, env: dict[str, str], project: Path | None = None) -> Path:
    path = mcp_file(REGISTRY.get(agent), env, project)
    assert path is not None
    return path


def entry_of(agent: str, path: Path) -> Any:
    spec = REGISTRY.get(agent)
    assert spec.mcp is not None
    parsed = tomllib.loads(path.read_text()) if spec.mcp.format == "toml" else json.loads(path.read_text())
    return parsed[spec.mcp.key].get("vibearound")


@pytest.mark.requires("H4.integrate")
@pytest.mark.parametrize(
    ("agent", "file", "entry", "skill"),
    [
        (
            "claude",
            ".claude.json",
            {"type": "stdio", "command": SHIM[0], "args": SHIM[1:]},
            ".claude/skills/vibearound/SKILL.md",
        ),
        (
            "codex",
            ".codex/config.toml",
            {"command": SHIM[0], "args": SHIM[1:], "default_tools_approval_mode": "approve"},
            ".codex/skills/vibearound/SKILL.md",
        ),
        ("gemini", ".gemini/settings.json", {"command": SHIM[0], "args": SHIM[1:]}, ".gemini/skills/vibearound/SKILL.md"),
        (
            "opencode",
            ".config/opencode/opencode.json",
            {"type": "local", "command": SHIM, "enabled": True},
            ".config/opencode/skills/vibearound/SKILL.md",
        ),
        ("qwen-code", ".qwen/settings.json", {"command": SHIM[0], "args": SHIM[1:]}, ".qwen/skills/vibearound/SKILL.md"),
        ("cursor", ".cursor/mcp.json", {"command": SHIM[0], "args": SHIM[1:]}, ".cursor/skills/vibearound/SKILL.md"),
        ("kiro", ".kiro/settings/mcp.json", {"command": SHIM[0], "args": SHIM[1:]}, ".kiro/steering/vibearound.md"),
        ("kimi", ".kimi-code/mcp.json", {"command": SHIM[0], "args": SHIM[1:]}, ".kimi-code/skills/vibearound/SKILL.md"),
    ],
)
def test_server_and_skill_stand_where_the_agent_looks(
    agent: str, file: str, entry: dict[str, Any], skill: str, home: Path, env: dict[str, str]
) -> None:
    changes = apply.integrate(REGISTRY.get(agent), SHIM, env)
    assert [(change.what, change.done) for change in changes] == [("mcp", "added"), ("skill", "added")]
    assert entry_of(agent, home / file) == entry
    assert (home / skill).read_text() == skill_text(REGISTRY.get(agent))
    assert is_integrated(REGISTRY.get(agent), env)
    assert {path.name for path in home.rglob("*") if path.is_file()} == {Path(file).name, Path(skill).name}


def test_an_agents_own_variables_place_the_files(tmp_path: Path, env: dict[str, str]) -> None:
    env = {**env, "CLAUDE_CONFIG_DIR": str(tmp_path / "c c"), "CODEX_HOME": str(tmp_path / "x")}
    for agent in ("claude", "codex"):
        apply.integrate(REGISTRY.get(agent), SHIM, env)
    assert (tmp_path / "c c/.claude.json").exists()
    assert (tmp_path / "c c/skills/vibearound/SKILL.md").exists()
    assert (tmp_path / "x/config.toml").exists()
    assert list((tmp_path / "home").iterdir()) == []


def test_pi_has_a_skill_and_no_server_and_a_desktop_program_has_neither(home: Path, env: dict[str, str]) -> None:
    assert [change.what for change in apply.integrate(REGISTRY.get("pi"), SHIM, env)] == ["skill"]
    with pytest.raises(UsageError, match="command line program of the same maker"):
        apply.integrate(REGISTRY.get("claude-desktop"), SHIM, env)
    with pytest.raises(UsageError, match="va handover --agent demo"):
        apply.integrate(REGISTRY.get("demo"), SHIM, env)


@pytest.mark.requires("H4.integrate-remove")
@pytest.mark.parametrize("agent", ABLE)
def test_removing_gives_back_the_very_files_of_before(agent: str, home: Path, env: dict[str, str], tmp_path: Path) -> None:
    spec, data = REGISTRY.get(agent), tmp_path / "data"
    for text in (None, {"json": '{"mcpServers": {}, "mcp":{ } }', "toml": "[mcp_servers]\n"}, {"json": "{\n}", "toml": "# mine\n\n"}):
        if text is not None and spec.mcp is not None:
            path = config_of(agent, env)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text[spec.mcp.format])
        before = tree(home)
        apply.integrate(spec, SHIM, env, data_dir=data)
        apply.integrate(spec, ["/other/python", *SHIM[1:]], env, data_dir=data)
        assert tree(home) != before
        done = {change.done for change in apply.remove(spec, env, data_dir=data)}
        assert done == {"removed"}
        assert tree(home) == before
        assert not is_integrated(spec, env)
    assert not (data / "integrations.json").exists()
    assert {change.done for change in apply.remove(spec, env, data_dir=data)} == {"absent"}


@pytest.mark.parametrize("agent", WITH_MCP)
def test_what_the_agent_wrote_meanwhile_stays_when_the_entry_goes(agent: str, env: dict[str, str], tmp_path: Path) -> None:
    spec, path = REGISTRY.get(agent), config_of(agent, env)
    apply.integrate(spec, SHIM, env, data_dir=tmp_path / "data")
    assert spec.mcp is not None
    if spec.mcp.format == "toml":
        path.write_text('added = "by the agent"\n' + path.read_text() + "\n[tui]\nx = 1\n")
        expected: Any = {"added": "by the agent", "tui": {"x": 1}}
    else:
        parsed = json.loads(path.read_text())
        parsed["added"] = "by the agent"
        path.write_text(json.dumps(parsed, indent=1))
        expected = {"added": "by the agent"}
    apply.remove(spec, env, data_dir=tmp_path / "data")
    text = path.read_text()
    assert (tomllib.loads(text) if spec.mcp.format == "toml" else json.loads(text)) == expected


@pytest.mark.parametrize("agent", ABLE)
def test_a_second_run_changes_nothing(agent: str, home: Path, env: dict[str, str]) -> None:
    apply.integrate(REGISTRY.get(agent), SHIM, env)
    before = tree(home)
    assert {change.done for change in apply.integrate(REGISTRY.get(agent), SHIM, env)} == {"unchanged"}
    assert tree(home) == before


def test_further_fields_of_the_entry_stay_when_the_command_changes(home: Path, env: dict[str, str]) -> None:
    path = home / ".claude.json"
    path.write_text('{"mcpServers": {"vibearound": {"command": "old", "timeout": 9}}, "big": "' + "x" * 20000 + '"}')
    apply.integrate(REGISTRY.get("claude"), SHIM, env)
    assert entry_of("claude", path) == {"type": "stdio", "command": SHIM[0], "args": SHIM[1:], "timeout": 9}


@pytest.mark.requires("H4.integrate-refuses")
@pytest.mark.parametrize("agent", WITH_MCP)
@pytest.mark.parametrize("content", [b"{ not json", b"\xff\xfe\x00", b"key = = 1\n[", b'"text"'])
def test_a_file_that_cannot_be_parsed_is_refused_and_nothing_at_all_is_written(
    agent: str, content: bytes, home: Path, env: dict[str, str]
) -> None:
    path = config_of(agent, env)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    before = tree(home)
    with pytest.raises(RefusedError, match="was not touched"):
        apply.integrate(REGISTRY.get(agent), SHIM, env)
    with pytest.raises(RefusedError, match="was not touched"):
        apply.remove(REGISTRY.get(agent), env)
    assert tree(home) == before
    assert not is_integrated(REGISTRY.get(agent), env)


def test_a_skill_of_the_users_own_is_neither_overwritten_nor_removed(home: Path, env: dict[str, str]) -> None:
    skill = home / ".claude/skills/vibearound/SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("mine")
    before = tree(home)
    with pytest.raises(RefusedError, match="not one of ours"):
        apply.integrate(REGISTRY.get("claude"), SHIM, env)
    assert tree(home) == before


def test_a_linked_file_stays_a_link_and_modes_stay(home: Path, env: dict[str, str], tmp_path: Path) -> None:
    dotfiles = tmp_path / "dotfiles"
    dotfiles.mkdir()
    (dotfiles / "claude.json").write_text("{}")
    (dotfiles / "claude.json").chmod(0o640)
    (home / ".claude.json").symlink_to(dotfiles / "claude.json")
    apply.integrate(REGISTRY.get("claude"), SHIM, env)
    assert (home / ".claude.json").is_symlink()
    assert entry_of("claude", dotfiles / "claude.json")["command"] == SHIM[0]
    assert stat.S_IMODE((dotfiles / "claude.json").stat().st_mode) == 0o640
    apply.integrate(REGISTRY.get("codex"), SHIM, env)
    assert stat.S_IMODE((home / ".codex/config.toml").stat().st_mode) == 0o600
    assert [path.name for path in dotfiles.iterdir()] == ["claude.json"]


def test_a_link_in_a_circle_is_refused(home: Path, env: dict[str, str]) -> None:
    (home / ".claude.json").symlink_to(home / ".claude.json")
    with pytest.raises(RefusedError):
        apply.integrate(REGISTRY.get("claude"), SHIM, env)


def test_project_level_writes_into_the_project_only(home: Path, env: dict[str, str], tmp_path: Path) -> None:
    project = tmp_path / "项目 one"
    project.mkdir()
    for agent in ("claude", "codex"):
        apply.integrate(REGISTRY.get(agent), SHIM, env, project=project)
    assert entry_of("claude", project / ".mcp.json")["args"] == SHIM[1:]
    assert entry_of("codex", project / ".codex/config.toml")["command"] == SHIM[0]
    assert (project / ".claude/skills/vibearound/SKILL.md").exists()
    assert (project / ".agents/skills/vibearound/SKILL.md").exists()
    assert list(home.iterdir()) == []
    assert is_integrated(REGISTRY.get("claude"), env, project)
    assert not is_integrated(REGISTRY.get("claude"), env)
    with pytest.raises(UsageError, match="not a directory"):
        apply.integrate(REGISTRY.get("claude"), SHIM, env, project=tmp_path / "none")


def test_an_entry_that_is_switched_off_does_not_count(home: Path, env: dict[str, str]) -> None:
    apply.integrate(REGISTRY.get("opencode"), SHIM, env)
    path = config_of("opencode", env)
    path.write_text(path.read_text().replace("true", "false"))
    assert not is_integrated(REGISTRY.get("opencode"), env)


def test_the_jsonc_file_of_opencode_is_used_where_it_is_the_one(home: Path, env: dict[str, str]) -> None:
    path = home / ".config/opencode/opencode.jsonc"
    path.parent.mkdir(parents=True)
    path.write_text('{\n  // mine\n  "model": "m",\n}\n')
    apply.integrate(REGISTRY.get("opencode"), SHIM, env)
    assert "// mine" in path.read_text()
    assert is_integrated(REGISTRY.get("opencode"), env)
    assert not (path.parent / "opencode.json").exists()


@pytest.mark.parametrize("agent", ABLE)
def test_the_skill_text_names_the_agent_the_tool_and_the_way_without_it(agent: str) -> None:
    spec = REGISTRY.get(agent)
    text = skill_text(spec)
    assert text.startswith("---\nname: vibearound\n")
    assert MARK in text
    assert f"va handover --agent {agent}" in text
    assert "/pickup CODE" in text
    assert spec.mcp is None or "prepare_handover" in text
    assert "{" not in text.replace("${CLAUDE_SESSION_ID}", "")
    own = {"claude": "${CLAUDE_SESSION_ID}", "codex": "echo $CODEX_THREAD_ID", "pi": "$PI_SESSION_ID"}
    for other, words in own.items():
        assert (words in text) == (other == agent)


def test_without_a_home_nothing_is_written_anywhere() -> None:
    assert skill_file(REGISTRY.get("claude"), {}) is None
    with pytest.raises(UsageError):
        apply.integrate(REGISTRY.get("claude"), SHIM, {})


class TestCommand:
    @pytest.fixture(autouse=True)
    def _environment(self, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HOME", str(home))
        monkeypatch.setenv("VIBEAROUND_DATA_DIR", str(tmp_path / "data"))
        monkeypatch.setenv("PATH", str(tmp_path / "bin"))
        monkeypatch.delenv("SHELL", raising=False)

    def run(self, *words: str) -> Result:
        return CliRunner().invoke(command, list(words))

    def install(self, tmp_path: Path, name: str) -> None:
        program = tmp_path / "bin" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text("#!/bin/sh\necho 1.0.0\n")
        program.chmod(0o755)

    @pytest.mark.requires("H4.integrate-print")
    def test_print_shows_each_file_and_the_command_and_changes_nothing(self, home: Path, tmp_path: Path) -> None:
        result = self.run("claude", "codex", "--print", "--json")
        assert result.exit_code == 0
        listed = json.loads(result.stdout)
        assert [(one["agent"], one["file"]) for one in listed] == [
            ("claude", str(home / ".claude.json")),
            ("codex", str(home / ".codex/config.toml")),
        ]
        interpreter, *words = listed[0]["command"]
        assert Path(interpreter).exists()
        assert words[:2] == ["-I", "-S"]
        assert Path(words[2]).name == "shim.py"
        assert words[3:] == ["--data-dir", str(tmp_path / "data")]
        text = self.run("claude", "--print").stdout
        assert '"vibearound"' in text
        assert str(home / ".claude/skills/vibearound/SKILL.md") in text
        assert tree(home) == {}
        assert not (tmp_path / "data").exists()

    def test_the_default_data_directory_is_not_named(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("VIBEAROUND_DATA_DIR")
        assert "--data-dir" not in json.loads(self.run("claude", "--print", "--json").stdout)[0]["command"]

    def test_without_a_name_all_installed_agents_are_integrated_and_removed(self, home: Path, tmp_path: Path) -> None:
        for name in ("claude", "codex"):
            self.install(tmp_path, name)
        listed = json.loads(self.run("--json").stdout)
        assert {(one["agent"], one["done"]) for one in listed} == {("claude", "added"), ("codex", "added")}
        listed = json.loads(self.run("--remove", "--json").stdout)
        assert {(one["agent"], one["done"]) for one in listed} == {("claude", "removed"), ("codex", "removed")}
        assert tree(home) == {}

    def test_with_nothing_installed_it_says_what_to_do(self) -> None:
        result = self.run()
        assert isinstance(result.exception, VibeAroundError)
        assert "va integrate claude" in result.exception.hint

    def test_one_broken_file_does_not_keep_the_others_from_being_integrated(self, home: Path, tmp_path: Path) -> None:
        for name in ("claude", "codex"):
            self.install(tmp_path, name)
        (home / ".claude.json").write_text("{")
        result = self.run()
        assert isinstance(result.exception, RefusedError)
        assert "claude" in result.stderr
        assert (home / ".codex/config.toml").exists()
        assert (home / ".claude.json").read_text() == "{"

    def test_no_secret_and_no_variable_of_the_user_stands_in_any_file(self, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("ANTHROPIC_API_KEY", "s3cret-value")
        assert self.run(*ABLE).exit_code == 0
        assert all(b"s3cret" not in (content or b"") and b"token" not in (content or b"").lower() for content in tree(home).values())
