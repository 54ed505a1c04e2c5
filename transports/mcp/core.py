"""One line of the Model Context Protocol in, what follows from it out: pure and without memory of earlier lines.

Having no memory is what lets a supervisor restart under an open connection: nothing of a handshake is lost. Both eras
are served, told apart per request: the `initialize` handshake (revisions 2024-11-05 to 2025-11-25) and the envelope in
`params._meta` (revision 2026-07-28: `server/discover`, `resultType`, `ttlMs`, `cacheScope`, error -32022, no ping, nothing
sent after a cancel). Source: modelcontextprotocol.io, checked against the official SDK's client by tests.
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

from agents_registry.errors import UsageError
from transports.mcp import tools

HANDSHAKE_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
MODERN_VERSIONS = ("2026-07-28",)
LINE_LIMIT = 1 << 20
"""Longest line in bytes, without its line feed."""

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
UNSUPPORTED_VERSION = -32022

_META = "io.modelcontextprotocol/"
_CACHE = {"ttlMs": 60_000, "cacheScope": "private"}
_EMPTY_LISTS = {
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
    "prompts/list": "prompts",
}
"""Not declared as capabilities, answered all the same: some clients ask without looking."""

RequestId = str | int


class Client(NamedTuple):
    """How the other side names itself (`clientInfo`); evidence, not proof."""

    name: str
    version: str


class Answer(NamedTuple):
    """A message to send as it is. `client` is set where the request named its sender."""

    message: dict[str, Any]
    client: Client | None = None


class Call(NamedTuple):
    """A tool to run; `result_message` makes the answer. `modern` tells the era of the request."""

    id: RequestId
    tool: tools.ToolCall
    modern: bool
    client: Client | None = None


class Cancel(NamedTuple):
    """The client no longer waits for this request; nothing may be sent for it any more."""

    id: RequestId


def receive(line: bytes, server_version: str) -> Answer | Call | Cancel | None:
    """What one line asks for; None for what needs nothing (notifications, answers, blank lines). Never raises."""
    if not line.strip():
        return None
    try:
        message = json.loads(line.decode("utf-8"), parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return Answer(error_message(None, PARSE_ERROR, "Not valid JSON in UTF-8; one message per line is expected."))
    if isinstance(message, list):
        return Answer(error_message(None, INVALID_REQUEST, "Batches are not supported; send one message per line."))
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        return Answer(error_message(_id_of(message), INVALID_REQUEST, 'Not a JSON-RPC 2.0 message ("jsonrpc": "2.0").'))
    method = message.get("method")
    params = message.get("params", {})
    if method is None and ("result" in message or "error" in message):
        return None  # we send no requests, so there is nothing this could answer
    if "id" not in message:
        return _notification(method, params)
    request_id = _id_of(message)
    if request_id is None or not isinstance(method, str):
        return Answer(error_message(request_id, INVALID_REQUEST, "A request has a method, and an id of text or integer."))
    if params is None:
        params = {}
    if not isinstance(params, dict):
        return Answer(error_message(request_id, INVALID_PARAMS, "params must be an object."))
    meta = params.get("_meta")
    if meta is not None and not isinstance(meta, dict):
        return Answer(error_message(request_id, INVALID_PARAMS, "params._meta must be an object."))
    return _request(request_id, method, params, meta or {}, server_version)


def _request(
    request_id: RequestId, method: str, params: dict[str, Any], meta: dict[str, Any], server_version: str
) -> Answer | Call:
    info = {"name": "vibearound", "title": "VibeAround", "version": server_version}
    if method == "initialize":  # the older era, whatever envelope a client puts on it
        wanted = params.get("protocolVersion")
        result: dict[str, Any] = {
            "protocolVersion": wanted if wanted in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[-1],
            "capabilities": {"tools": {"listChanged": False}},
            "serverInfo": info,
            "instructions": tools.INSTRUCTIONS,
        }
        return Answer(result_message(request_id, result), _client(params.get("clientInfo")))

    modern = f"{_META}protocolVersion" in meta or method == "server/discover"
    if modern:
        refusal = _refused_envelope(request_id, meta)
        if refusal is not None:
            return Answer(refusal)
    client = _client(meta.get(f"{_META}clientInfo")) if modern else None

    def answer(fields: dict[str, Any], cached: bool = False) -> Answer:
        if modern:
            fields = {**fields, **(_CACHE if cached else {}), "_meta": {f"{_META}serverInfo": info}}
        return Answer(result_message(request_id, fields, modern), client)

    if method == "server/discover":
        versions = [*MODERN_VERSIONS, *HANDSHAKE_VERSIONS]
        fields = {"supportedVersions": versions, "capabilities": {"tools": {}}, "instructions": tools.INSTRUCTIONS}
        return answer(fields, cached=True)
    if method == "ping" and not modern:
        return answer({})
    if method == "tools/list":
        return answer({"tools": tools.DECLARATIONS}, cached=True)
    if method in _EMPTY_LISTS:
        return answer({_EMPTY_LISTS[method]: []}, cached=True)
    if method == "tools/call":
        name = params.get("name")
        if not isinstance(name, str) or not tools.is_known(name):
            known = ", ".join(declaration["name"] for declaration in tools.DECLARATIONS)
            text = f"Unknown tool {str(name)[:64]!r}. There are: {known}."
            return Answer(error_message(request_id, INVALID_PARAMS, text), client)
        try:
            return Call(request_id, tools.check(name, params.get("arguments"), meta), modern, client)
        except UsageError as error:  # as a tool's result, which the model sees and can mend
            return Answer(tool_message(request_id, str(error), modern, is_error=True), client)
    return Answer(error_message(request_id, METHOD_NOT_FOUND, f"Method not found: {method[:100]}"), client)


def result_message(request_id: RequestId, fields: dict[str, Any], modern: bool = False) -> dict[str, Any]:
    """A successful answer; the newer era wants to be told that nothing more follows."""
    if modern:
        fields = {"resultType": "complete", **fields}
    return {"jsonrpc": "2.0", "id": request_id, "result": fields}


def tool_message(request_id: RequestId, text: str, modern: bool, *, is_error: bool = False) -> dict[str, Any]:
    """The result of a tool as text."""
    return result_message(request_id, {"content": [{"type": "text", "text": text}], "isError": is_error}, modern)


def error_message(request_id: RequestId | None, code: int, text: str, data: Any = None) -> dict[str, Any]:
    """A JSON-RPC error; the id is null where the request's own could not be read."""
    error: dict[str, Any] = {"code": code, "message": text}
    if data is not None:
        error["data"] = data
    return {"jsonrpc": "2.0", "id": request_id, "error": error}


def encode(message: dict[str, Any]) -> bytes:
    """One line. ASCII only, so that lone surrogates and U+2028 pass through every reader."""
    return json.dumps(message, separators=(",", ":")).encode("ascii") + b"\n"


_SCALAR = rb'(-?\d{1,18}|"(?:[^"\\]|\\.){0,200}")'
_PLAIN_PAIR = rb'"(?:jsonrpc|method)"\s*:\s*"[^"\\]*"\s*'
_ID_FIRST = re.compile(rb"\s*\{\s*(?:" + _PLAIN_PAIR + rb",\s*)*" + rb'"id"\s*:\s*' + _SCALAR)
_ID_LAST = re.compile(
    rb"[}\]]\s*,\s*(?:" + _PLAIN_PAIR + rb",\s*)*" + rb'"id"\s*:\s*' + _SCALAR + rb"\s*(?:,\s*" + _PLAIN_PAIR + rb")*\}\s*$"
)


def refuse_long_line(head: bytes, tail: bytes) -> dict[str, Any]:
    """The answer to a line above the limit, of which only some first and last bytes were kept.

    The request's id is taken only where it can be nothing else than the message's own: among the plain members before
    `params`, or among those after it.
    """
    found = _ID_FIRST.match(head) or _ID_LAST.search(tail)
    try:
        request_id = _id_of({"id": json.loads(found[1])}) if found else None
    except ValueError:
        request_id = None
    return error_message(request_id, INVALID_REQUEST, f"The message is longer than {LINE_LIMIT} bytes and was not read.")


def _notification(method: object, params: object) -> Cancel | None:
    if method == "notifications/cancelled" and isinstance(params, dict):
        cancelled = _id_of({"id": params.get("requestId")})
        return None if cancelled is None else Cancel(cancelled)
    return None


def _refused_envelope(request_id: RequestId, meta: dict[str, Any]) -> dict[str, Any] | None:
    missing = [key for key in (f"{_META}protocolVersion", f"{_META}clientCapabilities") if key not in meta]
    if missing:
        return error_message(request_id, INVALID_PARAMS, f"params._meta lacks {', '.join(missing)}.")
    version = meta[f"{_META}protocolVersion"]
    if not isinstance(version, str):
        return error_message(request_id, INVALID_PARAMS, f"{_META}protocolVersion must be a text.")
    if version not in MODERN_VERSIONS:
        data = {"supported": [*MODERN_VERSIONS, *HANDSHAKE_VERSIONS], "requested": version}
        return error_message(request_id, UNSUPPORTED_VERSION, "Unsupported protocol version", data)
    return None


def _client(info: object) -> Client | None:
    if not isinstance(info, dict) or not isinstance(info.get("name"), str):
        return None
    version = info.get("version")
    return Client(info["name"][:200], version[:200] if isinstance(version, str) else "")


def _id_of(message: object) -> RequestId | None:
    value = message.get("id") if isinstance(message, dict) else None
    return value if isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool)) else None


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")
