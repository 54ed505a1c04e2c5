"""What /proc, Claude's register and call metadata say, with a /proc of the test's own and with real processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from agents_registry.evidence import (
    ancestors,
    call_meta_session,
    claude_live_session,
    environment_session,
    process,
    process_environment,
)

BOOT = 1_700_000_000
TICKS = os.sysconf("SC_CLK_TCK")


class FakeProc:
    """A /proc with chosen processes; start times are in seconds after boot."""

    def __init__(self, root: Path) -> None:
        self.root = root / "proc"
        self.root.mkdir()
        (self.root / "self").mkdir()
        (self.root / "stat").write_text(f"cpu 1 2 3\nbtime {BOOT}\n")

    def add(self, pid: int, parent: int, start: float, name: str = "x") -> tuple[int, int]:
        folder = self.root / str(pid)
        folder.mkdir(exist_ok=True)
        ticks = int(start * TICKS)
        (folder / "stat").write_text(f"{pid} ({name}) S {parent} " + " ".join(["0"] * 17) + f" {ticks} 0\n")
        return pid, ticks


@pytest.fixture
def proc(tmp_path: Path) -> FakeProc:
    return FakeProc(tmp_path)


def note(config: Path, pid: int, session: str, at: float, **more: object) -> Path:
    path = config / "sessions" / f"{pid}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"pid": pid, "sessionId": session, "status": "idle", **more}))
    os.utime(path, (BOOT + at, BOOT + at))
    return path


def test_ancestors_are_followed_with_their_start_times_whatever_the_names_hold(proc: FakeProc) -> None:
    chain = [proc.add(30, 20, 3.0, "va) S 1 (mcp"), proc.add(20, 10, 2.0, "claude"), proc.add(10, 1, 1.0)]
    assert ancestors(30, proc.root) == chain
    assert ancestors(99, proc.root) == []


def test_a_circle_in_proc_does_not_hang(proc: FakeProc) -> None:
    proc.add(30, 20, 3.0)
    proc.add(20, 30, 2.0)
    assert len(ancestors(30, proc.root)) == 64


def test_the_real_parents_of_a_process_of_ours_are_found() -> None:
    me = process(os.getpid())
    assert me is not None
    code = "import os; from agents_registry.evidence import ancestors; print(ancestors(os.getpid())[1])"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=10, check=True).stdout
    assert told.strip() == str((me[0].pid, me[0].start_time))


def test_claudes_register_is_asked_for_the_nearest_process_above(proc: FakeProc, tmp_path: Path) -> None:
    chain = [proc.add(30, 20, 30.0), proc.add(20, 10, 20.0), proc.add(10, 1, 10.0)]
    note(tmp_path, 20, "inner", 21)
    note(tmp_path, 10, "outer", 11)
    found = claude_live_session(tmp_path, chain, proc.root)
    assert found is not None
    assert (found.kind, found.session_id) == ("live_registry", "inner")


def test_after_clear_the_register_names_the_new_session_of_the_same_process(proc: FakeProc, tmp_path: Path) -> None:
    chain = [proc.add(20, 1, 20.0)]
    note(tmp_path, 20, "before-clear", 21)
    note(tmp_path, 20, "after-clear", 90)
    found = claude_live_session(tmp_path, chain, proc.root)
    assert found is not None
    assert found.session_id == "after-clear"


def test_two_terminals_in_one_directory_have_each_their_own_entry(proc: FakeProc, tmp_path: Path) -> None:
    one, two = [proc.add(31, 21, 5.0), proc.add(21, 1, 2.0)], [proc.add(32, 22, 6.0), proc.add(22, 1, 3.0)]
    note(tmp_path, 21, "first", 4, cwd="/same")
    note(tmp_path, 22, "second", 4, cwd="/same")
    found = [claude_live_session(tmp_path, chain, proc.root) for chain in (one, two)]
    assert [item.session_id if item else "" for item in found] == ["first", "second"]


def test_an_entry_older_than_the_process_of_its_number_is_a_leftover(proc: FakeProc, tmp_path: Path) -> None:
    chain = [proc.add(20, 1, 500.0)]
    note(tmp_path, 20, "of-an-earlier-process", 100)
    assert claude_live_session(tmp_path, chain, proc.root) is None


@pytest.mark.parametrize("content", ["", "{", "[]", '{"pid": 20}', '{"pid": 20, "sessionId": 7}', '{"pid": 21, "sessionId": "x"}'])
def test_a_damaged_or_foreign_entry_counts_nothing(proc: FakeProc, tmp_path: Path, content: str) -> None:
    chain = [proc.add(20, 1, 1.0)]
    note(tmp_path, 20, "x", 2).write_text(content)
    assert claude_live_session(tmp_path, chain, proc.root) is None


@pytest.mark.parametrize(
    ("meta", "session"),
    [
        ({"threadId": "t1", "sessionId": "s1", "x-codex-turn-metadata": {"thread_id": "t2"}}, "t1"),
        ({"x-codex-turn-metadata": {"thread_id": "t2", "session_id": "s2"}}, "t2"),
        ({"x-codex-turn-metadata": '{"session_id": "s3", "turn_id": "9"}'}, "s3"),
        ({"x-codex-turn-metadata": "no json"}, None),
        ({"progressToken": 4}, None),
        ({"threadId": 12}, None),
        (None, None),
    ],
)
def test_codex_metadata_is_read_in_all_its_forms(meta: dict[str, object] | None, session: str | None) -> None:
    found = call_meta_session("codex", meta)
    assert (found.session_id if found else None) == session
    assert call_meta_session("claude", meta) is None


def test_the_environment_of_a_start_is_marked_stale_when_the_store_shows_more() -> None:
    environ = {"CLAUDE_CODE_SESSION_ID": "first"}
    fresh = environment_session(("CLAUDE_CODE_SESSION_ID",), environ, superseded=False)
    stale = environment_session(("CLAUDE_CODE_SESSION_ID",), environ, superseded=True)
    assert fresh is not None
    assert stale is not None
    assert (fresh.confirmed, stale.confirmed) == (True, False)
    assert environment_session(("CODEX_THREAD_ID",), environ, superseded=False) is None


def test_only_the_asked_variables_of_another_process_are_read() -> None:
    environ = {"CODEX_THREAD_ID": "äö", "SECRET": "x", "PATH": os.environ["PATH"]}
    child = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environ, bufsize=0)
    assert child.stdin is not None
    assert child.stdout is not None
    try:
        child.stdin.write(b"x")
        assert child.stdout.read(1) == b"x"  # it runs: the kernel has put its environment in place
        assert process_environment(child.pid, ["CODEX_THREAD_ID", "HOME"]) == {"CODEX_THREAD_ID": "äö"}
    finally:
        child.communicate(timeout=10)
    assert process_environment(child.pid, ["CODEX_THREAD_ID"]) == {}
