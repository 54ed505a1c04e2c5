"""`va mcp`: the MCP server that agents start over stdio."""

from __future__ import annotations

import click


@click.command("mcp")
@click.option("--data-dir", metavar="DIR", default="", help="Data directory, where it is not the default one.")
def mcp(data_dir: str) -> None:
    """Serve MCP on stdin and stdout, for an agent (see `va integrate`).

    Becomes the shim, which starts without any of this command line's modules.
    """
    import os
    import sys
    from pathlib import Path

    from agents_registry.errors import VibeAroundError
    from transports import paths

    shim = Path(paths.__file__).parent / "mcp" / "shim.py"
    words = [sys.executable, "-I", "-S", str(shim), "--data-dir", str(paths.data_dir(override=data_dir))]
    try:
        os.execv(sys.executable, words)
    except OSError as error:
        raise VibeAroundError(
            f"{sys.executable} cannot be started: {error.strerror}.", hint="Reinstall VibeAround, then `va doctor`."
        ) from error
