"""What is a command, what is a prompt, what is a mistake."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.commands import Command, Prompt, Unknown, parse, read_code
from actors.commands.parse import nearest_command
from actors.commands.table import COMMANDS
from transports.codes import CODE_LETTERS


@pytest.mark.requires("H6.grammar")
@pytest.mark.parametrize(
    "text",
    [
        "va please fix the tests", "va", "vibearound handover", "/etc/hosts is wrong", "/usr/bin", "/2 is half", "hello /new", "//new",
        "/ new", "/", "", "   ", "/new_thing", "/new-thing", "/new2", "/status, please", "line one\n/new", "/status@bot", "C:/new",
    ],
)
def test_text_that_is_no_command_word_is_a_prompt_unchanged(text: str) -> None:
    assert parse(text) == Prompt(text)


@pytest.mark.requires("H6.prefixes")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/new", Command("new")),
        ("  /new  ", Command("new")),
        ("/New", Command("new")),
        ("/va new", Command("new")),
        ("/vibearound handover", Command("handover")),
        ("/va /status", Command("status")),
        ("/va", Command("help")),
        ("/vibearound", Command("help")),
        ("/commands", Command("help")),
        ("/cancel", Command("stop")),
        ("/pickup K7QM", Command("pickup", "K7QM")),
        ("/pickup k7 qm ", Command("pickup", "k7 qm")),
        ("/workspace", Command("workspace", form="list")),
        ("/workspace list", Command("workspace", form="list")),
        ("/workspace --list", Command("workspace", form="list")),
        ("/workspace --switch ws_12", Command("workspace", "ws_12", "switch")),
        ("/workspace --switch=ws_12", Command("workspace", "ws_12", "switch")),
        ("/workspace /home/me/My Project", Command("workspace", "/home/me/My Project", "switch")),
        ("/switch workspace /home/me/My Project", Command("workspace", "/home/me/My Project", "switch")),
        ("/session 项目 one", Command("session", "项目 one", "switch")),
        ("/agent codex", Command("agent", "codex", "switch")),
        ("/switch host codex", Command("agent", "codex", "switch")),
        ("/switch host codex direct", Command("agent", "codex", "switch", "direct")),
        ("/agent /compact keep the tests", Command("agent", "/compact keep the tests", "pass")),
        ("/agent /review\nthe diff\nbelow", Command("agent", "/review\nthe diff\nbelow", "pass")),
        ("/mode plan", Command("mode", "plan", "switch")),
        ("/mode", Command("mode", form="list")),
        ("/plan", Command("plan")),
        ("/new\nand more", Command("new", rest="and more")),
        ("/status\u3000", Command("status")),
    ],
)
def test_commands_are_read_in_all_their_forms(text: str, expected: Command) -> None:
    assert parse(text) == expected


@pytest.mark.requires("H6.unknown")
@pytest.mark.parametrize(
    ("text", "nearest"),
    [("/statsu", "status"), ("/pikcup", "pickup"), ("/hand", "handover"), ("/ses", "session"), ("/xyzzy", ""), ("/va stauts", "status")],
)
def test_an_unknown_command_gets_the_nearest_match(text: str, nearest: str) -> None:
    found = parse(text)
    assert isinstance(found, Unknown)
    assert found.nearest == nearest
    assert (f"/{nearest}" if nearest else "/help") in found.reply


def test_an_unknown_command_says_how_to_reach_the_agents_own() -> None:
    found = parse("/compact")
    assert isinstance(found, Unknown)
    assert "/agent /compact" in found.reply


@pytest.mark.parametrize("text", ["/pickup", "/switch", "/switch claude", "/switch host", "/switch host a b c", "/workspace --switch", "/agent /", "/agent --frob", "/session --switch= "])
def test_a_command_used_wrongly_is_answered_with_how_to_use_it(text: str) -> None:
    found = parse(text)
    assert isinstance(found, Unknown)
    assert found.reply
    assert found.word in COMMANDS


@given(st.text())
def test_every_text_is_read_as_something_and_a_prompt_is_never_changed(text: str) -> None:
    found = parse(text)
    if isinstance(found, Prompt):
        assert found.text == text
    else:
        assert text.strip().startswith("/")


@given(st.text(st.characters(exclude_categories=["Zs", "Cc", "Zl", "Zp"]), min_size=1), st.sampled_from(["workspace", "session", "profile"]))
def test_an_argument_is_the_rest_of_the_line_whichever_form_is_used(arg: str, name: str) -> None:
    arg = arg.strip()
    if not arg or arg.casefold() in ("list", "--list", "-l", "-s") or arg.startswith("-"):
        return
    assert parse(f"/{name} {arg}") == parse(f"/{name} --switch {arg}") == parse(f"/va {name} {arg}") == Command(name, arg, "switch")


@given(st.text(alphabet=CODE_LETTERS, min_size=4, max_size=4), st.sampled_from(["{}", " {} ", "/pickup {}", "/va pickup {}", "`{}`", "*{}*", "pickup {}.", "/PICKUP  {}"]), st.booleans())
def test_a_code_is_read_in_any_case_with_spaces_and_as_pasted(code: str, shape: str, lower: bool) -> None:
    typed = shape.format(code.lower() if lower else f"{code[:2]} {code[2:]}")
    assert read_code(typed).code == code


@pytest.mark.parametrize("typed", ["K7Q0", "KO7Q", "k1qm", "KIQM"])
def test_letters_that_are_never_in_a_code_are_named(typed: str) -> None:
    found = read_code(typed)
    assert not found.code
    assert "alike" in found.problem


@pytest.mark.parametrize("typed", ["", "ABC", "ABCDE", "AB€D", "/pickup"])
def test_what_cannot_be_a_code_says_why(typed: str) -> None:
    found = read_code(typed)
    assert not found.code
    assert found.problem


def test_a_code_from_a_full_width_keyboard_is_read() -> None:
    assert read_code("ｋ７ｑｍ").code == "K7QM"


def test_the_nearest_command_is_none_for_a_word_far_from_all() -> None:
    assert nearest_command("compact") == ""
