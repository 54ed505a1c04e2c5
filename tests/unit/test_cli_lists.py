"""Lists, handover, workspaces and pickup on the command line, against a supervisor that answers by script."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agents_registry.errors import BusyError, CodeError, NotFoundError
from tests.fakes.scripted_supervisor import ScriptedSupervisor
from transports.bus.api import Delivery
from transports.bus.vocabulary.conversation import Ok
from transports.bus.vocabulary.handover import CodeIssued, PickupTerminal, PrepareHandover
from transports.bus.vocabulary.lists import (
    AddWorkspace,
    ChangeWorkspace,
    FindWorkspace,
    GetStatus,
    ListThreads,
    ListWorkspaces,
    ShowThread,
)
from transports.cli.main import run
from transports.cli.output import clean, table

THREAD = {
    "id": "wt_1", "workspace": "ws_1", "cwd": "/项目", "host": {"agent": "demo", "profile": "direct"}, "status": "open",
    "title": "Fix\nit", "routes": ["cli:local:main"], "updated_at": 1.0,
}
STATUS = {
    "version": "1", "pid": 1, "uptime_s": 5.0, "data_dir": "/d", "threads": [THREAD], "routes": ["cli:local:main"],
    "hosts": [{"thread": "wt_1", "agent": "demo", "pid": 9, "session": "s", "state": "busy", "rss_mb": 41.2}], "bridges": [],
}


@pytest.fixture
def supervisor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedSupervisor]:
    monkeypatch.setenv("VIBEAROUND_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    fake = ScriptedSupervisor(tmp_path / "data")
    fake.start()
    yield fake
    fake.close()


def fails(error: Exception) -> Any:
    def answer(delivery: Delivery, fake: ScriptedSupervisor) -> None:
        raise error

    return answer


def test_status_is_one_json_document_as_the_supervisor_gave_it_and_a_page_for_people(supervisor: ScriptedSupervisor, capsys: Any) -> None:
    supervisor.answers["catalog", GetStatus] = lambda d, f: Ok(STATUS)
    assert run(["status", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == STATUS
    assert run(["status"]) == 0
    shown = capsys.readouterr().out
    assert "busy, pid 9, 41 MB" in shown
    assert "cli:local:main" in shown


def test_status_waits_for_a_supervisor_that_is_about_to_come(supervisor: ScriptedSupervisor, capsys: Any) -> None:
    supervisor.stop()
    supervisor.answers["catalog", GetStatus] = lambda d, f: Ok(STATUS)
    supervisor.later(0.3, supervisor.start)
    assert run(["status", "--wait", "10", "--json"]) == 0
    assert run(["status", "--wait", "0.1", "--json"]) == 0


def test_threads_are_listed_and_shown(supervisor: ScriptedSupervisor, capsys: Any) -> None:
    supervisor.answers["catalog", ListThreads] = lambda d, f: Ok({"threads": [THREAD]})
    turn = {"key": "k", "route": "cli:local:main", "prompt": "hi", "state": "done", "stop_reason": "end_turn", "started_at": 1.0, "ended_at": 2.0, "text": "Hello.\x1b[2J"}
    session = {"agent": "demo", "id": "s1", "observed_at": 1.0, "current": True}
    supervisor.answers["catalog", ShowThread] = lambda d, f: Ok({**THREAD, "sessions": [session], "turns": [turn]})
    assert run(["threads", "list", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == [THREAD]
    assert run(["threads", "list"]) == 0
    assert "Fix it" in capsys.readouterr().out
    assert run(["threads", "show", "wt"]) == 0
    shown = capsys.readouterr().out
    assert "s1  (current)" in shown
    assert "\x1b" not in shown
    assert run(["threads", "show", "wt", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["turns"][0]["text"] == turn["text"]


def test_an_unknown_thread_is_not_found(supervisor: ScriptedSupervisor) -> None:
    supervisor.answers["catalog", ShowThread] = fails(NotFoundError("there is no thread x."))
    assert run(["threads", "show", "x"]) == 4


def test_workspaces_are_added_by_real_path_listed_renamed_and_archived(supervisor: ScriptedSupervisor, capsys: Any, tmp_path: Path) -> None:
    row = {"id": "ws_1", "name": "proj", "cwd": str(tmp_path), "general": False, "archived": False, "threads": 2}
    supervisor.answers["workspaces", AddWorkspace] = lambda d, f: Ok({**row, "known": False})
    supervisor.answers["workspaces", ListWorkspaces] = lambda d, f: Ok({"workspaces": [row]})
    supervisor.answers["workspaces", FindWorkspace] = lambda d, f: Ok(row)
    supervisor.answers["workspaces", ChangeWorkspace] = lambda d, f: Ok()
    (tmp_path / "link").symlink_to(tmp_path)
    assert run(["workspace", "add", "link"]) == 0
    assert supervisor.seen[-1][1].cwd == str(tmp_path.resolve())
    assert run(["workspace", "add", "nowhere"]) == 4
    capsys.readouterr()
    assert run(["workspace", "list", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == [row]
    assert run(["workspace", "rename", "proj", "New Name"]) == 0
    assert (supervisor.seen[-1][1].action, supervisor.seen[-1][1].name) == ("rename", "New Name")
    assert run(["workspace", "archive", "proj"]) == 0
    assert run(["workspace", "archive", "proj", "--undo"]) == 0
    assert [m.action for _, m in supervisor.seen[-4:] if isinstance(m, ChangeWorkspace)] == ["archive", "restore"]


def test_a_handover_prints_the_code_and_where_to_type_it(supervisor: ScriptedSupervisor, capsys: Any) -> None:
    supervisor.answers["attacher", PrepareHandover] = lambda d, f: CodeIssued("K7QM", 120.0, "a note")
    argv = ["handover", "--agent", "demo", "--session", "s1", "--cwd", "."]
    assert run(argv) == 0
    assert capsys.readouterr().out.startswith("/pickup K7QM\n")
    assert run([*argv, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert {k: told[k] for k in ("code", "command", "expires_in_s")} == {"code": "K7QM", "command": "/pickup K7QM", "expires_in_s": 120.0}
    asked = supervisor.seen[-1][1]
    assert asked.issuer["pid"] == os.getppid()
    assert Path(asked.cwd).is_absolute()


def test_a_pickup_is_printed_without_moving_anything(supervisor: ScriptedSupervisor, capsys: Any) -> None:
    supervisor.answers["attacher", PickupTerminal] = lambda d, f: Ok({"line": "cd /x && claude --resume s", "argv": ["claude"], "cwd": "/x"})
    assert run(["pickup", " /pickup k7", "qm", "--print"]) == 0
    assert capsys.readouterr().out == "cd /x && claude --resume s\n"
    asked = supervisor.seen[-1][1]
    assert (asked.code, asked.keep_host) == ("K7QM", True)


@pytest.mark.parametrize(("error", "code"), [(CodeError("gone"), 6), (BusyError("being picked up right now"), 8), (NotFoundError("no session"), 4)])
def test_a_pickup_that_fails_ends_with_the_code_of_its_reason(supervisor: ScriptedSupervisor, error: Exception, code: int) -> None:
    supervisor.answers["attacher", PickupTerminal] = fails(error)
    assert run(["pickup", "K7QM"]) == code


@pytest.mark.parametrize("typed", ["K7Q", "K7QMM", "K0QM", "K1QM", "€7QM", "  "])
def test_what_cannot_be_a_code_costs_no_miss(supervisor: ScriptedSupervisor, typed: str) -> None:
    assert run(["pickup", typed]) == 6
    assert not supervisor.seen


def test_the_terminal_becomes_the_agent_in_the_sessions_directory_with_the_same_pid(supervisor: ScriptedSupervisor, tmp_path: Path) -> None:
    project = tmp_path / "项目 one"
    project.mkdir()
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "claude"
    program.write_text("#!/bin/sh\necho $$; pwd; echo \"$VIBEAROUND_AGENT_KIND $CLAUDE_CONFIG_DIR\"; echo \"$@\"\n")
    program.chmod(0o755)
    asked: list[PickupTerminal] = []

    def answer(delivery: Delivery, fake: ScriptedSupervisor) -> Ok:
        asked.append(delivery.message)
        return Ok({
            "agent": "claude", "session": "s1", "cwd": str(project), "argv": ["claude", "--resume", "s1"], "line": "", "thread": "wt_1",
            "env": {"CLAUDE_CONFIG_DIR": "/else where"},
        })

    supervisor.answers["attacher", PickupTerminal] = answer
    env = {**os.environ, "PATH": f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"}
    argv = [sys.executable, "-c", "from transports.cli.main import main; main(['pickup', 'K7QM'])"]
    done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=30, check=False)
    assert done.stdout.splitlines() == [str(asked[0].pid), str(project), "claude /else where", "--resume s1"], done.stderr
    records = list((tmp_path / "data" / "launches").glob("*.json"))
    assert [json.loads(r.read_text())["pid"] for r in records] == [asked[0].pid]


def test_a_pickup_whose_directory_is_gone_says_so_and_creates_nothing(supervisor: ScriptedSupervisor, tmp_path: Path, capsys: Any) -> None:
    data = {"agent": "demo", "session": "s", "cwd": str(tmp_path / "gone"), "argv": ["va"], "line": "", "thread": ""}
    supervisor.answers["attacher", PickupTerminal] = lambda d, f: Ok(data)
    assert run(["pickup", "K7QM"]) == 4
    assert "gone" in capsys.readouterr().err
    assert not (tmp_path / "gone").exists()


def test_columns_are_aligned_also_with_wide_characters() -> None:
    assert table([("日本", "x"), ("a", "y")], ("H", "T")) == "H     T\n日本  x\na     y"
    assert table([("a\x1b]0;x\x07b\nc\td", "y")]) == "a]0;xb c d  y", "a cell is one line and steers no terminal"


def test_cleaned_text_keeps_lines_and_letters_and_drops_what_steers_a_terminal() -> None:
    assert clean("a\x1b[31mb\x07\n\tc\x9d日本é") == "a[31mb\n\tc日本é"
