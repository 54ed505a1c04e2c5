"""One table of a TOML text changes, every other byte stays."""

from __future__ import annotations

import tomllib

import pytest

from agents_registry.integrate.toml_text import TomlTextError, get_table, remove_table, set_table

PATH = ("mcp_servers", "vibearound")
VALUE = {"command": '/a "b"', "args": ["-I", "x\\y", "ü"], "default_tools_approval_mode": "approve"}

TEXTS = {
    "empty": "",
    "only keys": 'model = "x"   # mine\n',
    "no newline at the end": 'model = "x"',
    "other servers": '[mcp_servers.other]\ncommand = "o"\n\n[mcp_servers.other.env]\nA = "1"\n\n[projects."/a b"]\ntrust_level = "trusted"\n',
    "inline table": 'mcp_servers = { other = { command = "o" } }\nmodel = "x"\n',
    "dotted keys": 'mcp_servers.other.command = "o"\n[tui]\nx = 1\n',
    "windows line ends": 'model = "x"\r\n\r\n[tui]\r\nx = 1\r\n',
    "a header inside a text": 'note = """\n[mcp_servers.vibearound]\n"""\n[tui]\nx = 1\n',
    "arrays of tables": "[[hooks]]\na = 1\n\n[[hooks]]\na = 2\n",
    "blank lines and comments at the end": 'a = 1\n\n# the end\n\n\n',
}


def without(text: str) -> dict[str, object]:
    parsed = tomllib.loads(text)
    servers = {name: value for name, value in parsed.get("mcp_servers", {}).items() if name != "vibearound"}
    return {key: servers if key == "mcp_servers" else value for key, value in parsed.items() if key != "mcp_servers" or servers}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
def test_the_table_is_added_and_every_byte_of_before_is_still_there(text: str) -> None:
    after = set_table(text, PATH, VALUE)
    assert get_table(after, PATH) == VALUE
    assert without(after) == without(text)
    if "mcp_servers = {" not in text:
        assert after.startswith(text)
    assert set_table(after, PATH, VALUE) == after
    assert "\r\n" not in text or "\n" not in after.replace("\r\n", "")


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
def test_taking_the_table_out_says_what_was_said_before(text: str) -> None:
    after = remove_table(set_table(text, PATH, VALUE), PATH)
    assert tomllib.loads(after) == tomllib.loads(text)
    assert [line for line in after.splitlines() if "#" in line] == [line for line in text.splitlines() if "#" in line]


def test_only_our_table_and_its_parts_are_cut_out_of_the_middle() -> None:
    text = (
        '# head\n[mcp_servers.a]\ncommand = "a"\n\n[mcp_servers.vibearound]\ncommand = "v"\nargs = [\n  "[x]",\n]\n\n'
        '[mcp_servers.vibearound.env]\nA = "1"\n\n# about b\n[mcp_servers.b]\ncommand = "b"\n'
    )
    after = remove_table(text, PATH)
    assert after == '# head\n[mcp_servers.a]\ncommand = "a"\n\n\n# about b\n[mcp_servers.b]\ncommand = "b"\n'


def test_a_table_in_quotes_and_an_inline_entry_are_found_too() -> None:
    assert tomllib.loads(remove_table('[mcp_servers."vibearound"]\ncommand = "v"\n[x]\ny = 1\n', PATH)) == {"x": {"y": 1}}
    assert tomllib.loads(remove_table('[mcp_servers]\nvibearound = { command = "v" }\na = { command = "a" }\n', PATH)) == {
        "mcp_servers": {"a": {"command": "a"}}
    }


@pytest.mark.parametrize("text", ["a = ", "[x\n", "mcp_servers = 3\n", 'a = 1\na = 2\n'])
def test_what_is_no_toml_or_has_no_place_for_the_table_is_refused(text: str) -> None:
    with pytest.raises(TomlTextError):
        set_table(text, PATH, VALUE)
