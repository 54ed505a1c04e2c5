"""One member of a JSON text changes, every other byte stays: with comments, trailing commas, any layout."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents_registry.integrate.json_text import JsonTextError, get_member, remove_member, set_member, strip_comments

PATH = ("mcpServers", "vibearound")
VALUE = {"command": "/py thon", "args": ["-I", "ü"]}

TEXTS = {
    "two spaces": '{\n  "a": 1,\n  "mcpServers": {\n    "other": {"command": "x"}\n  },\n  "b": [1, 2]\n}\n',
    "tabs, no servers": '{\n\t"a": 1\n}\n',
    "four spaces, empty servers": '{\n    "mcpServers": {},\n    "z": null\n}',
    "one line": '{"a":1,"mcpServers":{"o":{"command":"x"}}}',
    "one line, empty": "{}",
    "windows line ends": '{\r\n  "a": 1,\r\n  "mcpServers": {\r\n    "o": {}\r\n  }\r\n}\r\n',
    "comments": '// head\n{\n  // servers\n  "mcpServers": {\n    "o": {"u": "http://x//y"} // the other\n    /* end */\n  }\n  // tail\n}\n// foot\n',
    "trailing commas": '{\n  "mcpServers": {\n    "o": {"command": "x",},\n  },\n}\n',
    "a name in quotes of a name": '{\n  "\\"mcpServers\\"": {"vibearound": 1},\n  "c": "} // no comment"\n}\n',
    "deep brackets": '{"a": [[{"b": "]"}], {}], "c": {"d": {"e": []}}}',
    "empty object over lines": "{\n}\n",
    "byte order mark": '\ufeff{\n  "a": 1\n}\n',
}


def plain(text: str) -> Any:
    return json.loads(strip_comments(text))


def is_subsequence(part: str, whole: str) -> bool:
    rest = iter(whole)
    return all(sign in rest for sign in part)


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
def test_the_entry_is_added_and_nothing_else_changes(text: str) -> None:
    before = plain(text)
    after = set_member(text, PATH, VALUE)
    expected = {**before, "mcpServers": {**before.get("mcpServers", {}), "vibearound": VALUE}}
    assert plain(after) == expected
    assert list(plain(after)) == list(expected)
    assert is_subsequence(text, after), after
    assert get_member(after, PATH) == VALUE
    assert set_member(after, PATH, VALUE) == after
    assert ("\r\n" in after) == ("\r\n" in text)
    assert "\r\n" not in text or "\n" not in after.replace("\r\n", "")


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
def test_taking_the_entry_out_gives_back_what_was_said_before(text: str) -> None:
    after = remove_member(set_member(text, PATH, VALUE), PATH)
    before = plain(text)
    if before.get("mcpServers") == {}:
        del before["mcpServers"]
    assert plain(after) == before
    assert [line.strip() for line in after.splitlines() if "//" in line] == [line.strip() for line in text.splitlines() if "//" in line]


@pytest.mark.parametrize("where", ["first", "middle", "last", "alone"])
@pytest.mark.parametrize("comma", ["", ","])
def test_an_entry_is_taken_out_wherever_it_stands(where: str, comma: str) -> None:
    ours, others = '    "vibearound": {"command": "x"}', ['    "a": 1', '    "b": {"c": 2}']
    lines = {"first": [ours, *others], "middle": [others[0], ours, others[1]], "last": [*others, ours], "alone": [ours]}[where]
    text = '{\n  "mcpServers": {\n' + ",\n".join(lines) + comma + '\n  },\n  "z": 0\n}\n'
    left = {} if where == "alone" else {"mcpServers": {"a": 1, "b": {"c": 2}}}
    assert plain(remove_member(text, PATH)) == {**left, "z": 0}


def test_an_existing_entry_is_exchanged_in_its_place() -> None:
    text = '{"mcpServers": {"vibearound": {"command": "old"}, "b": 1}}'
    after = set_member(text, PATH, VALUE)
    assert list(plain(after)["mcpServers"]) == ["vibearound", "b"]
    assert plain(after)["mcpServers"]["vibearound"] == VALUE


def test_an_empty_file_becomes_an_object() -> None:
    assert json.loads(set_member(" \n", PATH, VALUE)) == {"mcpServers": {"vibearound": VALUE}}


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("[1]", 1),
        ('{\n"a": 1\n"b": 2}', 3),
        ('{"a": 1} x', 1),
        ('{\n\n"a": tru}', 3),
        ('{"a": "x', 1),
        ("{'a': 1}", 1),
        ('{"a": /* 1}', 1),
        ('{"a" 1}', 1),
        ('{"a": 1,, "b": 2}', 1),
        ('{"a": [1 2]}', 1),
        ('{"mcpServers": []}', 1),
        ('{"a": ' + "[" * 500 + "]" * 500 + "}", 1),
    ],
)
def test_what_is_no_json_object_is_refused_with_its_line(text: str, line: int) -> None:
    with pytest.raises(JsonTextError, match=f"^line {line}: "):
        set_member(text, PATH, VALUE)


KEYS = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=6)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | KEYS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=150, deadline=None)
@given(
    document=st.dictionaries(KEYS, VALUES, max_size=4),
    servers=st.none() | st.dictionaries(KEYS.filter(lambda key: key != "vibearound"), VALUES, max_size=3),
    indent=st.sampled_from([None, 1, 2, 4, "\t"]),
)
def test_for_any_document_adding_and_removing_is_the_same_document(document: dict[str, Any], servers: dict[str, Any] | None, indent: Any) -> None:
    if servers is not None:
        document = {**document, "mcpServers": servers}
    elif "mcpServers" in document:
        del document["mcpServers"]
    text = json.dumps(document, indent=indent, ensure_ascii=False)
    after = set_member(text, PATH, VALUE)
    assert json.loads(after) == {**document, "mcpServers": {**(servers or {}), "vibearound": VALUE}}
    assert is_subsequence(text, after)
    back = remove_member(after, PATH)
    assert json.loads(back) == ({key: value for key, value in document.items() if key != "mcpServers"} if not servers else document)
    if servers:
        assert back == text
