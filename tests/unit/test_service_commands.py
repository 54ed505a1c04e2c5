"""`va settings`, `va service`, `va doctor`, `va mcp` as a user types them."""

from __future__ import annotations

import json
import os
import socket
import sqlite3
import stat
import subprocess
import sys
import threading
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from agents_registry.errors import NotFoundError, RefusedError, UsageError
from transports import paths
from transports.cli.doctor import doctor
from transports.cli.service import service
from transports.cli.settings import settings
from transports.mcp.server import McpConnection
from transports.service import health


@pytest.fixture(autouse=True)
def data_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    data = tmp_path / "data"
    monkeypatch.setenv("VIBEAROUND_DATA_DIR", str(data))
    monkeypatch.setenv("HOME", str(tmp_path))
    return data


def va(command: click.Command, *words: str) -> Result:
    return CliRunner().invoke(command, list(words))


@pytest.mark.requires("H7.settings")
def test_a_setting_is_read_written_listed_and_taken_out(data_dir: Path) -> None:
    assert va(settings, "get", "handover.ttl_s").stdout == "120\n"
    assert va(settings, "set", "handover.ttl_s", "60").stdout == "handover.ttl_s = 60\n"
    answer = json.loads(va(settings, "get", "handover.ttl_s", "--json").stdout)
    assert answer == {"key": "handover.ttl_s", "value": 60, "source": "file"}
    listed = {one["key"]: one for one in json.loads(va(settings, "list", "--json").stdout)}
    assert (listed["handover.ttl_s"]["value"], listed["handover.ttl_s"]["default"]) == (60, 120)
    assert "handover.ttl_s" in va(settings, "list").stdout
    assert va(settings, "path").stdout == f"{data_dir / 'settings.toml'}\n"
    va(settings, "unset", "handover.ttl_s")
    assert va(settings, "get", "handover.ttl_s").stdout == "120\n"


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        (("get", "handover.ttl"), NotFoundError),
        (("set", "handover.ttl_s", "soon"), UsageError),
        (("set", "handover.tl_s", "5"), NotFoundError),
    ],
)
def test_a_wrong_key_or_value_is_an_error_of_its_kind(words: tuple[str, ...], kind: type[Exception]) -> None:
    assert isinstance(va(settings, *words).exception, kind)


def test_a_damaged_file_is_refused_and_stays(data_dir: Path) -> None:
    data_dir.mkdir()
    (data_dir / "settings.toml").write_text("[oops\n")
    assert isinstance(va(settings, "set", "handover.ttl_s", "5").exception, RefusedError)
    assert (data_dir / "settings.toml").read_text() == "[oops\n"


def test_printing_the_service_changes_nothing(tmp_path: Path) -> None:
    printed = va(service, "install", "--print")
    assert printed.exit_code == 0
    assert "Type=notify" in printed.stdout or "<plist" in printed.stdout
    document = json.loads(va(service, "install", "--print", "--json").stdout)
    assert document["content"] in printed.stdout
    assert not Path(document["path"]).exists()
    assert list(tmp_path.iterdir()) == []


def test_the_status_of_a_service_that_is_not_installed_says_how_to_install_it() -> None:
    assert "va service install" in va(service, "status").stdout
    assert json.loads(va(service, "status", "--json").stdout)["installed"] is False


def checks(data: Path, **environ: str) -> dict[str, list[health.Check]]:
    found: dict[str, list[health.Check]] = {}
    for check in health.examine(data, {"HOME": str(data.parent), "PATH": os.defpath, **environ}):
        found.setdefault(check.name, []).append(check)
    return found


@pytest.mark.requires("H7.doctor")
def test_the_doctor_finds_a_fresh_machine_in_order_and_says_how_to_start(data_dir: Path) -> None:
    answered = va(doctor, "--json")
    document = json.loads(answered.stdout)
    found = {check["name"]: check for check in document["checks"]}
    assert document["ok"] is True
    assert answered.exit_code == 0
    assert found["supervisor"]["fix"] == "Run `va up`."
    assert not data_dir.exists()


@pytest.mark.requires("H7.doctor")
def test_the_doctor_names_a_damaged_journal_and_a_pipe_in_its_place_and_finds_a_sound_one_well(data_dir: Path) -> None:
    state = data_dir / "state"
    state.mkdir(mode=0o700, parents=True)
    journal = state / "journal.db"

    def found() -> tuple[str, str]:
        (check,) = [one for one in json.loads(va(doctor, "--json").stdout)["checks"] if one["name"] == "journal"]
        return check["state"], check["fix"]

    with sqlite3.connect(journal) as made:
        made.execute("CREATE TABLE t (x)")
    made.close()
    journal.chmod(0o600)
    assert found()[0] == "ok"
    journal.write_bytes(b"somebody's notes" * 100)
    assert found()[0] == "fail" and str(journal) in found()[1]
    journal.unlink()
    os.mkfifo(journal, 0o600)
    assert found()[0] == "fail"


@pytest.mark.requires("H7.exit-codes")
def test_output_that_has_no_room_is_told_in_a_line_and_leaves_no_crash_report(data_dir: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full: a file that never has room")
    data_dir.mkdir(mode=0o700)
    program = "import sys; from transports.cli.main import main; sys.exit(main())"
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-c", program, "settings", "list"], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60,
            cwd=Path(__file__).resolve().parents[2],
        )
    assert done.returncode == 1 and "could not be written: No space left" in done.stderr and "unexpected" not in done.stderr
    assert not (data_dir / "logs").exists()


@pytest.mark.requires("H7.doctor")
def test_the_doctor_names_a_damaged_settings_file_and_ends_with_a_failure(data_dir: Path) -> None:
    data_dir.mkdir(mode=0o700)
    (data_dir / "settings.toml").write_text("[threads]\nidle = 5\n")
    answered = va(doctor)
    assert answered.exit_code == 1
    assert "line 2" in answered.stdout
    assert "-> Did you mean" in answered.stdout


def test_the_doctor_sees_open_modes_and_leaves_nothing_behind(data_dir: Path) -> None:
    data_dir.mkdir()
    data_dir.chmod(0o755)
    (data_dir / "run.json").write_text("{")
    (data_dir / "run.json").chmod(0o644)
    found = checks(data_dir)
    assert [check.state for check in found["data directory"]] == ["warn", "warn"]
    assert found["data directory"][0].fix == f"chmod 700 {data_dir}"
    assert "damaged" in found["supervisor"][0].detail
    assert sorted(path.name for path in data_dir.iterdir()) == ["run.json"]
    assert stat.S_IMODE(data_dir.stat().st_mode) == 0o755


def test_the_doctor_tells_a_supervisor_that_ended_from_one_that_never_was(data_dir: Path) -> None:
    data_dir.mkdir(mode=0o700)
    code = "import sys, pathlib; from transports import paths; paths.write_run(pathlib.Path(sys.argv[1]), '/x', '1', 0.0)"
    subprocess.run([sys.executable, "-c", code, str(data_dir)], check=True, timeout=20)
    assert "ended without saying so" in checks(data_dir)["supervisor"][0].detail


@pytest.mark.requires("H7.doctor")
def test_the_doctor_asks_a_running_supervisor(data_dir: Path, tmp_path: Path) -> None:
    data_dir.mkdir(mode=0o700)
    paths.write_run(data_dir, tmp_path, "1.0", 0.0)
    lock = paths.acquire_lock(data_dir)
    assert checks(data_dir)["supervisor"][0].state == "fail"

    with socket.socket(socket.AF_UNIX) as listener:
        listener.settimeout(10)
        listener.bind(str(tmp_path / "mcp.sock"))
        listener.listen()

        def answer() -> None:
            peer, _ = listener.accept()
            with peer:
                peer.sendall(McpConnection("1.0").feed(peer.recv(4096)).out)

        server = threading.Thread(target=answer, daemon=True)
        server.start()
        assert checks(data_dir)["supervisor"][0].state == "ok"
        server.join(10)
    lock.release()


def test_the_doctor_shows_what_the_login_shell_said_or_why_it_did_not(data_dir: Path, tmp_path: Path) -> None:
    shell = tmp_path / "shell"
    shell.write_text("#!/bin/sh\nexit 3\n")
    shell.chmod(0o755)
    told = checks(data_dir, SHELL=str(shell))["login shell"][0]
    assert told.state == "warn"
    assert "exit 3" in told.detail


def test_a_check_that_breaks_does_not_hide_the_others(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> object:
        raise KeyError("x")

    monkeypatch.setattr(health, "_python", broken)
    found = checks(data_dir)
    assert found["python"][0].state == "fail"
    assert "KeyError" in found["python"][0].detail
    assert "agents" in found


@pytest.mark.requires("H4.mcp-no-supervisor")
def test_va_mcp_becomes_the_shim(data_dir: Path) -> None:
    code = "from transports.cli.mcp import mcp; mcp()"
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    done = subprocess.run(
        [sys.executable, "-c", code], input=json.dumps(request).encode() + b"\n", capture_output=True, timeout=20, check=True
    )
    assert len(json.loads(done.stdout)["result"]["tools"]) == 3
