"""The frame of the `va` command: lazy sub-commands, one end for errors, exit codes, output that survives."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest

from agents_registry import errors
from transports.cli import main as main_module
from transports.cli.main import COMMANDS, cli, run

CONTRACT = {
    "serve", "up", "down", "service", "status", "doctor", "settings", "chat", "mcp", "handover", "pickup", "launch", "agents",
    "integrate", "workspace", "threads", "sessions", "demo", "demo-agent",
}


def python(code: str, *args: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *args], capture_output=True, text=True, timeout=60, env={**os.environ, **(env or {})}, check=False
    )


@pytest.fixture(autouse=True)
def _own_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VIBEAROUND_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("HOME", str(tmp_path))


def test_every_command_of_the_contract_is_registered() -> None:
    assert set(COMMANDS) >= CONTRACT


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_registered_command_exists_and_has_help(name: str, capsys: Any) -> None:
    assert run([name, "--help"]) == 0
    assert f"va {name}" in capsys.readouterr().out


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_listing_takes_json(name: str) -> None:
    with click.Context(cli) as context:
        command = cli.get_command(context, name)
    assert command is not None
    subs = list(command.commands.values()) if isinstance(command, click.Group) else [command]
    for sub in subs:
        if sub.name in ("list", "show", "status", "doctor", "sessions"):
            if isinstance(sub, click.Group):
                continue
            assert "--json" in [option for param in sub.params for option in param.opts], sub.name


def test_the_help_lists_all_commands_without_importing_any() -> None:
    code = (
        "import sys\nfrom transports.cli.main import run, COMMANDS\nrun(['--help'])\n"
        "wanted = {where.split(':')[0] for where, _ in COMMANDS.values()}\n"
        "sys.stderr.write(repr(sorted(wanted & set(sys.modules))))"
    )
    done = python(code)
    assert done.stderr == "[]"
    assert all(f"\n  {name}" in done.stdout for name in COMMANDS)


def test_the_command_line_loads_no_heavy_module_before_it_needs_one() -> None:
    code = (
        "import sys\nfrom transports.cli.main import run\nrun(['--help'])\nimport transports.cli.chat_turn, transports.cli.chat_view\n"
        "heavy = {'structlog', 'asyncio', 'pykka', 'importlib.metadata', 'importlib.resources', 'tomlkit', 'sqlite3', 'ssl', 'logging',\n"
        "         'subprocess', 'http.client', 'actors'}\n"
        "sys.stderr.write(repr(sorted(heavy & set(sys.modules))))"
    )
    assert python(code).stderr == "[]"


def test_an_unknown_command_is_a_usage_error_with_the_nearest_match(capsys: Any) -> None:
    assert run(["statsu"]) == 2
    assert "va status" in capsys.readouterr().err


@pytest.mark.parametrize("argv", [["status", "--frob"], ["chat", "send"], ["threads", "show"], ["chat", "frob"], ["--frob"]])
def test_wrong_words_end_with_2(argv: list[str]) -> None:
    assert run(argv) == 2


@pytest.mark.parametrize(
    "argv",
    [
        ["status"], ["threads", "list"], ["threads", "show", "x"], ["workspace", "list"], ["workspace", "archive", "x"], ["pickup", "ABCD"],
        ["chat", "send", "hi"], ["chat", "listen"], ["chat", "answer", "x", "y"], ["chat", "stop"],
        ["handover", "--agent", "demo", "--session", "x", "--cwd", "."],
    ],
)
def test_without_a_supervisor_commands_end_with_3_and_name_va_up(argv: list[str], capsys: Any) -> None:
    assert run(argv) == 3
    assert "va up" in capsys.readouterr().err


def test_va_down_without_a_supervisor_has_nothing_to_do(capsys: Any) -> None:
    assert run(["down"]) == 0
    assert "Nothing is running" in capsys.readouterr().out


@pytest.mark.requires("H7.newcomer")
def test_va_alone_says_what_a_newcomer_needs_next(capsys: Any) -> None:
    assert run([]) == 0
    shown = capsys.readouterr().out
    assert "not running" in shown
    assert shown.index("va up") < shown.index("va integrate") < shown.index("va demo")


def test_va_alone_does_not_tell_to_integrate_what_is_integrated(capsys: Any, tmp_path: Path) -> None:
    (tmp_path / ".claude.json").write_text('{"mcpServers": {"vibearound": {}}}')
    assert run([]) == 0
    shown = capsys.readouterr().out
    assert "va integrate" not in shown
    assert "In Claude Code" in shown


def test_va_alone_says_first_how_the_shell_finds_va_where_it_does_not(
    capsys: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    run([])
    assert "so that this shell finds `va`" in capsys.readouterr().out.split("va up")[0]
    (tmp_path / "va").touch(mode=0o755)
    run([])
    assert "finds `va`" not in capsys.readouterr().out


@pytest.mark.parametrize("kind", errors.VibeAroundError.__subclasses__())
def test_every_kind_of_error_ends_with_its_exit_code_and_is_told_once(
    kind: type[errors.VibeAroundError], monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    def fail() -> None:
        raise kind("It did not work.", hint="Do this.")

    monkeypatch.setattr("transports.cli.newcomer.show_next", fail)
    assert run([]) == kind.exit_code
    assert capsys.readouterr().err == "va: It did not work.\n    Do this.\n"


def test_an_unexpected_error_is_one_line_and_its_details_lie_in_a_file(
    monkeypatch: pytest.MonkeyPatch, capsys: Any, tmp_path: Path
) -> None:
    def fail() -> None:
        raise ZeroDivisionError("oh")

    (tmp_path / "data").mkdir()
    monkeypatch.setattr("transports.cli.newcomer.show_next", fail)
    assert run([]) == 1
    told = capsys.readouterr().err
    assert told.startswith("va: unexpected error: ZeroDivisionError: oh\n")
    assert "Traceback" not in told
    assert "Traceback" in (tmp_path / "data" / "logs" / "va-crash.log").read_text()


def test_an_interrupt_ends_with_130(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("transports.cli.newcomer.show_next", fail)
    assert run([]) == 130


def test_a_reader_that_goes_away_ends_the_command_quietly() -> None:
    script = f"'{sys.executable}' -c 'from transports.cli.main import main; main([\"--help\"])' | true; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert done.stderr == ""
    assert done.stdout.strip() in ("0", "141")


def test_the_version_is_told_without_loading_click() -> None:
    done = python("import sys\nfrom transports.cli.main import main\nmain(['--version'])")
    assert done.returncode == 0
    assert done.stdout.startswith("va ")


def test_text_that_the_terminal_cannot_show_does_not_end_a_command() -> None:
    done = python("from transports.cli.main import run\nfrom transports.cli import output\nrun(['--version'])\noutput.emit('日本 \\udcff')\noutput.emit_json({'a': '日本'})", env={"PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0
    assert '"\\u65e5\\u672c"' in done.stdout


def test_the_data_directory_can_be_named_on_the_command_line(tmp_path: Path, capsys: Any) -> None:
    assert run(["--data-dir", str(tmp_path / "other"), "status"]) == 3
    assert str(tmp_path / "other") in capsys.readouterr().err


@pytest.mark.requires("H7.completion")
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_gets_a_completion_script(shell: str, capsys: Any) -> None:
    assert run(["completion", shell]) == 0
    assert "_VA_COMPLETE" in capsys.readouterr().out


def test_completion_offers_the_commands_without_importing_them() -> None:
    done = python(
        "from transports.cli.main import main\nmain([])",
        env={"_VA_COMPLETE": "bash_complete", "COMP_WORDS": "va ch", "COMP_CWORD": "1"},
    )
    assert done.stdout.strip() == "plain,chat"


def test_the_module_names_no_command_twice() -> None:
    names = [name for _, rows in main_module._SECTIONS for name, _, _ in rows]
    assert len(names) == len(set(names))
