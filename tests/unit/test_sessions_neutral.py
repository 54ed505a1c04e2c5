"""The neutral form keeps its shape, can always be encoded, and survives its own exports."""

from __future__ import annotations

import json
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents_registry.errors import UsageError
from agents_registry.sessions.html import to_html
from agents_registry.sessions.markdown import to_markdown
from agents_registry.sessions.neutral import (
    AGENT,
    USER,
    Builder,
    Conversation,
    FileRef,
    ImageRef,
    Text,
    ToolCall,
    clip,
    clipped_results,
    flat_text,
)
from agents_registry.sessions.schema import VERSION, from_json, to_json
from agents_registry.sessions.vocabulary import Tool, classify, command_of, todo_items, touched_paths


def sample() -> Conversation:
    made = Builder("claude", "id")
    made.cwd, made.model = "/w", "opus"
    made.compact("before", line=3, at=5.0)
    made.user([Text("please", 1, 10.0), ImageRef("image/png", "/a.png", 5, 1, 10.0)], line=1, at=10.0)
    made.thinking("hm", line=2)
    made.text("ok", line=3, at=11.5)
    made.call("c", "Bash", {"command": "ls", "n": [1, None, {"x": True}]}, line=4)
    made.result("c", "out", is_error=True, line=5)
    made.attach(FileRef("/f.txt", "text/plain", 6))
    made.user("next", line=7)
    done = made.done()
    done.title, done.branch, done.unknown = "T", "main", {"odd": 2}
    return done


def test_turns_alternate_and_everything_the_agent_did_is_one_turn() -> None:
    assert [turn.role for turn in sample().turns] == [USER, AGENT, USER]
    assert [len(one) for one in sample().rounds()] == [2, 1]


def test_the_json_export_reads_back_the_same() -> None:
    conversation = sample()
    assert from_json(to_json(conversation)) == conversation
    assert json.loads(to_json(conversation))["version"] == VERSION


text = st.text(alphabet=st.characters(), max_size=40)


@given(st.lists(st.tuples(st.sampled_from(["user", "text", "thinking", "call", "result"]), text), max_size=12))
def test_any_conversation_can_be_exported_in_every_form_and_read_back(steps: list[tuple[str, str]]) -> None:
    made = Builder("claude", "id")
    for kind, words in steps:
        if kind == "user":
            made.user(words)
        elif kind == "text":
            made.text(words)
        elif kind == "thinking":
            made.thinking(words)
        elif kind == "call":
            made.call(words, words, {"a": words, words: float("nan")})
        else:
            made.result(words, words)
    done = made.done()
    assert from_json(to_json(done)) == done
    for form in (to_json, to_markdown, to_html):
        form(done).encode("utf-8")


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ("{", "no JSON"),
        ("[]", "no exported conversation"),
        ('{"schema":"other"}', "no exported conversation"),
        ('{"schema":"vibearound.conversation","version":99}', "version 99"),
        ('{"schema":"vibearound.conversation","version":1}', "damaged"),
        ('{"schema":"vibearound.conversation","version":1,"agent":"a","id":"b","turns":[{"role":"x","blocks":[]}]}', "damaged"),
    ],
)
def test_what_is_no_export_is_refused_with_the_reason(document: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        from_json(document)


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        assert not any(name.startswith("on") for name, _ in attrs)


def test_the_html_page_holds_no_markup_of_the_conversation_and_loads_nothing() -> None:
    made = Builder("claude", "<img src=x onerror=alert(1)>")
    made.user("<script>alert(1)</script>")
    made.call("c", "<b>", {"x": "</pre><script>"})
    made.result("c", "</details><iframe src=//evil>")
    page = to_html(made.done())
    tags = _Tags()
    tags.feed(page)
    assert not tags.tags & {"script", "iframe", "img", "b", "link"}
    assert "default-src 'none'" in page


def test_markdown_fences_are_longer_than_what_they_hold() -> None:
    made = Builder("claude", "id")
    made.user("go")
    made.call("c", "Bash", {"command": "x"})
    made.result("c", "```\ncode\n````\nmore")
    assert "`````\n```\ncode\n````\nmore\n`````" in to_markdown(made.done())


def test_lone_surrogates_are_replaced_wherever_they_stand() -> None:
    made = Builder("claude", "id")
    made.user("a\ud83d")
    made.text("b\udc00")
    made.call("c\ud83d", "n\ud83d", {"k\ud83d": ["v\ud83d"]})
    made.result("c\ud83d", "r\ud83d")
    made.done()
    to_json(made.conversation).encode("utf-8")
    assert made.conversation.turns[0].text == "a\ufffd"


def test_nesting_beyond_reason_is_named_and_not_carried() -> None:
    bomb: dict[str, object] = {}
    for _ in range(900):
        bomb = {"a": bomb}
    made = Builder("claude", "id")
    made.call("c", "x", bomb)
    assert "nested too deeply" in to_json(made.done())


@given(st.text(max_size=300), st.integers(min_value=1, max_value=100))
def test_clipping_keeps_both_ends_and_counts_what_is_gone(words: str, limit: int) -> None:
    kept, omitted = clip(words, limit)
    if len(words) <= limit:
        assert (kept, omitted) == (words, 0)
    else:
        assert omitted == len(words) - limit
        assert kept.startswith(words[: limit * 2 // 3])
        assert kept.endswith(words[-(limit - limit * 2 // 3) :])


def test_builders_clip_only_while_asked() -> None:
    with clipped_results(30):
        made = Builder("claude", "id")
    made.result("c", "x" * 1000)
    made.call("c", "Write", {"content": "y" * 1000})
    (result,) = made.done().results().values()
    assert result.omitted == 970
    assert len(next(made.conversation.calls()).input["content"]) < 100
    whole = Builder("claude", "id")
    whole.result("c", "x" * 1000)
    assert next(iter(whole.done().results().values())).omitted == 0


@pytest.mark.parametrize(
    ("agent", "name", "tool"),
    [
        ("claude", "Bash", Tool.SHELL),
        ("claude", "Edit", Tool.EDIT),
        ("claude", "mcp__x__y", Tool.MCP),
        ("claude", "Task", Tool.TASK),
        ("claude", "SomethingNew", Tool.OTHER),
        ("codex", "exec_command", Tool.SHELL),
        ("codex", "apply_patch", Tool.EDIT),
        ("codex", "update_plan", Tool.TODO),
        ("gemini", "replace", Tool.EDIT),
        ("gemini", "run_shell_command", Tool.SHELL),
        ("opencode", "webfetch", Tool.FETCH),
        ("kimi", "ReadFile", Tool.READ),
    ],
)
def test_tools_of_all_agents_have_a_kind(agent: str, name: str, tool: Tool) -> None:
    assert classify(agent, name) is tool


def test_paths_commands_and_todos_are_found_in_any_agents_arguments() -> None:
    patch = "*** Begin Patch\n*** Update File: a.py\n*** Move to: b.py\n*** Add File: c.py\n*** End Patch"
    assert touched_paths(Tool.EDIT, {"input": patch}) == ["a.py", "b.py", "c.py"]
    assert touched_paths(Tool.READ, {"absolute_path": "/x"}) == ["/x"]
    assert touched_paths(Tool.SHELL, {"path": "/x"}) == []
    assert command_of({"command": ["bash", "-lc", "ls -l"]}) == "ls -l"
    assert command_of({"cmd": "pwd"}) == "pwd"
    assert list(todo_items({"plan": [{"step": "one", "status": "completed"}, {"step": "two"}, 3]})) == [("one", "completed"), ("two", "pending")]


def test_text_is_found_in_any_shape_of_content() -> None:
    assert flat_text([{"type": "text", "text": "a"}, {"type": "image"}, "b", None, {"content": [{"text": "c"}]}]) == "a\n[image]\nb\nc"
    deep: object = "x"
    for _ in range(2000):
        deep = [deep]
    assert flat_text(deep) == "[nested data]"


def test_a_call_keeps_what_it_was() -> None:
    call = ToolCall.of("codex", "c", "shell", '{"command":["ls"]}')
    assert call.input == {"command": ["ls"]}
    assert ToolCall.of("codex", "c", "shell", "not json").input == {"raw": "not json"}
    assert ToolCall.of("codex", "c", "shell", None).input == {}
