"""`va completion`: the script that teaches a shell our commands."""

from __future__ import annotations

import click

_WHERE = {
    "bash": 'Put into ~/.bashrc:  eval "$(va completion bash)"',
    "zsh": 'Put into ~/.zshrc:  eval "$(va completion zsh)"',
    "fish": "Run once:  va completion fish > ~/.config/fish/completions/va.fish",
}


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the completion script for SHELL."""
    import sys

    from click.shell_completion import get_completion_class

    from transports.cli.main import cli

    maker = get_completion_class(shell)
    assert maker is not None
    complete = maker(cli, {}, "va", "_VA_COMPLETE")
    # Not source(): it starts a bash to learn its version.
    click.echo(complete.source_template % complete.source_vars())
    if sys.stdout.isatty():
        click.echo(_WHERE[shell], err=True)
