"""What is on this machine: agents as real programs on a PATH of the test's own, a fake npm, a fake login shell."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from agents_registry.bounded import run_bounded
from agents_registry.detect import Detection, detect, detect_all, installed_ids
from agents_registry.errors import AgentError, BusyError, UsageError
from agents_registry.install import install
from agents_registry.integrate import apply
from agents_registry.loader import load_registry
from agents_registry.login_env import joined_path, login_environment
from transports.cli.agents import agents

REGISTRY = load_registry(None)


def script(path: Path, text: str, interpreter: str = "/bin/sh") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!{interpreter}\n{text}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "bin").mkdir()
    return {"PATH": f"{tmp_path / 'bin'}{os.pathsep}/usr/bin{os.pathsep}/bin", "HOME": str(tmp_path / "home")}


def only(tmp_path: Path, env: dict[str, str]) -> dict[str, str]:
    """The environment with nothing but the test's own programs on PATH."""
    return {**env, "PATH": str(tmp_path / "bin")}


def look(agent: str, env: dict[str, str], tmp_path: Path, platform: str = sys.platform) -> Detection:
    return detect(REGISTRY.get(agent), env, tmp_path / "data", platform=platform)


@pytest.mark.requires("H3.list")
class TestDetect:
    def test_what_is_not_there_says_why_and_how_to_get_it(self, env: dict[str, str], tmp_path: Path) -> None:
        found = look("claude", only(tmp_path, env), tmp_path)
        assert (found.installed, found.version, found.program) == (False, "", "")
        assert not found.acp.ok
        assert "claude-agent-acp" in found.acp.why
        assert found.acp.fix == "va agents install claude"
        assert "npm install -g @anthropic-ai/claude-code" in found.terminal.fix

    def test_a_program_tells_its_version_and_an_adapter_that_is_missing_is_named(self, env: dict[str, str], tmp_path: Path) -> None:
        path = script(tmp_path / "bin/claude", 'echo "2.1.197 (Claude Code)"')
        found = look("claude", env, tmp_path)
        assert (found.installed, found.version, found.program) == (True, "2.1.197", str(path))
        assert found.terminal.ok
        assert not found.acp.ok
        assert found.handover.fix == "va integrate claude"
        apply.integrate(REGISTRY.get("claude"), ["/py", "shim"], env)
        assert look("claude", env, tmp_path).handover.ok

    def test_an_adapter_in_the_data_directory_is_usable_and_another_version_is_noted(self, env: dict[str, str], tmp_path: Path) -> None:
        package = tmp_path / "data/agents/node_modules/@agentclientprotocol/claude-agent-acp"
        adapter = script(package / "dist/index.js", "", "/usr/bin/env node")
        (package / "package.json").write_text(json.dumps({"name": "@agentclientprotocol/claude-agent-acp", "version": "0.48.0"}))
        links = tmp_path / "data/agents/node_modules/.bin"
        links.mkdir()
        (links / "claude-agent-acp").symlink_to(adapter)
        script(tmp_path / "bin/node", "echo v20.19.2")
        found = look("claude", env, tmp_path)
        assert found.acp.ok
        assert found.version == "0.48.0"
        assert "tested with 0.49.0" in found.notes[0]
        assert not found.terminal.ok
        assert installed_ids([REGISTRY.get("claude")], env, tmp_path / "data") == ["claude"]

    @pytest.mark.parametrize(("answer", "words"), [("echo v18.1.0", "it is 18.1.0"), ("exit 1", "there is none")])
    def test_a_node_that_is_too_old_or_missing_is_the_reason(self, answer: str, words: str, env: dict[str, str], tmp_path: Path) -> None:
        script(tmp_path / "bin/node", answer)
        script(tmp_path / "bin/kimi", "", "/usr/bin/env node")
        found = look("kimi", env, tmp_path)
        assert not found.acp.ok
        assert "needs Node 22.19 or newer" in found.acp.why
        assert words in found.acp.why

    def test_a_program_that_hangs_or_fails_is_there_without_a_version(
        self, env: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("agents_registry.detect.VERSION_LIMIT_S", 0.2)
        script(tmp_path / "bin/codex", "sleep 60")
        script(tmp_path / "bin/opencode", "echo 9.9.9; exit 3")
        assert [(look(agent, env, tmp_path).installed, look(agent, env, tmp_path).version) for agent in ("codex", "opencode")] == [
            (True, ""),
            (True, ""),
        ]

    def test_pi_is_usable_with_a_warning_that_it_never_asks(self, env: dict[str, str], tmp_path: Path) -> None:
        for name in ("pi", "pi-acp"):
            script(tmp_path / f"bin/{name}", "echo 0.74.2")
        found = look("pi", env, tmp_path)
        assert found.acp.ok
        assert "never asks" in found.notes[0]

    def test_desktop_programs_belong_to_their_platforms(self, env: dict[str, str], tmp_path: Path) -> None:
        assert look("codex-desktop", env, tmp_path, "linux").terminal.why == "does not exist on linux"

    def test_all_agents_are_looked_for_in_the_order_of_the_registry(self, env: dict[str, str], tmp_path: Path) -> None:
        found = detect_all(REGISTRY.all(), only(tmp_path, env), tmp_path / "data", versions=False)
        assert [one.spec.id for one in found] == REGISTRY.ids()
        assert [one.spec.id for one in found if one.installed] == ["demo"]

    def test_the_command_prints_one_document_and_a_table(self, env: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        script(tmp_path / "bin/codex", "echo codex-cli 0.171.0")
        monkeypatch.setenv("PATH", str(tmp_path / "bin") + ":/bin:/usr/bin")
        monkeypatch.setenv("HOME", env["HOME"])
        monkeypatch.setenv("VIBEAROUND_DATA_DIR", str(tmp_path / "data"))
        monkeypatch.delenv("SHELL", raising=False)
        listed = {one["id"]: one for one in json.loads(CliRunner().invoke(agents, ["list", "--json"]).stdout)}
        assert set(listed) == set(REGISTRY.ids())
        assert (listed["codex"]["version"], listed["codex"]["terminal"]["ok"]) == ("0.171.0", True)
        assert listed["codex"]["acp"]["fix"] == "va agents install codex"
        text = CliRunner().invoke(agents, ["list"]).stdout
        assert "0.171.0" in text
        assert "va agents install codex" in text


NPM = """
import json, os, pathlib, sys
words = sys.argv[1:]
print("npm warn deprecated x", flush=True)
if os.environ.get("FAKE_NPM") == "hang":
    open(os.environ["FAKE_NPM_READY"], "w").write(str(os.getpid()))
    __import__("time").sleep(60)
if os.environ.get("FAKE_NPM"):
    print(os.environ["FAKE_NPM"]); sys.exit(1)
print("npm http fetch GET 200 https://registry.invalid/x", flush=True)
prefix = pathlib.Path(words[words.index("--prefix") + 1])
(prefix / "argv.json").write_text(json.dumps(words))
for name in os.environ.get("FAKE_BINS", "").split():
    path = prefix / "node_modules/.bin" / name
    path.parent.mkdir(parents=True, exist_ok=True); path.write_text("#!/bin/sh\\n"); path.chmod(0o755)
print("added 3 packages")
"""


@pytest.mark.requires("H3.install")
class TestInstall:
    @pytest.fixture
    def npm(self, env: dict[str, str], tmp_path: Path) -> dict[str, str]:
        script(tmp_path / "bin/npm", NPM, sys.executable)
        script(tmp_path / "bin/node", "echo v20.19.2")
        return env

    @pytest.mark.requires("H7.progress")
    def test_the_pinned_packages_go_into_the_data_directory_with_progress(self, npm: dict[str, str], tmp_path: Path) -> None:
        said: list[str] = []
        programs = install(REGISTRY.get("pi"), tmp_path / "data", {**npm, "FAKE_BINS": "pi pi-acp"}, said.append)
        assert programs == [tmp_path / "data/agents/node_modules/.bin" / name for name in ("pi-acp", "pi")]
        words = json.loads((tmp_path / "data/agents/argv.json").read_text())
        assert words[-2:] == ["pi-acp@0.0.24", "@earendil-works/pi-coding-agent@0.74.2"]
        assert "--global" not in words
        assert said[0].startswith("Installing pi-acp@0.0.24")
        assert "added 3 packages" in said
        assert not any("deprecated" in line for line in said)

    @pytest.mark.parametrize(
        ("output", "code", "words"),
        [
            ("npm error code ENOTFOUND", "network", "registry cannot be reached"),
            ("npm error code ETIMEDOUT", "network", "registry cannot be reached"),
            ("npm error code E404\nnpm error 404 Not Found", "package_missing", "codex-acp@2.6.0"),
            ("npm error code ENOSPC", "disk_full", "disk is full"),
            ("npm error code EACCES", "no_permission", "may not write"),
            ("something else", "install_failed", "exit code 1: something else"),
        ],
    )
    def test_a_failure_of_npm_is_told_by_its_cause(self, output: str, code: str, words: str, npm: dict[str, str], tmp_path: Path) -> None:
        with pytest.raises(AgentError, match=words) as caught:
            install(REGISTRY.get("codex"), tmp_path / "data", {**npm, "FAKE_NPM": output}, lambda _line: None)
        assert (caught.value.code, bool(caught.value.hint)) == (code, True)

    def test_an_install_that_leaves_no_program_is_a_failure(self, npm: dict[str, str], tmp_path: Path) -> None:
        with pytest.raises(AgentError, match="is not there"):
            install(REGISTRY.get("codex"), tmp_path / "data", npm, lambda _line: None)

    def test_missing_npm_old_node_and_agents_of_other_makers_are_told(self, npm: dict[str, str], tmp_path: Path) -> None:
        with pytest.raises(AgentError, match=r"needs Node 22\.19 or newer; it is 20\.19\.2"):
            install(REGISTRY.get("kimi"), tmp_path / "data", npm, lambda _line: None)
        with pytest.raises(UsageError, match=r"cursor\.com"):
            install(REGISTRY.get("cursor"), tmp_path / "data", npm, lambda _line: None)
        (tmp_path / "bin/npm").unlink()
        with pytest.raises(AgentError, match="npm was not found"):
            install(REGISTRY.get("codex"), tmp_path / "data", only(tmp_path, npm), lambda _line: None)

    def test_npm_without_an_end_is_ended_at_the_limit(self, npm: dict[str, str], tmp_path: Path) -> None:
        ready = tmp_path / "pid"
        ticks = iter(range(0, 100000, 1))
        with pytest.raises(AgentError, match=r"not done within|no answer within"):
            install(
                REGISTRY.get("codex"), tmp_path / "data", {**npm, "FAKE_NPM": "hang", "FAKE_NPM_READY": str(ready)}, lambda _line: None,
                limit_s=2.0, clock=lambda: float(next(ticks)),
            )  # fmt: skip
        if ready.exists():
            with pytest.raises(ProcessLookupError):
                os.kill(int(ready.read_text()), 0)

    def test_two_installs_at_once_are_refused(self, npm: dict[str, str], tmp_path: Path) -> None:
        def again(line: str) -> None:
            if seen or "Installing" not in line:
                return
            with pytest.raises(BusyError):
                install(REGISTRY.get("codex"), tmp_path / "data", {**npm, "FAKE_BINS": "codex-acp"}, lambda _line: None)
            seen.append(1)

        seen: list[int] = []
        install(REGISTRY.get("codex"), tmp_path / "data", {**npm, "FAKE_BINS": "codex-acp"}, again)
        assert seen


class TestLoginEnvironment:
    def test_the_shell_is_asked_and_noise_of_its_start_files_is_no_matter(self, tmp_path: Path) -> None:
        shell = script(
            tmp_path / "sh", 'echo "welcome"; export PATH="/from/shell:$PATH" MULTI="a\nb=c"; shift 3; eval "$1"; echo bye', "/bin/bash"
        )
        told = login_environment({"SHELL": str(shell), "PATH": "/bin:/usr/bin", "HOME": str(tmp_path), "MINE": "1"})
        assert told.source == str(shell)
        assert told.variables["PATH"] == "/from/shell:/bin:/usr/bin"
        assert told.variables["MULTI"] == "a\nb=c"
        assert told.variables["MINE"] == "1"

    @pytest.mark.parametrize("body", ["exit 1", "sleep 60", "echo nothing"])
    def test_a_shell_that_fails_or_hangs_leaves_the_own_environment_with_the_reason(self, body: str, tmp_path: Path) -> None:
        shell = script(tmp_path / "sh", body)
        environ = {"SHELL": str(shell), "PATH": "/bin:/usr/bin"}
        told = login_environment(environ, limit_s=0.3)
        assert told.variables == environ
        assert told.source == "this process"
        assert told.problem

    def test_paths_are_joined_without_doubles(self) -> None:
        assert joined_path("/a:/b", "", "/b:/c:") == "/a:/b:/c"


def test_a_grandchild_that_keeps_the_pipe_does_not_hold_the_caller(tmp_path: Path) -> None:
    child = script(tmp_path / "child", "setsid sleep 5 & exec sleep 60")
    ran = run_bounded([str(child)], {"PATH": "/bin:/usr/bin"}, 0.2)
    assert ran.code is None
    assert "did not answer within 0.2 s" in ran.why


def test_a_program_that_cannot_be_started_is_no_exception(tmp_path: Path) -> None:
    assert "cannot be started" in run_bounded([str(tmp_path / "none")], {}, 1.0).why
