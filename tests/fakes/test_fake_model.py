"""The fake model as a server: streams, gates, its log, its end."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.model_process import FakeModel

TOOLS = [{"name": "Bash", "input_schema": {"properties": {"command": {}}, "required": ["command"]}}]


@pytest.fixture
def model(tmp_path: Path) -> Iterator[FakeModel]:
    with FakeModel(tmp_path) as fake:
        yield fake


def ask(model: FakeModel, text: str, **more: Any) -> http.client.HTTPResponse:
    """POST one user text as Claude Code does; the answer is read by the caller."""
    body = {"model": "m", "messages": [{"role": "user", "content": text}], "tools": TOOLS, **more}
    connection = http.client.HTTPConnection("127.0.0.1", model.port, timeout=10)
    connection.request("POST", "/v1/messages", json.dumps(body), {"x-api-key": "a-long-secret-key-of-somebody"})
    return connection.getresponse()


def test_a_streamed_answer_has_the_text_and_its_end(model: FakeModel) -> None:
    stream = ask(model, "hello", stream=True).read().decode()
    events = [json.loads(line.removeprefix("data: ")) for line in stream.split("\n") if line.startswith("data: ")]
    pieces = [event["delta"]["text"] for event in events if event["type"] == "content_block_delta"]
    assert "".join(pieces) == "ECHO#1: hello"
    assert events[-1]["type"] == "message_stop"


def test_the_log_tells_what_was_asked_and_how_it_ended_and_holds_no_key(model: FakeModel) -> None:
    ask(model, "hello").read()
    request = model.wait_text("hello")
    assert (request.api, request.helper, request.users, request.tools) == ("anthropic", False, ("hello",), ("Bash",))
    assert model.wait_ended(request) == "done"
    assert "somebody" not in model.log.read_text()


def test_a_request_without_tools_is_a_helper_and_left_out(model: FakeModel) -> None:
    ask(model, "give it a title", tools=[]).read()
    assert model.requests() == []
    assert [request.helper for request in model.requests(helpers=True)] == [True]


def test_a_gate_holds_the_answer_until_it_is_released(model: FakeModel) -> None:
    answer = ask(model, "SLOW{2|0} GATE{g}", stream=True)
    read = b""
    while b"slow-0" not in read:
        read += answer.readline()
    assert model.ended(model.requests()[0]) == ""
    model.release("g")
    assert b"slow-1" in answer.read()


def test_a_client_that_leaves_ends_the_answer_as_aborted(model: FakeModel) -> None:
    answer = ask(model, "HANG{}", stream=True)
    answer.readline()
    answer.close()
    assert model.wait_ended(model.requests()[0]) == "aborted"


def test_an_error_has_its_status(model: FakeModel) -> None:
    assert [ask(model, "ERR{529|1}").status, ask(model, "ERR{529|1}").status] == [529, 200]


def test_waiting_for_what_never_comes_fails_and_shows_what_was_asked(model: FakeModel) -> None:
    ask(model, "something else").read()
    with pytest.raises(AssertionError, match="something else"):
        model.wait_text("what was wanted", seconds=0.05)


def test_the_server_ends_with_the_test_that_started_it(tmp_path: Path) -> None:
    with FakeModel(tmp_path) as fake:
        process = fake._process
    assert process is not None and process.returncode == 0
