"""The least MCP client that can call one tool of a stdio server, as a real agent would (stripped environment)."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
from collections.abc import Mapping
from threading import Timer
from typing import Any

PASSED = ("PATH", "HOME", "LANG", "LC_ALL", "USER", "LOGNAME", "SHELL", "TMPDIR", "XDG_RUNTIME_DIR")
"""What agents hand on to the servers they start (Codex, Vibe); all else must come from the server's entry."""


class McpFailed(Exception):
    """The server could not be started, did not answer, or answered with an error."""


def stripped(environ: Mapping[str, str], extra: Mapping[str, str]) -> dict[str, str]:
    """The environment for a server: a few known variables and its entry's own."""
    return {**{k: environ[k] for k in PASSED if k in environ}, **extra}


def call_tool(
    command: list[str], env: Mapping[str, str], cwd: str, tool: str, arguments: dict[str, Any], limit_s: float = 20.0
) -> str:
    """Start the server, call one tool, end the server; the text of the answer. Raises McpFailed."""
    try:
        process = subprocess.Popen(
            command, cwd=cwd, env=dict(env), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
    except OSError as error:
        raise McpFailed(f"{command[0]} could not be started: {error.strerror}") from error
    watchdog = Timer(limit_s, process.kill)
    watchdog.daemon = True
    watchdog.start()
    try:
        _ask(
            process,
            1,
            "initialize",
            {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "demo-agent", "version": "1"}},
        )
        _send(process, {"jsonrpc": "2.0", "method": "notifications/initialized"})
        result = _ask(process, 2, "tools/call", {"name": tool, "arguments": arguments})
    finally:
        with contextlib.suppress(OSError):
            process.communicate(timeout=0) if process.poll() is not None else process.stdin and process.stdin.close()
        try:
            process.wait(2)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        watchdog.cancel()
        if process.stdout:
            process.stdout.close()
    text = "\n".join(part.get("text", "") for part in result.get("content", []) if part.get("type") == "text")
    if result.get("isError"):
        raise McpFailed(text or "the server refused")
    return text


def server_command(entry: Mapping[str, Any]) -> tuple[list[str], dict[str, str]]:
    """Command and environment of an ACP `mcpServers` entry of the stdio form."""
    env = {str(v["name"]): str(v["value"]) for v in entry.get("env") or [] if isinstance(v, dict)}
    return [str(entry["command"]), *(str(a) for a in entry.get("args") or [])], stripped(os.environ, env)


def _send(process: subprocess.Popen[bytes], message: dict[str, Any]) -> None:
    if process.stdin is None:
        raise McpFailed("the server has no input")
    try:
        process.stdin.write(json.dumps(message).encode() + b"\n")
        process.stdin.flush()
    except OSError as error:
        raise McpFailed("the server went away") from error


def _ask(process: subprocess.Popen[bytes], number: int, method: str, params: dict[str, Any]) -> dict[str, Any]:
    _send(process, {"jsonrpc": "2.0", "id": number, "method": method, "params": params})
    while process.stdout is not None and (line := process.stdout.readline(16 << 20)):
        try:
            message = json.loads(line)
        except ValueError:
            continue
        if isinstance(message, dict) and message.get("id") == number:
            if "error" in message:
                raise McpFailed(str((message["error"] or {}).get("message", "an error")))
            result = message.get("result")
            return result if isinstance(result, dict) else {}
    raise McpFailed("the server ended or did not answer in time")
