"""`va launch`: an agent that is a real process, the record of it, and the sessions of a directory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from agents_registry.errors import AgentError, NotFoundError, VibeAroundError
from agents_registry.launch_record import LaunchRecord, new_launch_id, read_launches, write_launch
from transports.acp.demo.store import DemoStore
from transports.cli.launch import launch

FAKE_AGENT = """#!{python}
import json, os, sys
keep = {{name: value for name, value in os.environ.items() if name.startswith("VIBEAROUND_")}}
print(json.dumps({{"argv": sys.argv[1:], "cwd": os.getcwd(), "pwd": os.environ.get("PWD"), "pid": os.getpid(), "env": keep}}), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("home", "bin", "work dir"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("VIBEAROUND_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.delenv("SHELL", raising=False)
    monkeypatch.chdir(tmp_path / "work dir")
    monkeypatch.setenv("PWD", str(tmp_path / "work dir"))
    return tmp_path


def fake_agent(home: Path, name: str) -> None:
    path = home / "bin" / name
    path.write_text(FAKE_AGENT.format(python=sys.executable))
    path.chmod(0o755)


def run(*words: str) -> Result:
    return CliRunner().invoke(launch, list(words))


def session(cwd: Path, text: str) -> str:
    stored = DemoStore.of(os.environ).new(str(cwd))
    stored.add("user", text)
    stored.add("agent", f"you said {text}")
    return stored.id


@pytest.mark.requires("H7.launch", "H4.env")
def test_the_agent_replaces_the_command_in_its_directory_and_is_recorded_while_it_lives(home: Path) -> None:
    fake_agent(home, "claude")
    other = home / "elsewhere"
    other.mkdir()
    code = "from transports.cli.launch import launch; launch()"
    environ = {**os.environ, "VIBEAROUND_HOST_ID": "h_outer", "VIBEAROUND_THREAD_ID": "wt_outer", "PYTHONPATH": str(Path(__file__).resolve().parents[2])}
    child = subprocess.Popen(
        [sys.executable, "-c", code, "claude", "--workspace", str(other), "--", "--model", "x y"],
        env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert child.stdout is not None
        told = json.loads(child.stdout.readline())
        assert told["pid"] == child.pid
        assert told["argv"] == ["--model", "x y"]
        assert told["cwd"] == told["pwd"] == str(other)
        (record,) = read_launches(home / "data")
        assert (record.pid, record.agent, record.cwd) == (child.pid, "claude", str(other))
        assert told["env"] == {
            "VIBEAROUND_AGENT_KIND": "claude",
            "VIBEAROUND_PROFILE_ID": "direct",
            "VIBEAROUND_LAUNCH_ID": record.launch,
            "VIBEAROUND_DATA_DIR": str(home / "data"),
        }
        path = home / "data/launches" / f"{record.launch}.json"
        assert path.stat().st_mode & 0o777 == 0o600
    finally:
        child.communicate(timeout=10)
    assert read_launches(home / "data") == []


def test_dry_run_prints_the_line_and_starts_nothing(home: Path) -> None:
    result = run("codex", "--dry-run", "--", "--no-daemon")
    assert result.stdout == f"cd '{home / 'work dir'}' && codex --no-daemon\n"
    document = json.loads(run("codex", "--dry-run", "--json").stdout)
    assert (document["argv"], document["cwd"], document["session"]) == (["codex"], str(home / "work dir"), None)
    assert not (home / "data").exists()


def test_the_directory_keeps_the_spelling_of_the_user(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    link = home / "link"
    link.symlink_to(home / "work dir")
    monkeypatch.setenv("PWD", str(link))
    assert json.loads(run("codex", "--dry-run", "--json").stdout)["cwd"] == str(link)
    monkeypatch.setenv("PWD", str(home))
    assert json.loads(run("codex", "--dry-run", "--json").stdout)["cwd"] == str(home / "work dir")


def test_a_session_is_resumed_in_the_directory_that_the_store_records(home: Path) -> None:
    other = home / "its own 目录"
    other.mkdir()
    ident = session(other, "remember tulip")
    result = run("demo", "--resume", ident[:8], "--dry-run", "--json")
    document = json.loads(result.stdout)
    assert (document["session"], document["cwd"]) == (ident, str(other))
    assert document["argv"] == ["va", "demo-agent", "--resume", ident]


def test_an_unknown_session_and_a_directory_that_is_gone_are_told_before_anything_starts(home: Path) -> None:
    unknown = run("demo", "--resume", "ffffffff", "--dry-run").exception
    assert isinstance(unknown, NotFoundError)
    gone = home / "gone"
    gone.mkdir()
    ident = session(gone, "x")
    gone.rmdir()
    result = run("demo", "--resume", ident).exception
    assert isinstance(result, NotFoundError)
    assert result.code == "cwd_gone"
    assert not gone.exists()
    missing = run("claude", "--workspace", str(home / "none")).exception
    assert isinstance(missing, NotFoundError)


def test_an_empty_id_is_refused_instead_of_taken_for_a_fresh_session(home: Path) -> None:
    refused = run("demo", "--resume", "", "--dry-run")
    assert refused.exit_code == 2
    assert "id is empty" in refused.output


def test_an_agent_that_is_not_installed_is_told_with_the_way_to_install_it(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(home / "bin"))
    error = run("claude").exception
    assert isinstance(error, AgentError)
    assert "va agents install claude" in error.hint
    assert isinstance(run("clade").exception, NotFoundError)


@pytest.mark.requires("H7.launch-sessions")
def test_sessions_of_this_directory_are_listed_newest_first_each_with_its_command(home: Path) -> None:
    work = home / "work dir"
    older, newer = session(work, "the older one"), session(work, "the newer one")
    for number, ident in enumerate((older, newer)):
        (path,) = [one for one in (home / "data/demo").rglob("*") if one.is_file() and ident in one.name]
        os.utime(path, (1_000_000_000 + number, 1_000_000_000 + number))
    (home / "other").mkdir()
    session(home / "other", "somewhere else")
    listed = json.loads(run("sessions", "--json").stdout)
    assert [entry["id"] for entry in listed] == [newer, older]
    assert listed[0]["agent"] == "demo"
    assert listed[0]["cwd"] == str(work)
    assert listed[0]["command"] == ["va", "demo-agent", "--resume", newer]
    assert listed[0]["line"] == f"cd '{work}' && va demo-agent --resume {newer}"
    text = run("sessions").stdout
    assert "the newer one" in text
    assert f"cd '{work}' && va demo-agent --resume {older}" in text
    assert len(json.loads(run("sessions", "--json", "--limit", "1").stdout)) == 1
    assert json.loads(run("sessions", "--json", "--agent", "codex").stdout) == []


def test_options_of_the_list_are_refused_elsewhere(home: Path) -> None:
    assert run("claude", "--agent", "codex").exit_code == 2
    assert run("sessions", "--resume", "x").exit_code == 2


def test_records_of_ended_or_foreign_processes_count_nothing_and_are_cleared(home: Path) -> None:
    data = home / "data"
    dead = subprocess.Popen(["true"])
    dead.wait(timeout=10)
    for pid, start in ((dead.pid, 1), (os.getpid(), 1)):
        write_launch(data, LaunchRecord(new_launch_id(), pid, start, "claude", "/w"))
    (data / "launches/broken.json").write_text("{")
    assert read_launches(data) == []
    write_launch(data, LaunchRecord("la_me", os.getpid(), 0, "codex", "/w"))
    assert [record.launch for record in read_launches(data)] == ["la_me"]
    assert sorted(path.name for path in (data / "launches").iterdir()) == ["broken.json", "la_me.json"]


def test_resuming_ends_a_recorded_host_of_that_session_first(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, str]] = []

    def end(data_dir: Path, agent: str, wanted: str) -> None:
        asked.append((agent, wanted))
        raise VibeAroundError("stop here")  # what follows would replace this very process

    monkeypatch.setattr("transports.cli.launch._end_without_supervisor", end)
    fake_agent(home, "va")
    ident = session(home / "work dir", "x")
    assert isinstance(run("demo", "--resume", ident).exception, VibeAroundError)
    assert asked == [("demo", ident)]
