"""`python -m transports.acp.demo`: the demo agent as an ACP agent over stdin and stdout."""

from __future__ import annotations

import os
import sys

from transports.acp.demo.server import DemoServer
from transports.acp.demo.store import DemoStore


def main() -> int:
    """Serve until the input ends; exit code 0."""
    return DemoServer(sys.stdin.buffer, sys.stdout.buffer, DemoStore.of(os.environ)).serve()


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    os._exit(code)  # a turn in a thread (a hanging one, a sleeping command) must not keep the process
