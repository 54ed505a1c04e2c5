"""What the shim says by itself while there is no supervisor. Loaded by path, so it imports no sibling.

An agent asks for the list of tools once, at its start, so it gets the right one even then; a call gets words that say
what to do. That these answers equal those of `core` is held by a test.
"""

# pathlib would be imported for one path
# ruff: noqa: PTH118, PTH120

from __future__ import annotations

import json
import os
from typing import Any

_VERSIONS = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]
_INFO = {"name": "vibearound", "title": "VibeAround", "version": "0"}


def still_open(kept: list[bytes], answers: list[bytes]) -> list[bytes]:
    """Those of the kept lines that are requests without an answer, cancelled ones left out.

    `answers` are first bytes of what the supervisor sent, which writes the id before anything else that has one.
    """
    answered = {repr(_first_id(line)) for line in answers}
    requests: dict[str, bytes] = {}
    for line in kept:
        message = _parse(line)
        params = message.get("params")
        if message.get("method") == "notifications/cancelled" and isinstance(params, dict):
            requests.pop(repr(params.get("requestId")), None)
        elif "method" in message and message.get("id") is not None:
            requests[repr(message["id"])] = line
    return [line for key, line in requests.items() if key not in answered]


def reply(line: bytes, words: str) -> bytes:
    """The line that answers `line` in place of the supervisor; empty for what wants no answer."""
    message = _parse(line)
    if "method" not in message or message.get("id") is None:
        return b""
    answer = {"jsonrpc": "2.0", "id": message["id"], **_outcome(message, words)}
    return json.dumps(answer, separators=(",", ":")).encode("ascii") + b"\n"


def _outcome(message: dict[str, Any], words: str) -> dict[str, Any]:
    method = message["method"]
    given = message.get("params")
    params = given if isinstance(given, dict) else {}
    given = params.get("_meta")
    meta = given if isinstance(given, dict) else {}
    modern = "io.modelcontextprotocol/protocolVersion" in meta
    if method == "initialize":
        wanted = params.get("protocolVersion")
        version = wanted if wanted in _VERSIONS else _VERSIONS[-1]
        return {
            "result": {
                "protocolVersion": version,
                "capabilities": {"tools": {"listChanged": False}},
                "serverInfo": _INFO,
            }
        }
    result: dict[str, Any]
    if method == "server/discover" and modern:
        result = {"supportedVersions": ["2026-07-28", *_VERSIONS], "capabilities": {"tools": {}}}
    elif method == "tools/list":
        with open(os.path.join(os.path.dirname(__file__), "tools.json"), "rb") as file:
            result = {"tools": json.loads(file.read())}
    elif method == "tools/call":
        result = {"content": [{"type": "text", "text": words}], "isError": True}
    elif method == "ping" and not modern:
        result = {}
    else:
        return {"error": {"code": -32601 if method else -32600, "message": words}}
    if modern:
        result["resultType"] = "complete"
        if method != "tools/call":
            result.update({"ttlMs": 0, "cacheScope": "private", "_meta": {"io.modelcontextprotocol/serverInfo": _INFO}})
    return {"result": result}


def _parse(line: bytes) -> dict[str, Any]:
    """The message of a line; of a line of which only the head was kept, an empty method and the first id."""
    if line[-1:] != b"\n":
        return {"method": "", "id": _first_id(line)}
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return message if isinstance(message, dict) else {}


def _first_id(line: bytes) -> Any:
    _, found, rest = line.partition(b'"id":')
    if not found:
        return None
    try:
        return json.JSONDecoder().raw_decode(rest[:256].decode("utf-8", "replace").lstrip())[0]
    except ValueError:
        return None
