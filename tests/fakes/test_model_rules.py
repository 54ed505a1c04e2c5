"""What the fake model answers, rule by rule."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.fakes import model_views as views
from tests.fakes import model_wire as wire
from tests.fakes.model_rules import Call, Rules, fitting, knobs_of
from tests.fakes.model_views import History, ToolName, Tools

CLAUDE: Tools = {
    ToolName("Bash"): {"properties": {"command": {"type": "string"}}, "required": ["command"]},
    ToolName("Write"): {"properties": {"file_path": {}, "content": {}}, "required": ["file_path", "content"]},
    ToolName("mcp__vibearound__prepare_handover"): {},
}
CODEX: Tools = {
    ToolName("exec_command"): {
        "properties": {"cmd": {"type": "string"}, "sandbox_permissions": {}},
        "required": ["cmd"],
    },
    ToolName("prepare_handover", "mcp__vibearound"): {},
}


def asked(*turns: tuple[str, str]) -> History:
    history = History()
    for role, text in turns:
        history.add(role, text)
    return history


def test_a_plain_text_is_echoed_with_the_count_of_user_texts() -> None:
    history = asked(("user", "one"), ("assistant", "ECHO#1: one"), ("user", "two"))
    assert Rules().reply(history, CLAUDE).text == "ECHO#2: two"


def test_reminders_of_the_harness_are_no_user_texts() -> None:
    history = asked(
        ("user", "<system-reminder>SAY{no}</system-reminder>"), ("user", "<system-reminder>x</system-reminder> hello")
    )
    assert Rules().reply(history, CLAUDE).text == "ECHO#1: hello"


def test_knobs_keep_the_braces_inside_their_value() -> None:
    assert knobs_of('a SHELL{echo ${HOME}} b MCP{x|{"a": {"b": 1}}} SAY{open') == [
        ("SHELL", "echo ${HOME}"),
        ("MCP", 'x|{"a": {"b": 1}}'),
    ]


def test_several_tool_knobs_are_several_calls_of_one_answer() -> None:
    reply = Rules().reply(asked(("user", "SHELL{ls} WRITE{/a b|c} MCP{prepare_handover|{}}")), CLAUDE)
    assert reply.calls == (
        Call("Bash", {"command": "ls"}),
        Call("Write", {"file_path": "/a b", "content": "c"}),
        Call("mcp__vibearound__prepare_handover", {}),
    )


def test_codex_is_called_by_its_own_tools_and_namespaces() -> None:
    reply = Rules().reply(asked(("user", "SHELL{ls} RUN{ls} MCP{prepare_handover}")), CODEX)
    escalated, plain, tool = reply.calls
    assert escalated.arguments["sandbox_permissions"] == "require_escalated"
    assert plain.arguments == {"cmd": "ls"}
    assert (tool.name, tool.namespace) == ("prepare_handover", "mcp__vibearound")


def test_a_tool_that_is_not_offered_is_said_so() -> None:
    assert Rules().reply(asked(("user", "MCP{nothing_like_it}")), CLAUDE).text.startswith("NO-TOOL")


def test_steps_follow_the_rounds_of_tool_results() -> None:
    text = "RUN{a} RUN{b} THEN RUN{c} THEN SAY{end}"
    rules, turns = Rules(), [("user", text)]
    assert [call.arguments["command"] for call in rules.reply(asked(*turns), CLAUDE).calls] == ["a", "b"]
    turns += [("call", "a"), ("call", "b"), ("result", "1"), ("result", "2")]
    assert [call.arguments["command"] for call in rules.reply(asked(*turns), CLAUDE).calls] == ["c"]
    turns += [("call", "c"), ("result", "3")]
    assert rules.reply(asked(*turns), CLAUDE).text == "end"


def test_results_after_the_last_step_are_told() -> None:
    history = asked(("user", "RUN{a} RUN{b}"), ("call", "a"), ("call", "b"), ("result", "1"), ("result", "2"))
    assert Rules().reply(history, CLAUDE).text == "TOOL-RESULT#2: 1 | 2"


def test_an_error_may_be_limited_to_the_first_requests() -> None:
    rules, history = Rules(), asked(("user", "ERR{500|2} SAY{well}"))
    replies = [rules.reply(history, CLAUDE) for _ in range(3)]
    assert [reply.status for reply in replies] == [500, 500, 200]
    assert replies[-1].text == "well"


def test_a_request_for_an_object_gets_one_that_fits() -> None:
    schema: dict[str, Any] = {"type": "object", "properties": {"title": {"type": "string"}, "n": {"type": "integer"}}}
    assert json.loads(Rules().reply(asked(("user", "RUN{a}")), {}, schema=schema).text) == {"title": "fake", "n": 1}
    assert fitting({"enum": ["x", "y"]}) == "x"


@pytest.mark.parametrize("stream", [wire.anthropic_stream, wire.responses_stream, wire.chat_stream, wire.gemini_stream])
def test_every_api_waits_at_the_gate_after_half_of_the_text_and_hangs_before_the_end(stream: Any) -> None:
    reply = Rules().reply(asked(("user", "SLOW{4|0} GATE{g} HANG{}")), CLAUDE)
    steps = list(stream(reply, "m"))
    gate, hang = steps.index(wire.GATE), steps.index(wire.HANG)
    before = json.dumps([step.data for step in steps[:gate]])
    assert "slow-1" in before and "slow-2" not in before
    assert "slow-3" in json.dumps([step.data for step in steps[gate + 1 : hang]])
    assert len(steps) > hang + 1


def test_every_api_shows_the_same_history() -> None:
    call = {"name": "Bash", "arguments": "{}"}
    bodies: list[tuple[Any, dict[str, Any]]] = [
        (
            views.anthropic,
            {
                "messages": [
                    {"role": "user", "content": "one"},
                    {"role": "assistant", "content": [{"type": "tool_use", "name": "Bash", "input": {}}]},
                    {"role": "system", "content": "no"},
                    {"role": "user", "content": [{"type": "tool_result", "content": "out"}]},
                ]
            },
        ),
        (
            views.responses,
            {
                "input": [
                    {"role": "user", "content": [{"type": "input_text", "text": "one"}]},
                    {"type": "function_call", **call},
                    {"type": "message", "role": "developer", "content": "no"},
                    {"type": "function_call_output", "output": "out"},
                ]
            },
        ),
        (
            views.chat,
            {
                "messages": [
                    {"role": "system", "content": "no"},
                    {"role": "user", "content": "one"},
                    {"role": "assistant", "content": None, "tool_calls": [{"function": call}]},
                    {"role": "tool", "content": "out"},
                ]
            },
        ),
    ]
    for view, body in bodies:
        history, _ = view(body)
        assert history.turns == [("user", "one"), ("call", "Bash {}"), ("result", "out")]
        assert (history.rounds, history.last_results) == (1, ("out",))


def test_gemini_joins_its_context_to_the_first_text_and_it_is_taken_off() -> None:
    context = "<session_context>a</session_context>one"
    body = {
        "contents": [
            {"role": "user", "parts": [{"text": context}]},
            {"role": "model", "parts": [{"functionCall": {"name": "ls", "args": {}}}]},
            {"role": "user", "parts": [{"functionResponse": {"name": "ls", "response": {"output": "x"}}}]},
        ]
    }
    history, _ = views.gemini(body)
    assert history.users == ("one",)
    assert history.last_results == ('{"output": "x"}',)
