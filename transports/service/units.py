"""The texts of service definitions: a systemd user unit and a launchd agent. Pure, so that golden tests can hold them.

Why they are as they are: agent hosts outlive a crash of the supervisor and are adopted by the next one, so the manager
ends the main process only (KillMode=process, AbandonProcessGroup) and keeps the socket directory over restarts; there
is no ExecStop, since the supervisor ends its hosts itself on SIGTERM. Restarting does not help where the settings are
wrong (exit 2) or another supervisor has the lock (exit 5).
"""

from __future__ import annotations

import plistlib
from pathlib import Path
from typing import NamedTuple

MARK = "Written by `va service install`"
_LABEL = "dev.vibearound"
STOP_S = 45
"""Longest time for an orderly stop: every host's ladder has three bounded steps."""


class Unit(NamedTuple):
    """What a service definition is made from. `instance` is the name of the socket directory (`paths.instance_name`);
    `named` tells a service of a data directory other than the default one, which gets a name of its own."""

    python: Path
    data_dir: Path
    instance: str
    named: bool = False

    @property
    def command(self) -> list[str]:
        """-P: the directory the manager starts us in must not offer modules."""
        return [str(self.python), "-P", "-m", "actors.supervisor"]

    @property
    def systemd_name(self) -> str:
        return f"{self.instance if self.named else 'vibearound'}.service"

    @property
    def launchd_label(self) -> str:
        return f"{_LABEL}.{self.instance.removeprefix('vibearound-')}" if self.named else f"{_LABEL}.supervisor"


def systemd_unit(unit: Unit) -> str:
    """The user unit. Only directives that systemd 252 knows."""
    command = " ".join(_quoted(word, command=True) for word in unit.command)
    return f"""\
# {MARK}; removed by `va service uninstall`. Changes belong into a drop-in: systemctl --user edit {unit.systemd_name}
[Unit]
Description=VibeAround, between coding agents and chats
StartLimitIntervalSec=60
StartLimitBurst=10

[Service]
Type=notify
NotifyAccess=main
ExecStart={command}
Environment={_quoted(f"VIBEAROUND_DATA_DIR={unit.data_dir}")}
Restart=on-failure
RestartSec=1s
RestartPreventExitStatus=2 5
KillMode=process
TimeoutStartSec=30s
TimeoutStopSec={STOP_S}s
WatchdogSec=30s
RuntimeDirectory={unit.instance}
RuntimeDirectoryMode=0700
RuntimeDirectoryPreserve=restart
UMask=0077
OOMPolicy=continue

[Install]
WantedBy=default.target
"""


def launchd_plist(unit: Unit) -> bytes:
    """The launch agent (launchd.plist(5)); its output goes to a file in the data directory."""
    log = str(unit.data_dir / "supervisor.log")
    return plistlib.dumps(
        {
            "Label": unit.launchd_label,
            "ProgramArguments": unit.command,
            "EnvironmentVariables": {"VIBEAROUND_DATA_DIR": str(unit.data_dir), "VIBEAROUND_WRITTEN_BY": MARK},
            "RunAtLoad": True,
            "KeepAlive": {"SuccessfulExit": False},
            "ThrottleInterval": 1,
            "AbandonProcessGroup": True,
            "ExitTimeOut": STOP_S,
            "Umask": 0o077,
            "StandardOutPath": log,
            "StandardErrorPath": log,
        },
        sort_keys=True,
    )


def _quoted(word: str, *, command: bool = False) -> str:
    """A word as systemd.syntax(7) reads it back: C escapes in quotes, %% for specifiers, $$ for variables of a command."""
    word = word.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t").replace("%", "%%")
    if command:
        word = word.replace("$", "$$")
    plain = word.replace("/", "").replace("-", "").replace("_", "").replace(".", "").replace("=", "")
    return word if plain.isascii() and plain.isalnum() else f'"{word}"'
