"""The MCP core: one line in, what follows from it out."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transports.mcp import core, tools

PREFIX = "io.modelcontextprotocol/"
ENVELOPE = {f"{PREFIX}protocolVersion": "2026-07-28", f"{PREFIX}clientCapabilities": {}}


def receive(message: Any) -> Any:
    return core.receive(json.dumps(message).encode(), "9.9")


def request(method: str, request_id: Any = 1, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}


def answer(message: Any) -> dict[str, Any]:
    received = receive(message)
    assert isinstance(received, core.Answer)
    return received.message


def error(message: Any) -> tuple[Any, int]:
    refused = answer(message)
    return refused["id"], refused["error"]["code"]


@pytest.mark.parametrize("version", core.HANDSHAKE_VERSIONS)
def test_initialize_agrees_to_each_version_of_its_era(version: str) -> None:
    result = answer(request("initialize", protocolVersion=version))["result"]
    assert result["protocolVersion"] == version
    assert result["serverInfo"]["version"] == "9.9"


def test_initialize_offers_its_newest_version_for_an_unknown_one() -> None:
    assert answer(request("initialize", protocolVersion="1999-01-01"))["result"]["protocolVersion"] == "2025-11-25"


def test_the_client_is_known_by_the_name_it_gives_in_either_era() -> None:
    info = {"name": "claude-code", "version": "2.1"}
    assert receive(request("initialize", clientInfo=info)).client == core.Client("claude-code", "2.1")
    modern = {**ENVELOPE, f"{PREFIX}clientInfo": info}
    assert receive(request("tools/list", _meta=modern)).client == core.Client("claude-code", "2.1")


def test_discover_names_all_versions_and_how_long_the_answer_may_be_kept() -> None:
    result = answer(request("server/discover", _meta=ENVELOPE))["result"]
    assert result["supportedVersions"][0] == "2026-07-28"
    assert set(core.HANDSHAKE_VERSIONS) < set(result["supportedVersions"])
    assert (result["resultType"], result["cacheScope"]) == ("complete", "private")
    assert result["ttlMs"] > 0


def test_an_unknown_version_in_the_envelope_is_refused_with_the_known_ones() -> None:
    refused = answer(request("tools/list", _meta={**ENVELOPE, f"{PREFIX}protocolVersion": "2031-01-01"}))
    assert refused["error"]["code"] == -32022
    assert refused["error"]["data"]["requested"] == "2031-01-01"
    assert "2026-07-28" in refused["error"]["data"]["supported"]


@pytest.mark.parametrize(
    "meta", [{f"{PREFIX}protocolVersion": "2026-07-28"}, {**ENVELOPE, f"{PREFIX}protocolVersion": 5}]
)
def test_half_an_envelope_is_a_wrong_parameter(meta: dict[str, Any]) -> None:
    assert error(request("tools/list", _meta=meta)) == (1, core.INVALID_PARAMS)


def test_discover_without_an_envelope_is_refused_so_that_a_client_falls_back() -> None:
    assert error(request("server/discover")) == (1, core.INVALID_PARAMS)


def test_ping_belongs_to_the_older_era_only() -> None:
    assert answer(request("ping"))["result"] == {}
    assert error(request("ping", _meta=ENVELOPE)) == (1, core.METHOD_NOT_FOUND)


def test_results_of_the_older_era_carry_nothing_of_the_newer_one() -> None:
    assert answer(request("tools/list"))["result"] == {"tools": tools.DECLARATIONS}


@pytest.mark.parametrize("key", [("resources/list", "resources"), ("prompts/list", "prompts")])
def test_lists_that_we_do_not_declare_are_empty(key: tuple[str, str]) -> None:
    assert answer(request(key[0]))["result"] == {key[1]: []}


def test_an_unknown_method_is_not_found() -> None:
    assert error(request("resources/subscribe")) == (1, core.METHOD_NOT_FOUND)


@pytest.mark.parametrize(
    "line",
    [b"{", b"\xff\xfe", b'{"a":NaN}', b"[" * 100_000, b"1" * 5000, b'{"jsonrpc":"2.0","id":1,"method":"ping"} x'],
)
def test_what_is_not_json_is_a_parse_error_without_an_id(line: bytes) -> None:
    received = core.receive(line, "1")
    assert isinstance(received, core.Answer)
    assert (received.message["id"], received.message["error"]["code"]) == (None, core.PARSE_ERROR)


@pytest.mark.parametrize(
    ("message", "request_id"),
    [
        ([request("ping")], None),
        ([], None),
        ("ping", None),
        ({"id": 4, "method": "ping"}, 4),
        ({"jsonrpc": "1.0", "id": 4, "method": "ping"}, 4),
        (request("ping", request_id=None), None),
        (request("ping", request_id=1.5), None),
        (request("ping", request_id=True), None),
        ({"jsonrpc": "2.0", "id": 4, "method": 5}, 4),
        ({"jsonrpc": "2.0", "id": 4}, 4),
    ],
)
def test_what_is_no_request_is_refused_with_its_id_where_it_has_one(message: Any, request_id: Any) -> None:
    assert error(message) == (request_id, core.INVALID_REQUEST)


@pytest.mark.parametrize("params", [[], "x", {"_meta": []}])
def test_parameters_of_the_wrong_shape_are_refused(params: Any) -> None:
    assert error({"jsonrpc": "2.0", "id": "a", "method": "tools/list", "params": params}) == ("a", core.INVALID_PARAMS)


@pytest.mark.parametrize(
    "message",
    [
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "method": "no/such/notification", "params": []},
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": None}},
        {"jsonrpc": "2.0", "id": 3, "result": {}},
        {"jsonrpc": "2.0", "id": 3, "error": {}},
    ],
)
def test_notifications_and_answers_get_no_answer(message: Any) -> None:
    assert receive(message) is None


def test_a_cancellation_names_its_request() -> None:
    message = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "x"}}
    assert receive(message) == core.Cancel("x")


def test_a_call_carries_checked_arguments_and_the_metadata_of_the_call() -> None:
    meta = {"x-codex-turn-metadata": {"thread_id": "t"}}
    arguments = {"agent_type": " codex ", "cwd": "/srv", "session_id": None, "profile_id": ""}
    received = receive(request("tools/call", name="get_session_id", arguments=arguments, _meta=meta))
    assert received == core.Call(1, tools.ToolCall("get_session_id", {"agent_kind": "codex", "cwd": "/srv"}, meta), False)


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("prepare_handover", {"cwd": "/x"}, "needs agent_kind"),
        ("prepare_handover", None, "needs agent_kind and cwd"),
        ("prepare_handover", {"agent_kind": "a", "cwd": "x"}, "absolute"),
        ("prepare_handover", {"agent_kind": 5, "cwd": "/x"}, "must be a text"),
        ("prepare_handover", {"agent_kid": "a", "cwd": "/x"}, "Did you mean agent_kind"),
        ("prepare_handover", [], "must be an object"),
        ("register_workspace", {"cwd": "/x\ny"}, "one line"),
        ("register_workspace", {"cwd": "/" + "x" * 5000}, "4096"),
    ],
)
def test_wrong_arguments_are_a_result_that_tells_the_model_how_to_mend_them(name: str, arguments: Any, words: str) -> None:
    result = answer(request("tools/call", name=name, arguments=arguments))["result"]
    assert result["isError"] is True
    assert words in result["content"][0]["text"]


def test_an_unknown_tool_is_a_wrong_parameter_that_lists_the_tools() -> None:
    refused = answer(request("tools/call", name="x"))
    assert refused["error"]["code"] == core.INVALID_PARAMS
    assert "prepare_handover" in refused["error"]["message"]


def test_the_handover_text_holds_the_command_alone_on_a_line() -> None:
    lines = tools.handover_text("AB23", 120.0, "A note.").splitlines()
    assert "/pickup AB23" in lines
    assert lines[-1] == "A note."


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x), max_leaves=20))
def test_any_json_gets_at_most_one_answer_that_can_be_sent(value: Any) -> None:
    received = receive(value)
    if isinstance(received, core.Answer):
        assert core.encode(received.message).count(b"\n") == 1


@given(st.binary(max_size=200))
def test_any_bytes_are_survived(line: bytes) -> None:
    core.receive(line.replace(b"\n", b""), "1")


@pytest.mark.parametrize(
    ("head", "tail", "request_id"),
    [
        (b'{"jsonrpc":"2.0","id":7,"method":"x","params":{"id":8', b"x", 7),
        (b'{ "method": "tools/call", "id" : "a b", "params"', b"x", "a b"),
        (b'{"method":"x","params":{"id":8', b'"}},"jsonrpc":"2.0","id":9}', 9),
        (b'{"params":{"id":8', b'"}, "id": 9, "jsonrpc": "2.0"}', 9),
        (b'{"method":"x","params":{"id":8', b'"}},"jsonrpc":"2.0"}', None),
        (b'{"method":"x","params":{"a":"', b'"b":{"id":8}', None),
        (b'{"id":"\\q","method"', b"", None),
        (b"\xff\xff", b"\xff", None),
    ],
)
def test_the_id_of_a_line_too_long_to_read_is_taken_only_where_it_is_certain(
    head: bytes, tail: bytes, request_id: Any
) -> None:
    assert core.refuse_long_line(head, tail)["id"] == request_id
