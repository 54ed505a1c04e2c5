"""ACP updates as neutral events, in the forms that the adapters really send."""

from __future__ import annotations

from typing import Any

import pytest

from transports.acp import updates
from transports.acp.permission import choose, parse
from transports.acp.sessions import opened


@pytest.mark.parametrize(
    ("raw", "event"),
    [
        ({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "hi"}}, updates.Text("hi")),
        ({"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": "hm"}}, updates.Thought("hm")),
        ({"sessionUpdate": "user_message_chunk", "content": {"type": "text", "text": "q"}}, updates.UserEcho("q")),
        ({"sessionUpdate": "plan", "entries": [{"content": "x"}]}, updates.Plan([{"content": "x"}])),
        ({"sessionUpdate": "current_mode_update", "currentModeId": "plan"}, updates.Mode("plan")),
        ({"sessionUpdate": "session_info_update", "title": "T", "_meta": {}}, updates.Title("T")),
        ({"sessionUpdate": "usage_update", "used": 5, "size": 9}, updates.Usage({"used": 5, "size": 9})),
        ({"sessionUpdate": "current_mode_update"}, updates.Other("current_mode_update", {"sessionUpdate": "current_mode_update"})),
        ({"sessionUpdate": "agent_message_chunk", "content": "bare"}, updates.Other("agent_message_chunk", {"sessionUpdate": "agent_message_chunk", "content": "bare"})),
        ({"sessionUpdate": 7}, updates.Other("", {"sessionUpdate": 7})),
    ],
)  # fmt: skip
def test_each_kind_becomes_its_neutral_event_and_malformed_ones_stay_whole(raw: dict[str, Any], event: updates.Event) -> None:
    assert updates.neutral(raw) == event


def test_codex_shell_output_is_read_from_its_meta() -> None:
    raw = {
        "sessionUpdate": "tool_call_update",
        "toolCallId": "c",
        "_meta": {"terminal_output_delta": {"data": "line\n"}, "terminal_exit": {"exit_code": 3}},
    }
    event = updates.neutral(raw)
    assert isinstance(event, updates.Tool)
    assert (event.output_delta, event.exit_code, event.status) == ("line\n", 3, None)


@pytest.mark.parametrize(
    ("ids", "wanted", "chosen"),
    [
        ({"allow": "allow_once", "reject": "reject_once"}, "allow_once", "allow"),
        ({"proceed_always": "allow_always", "proceed_once": "allow_once", "cancel": "reject_once"}, "reject_once", "cancel"),
        ({"once": "allow_once"}, "reject_once", None),
    ],
)
def test_an_option_is_chosen_by_kind_whatever_its_id(ids: dict[str, str], wanted: str, chosen: str | None) -> None:
    options = [{"optionId": i, "name": i, "kind": k} for i, k in ids.items()]
    option = choose(parse(1, {"sessionId": "s", "options": [*options, {"kind": "no id"}, 5]}), wanted)
    assert (option.id if option else None) == chosen


def test_grouped_configuration_options_give_their_modes() -> None:
    option = {
        "id": "mode",
        "currentValue": "build",
        "options": [{"group": "g", "options": [{"value": "build", "name": "Build"}, {"value": "plan"}]}],
    }
    found = opened({"sessionId": "s", "configOptions": [option]}, asked="", start="new", replayed=0)
    assert (found.modes, found.mode, found.mode_option) == ((("build", "Build"), ("plan", "plan")), "build", "mode")
