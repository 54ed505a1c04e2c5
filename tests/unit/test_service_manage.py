"""Installing and removing the service, with the manager's commands answered by a small stand-in that keeps its state."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from agents_registry.bounded import Ran
from agents_registry.errors import RefusedError, VibeAroundError
from transports import paths
from transports.service import manage
from transports.service.launchd import Launchd
from transports.service.systemd import Systemd


class Machine:
    """systemctl, loginctl and launchctl with what they would remember. `broken` names a verb that fails, and its words."""

    def __init__(self, linger_dir: Path) -> None:
        self.asked: list[str] = []
        self.active = False
        self.enabled = False
        self.has_manager = True
        self.may_linger = True
        self.broken = ("", "")
        self._linger_dir = linger_dir

    def __call__(self, argv: Sequence[str], limit_s: float) -> Ran:
        program, *words = argv
        words = [word for word in words if word != "--user"]
        verb = words[0]
        if verb == self.broken[0]:
            return Ran(1, "", self.broken[1])
        if program == "loginctl":
            if self.may_linger:
                (self._linger_dir / words[1]).touch()
            return Ran(0 if self.may_linger else 1, "", "")
        if verb in ("show-environment", "print") and (program == "systemctl" or words[1].count("/") == 1):
            return Ran(0, "", "") if self.has_manager else Ran(1, "", "Failed to connect to bus: No medium found\n")
        if verb == "show":
            state = "active" if self.active else "inactive"
            told = f"ActiveState={state}\nSubState=running\nMainPID={77 if self.active else 0}\nResult=success\n"
            return Ran(0, told + f"UnitFileState={'enabled' if self.enabled else ''}\n", "")
        if verb == "print":
            return Ran(0, "x = {\n\tstate = running\n\tpid = 77\n}\n", "") if self.active else Ran(113, "", "Could not find")
        self.asked.append(" ".join(words[:-1] if program == "systemctl" and verb != "daemon-reload" else words))
        if verb in ("start", "restart", "bootstrap", "kickstart"):
            self.active = True
        if verb in ("stop", "disable", "bootout"):
            self.active = False
        if verb in ("enable", "disable"):
            self.enabled = verb == "enable"
        return Ran(0, "", "")


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    (tmp_path / "linger").mkdir()
    return Machine(tmp_path / "linger")


@pytest.fixture
def systemd(tmp_path: Path, machine: Machine) -> Systemd:
    unit = manage.unit_for(tmp_path / "data", {"HOME": str(tmp_path)}, Path("/opt/py"))
    return Systemd(unit, machine, tmp_path, {}, user="me", linger_dir=tmp_path / "linger")


@pytest.fixture
def launchd(tmp_path: Path, machine: Machine) -> Launchd:
    unit = manage.unit_for(tmp_path / "data", {"HOME": str(tmp_path)}, Path("/opt/py"))
    return Launchd(unit, machine, tmp_path, uid=501)


def test_an_install_writes_enables_and_starts(systemd: Systemd, machine: Machine, tmp_path: Path) -> None:
    lines = manage.install(systemd, tmp_path / "data")
    assert machine.asked == ["daemon-reload", "enable", "restart"]
    assert systemd.path.read_bytes() == systemd.rendered()
    assert systemd.path.parent == tmp_path / ".config" / "systemd" / "user"
    state = systemd.state()
    assert (state.installed, state.current, state.enabled, state.active, state.pid) == (True, True, True, True, 77)
    assert any("Lingering is on for me" in line for line in lines)


def test_a_second_install_changes_nothing_and_restarts_nothing(systemd: Systemd, machine: Machine, tmp_path: Path) -> None:
    manage.install(systemd, tmp_path / "data")
    machine.asked.clear()
    lines = manage.install(systemd, tmp_path / "data")
    assert machine.asked == ["enable", "start"]
    assert lines[0].startswith("Kept ")


def test_where_lingering_may_not_be_switched_on_the_command_for_it_is_told(
    systemd: Systemd, machine: Machine, tmp_path: Path
) -> None:
    machine.may_linger = False
    assert manage.install(systemd, tmp_path / "data")[-1].endswith("sudo loginctl enable-linger me")
    assert systemd.state().lingers is False


def test_without_a_user_manager_nothing_is_written_and_the_other_way_is_named(
    systemd: Systemd, machine: Machine, tmp_path: Path
) -> None:
    machine.has_manager = False
    with pytest.raises(RefusedError, match=r"Failed to connect to bus.*va up"):
        manage.install(systemd, tmp_path / "data")
    assert not systemd.path.exists()


def test_a_definition_that_is_not_ours_is_neither_overwritten_nor_removed(systemd: Systemd, tmp_path: Path) -> None:
    systemd.path.parent.mkdir(parents=True)
    systemd.path.write_text("[Service]\nExecStart=/mine\n")
    for action in (lambda: manage.install(systemd, tmp_path / "data"), lambda: manage.uninstall(systemd)):
        with pytest.raises(RefusedError, match="not written by VibeAround"):
            action()
    assert systemd.path.read_text() == "[Service]\nExecStart=/mine\n"


def test_a_supervisor_started_by_hand_is_not_pushed_aside(systemd: Systemd, machine: Machine, tmp_path: Path) -> None:
    data = paths.ensure_data_dir(tmp_path / "data")
    paths.write_run(data, tmp_path, "1", 0.0)
    with pytest.raises(RefusedError, match="va down"):
        manage.install(systemd, data)
    assert machine.asked == []


def test_a_start_that_fails_tells_the_managers_words_and_where_the_log_is(
    systemd: Systemd, machine: Machine, tmp_path: Path
) -> None:
    machine.broken = ("restart", "Warning: x\nJob for vibearound.service failed.\n")
    with pytest.raises(VibeAroundError, match=r"Job for vibearound.service failed\. See `journalctl --user"):
        manage.install(systemd, tmp_path / "data")


@pytest.mark.requires("H7.service")
def test_an_uninstall_stops_and_removes_and_leaves_the_data(systemd: Systemd, machine: Machine, tmp_path: Path) -> None:
    manage.install(systemd, tmp_path / "data")
    (tmp_path / "data" / "journal.db").touch()
    machine.asked.clear()
    manage.uninstall(systemd)
    assert machine.asked == ["disable --now"]
    assert not systemd.path.exists()
    assert (tmp_path / "data" / "journal.db").exists()
    assert "No service is installed" in manage.uninstall(systemd)[0]


def test_a_definition_of_an_older_version_is_seen_and_replaced(systemd: Systemd, machine: Machine, tmp_path: Path) -> None:
    manage.install(systemd, tmp_path / "data")
    systemd.path.write_bytes(systemd.rendered() + b"# old\n")
    assert systemd.state().current is False
    manage.install(systemd, tmp_path / "data")
    assert systemd.state().current is True


def test_state_is_told_also_where_no_manager_answers(systemd: Systemd, machine: Machine) -> None:
    machine.broken = ("show", "Failed to connect to bus")
    state = systemd.state()
    assert (state.installed, state.active, state.pid) == (False, False, 0)
    assert "Failed to connect" in state.detail


@pytest.mark.requires("H7.service")
def test_a_launch_agent_is_loaded_replaced_and_unloaded(launchd: Launchd, machine: Machine, tmp_path: Path) -> None:
    manage.install(launchd, tmp_path / "data")
    name, plist = launchd.name, str(launchd.path)
    assert machine.asked == [f"bootstrap gui/501 {plist}"]
    assert launchd.state().pid == 77
    assert launchd.state().detail == "running"
    launchd.path.write_bytes(launchd.rendered() + b"<!-- old -->")
    machine.asked.clear()
    manage.install(launchd, tmp_path / "data")
    assert machine.asked == [f"bootout gui/501/{name}", f"bootstrap gui/501 {plist}"]
    machine.asked.clear()
    manage.uninstall(launchd)
    assert machine.asked == [f"bootout gui/501/{name}"]
    assert not launchd.path.exists()


def test_the_default_data_directory_gets_the_plain_name_and_another_one_its_own(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path)}
    assert manage.unit_for(paths.data_dir(environ), environ).systemd_name == "vibearound.service"
    assert manage.unit_for(tmp_path / "other", environ).systemd_name != "vibearound.service"


def test_an_installed_service_is_found_by_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    environ = {"HOME": str(tmp_path)}
    data = tmp_path / "data"
    assert manage.installed(data, environ) is None
    manager = manage.find(data, environ)
    manager.path.parent.mkdir(parents=True)
    manager.path.write_bytes(manager.rendered())
    assert manage.installed(data, environ) is not None
