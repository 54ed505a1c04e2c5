"""The text form of routes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents_registry.errors import UsageError
from transports.bus.routes import Route, terminal_route, web_route

part = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=24)  # three such parts fit, each character escaped as twelve


@given(part, part, st.one_of(st.just(""), part))
def test_a_route_is_read_back_from_its_text_whatever_the_platform_calls_its_chats(bot: str, chat: str, topic: str) -> None:
    route = Route("telegram", bot, chat, topic)
    assert Route.parse(route.text) == route
    assert Route.parse(route.address) == route


@given(part, part)
def test_the_text_form_is_plain_ascii_without_spaces_or_slashes(bot: str, chat: str) -> None:
    text = Route("matrix", bot, chat).text
    assert text.isascii()
    assert not any(c in text for c in " /\n\t\"'")
    assert text.count(":") == 2


@given(part, part, part, part)
def test_two_different_routes_have_two_different_texts(a: str, b: str, c: str, d: str) -> None:
    assert (Route("im", a, b).text == Route("im", c, d).text) == ((a, b) == (c, d))
    assert Route("im", a, b, c).text != Route("im", a, b).text


def test_a_matrix_room_keeps_its_colon_behind_an_escape() -> None:
    assert Route("matrix", "@va:example.org", "!room:example.org").text == "matrix:@va%3Aexample.org:!room%3Aexample.org"


def test_another_spelling_of_a_route_is_brought_into_the_canonical_one() -> None:
    assert Route.parse("cli:local:a%2fb").text == "cli:local:a%2Fb"
    assert Route.parse("cli:local:日本").text == terminal_route("日本").text


@pytest.mark.parametrize("text", ["", "cli", "cli:local", "cli::x", "a:b:c:d:e", "CLI:local:x", "cli:local:%4", "cli:local:%ff", "cli:local:"])
def test_text_that_names_no_route_is_refused_with_the_form_to_write(text: str) -> None:
    with pytest.raises(UsageError):
        Route.parse(text)


def test_a_name_that_is_not_valid_text_is_refused() -> None:
    with pytest.raises(UsageError):
        terminal_route("bad\udcff")


def test_a_name_of_unreasonable_length_is_refused() -> None:
    with pytest.raises(UsageError):
        terminal_route("x" * 2000)


def test_terminal_and_web_routes_are_of_this_machine() -> None:
    assert terminal_route("main").text == "cli:local:main"
    assert web_route("wt_1").text == "web:local:wt_1"
