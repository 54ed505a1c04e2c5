"""The look at processes that tests rely on finds what is there, and only that."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.processes import kill_marked, marked, wait_gone
from tests.waiting import until

pytestmark = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs /proc of Linux")


def test_a_grandchild_in_a_session_of_its_own_is_found_by_its_mark(tmp_path: Path) -> None:
    mark = f"TEST_MARK={tmp_path}"
    env = {"PATH": os.environ["PATH"], "TEST_MARK": str(tmp_path)}
    with subprocess.Popen(
        ["sh", "-c", "exec 3<&0; setsid cat <&3 >&2 & echo; exec cat"],
        env=env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()

        def both() -> dict[int, str] | None:
            now = marked(mark)
            return now if len(now) == 2 else None

        found = until(both, "two marked processes")
        assert child.pid in found
        kill_marked(mark)
        assert wait_gone(found, seconds=5) == []
        assert marked(mark) == {}


def test_a_process_that_lives_on_is_told() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        assert wait_gone([child.pid], seconds=0) == [child.pid]
        assert child.stdin is not None
        child.stdin.close()
        assert wait_gone([child.pid], seconds=10) == []
