"""Processes that are started, watched and ended: real ones, that do not want to."""

from __future__ import annotations

import os
import queue
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from actors.children import Child, alive, descendants, end_group, group_alive, process_start_time, spawn, watch
from tests.processes import wait_gone

LIMIT = 10.0
STUBBORN = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.write({fd}, b"%d\\n" % os.getpid())
    time.sleep(60)
os.write({fd}, b"%d\\n" % os.getpid())
time.sleep(60)
"""


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    read_end, write_end = os.pipe()
    yield read_end, write_end
    for fd in (read_end, write_end):
        try:
            os.close(fd)
        except OSError:
            pass


def _python(code: str, tmp_path: Path, *, fds: tuple[int, ...] = (), die: bool = False, give: tuple[str, bytes] | None = None) -> Child:
    return spawn(
        [sys.executable, "-I", "-S", "-c", code], env={"A": "1"}, cwd=str(tmp_path), log=tmp_path / "log", pass_fds=fds,
        die_with_parent=die, give=give,
    )  # fmt: skip


def _line(fd: int) -> bytes:
    assert select.select([fd], [], [], LIMIT)[0], "nothing came in time"
    data = b""
    while not data.endswith(b"\n"):
        piece = os.read(fd, 1)
        assert piece, "the other end closed"
        data += piece
    return data.strip()


@pytest.mark.requires("H2.reasons")
@pytest.mark.parametrize(
    ("code", "reason"),
    [("raise SystemExit(3)", "exit 3"), ("import os; os.kill(os.getpid(), 9)", "killed by SIGKILL"), ("pass", "exit 0")],
)
def test_a_childs_end_is_told_with_its_reason(tmp_path: Path, code: str, reason: str) -> None:
    told: queue.SimpleQueue[str] = queue.SimpleQueue()
    child = _python(code, tmp_path)
    child.on_exit(told.put)
    assert told.get(timeout=LIMIT) == reason


def test_a_child_has_a_session_of_its_own_only_the_descriptors_it_was_given_and_its_output_in_the_log(
    tmp_path: Path, pipe: tuple[int, int]
) -> None:
    hidden, _ = os.pipe()
    os.set_inheritable(hidden, True)
    code = f"import os; print(os.getsid(0) == os.getpid(), sorted(os.environ)[0]); os.write({pipe[1]}, b'%d\\n' % len(os.listdir('/proc/self/fd')))"
    told: queue.SimpleQueue[str] = queue.SimpleQueue()
    child = _python(code, tmp_path, fds=(pipe[1],))
    # 0, 1, 2, the pipe, and the one that lists the directory.
    assert _line(pipe[0]) == b"5"
    child.on_exit(told.put)
    assert told.get(timeout=LIMIT) == "exit 0"
    assert (tmp_path / "log").read_text() == "True A\n"
    assert (tmp_path / "log").stat().st_mode & 0o777 == 0o600
    os.close(hidden)


@pytest.mark.requires("H2.ladder")
def test_a_group_that_ignores_term_is_killed_grandchild_included(tmp_path: Path, pipe: tuple[int, int]) -> None:
    child = _python(STUBBORN.format(fd=pipe[1]), tmp_path, fds=(pipe[1],))
    told: queue.SimpleQueue[str] = queue.SimpleQueue()
    child.on_exit(told.put)
    pids = [int(_line(pipe[0])) for _ in range(2)]
    assert group_alive(child.pid)
    assert set(descendants(child.pid)) == set(pids) - {child.pid}
    end_group(child.pid, child.start_time, 0.2)
    assert wait_gone(pids) == []
    assert told.get(timeout=LIMIT) == "killed by SIGKILL"
    assert not group_alive(child.pid)


@pytest.mark.requires("H2.ladder")
def test_what_left_the_group_below_a_child_ends_with_it(tmp_path: Path, pipe: tuple[int, int]) -> None:
    code = f"""
import os, time
if os.fork() == 0:
    os.setsid()
    os.write({pipe[1]}, b"%d\\n" % os.getpid())
time.sleep(60)
"""
    child = _python(code, tmp_path, fds=(pipe[1],))
    child.on_exit(lambda reason: None)
    gone_away = int(_line(pipe[0]))
    end_group(child.pid, child.start_time, 2.0)
    assert wait_gone([gone_away, child.pid]) == []


def test_a_process_that_only_has_the_pid_of_a_recorded_one_is_left_alone(tmp_path: Path, pipe: tuple[int, int]) -> None:
    child = _python(f"import os, time; os.write({pipe[1]}, b'up\\n'); time.sleep(60)", tmp_path, fds=(pipe[1],))
    child.on_exit(lambda reason: None)
    assert _line(pipe[0]) == b"up"
    end_group(child.pid, child.start_time + 1, 0.1)
    assert alive(child.pid, child.start_time)
    assert not alive(child.pid, child.start_time + 1)
    assert not alive(0, 0)
    child.end(2.0)
    assert wait_gone([child.pid]) == []


def test_the_end_of_a_process_that_is_not_our_child_is_noticed(tmp_path: Path, pipe: tuple[int, int]) -> None:
    code = f"""
import os, time
if os.fork() == 0:
    os.setsid()
    os.write({pipe[1]}, b"%d\\n" % os.getpid())
    time.sleep(60)
"""
    told: queue.SimpleQueue[str] = queue.SimpleQueue()
    _python(code, tmp_path, fds=(pipe[1],)).on_exit(lambda reason: None)
    orphan = int(_line(pipe[0]))
    watch(orphan, told.put)
    assert told.empty()
    os.kill(orphan, signal.SIGKILL)
    assert told.get(timeout=LIMIT)
    assert wait_gone([orphan]) == []
    watch(2**22 - 1, told.put)  # above the kernel's default pid_max in use here: nobody
    assert told.get(timeout=LIMIT)


def test_what_is_given_by_descriptor_is_in_neither_argv_nor_environment(tmp_path: Path, pipe: tuple[int, int]) -> None:
    secret = b"secret-" * 20_000  # more than a pipe holds
    code = f"""
import os, sys
fd = int(sys.argv[2])
given = os.fdopen(fd, "rb").read()
seen = open("/proc/self/cmdline", "rb").read() + open("/proc/self/environ", "rb").read()
os.write({pipe[1]}, b"%d %d\\n" % (len(given), given[:14] in seen))
"""
    _python(code, tmp_path, fds=(pipe[1],), give=("--fd", secret)).on_exit(lambda reason: None)
    assert _line(pipe[0]) == b"%d 0" % len(secret)


@pytest.mark.skipif(sys.platform != "linux", reason="PDEATHSIG is Linux's")
def test_a_child_that_dies_with_its_parent_does_so_when_the_parent_is_killed(tmp_path: Path, pipe: tuple[int, int]) -> None:
    code = f"""
import sys, time
from pathlib import Path
from actors.children import spawn
child = spawn([sys.executable, "-I", "-S", "-c", "import os, time; os.write({pipe[1]}, b'%d\\\\n' % os.getpid()); time.sleep(60)"],
              env={{}}, cwd="/", log=Path({str(tmp_path / "log")!r}), pass_fds=({pipe[1]},), die_with_parent=True)
time.sleep(60)
"""
    repo = str(Path(__file__).resolve().parents[2])
    parent = subprocess.Popen([sys.executable, "-c", code], cwd=repo, pass_fds=(pipe[1],))
    child = int(_line(pipe[0]))
    assert process_start_time(child)
    parent.kill()
    parent.wait(LIMIT)
    assert wait_gone([child]) == []
