"""`va demo-agent`: the demo agent in a terminal, as a real agent's CLI would be."""

from __future__ import annotations

import click

from agents_registry.errors import NotFoundError, RefusedError


@click.command("demo-agent")
@click.option("--resume", metavar="ID", default="", help="Go on with a stored session.")
@click.option("--session-id", metavar="ID", default="", help="Give the new session this id.")
def demo_agent(resume: str, session_id: str) -> None:
    """Talk to the built-in demo agent: no keys, no model, for trying everything out."""
    from transports.acp.demo.terminal import converse

    if resume and session_id:
        raise click.UsageError("--resume and --session-id exclude each other.")
    converse(
        resume=resume,
        session_id=session_id,
        missing=lambda wanted: NotFoundError(
            f"The demo agent has no session {wanted}.", hint="See `va sessions list --agent demo`.", code="session_unknown"
        ),
        taken=lambda wanted: RefusedError(
            f"The demo agent has a session {wanted} already.", hint=f"Go on with it: va demo-agent --resume {wanted}"
        ),
    )
