"""The service under a real systemd user manager, a throw-away one in namespaces of its own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

_ROOT = Path(__file__).resolve().parents[2]
_UNSHARE = ["unshare", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child"]


def _why_not() -> str:
    if not Path("/lib/systemd/systemd").exists() or shutil.which("systemctl") is None:
        return "systemd is not installed"
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        return "private namespaces need root and unshare"
    tried = subprocess.run([*_UNSHARE, "true"], capture_output=True, timeout=20, check=False)
    return "" if tried.returncode == 0 else "private namespaces are not allowed here"


def run_steps(folder: Path, which: str) -> dict[str, dict[str, Any]]:
    """What the steps of service_namespace.py told, by step; skips where namespaces are not to be had."""
    why_not = _why_not()
    if why_not:
        pytest.skip(why_not)
    inside = [sys.executable, "-m", "tests.process.service_namespace", str(folder), which]
    ran = subprocess.run([*_UNSHARE, *inside], cwd=_ROOT, capture_output=True, text=True, timeout=90, check=False)
    log = folder / "manager.log"
    assert ran.returncode == 0, ran.stderr + (log.read_text("utf-8", "replace") if log.exists() else "")
    return {fact["step"]: fact for fact in map(json.loads, ran.stdout.splitlines())}


@pytest.mark.requires("H7.service", "H2.readiness", "M4.service-restart")
def test_it_installs_is_restarted_after_a_crash_with_its_hosts_alive_stops_and_goes(tmp_path: Path) -> None:
    steps = run_steps(tmp_path, "fake")
    installed, killed, stopped = steps["installed"], steps["killed"], steps["stopped"]
    assert installed["state"] == "active (running)"
    assert installed["pid"] == installed["run_pid"]
    assert installed["host"]
    assert killed["host"], "a host must outlive the crash"
    assert killed["seen"] == killed["expected"], "the socket directory is kept over a restart"
    assert (stopped["active"], stopped["host"], stopped["lock"]) == (False, False, None)
    assert steps["started"]["active"]
    assert (steps["removed"]["installed"], steps["removed"]["active"]) == (False, False)
    assert "supervisor.lock" in steps["removed"]["data"]


@pytest.mark.requires("H7.service", "H2.readiness")
def test_the_real_supervisor_says_that_it_is_ready_comes_back_after_a_kill_and_stops_when_told(tmp_path: Path) -> None:
    steps = run_steps(tmp_path, "real")
    installed = steps["installed"]
    assert (installed["state"], installed["pid"]) == ("active (running)", installed["run_pid"])
    assert steps["killed"]["pid"] != installed["pid"]
    assert (steps["stopped"]["active"], steps["stopped"]["lock"]) == (False, None)
    assert steps["started"]["active"]
    assert (steps["removed"]["installed"], steps["removed"]["active"]) == (False, False)
