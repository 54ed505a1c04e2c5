"""Data directory, socket directory, run.json, the supervisor's lock."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from agents_registry.errors import NotRunningError, RefusedError, UsageError
from transports import paths


def test_the_data_directory_is_the_named_one_else_the_variable_else_home(tmp_path: Path) -> None:
    assert paths.data_dir({}, tmp_path) == tmp_path
    assert paths.data_dir({"VIBEAROUND_DATA_DIR": "/srv/va"}) == Path("/srv/va")
    assert paths.data_dir({}) == Path.home() / ".vibearound"


def test_the_data_directory_is_private_also_when_it_was_not(tmp_path: Path) -> None:
    made = paths.ensure_data_dir(tmp_path / "a" / "b")
    assert stat.S_IMODE(made.stat().st_mode) == 0o700
    made.chmod(0o755)
    paths.ensure_data_dir(made)
    assert stat.S_IMODE(made.stat().st_mode) == 0o700


def test_a_data_directory_that_is_a_file_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "x").touch()
    with pytest.raises(UsageError, match="VIBEAROUND_DATA_DIR"):
        paths.ensure_data_dir(tmp_path / "x")


@pytest.mark.requires("H2.run-json")
def test_run_json_comes_back_as_written_and_is_private(tmp_path: Path) -> None:
    written = paths.write_run(tmp_path, "/run/目录 \"x\"", "1.0", 12.5)
    assert paths.read_run(tmp_path) == written
    assert written.pid == os.getpid()
    assert written.endpoint("bus.sock") == 'ipc:///run/目录 "x"/bus.sock'
    assert stat.S_IMODE((tmp_path / "run.json").stat().st_mode) == 0o600
    paths.clear_run(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.requires("H2.stale-run-json")
def test_without_a_living_supervisor_the_error_names_va_up(tmp_path: Path) -> None:
    with pytest.raises(NotRunningError, match="va up"):
        paths.read_run(tmp_path)
    code = "import sys, pathlib; from transports import paths; paths.write_run(pathlib.Path(sys.argv[1]), '/x', '1', 0.0)"
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True, timeout=20)
    with pytest.raises(NotRunningError, match="va up"):
        paths.read_run(tmp_path)
    assert paths.load_run(tmp_path) is not None


@pytest.mark.requires("H2.stale-run-json")
def test_a_reused_pid_is_not_the_supervisor(tmp_path: Path) -> None:
    written = paths.write_run(tmp_path, "/x", "1", 0.0)
    if not written.start_time:
        pytest.skip("no /proc here: start times are unknown")
    text = (tmp_path / "run.json").read_text().replace(str(written.start_time), str(written.start_time + 1))
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(NotRunningError):
        paths.read_run(tmp_path)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"null", b'{"pid": "x"}', b"\xff", b'{"pid": 1e999}', b"[" * 99_999])
def test_a_damaged_run_json_counts_as_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "run.json").write_bytes(content)
    with pytest.raises(NotRunningError):
        paths.read_run(tmp_path)


def test_another_process_does_not_withdraw_run_json(tmp_path: Path) -> None:
    written = paths.write_run(tmp_path, "/x", "1", 0.0)
    text = (tmp_path / "run.json").read_text().replace(f'"pid": {written.pid}', '"pid": 1')
    (tmp_path / "run.json").write_text(text)
    paths.clear_run(tmp_path)
    assert (tmp_path / "run.json").exists()


@pytest.mark.requires("H2.socket-path")
def test_a_runtime_directory_that_is_too_long_gives_way_to_tmp(tmp_path: Path) -> None:
    long = tmp_path / ("x" * 90)
    long.mkdir()
    chosen = paths.socket_dir(tmp_path, {"XDG_RUNTIME_DIR": str(long)})
    assert chosen.parent == Path("/tmp")
    assert str(os.geteuid()) in chosen.name
    short = paths.socket_dir(tmp_path, {"XDG_RUNTIME_DIR": str(tmp_path)})
    assert short.parent in (tmp_path, Path("/tmp"))
    with pytest.raises(UsageError, match="too long"):
        paths.prepare_socket_dir(long / "sockets")


def test_a_runtime_directory_that_is_not_there_is_not_used(tmp_path: Path) -> None:
    assert paths.socket_dir(tmp_path, {"XDG_RUNTIME_DIR": "/nonexistent"}).parent == Path("/tmp")


def test_each_data_directory_has_sockets_of_its_own_whatever_way_it_is_spelled(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "a")
    assert paths.socket_dir(tmp_path / "a", {}) == paths.socket_dir(tmp_path / "link", {})
    assert paths.socket_dir(tmp_path / "a", {}) != paths.socket_dir(tmp_path, {})


def test_the_socket_directory_is_private_and_no_link(tmp_path: Path) -> None:
    base = Path("/tmp") / f"va-test-{os.getpid()}"
    try:
        paths.prepare_socket_dir(base)
        base.chmod(0o755)
        paths.prepare_socket_dir(base)
        assert stat.S_IMODE(base.stat().st_mode) == 0o700
    finally:
        base.rmdir()
    base.symlink_to(tmp_path)
    try:
        with pytest.raises(RefusedError, match="not a directory of yours"):
            paths.prepare_socket_dir(base)
    finally:
        base.unlink()


@pytest.mark.requires("H2.lock-first")
def test_a_second_supervisor_is_refused_and_told_the_pid_of_the_first(tmp_path: Path) -> None:
    lock = paths.acquire_lock(tmp_path)
    assert paths.lock_holder(tmp_path) == os.getpid()
    with pytest.raises(RefusedError, match=f"pid {os.getpid()}"):
        paths.acquire_lock(tmp_path)
    lock.release()
    assert paths.lock_holder(tmp_path) is None
    paths.acquire_lock(tmp_path).release()


def test_the_lock_ends_with_its_process(tmp_path: Path) -> None:
    code = "import sys, pathlib; from transports import paths; paths.acquire_lock(pathlib.Path(sys.argv[1]))"
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True, timeout=20)
    assert paths.lock_holder(tmp_path) is None


def test_a_failed_replacement_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "state"
    target.mkdir()
    (target / "inner").touch()
    with pytest.raises(OSError, match="directory"):
        paths.atomic_write(target, b"new")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["state"]


def test_a_replaced_file_has_the_mode_that_was_asked_for_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        paths.atomic_write(tmp_path / "a", b"x" * 100_000, 0o644)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o644
    assert (tmp_path / "a").read_bytes() == b"x" * 100_000


def test_the_start_time_of_a_process_that_is_gone_is_none() -> None:
    child = subprocess.Popen([sys.executable, "-c", "pass"])
    child.wait(20)
    assert paths.process_start_time(child.pid) is None
    assert paths.process_start_time(0) is None
    assert paths.process_start_time(os.getpid()) is not None


def test_a_pipe_in_place_of_the_announcement_is_no_supervisor_and_keeps_nobody_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / paths.RUN_FILE)
    assert paths.load_run(tmp_path) is None
