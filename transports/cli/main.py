"""The `va` command: a group whose sub-commands are listed without being imported, and the one place where errors end.

Exit codes: 0 done, 1 unexpected, 2 usage, 3 supervisor not running, 4 not found, 5 refused, 6 code invalid or expired,
7 agent could not start or resume, 8 busy; 130 interrupted, 141 the reader of the output went away.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence

import click
from click.shell_completion import CompletionItem

from agents_registry.errors import VibeAroundError

PROGRAM = "va"

_SECTIONS: tuple[tuple[str, tuple[tuple[str, str, str], ...]], ...] = (
    (
        "The daemon",
        (
            ("up", "transports.cli.up:up", "Start VibeAround in the background."),
            ("down", "transports.cli.up:down", "Stop it, and all agents that it hosts."),
            ("serve", "transports.cli.serve:serve", "Run it in the foreground."),
            ("status", "transports.cli.status:status", "Show threads, chats and agents."),
            ("doctor", "transports.cli.doctor:doctor", "Check the installation and say what to mend."),
            ("service", "transports.cli.service:service", "Start VibeAround at login."),
            ("settings", "transports.cli.settings:settings", "Show and change settings."),
        ),
    ),
    (
        "Conversations",
        (
            ("handover", "transports.cli.handover:handover", "Get a code for a session, to pick it up elsewhere."),
            ("pickup", "transports.cli.pickup:pickup", "Go on in this terminal with what was handed over."),
            ("chat", "transports.cli.chat:chat", "Use this terminal as a chat."),
            ("launch", "transports.cli.launch:launch", "Start an agent in this terminal."),
            ("relay", "transports.cli.relay:relay", "Go on with a conversation in another agent."),
            ("bridge", "transports.cli.bridge:bridge", "Reach your agents from a phone chat."),
            ("threads", "transports.cli.threads:threads", "List conversations, or show one."),
            ("sessions", "transports.cli.sessions:sessions", "List the agents' own sessions."),
            ("workspace", "transports.cli.workspace:workspace", "Manage the directories that agents work in."),
        ),
    ),
    (
        "Agents",
        (
            ("agents", "transports.cli.agents:agents", "Look at the coding agents here, and install adapters."),
            ("integrate", "transports.cli.integrate:integrate", 'Teach agents to "hand over".'),
            ("demo", "transports.cli.demo:demo", "See a whole handover played with the demo agent."),
            ("demo-agent", "transports.cli.demo_agent:demo_agent", "Talk to the demo agent: no keys, no model."),
            ("mcp", "transports.cli.mcp:mcp", "The MCP server that agents start."),
            ("completion", "transports.cli.completion:completion", "Print the shell completion script."),
        ),
    ),
)
COMMANDS: dict[str, tuple[str, str]] = {name: (where, words) for _, rows in _SECTIONS for name, where, words in rows}


class LazyGroup(click.Group):
    """Imports a sub-command's module only when it is invoked."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*COMMANDS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        known = COMMANDS.get(cmd_name)
        if known is None:
            return None
        import importlib

        module, _, attribute = known[0].partition(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            import difflib

            near = difflib.get_close_matches(args[0], COMMANDS, 1)
            hint = f" Did you mean `{PROGRAM} {near[0]}`?" if near else ""
            raise click.UsageError(f"There is no command {args[0]!r}.{hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, rows in _SECTIONS:
            with formatter.section(title):
                formatter.write_dl([(name, words) for name, _, words in rows])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        names = [CompletionItem(name, help=words) for name, (_, words) in COMMANDS.items() if name.startswith(incomplete)]
        return names + click.Command.shell_complete(self, ctx, incomplete)


def _set_data_dir(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    if value:
        os.environ["VIBEAROUND_DATA_DIR"] = os.path.abspath(os.path.expanduser(value))  # noqa: PTH100,PTH111 - no pathlib for a look at --help
    return value


def _show_version(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value:
        click.echo(f"{PROGRAM} {version()}")
        ctx.exit()


@click.command(cls=LazyGroup, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--data-dir", metavar="DIR", expose_value=False, is_eager=True, callback=_set_data_dir, help="Where VibeAround keeps its data (else VIBEAROUND_DATA_DIR, else ~/.vibearound).")
@click.option("--version", is_flag=True, expose_value=False, is_eager=True, callback=_show_version, help="Print the version.")
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Take a coding-agent conversation from the terminal to a chat, and back.

    Say "hand over" to the agent in your terminal, and type /pickup CODE in a chat.
    """
    if ctx.invoked_subcommand is None:
        from transports.cli.newcomer import show_next

        show_next()


def version() -> str:
    """The version of the installed distribution."""
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as installed

    try:
        return installed("vibearound")
    except PackageNotFoundError:
        return "0+unknown"


def main(args: Sequence[str] | None = None) -> None:
    """Entry point of the console script; ends the process with the exit code of the contract."""
    argv = list(sys.argv[1:] if args is None else args)
    if argv in (["--version"], ["-V"]):
        print(f"{PROGRAM} {version()}")  # noqa: T201 - without the machinery of click
        raise SystemExit(0)
    raise SystemExit(run(argv))


def run(argv: list[str]) -> int:
    """Run one command line; the exit code. Every error ends here, said once on stderr."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")  # a lone surrogate or a poor locale must not end a command
    if f"_{PROGRAM.upper()}_COMPLETE" in os.environ:
        cli.main(argv, prog_name=PROGRAM)
    try:
        code = _invoke(argv)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        return _reader_gone()
    except VibeAroundError as error:
        return _tell(error)
    except KeyboardInterrupt:
        sys.stderr.write("\n")
        return 130


_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EIO})


def _invoke(argv: list[str]) -> int:
    try:
        with cli.make_context(PROGRAM, argv) as ctx:
            result = cli.invoke(ctx)
            return result if isinstance(result, int) and not isinstance(result, bool) else 0
    except click.exceptions.Exit as error:
        return error.exit_code
    except click.Abort:
        sys.stderr.write("\n")
        return 130
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (VibeAroundError, BrokenPipeError):
        raise
    except OSError as error:
        if error.errno in _NO_ROOM and error.filename is None:
            raise VibeAroundError(
                f"The output could not be written: {error.strerror}.", hint="Free some space where it goes, or send it elsewhere.",
                code="output",
            ) from error
        return _unexpected(error)
    except Exception as error:  # noqa: BLE001 - the outermost frame: whatever it is, the user gets one line and a place to look
        return _unexpected(error)


def _tell(error: VibeAroundError) -> int:
    try:
        sys.stdout.flush()
        sys.stderr.write(f"{PROGRAM}: {error.message}\n")
        if error.hint:
            sys.stderr.write(f"    {error.hint}\n")
    except BrokenPipeError:
        return _reader_gone()
    return error.exit_code


def _unexpected(error: Exception) -> int:
    import traceback

    from transports import paths

    text = "".join(traceback.format_exception(error))
    where = "Set VIBEAROUND_DEBUG=1 to see where."
    if os.environ.get("VIBEAROUND_DEBUG"):
        sys.stderr.write(text)
    else:
        try:
            directory = paths.data_dir() / "logs"
            if directory.parent.is_dir():
                directory.mkdir(mode=0o700, exist_ok=True)
                paths.atomic_write(directory / "va-crash.log", text.encode("utf-8", "backslashreplace"))
                where = f"The details are in {directory / 'va-crash.log'}."
        except OSError:
            pass  # the line below is the report; the file is a courtesy
    return _tell(VibeAroundError(f"unexpected error: {type(error).__name__}: {error}", hint=where))


def _reader_gone() -> int:
    """The reader of a pipe went away: end quietly, as other commands do, and keep the interpreter's last flush quiet."""
    devnull = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (BrokenPipeError, ValueError):
            os.dup2(devnull, stream.fileno())
    return 141


if __name__ == "__main__":
    main()
