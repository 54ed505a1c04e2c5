"""Commands and variables by which agents are started: computed from the registry, nothing of it invented at run time."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from agents_registry.errors import AgentError, UsageError
from agents_registry.integrate import apply
from agents_registry.integrate.entry import is_integrated
from agents_registry.launch import (
    AGENT_VARIABLES,
    HOST_VARIABLE,
    Identity,
    acp_command,
    acp_mcp_servers,
    clean_environment,
    resume_command,
    shell_line,
    shim_command,
    store_env,
    terminal_command,
)
from agents_registry.loader import load_registry

REGISTRY = load_registry(None)


def program(folder: Path, name: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_a_pinned_adapter_is_taken_before_one_on_path_and_an_agents_own_program_after(tmp_path: Path) -> None:
    pinned, path = tmp_path / "data/agents/node_modules/.bin", tmp_path / "bin"
    ours = [program(pinned, name) for name in ("claude-agent-acp", "gemini")]
    users = [program(path, name) for name in ("claude-agent-acp", "gemini")]
    env = {"PATH": str(path), "HOME": str(tmp_path)}
    assert acp_command(REGISTRY.get("claude"), env, tmp_path / "data").argv == (str(ours[0]),)
    assert acp_command(REGISTRY.get("gemini"), env, tmp_path / "data").argv == (str(users[1]), "--acp")
    users[1].unlink()
    assert acp_command(REGISTRY.get("gemini"), env, tmp_path / "data").argv == (str(ours[1]), "--acp")


def test_an_agents_directory_named_by_the_environment_is_looked_into_first(tmp_path: Path) -> None:
    program(tmp_path / "bin", "gemini")
    pinned = program(tmp_path / "agents/node_modules/.bin", "gemini")
    env = {"PATH": str(tmp_path / "bin"), "VIBEAROUND_AGENTS_DIR": str(tmp_path / "agents")}
    assert acp_command(REGISTRY.get("gemini"), env, tmp_path / "data").argv[0] == str(pinned)


def test_an_agent_that_is_not_there_is_an_error_with_the_way_to_install_it(tmp_path: Path) -> None:
    with pytest.raises(AgentError, match="va agents install claude") as caught:
        acp_command(REGISTRY.get("claude"), {"PATH": str(tmp_path)}, tmp_path)
    assert (caught.value.exit_code, caught.value.code) == (7, "agent_missing")
    with pytest.raises(AgentError, match="cannot be hosted"):
        acp_command(REGISTRY.get("codex-desktop"), {}, tmp_path)


def test_the_demo_agent_needs_nothing_installed(tmp_path: Path) -> None:
    assert acp_command(REGISTRY.get("demo"), {}, tmp_path).argv == (sys.executable, "-m", "transports.acp.demo")


def test_a_variable_that_the_user_set_is_not_overridden(tmp_path: Path) -> None:
    program(tmp_path / "bin", "codex-acp")
    env = {"PATH": str(tmp_path / "bin")}
    assert acp_command(REGISTRY.get("codex"), env, tmp_path).env == {"INITIAL_AGENT_MODE": "workspace-write"}
    assert acp_command(REGISTRY.get("codex"), {**env, "INITIAL_AGENT_MODE": "read-only"}, tmp_path).env == {}


@pytest.mark.requires("H3.no-config-edit")
def test_gemini_is_told_to_keep_sessions_by_a_file_of_ours_over_what_it_would_have_read(tmp_path: Path) -> None:
    program(tmp_path / "bin", "gemini")
    own = tmp_path / "system.json"
    own.write_text('{"general": {"x": 1, "sessionRetention": {"enabled": true, "maxAge": "3d"}}, // theirs\n "tools": {"a": [1]}}')
    before = own.read_bytes()
    env = {"PATH": str(tmp_path / "bin"), "GEMINI_CLI_SYSTEM_SETTINGS_PATH": str(own)}
    spec = acp_command(REGISTRY.get("gemini"), env, tmp_path / "data")
    spec.write_files()
    ours = Path(spec.env["GEMINI_CLI_SYSTEM_SETTINGS_PATH"])
    assert ours.is_relative_to(tmp_path / "data")
    assert json.loads(ours.read_text()) == {
        "general": {"x": 1, "sessionRetention": {"enabled": False, "maxAge": "3d"}},
        "tools": {"a": [1]},
    }
    assert ours.stat().st_mode & 0o777 == 0o600
    assert own.read_bytes() == before
    again = acp_command(REGISTRY.get("gemini"), {**env, **spec.env}, tmp_path / "data")
    assert again.files == ()


def test_a_pinned_pair_of_adapter_and_agent_stays_together(tmp_path: Path) -> None:
    pinned = tmp_path / "agents/node_modules/.bin"
    program(pinned, "pi-acp")
    pi = program(pinned, "pi")
    program(tmp_path / "bin", "pi")
    env = {"PATH": str(tmp_path / "bin")}
    assert acp_command(REGISTRY.get("pi"), env, tmp_path).env["PI_ACP_PI_COMMAND"] == str(pi)
    assert acp_command(REGISTRY.get("pi"), {**env, "PI_ACP_PI_COMMAND": "/mine"}, tmp_path).env == {}


@pytest.mark.parametrize(
    ("agent", "argv"),
    [
        ("claude", ["claude", "--resume", "s-1"]),
        ("codex", ["codex", "resume", "s-1"]),
        ("gemini", ["gemini", "--resume", "s-1"]),
        ("opencode", ["opencode", "--session", "s-1"]),
        ("qwen-code", ["qwen", "--resume", "s-1"]),
        ("cursor", ["cursor-agent", "--resume", "s-1"]),
        ("pi", ["pi", "--session", "s-1"]),
        ("kimi", ["kimi", "--session", "s-1"]),
        ("demo", ["va", "demo-agent", "--resume", "s-1"]),
    ],
)
def test_each_agents_own_resume_command(agent: str, argv: list[str]) -> None:
    assert resume_command(REGISTRY.get(agent), "s-1", "/w") == argv


def test_a_session_id_is_one_argument_and_never_an_option() -> None:
    assert resume_command(REGISTRY.get("claude"), "a b; rm -rf {id}", "/w")[-1] == "a b; rm -rf {id}"
    for bad in ("", "--dangerously-skip-permissions", "a\nb"):
        with pytest.raises(UsageError, match="no session id"):
            resume_command(REGISTRY.get("claude"), bad, "/w")
    with pytest.raises(UsageError, match="no command that can resume"):
        resume_command(REGISTRY.get("kiro"), "s-1", "/w")


def test_desktop_programs_are_launched_on_their_platforms_only() -> None:
    assert terminal_command(REGISTRY.get("claude-desktop"), "darwin") == ["open", "-a", "Claude"]
    with pytest.raises(UsageError, match="cannot be launched on linux"):
        terminal_command(REGISTRY.get("claude-desktop"), "linux")


@pytest.mark.parametrize("folder", ["plain", "with space", "it's", "项目", "$HOME `x` \"q\"", "-dash", "a;b&c"])
def test_the_printed_line_does_in_a_shell_what_it_says(folder: str, tmp_path: Path) -> None:
    (tmp_path / folder).mkdir()
    code = "import os, sys; print(os.getcwd()); print(sys.argv[1:])"
    line = shell_line([sys.executable, "-c", code, "--resume", "a'b c"], str(tmp_path / folder))
    ran = subprocess.run(["sh", "-c", line], capture_output=True, text=True, timeout=10, check=True)
    assert ran.stdout.splitlines() == [str((tmp_path / folder).resolve()), str(["--resume", "a'b c"])]


def test_words_that_need_no_quotes_have_none() -> None:
    assert shell_line(["claude", "--resume", "0-9"], "/home/me/x") == "cd /home/me/x && claude --resume 0-9"


@pytest.mark.requires("H4.env")
def test_started_agents_are_told_who_they_are_and_only_hosts_carry_the_host_id() -> None:
    hosted = Identity("claude", "direct", "la_1", "wt_1", "ws_1", "h_1").variables()
    assert set(hosted) == {*AGENT_VARIABLES, HOST_VARIABLE}
    assert hosted["VIBEAROUND_AGENT_KIND"] == "claude"
    assert hosted["VIBEAROUND_THREAD_ID"] == "wt_1"
    launched = Identity("codex", launch="la_2").variables()
    assert launched == {"VIBEAROUND_AGENT_KIND": "codex", "VIBEAROUND_PROFILE_ID": "direct", "VIBEAROUND_LAUNCH_ID": "la_2"}
    assert clean_environment({**hosted, "PATH": "/bin", "VIBEAROUND_DATA_DIR": "/d"}) == {"PATH": "/bin", "VIBEAROUND_DATA_DIR": "/d"}


def test_an_agent_started_from_inside_another_does_not_take_itself_for_that_one() -> None:
    inside = {"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": "outer", "CODEX_THREAD_ID": "outer", "PI_SESSION_ID": "outer"}
    kept = {"CLAUDE_CONFIG_DIR": "/c", "CODEX_HOME": "/x", "PATH": "/bin", "ANTHROPIC_API_KEY": "k"}
    assert clean_environment({**inside, **kept}) == kept


def test_only_variables_that_place_the_store_are_passed_on() -> None:
    environ = {"CODEX_HOME": "/c", "HOME": "/h", "OPENAI_API_KEY": "secret", "CLAUDE_CONFIG_DIR": "/x", "PATH": "/bin"}
    assert store_env(REGISTRY.get("codex"), environ) == {"CODEX_HOME": "/c", "HOME": "/h"}
    assert store_env(REGISTRY.get("claude"), environ) == {"CLAUDE_CONFIG_DIR": "/x", "HOME": "/h"}


@pytest.mark.requires("H4.hosted-mcp")
def test_hosted_agents_get_the_server_over_acp_unless_their_own_configuration_has_it(tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path)}
    shim = shim_command(tmp_path / "shim.py", tmp_path / "d d", python="/py")
    assert shim == ["/py", "-I", "-S", str(tmp_path / "shim.py"), "--data-dir", str(tmp_path / "d d")]
    codex = REGISTRY.get("codex")
    assert acp_mcp_servers(codex, shim, configured=is_integrated(codex, env)) == [
        {"name": "vibearound", "command": "/py", "args": shim[1:], "env": []}
    ]
    apply.integrate(codex, shim, env)
    assert acp_mcp_servers(codex, shim, configured=is_integrated(codex, env)) == []
    assert acp_mcp_servers(REGISTRY.get("pi"), shim, configured=False) == []
