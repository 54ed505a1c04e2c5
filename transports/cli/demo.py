"""`va demo`: the whole handover, played with the demo agent in one terminal and narrated. Nothing in it is a stand-in:
the daemon, the agent's processes, the MCP server and the codes are the real ones; only the agent has no model."""

from __future__ import annotations

import click


@click.command("demo")
@click.option("--fast", is_flag=True, help="Without pauses for reading.")
def demo(fast: bool) -> None:
    """See a conversation leave a terminal, go on in two chats, survive a restart, and come back. No keys needed.

    Uses the running supervisor; without one, it starts its own in a temporary data directory, and removes both.
    """
    import sys

    from transports.cli.demo_play import play

    play(0.0 if fast or not sys.stdout.isatty() else 1.2)
