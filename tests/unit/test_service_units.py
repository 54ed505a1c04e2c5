"""The texts of the service definitions, held word for word."""

from __future__ import annotations

import plistlib
import shutil
import subprocess
from pathlib import Path

import pytest

from transports.service.units import Unit, launchd_plist, systemd_unit

UNIT = Unit(Path("/opt/va/bin/python"), Path("/home/me/.vibearound"), "vibearound-0123456789ab")

SYSTEMD = """\
# Written by `va service install`; removed by `va service uninstall`. Changes belong into a drop-in: systemctl --user edit vibearound.service
[Unit]
Description=VibeAround, between coding agents and chats
StartLimitIntervalSec=60
StartLimitBurst=10

[Service]
Type=notify
NotifyAccess=main
ExecStart=/opt/va/bin/python -P -m actors.supervisor
Environment=VIBEAROUND_DATA_DIR=/home/me/.vibearound
Restart=on-failure
RestartSec=1s
RestartPreventExitStatus=2 5
KillMode=process
TimeoutStartSec=30s
TimeoutStopSec=45s
WatchdogSec=30s
RuntimeDirectory=vibearound-0123456789ab
RuntimeDirectoryMode=0700
RuntimeDirectoryPreserve=restart
UMask=0077
OOMPolicy=continue

[Install]
WantedBy=default.target
"""

LAUNCHD = {
    "Label": "dev.vibearound.supervisor",
    "ProgramArguments": ["/opt/va/bin/python", "-P", "-m", "actors.supervisor"],
    "EnvironmentVariables": {
        "VIBEAROUND_DATA_DIR": "/home/me/.vibearound",
        "VIBEAROUND_WRITTEN_BY": "Written by `va service install`",
    },
    "RunAtLoad": True,
    "KeepAlive": {"SuccessfulExit": False},
    "ThrottleInterval": 1,
    "AbandonProcessGroup": True,
    "ExitTimeOut": 45,
    "Umask": 63,
    "StandardOutPath": "/home/me/.vibearound/supervisor.log",
    "StandardErrorPath": "/home/me/.vibearound/supervisor.log",
}


@pytest.mark.requires("H7.service")
def test_the_systemd_unit_is_this_text() -> None:
    assert systemd_unit(UNIT) == SYSTEMD


@pytest.mark.requires("H7.service")
def test_the_launch_agent_is_this_dictionary() -> None:
    assert plistlib.loads(launchd_plist(UNIT)) == LAUNCHD


def test_a_service_of_another_data_directory_has_names_of_its_own() -> None:
    other = UNIT._replace(named=True)
    assert other.systemd_name == "vibearound-0123456789ab.service"
    assert other.launchd_label == "dev.vibearound.0123456789ab"


def test_odd_paths_are_quoted_as_systemd_reads_them() -> None:
    odd = UNIT._replace(python=Path('/o p"t/100%/$HOME/py\\thon'), data_dir=Path("/数据/50% $x"))
    text = systemd_unit(odd)
    assert 'ExecStart="/o p\\"t/100%%/$$HOME/py\\\\thon" -P -m actors.supervisor\n' in text
    assert 'Environment="VIBEAROUND_DATA_DIR=/数据/50%% $x"\n' in text


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_itself_finds_no_fault_in_the_unit(tmp_path: Path) -> None:
    program = tmp_path / "a b" / "python"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    path = tmp_path / "vibearound.service"
    path.write_text(systemd_unit(UNIT._replace(python=program, data_dir=tmp_path / "50% $x")))
    env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path)}
    verified = subprocess.run(
        ["systemd-analyze", "verify", "--user", "--man=no", str(path)], capture_output=True, text=True, timeout=20, env=env
    )
    complaints = [line for line in verified.stderr.splitlines() if str(path) in line or "Failed" in line]
    assert (complaints, verified.returncode) == ([], 0)
