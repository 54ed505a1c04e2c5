"""One MCP connection without a socket: bytes in pieces, open calls, cancellations, the private first line."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agents_registry.errors import NotRunningError
from transports.mcp import core
from transports.mcp.server import MAX_OPEN_CALLS, Hello, McpConnection


@pytest.fixture
def connection() -> McpConnection:
    return McpConnection("1.0")


def line(message: dict[str, Any]) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"


def call(request_id: Any) -> bytes:
    params = {"name": "register_workspace", "arguments": {"cwd": "/a"}}
    return line({"id": request_id, "method": "tools/call", "params": params})


def cancel(request_id: Any) -> bytes:
    return line({"method": "notifications/cancelled", "params": {"requestId": request_id}})


HELLO = b'{"vibearound":1,"pid":5,"ppid":4,"cwd":"/w","env":{"CODEX_HOME":"/c","ODD":"\\udcff"}}\n'


def test_bytes_may_come_in_any_pieces(connection: McpConnection) -> None:
    data = HELLO + call(1) + line({"id": 2, "method": "ping"})
    out, calls = b"", []
    for position in range(len(data)):
        fed = connection.feed(data[position : position + 1])
        out += fed.out
        calls += fed.calls
    assert json.loads(out)["id"] == 2
    assert [one.tool.arguments for one in calls] == [{"cwd": "/a"}]


def test_the_hello_is_exposed_and_gets_no_answer(connection: McpConnection) -> None:
    assert connection.feed(HELLO).out == b""
    assert connection.hello == Hello(5, 4, "/w", {"CODEX_HOME": "/c", "ODD": "\udcff"})


@pytest.mark.parametrize("broken", [b'{"vibearound":1}\n', b'{"vibearound":\n', b'{"vibearound":1,"pid":"x","env":[]}\n'])
def test_a_hello_that_cannot_be_read_is_none_and_the_connection_goes_on(connection: McpConnection, broken: bytes) -> None:
    connection.feed(broken)
    assert connection.hello is None
    assert connection.feed(line({"id": 1, "method": "ping"})).out


def test_a_hello_counts_as_the_first_line_only(connection: McpConnection) -> None:
    connection.feed(line({"id": 1, "method": "ping"}))
    assert json.loads(connection.feed(HELLO).out)["error"]["code"] == core.INVALID_REQUEST
    assert connection.hello is None


def test_a_call_is_answered_once(connection: McpConnection) -> None:
    (pending,) = connection.feed(call("a")).calls
    assert json.loads(connection.complete(pending.call_id, "yes"))["result"]["content"][0]["text"] == "yes"
    assert connection.complete(pending.call_id, "again") == b""
    assert connection.open_calls() == []


def test_a_failed_call_tells_what_happened_and_what_to_do(connection: McpConnection) -> None:
    (pending,) = connection.feed(call(1)).calls
    result = json.loads(connection.fail(pending.call_id, NotRunningError("Gone.", hint="Do this.")))["result"]
    assert (result["isError"], result["content"][0]["text"]) == (True, "Gone. Do this.")


def test_after_a_cancel_nothing_is_sent_and_the_runner_is_told(connection: McpConnection) -> None:
    (pending,) = connection.feed(call(1)).calls
    assert connection.feed(cancel(1)).cancelled == [pending.call_id]
    assert connection.complete(pending.call_id, "late") == b""
    assert connection.feed(cancel(1)).cancelled == []


def test_a_call_cancelled_in_the_same_piece_is_never_handed_out(connection: McpConnection) -> None:
    fed = connection.feed(call(1) + cancel(1))
    assert (fed.calls, fed.cancelled, fed.out) == ([], [], b"")


def test_an_id_that_is_open_already_is_refused_and_text_and_number_are_different_ids(connection: McpConnection) -> None:
    connection.feed(call(1))
    assert json.loads(connection.feed(call(1)).out)["error"]["code"] == core.INVALID_REQUEST
    assert len(connection.feed(call("1")).calls) == 1


def test_more_open_calls_than_the_limit_are_refused_with_a_word(connection: McpConnection) -> None:
    fed = connection.feed(b"".join(call(number) for number in range(MAX_OPEN_CALLS + 1)))
    assert len(fed.calls) == MAX_OPEN_CALLS
    refused = json.loads(fed.out)
    assert refused["id"] == MAX_OPEN_CALLS
    assert "running already" in refused["result"]["content"][0]["text"]


def test_a_line_of_exactly_the_limit_is_read_and_one_byte_more_is_refused(connection: McpConnection) -> None:
    ping = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
    fitting = ping + b" " * (core.LINE_LIMIT - len(ping))
    assert "result" in json.loads(connection.feed(fitting + b"\n").out)
    assert "error" in json.loads(connection.feed(fitting + b" \n").out)


def test_a_long_line_in_pieces_keeps_memory_bounded_and_the_next_line_is_served(connection: McpConnection) -> None:
    out = connection.feed(b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"a":"').out
    for _ in range(64):
        out += connection.feed(b"x" * 65_536).out
        held = len(connection._buffer) + len(connection._head) + len(connection._tail)
        assert held <= core.LINE_LIMIT + 65_536
    assert out == b""
    refused = json.loads(connection.feed(b'"}}\n').out)
    assert refused["id"] == 7
    assert json.loads(connection.feed(line({"id": 8, "method": "ping"})).out)["id"] == 8


def test_the_name_of_the_client_is_kept(connection: McpConnection) -> None:
    params = {"protocolVersion": "2025-06-18", "clientInfo": {"name": "codex", "version": "0.171"}}
    connection.feed(line({"id": 0, "method": "initialize", "params": params}))
    connection.feed(call(1))
    assert connection.client == core.Client("codex", "0.171")
