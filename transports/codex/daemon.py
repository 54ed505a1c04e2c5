"""What Codex's daemon is, asked over its control socket, and whether a live thread in it may be joined.

The control socket speaks JSON-RPC over WebSocket (seen with 0.166 and 0.171). The client for it is an extra of this
package (`codex-join`); without it nothing is joined.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from importlib.util import find_spec

from transports.codex.proxy import reachable

LIMIT_S = 2.0
MAX_MESSAGE = 64 << 20
"""Bytes; a resumed thread comes with its history in one message."""


def has_client() -> bool:
    """Whether the extra `codex-join` is installed."""
    return find_spec("websockets") is not None


def can_join(socket: str, tested: Sequence[str]) -> bool:
    """Whether this daemon answers, and its version lies between the first and the last of `tested` (by major and minor)."""
    if not has_client() or len(tested) < 2:
        return False
    version = daemon_version(socket)
    return bool(version) and _pair(tested[0]) <= _pair(version) <= _pair(tested[1])


def daemon_version(socket: str, limit_s: float = LIMIT_S) -> str:
    """"0.171.0", or "" when nobody answers there within `limit_s` seconds."""
    from websockets.exceptions import WebSocketException
    from websockets.sync.client import unix_connect

    hello = {"id": 1, "method": "initialize", "params": {"clientInfo": {"name": "vibearound", "version": "1"}}}
    short = socket
    try:
        short = reachable(socket)
        with unix_connect(
            short, "ws://localhost/", compression=None, open_timeout=limit_s, close_timeout=0.2, max_size=MAX_MESSAGE
        ) as link:
            link.send(json.dumps(hello))
            for _ in range(20):
                answer = json.loads(link.recv(timeout=limit_s))
                if answer.get("id") == 1:
                    return version_in(str((answer.get("result") or {}).get("userAgent", "")))
    except (OSError, TimeoutError, ValueError, WebSocketException):
        return ""
    finally:
        if short != socket:
            os.close(int(short.split("/")[4]))
    return ""


def version_in(user_agent: str) -> str:
    """The version of "codex-tui/0.166.0 (Debian 12.0.0; x86_64) …"; the daemon puts its own behind the first slash."""
    found = re.search(r"/(\d+\.\d+\.\d+)", user_agent)
    return found.group(1) if found else ""


def _pair(version: str) -> tuple[int, int]:
    numbers = [int(n) for n in re.findall(r"\d+", version)[:2]]
    return (numbers[0], numbers[1]) if len(numbers) == 2 else (0, 0)
