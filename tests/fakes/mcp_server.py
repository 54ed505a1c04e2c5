"""A small stdio MCP server: `whoami` tells the environment, the working directory and the metadata of the call that an agent
gives its servers; `add` adds two numbers. Revisions of the protocol with an initialize handshake only."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

_TOOLS = [
    {
        "name": "whoami",
        "description": "Tell what the agent gave this server.",
        "inputSchema": {"type": "object", "properties": {}},
    },
    {
        "name": "add",
        "description": "Add two numbers.",
        "inputSchema": {
            "type": "object",
            "properties": {"a": {"type": "number"}, "b": {"type": "number"}},
            "required": ["a", "b"],
        },
    },
]
_TOLD = ("SESSION", "CLAUDE", "CODEX", "THREAD", "PROJECT", "PWD", "ENTRYPOINT", "AGENT", "VIBEAROUND")


def _call(params: dict[str, Any]) -> str:
    if params["name"] == "add":
        return str(params["arguments"]["a"] + params["arguments"]["b"])
    env = {key: value for key, value in os.environ.items() if any(part in key.upper() for part in _TOLD)}
    return json.dumps({"cwd": str(Path.cwd()), "ppid": os.getppid(), "env": env, "meta": params.get("_meta")})


def _result(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    if method == "initialize":
        info = {"name": "probe", "version": "1"}
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": info}
    if method == "tools/list":
        return {"tools": _TOOLS}
    if method == "tools/call":
        return {"content": [{"type": "text", "text": _call(params)}]}
    return {} if method == "ping" else None


def main() -> None:
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message or "method" not in message:
            continue
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"]}
        result = _result(message["method"], message.get("params") or {})
        if result is None:
            answer["error"] = {"code": -32601, "message": f"no {message['method']}"}
        else:
            answer["result"] = result
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
