"""The words of replies: short ids that tell apart, human times, and selecting by any unique beginning."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.commands import text
from agents_registry.errors import NotFoundError, UsageError
from transports.human import ago, duration, short_ids, shorten, width

ROWS: list[dict[str, Any]] = [
    {"id": "01997d41-aaaa", "title": "Fix the parser", "updated_at": 940.0},
    {"id": "01997d41-bbbb", "title": "Write docs", "updated_at": 10.0, "live": True},
    {"id": "77", "title": None, "updated_at": 0},
]


def test_sessions_are_listed_with_ids_that_tell_them_apart_titles_and_human_times() -> None:
    listed = text.session_list(ROWS, "01997d41-bbbb", 1000.0)
    assert "- 01997d41-a  Fix the parser  1 min ago" in listed
    assert "* 01997d41-b  Write docs  16 min ago  live" in listed
    assert "- 77  untitled  never" in listed


@pytest.mark.parametrize("wanted", ["01997d41-aaaa", "01997d41-a", "fix the parser", " 01997D41-A "])
def test_a_session_is_selected_by_id_unique_beginning_or_title(wanted: str) -> None:
    found = text.select_session(ROWS, wanted)
    assert found is ROWS[0]


def test_an_ambiguous_beginning_lists_the_candidates() -> None:
    with pytest.raises(UsageError) as caught:
        text.select_session(ROWS, "0199")
    assert "01997d41-a Fix the parser" in str(caught.value)
    assert "01997d41-b Write docs" in str(caught.value)


def test_an_id_that_the_list_does_not_have_selects_nothing_and_no_word_asks_which() -> None:
    assert text.select_session(ROWS, "zz") is None
    with pytest.raises(NotFoundError):
        text.select_session(ROWS, " ")


def test_an_exact_id_wins_over_longer_ids_that_begin_with_it() -> None:
    rows = [{"id": "ab", "title": ""}, {"id": "abc", "title": ""}]
    assert text.select(rows, "ab") is rows[0]


def test_our_own_prefix_may_be_left_out() -> None:
    rows = [{"id": "ws_12ab", "name": "one"}, {"id": "ws_34cd", "name": "two"}]
    assert text.select(rows, "34", "workspace", ("name",)) is rows[1]
    assert text.select(rows, "TWO", "workspace", ("name",)) is rows[1]


@given(st.sets(st.text("abc_", min_size=1, max_size=12), min_size=1, max_size=12), st.sampled_from(["", "ws_", "wt_"]))
def test_short_ids_are_beginnings_that_tell_all_ids_apart(ids: set[str], prefix: str) -> None:
    whole = {prefix + one for one in ids}
    shorts = short_ids(whole)
    for one in whole:
        assert one.startswith(shorts[one])
        others = [other for other in whole if other != one and other.startswith(shorts[one])]
        assert not others or shorts[one] == one


def test_help_shows_a_viewer_only_what_a_viewer_may_do() -> None:
    assert "/status" in text.help_text("viewer")
    assert "/pickup" not in text.help_text("viewer")
    assert "/pickup CODE" in text.help_text("member")
    assert "/switch host" in text.help_text("owner")


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "0 s"), (59, "59 s"), (60, "1 min"), (3599, "1 hour"), (3 * 3600, "3 hours"), (50 * 3600, "2 days"), (100 * 86400, "3 months"), (800 * 86400, "2 years")],
)
def test_a_length_of_time_is_told_in_its_largest_unit(seconds: float, words: str) -> None:
    assert duration(seconds) == words


def test_times_are_told_as_seen_from_now() -> None:
    assert ago(1000, 1010) == "just now"
    assert ago(0, 1010) == "never"
    assert ago(2000, 1000) == "in 17 min"


def test_text_is_cut_to_one_line_and_measured_in_columns() -> None:
    assert shorten("a\n b   c", 10) == "a b c"
    assert shorten("abcdefgh", 5) == "abcd…"
    assert (width("abc"), width("日本"), width("e\u0301")) == (3, 4, 1)


def test_lines_behind_a_command_are_not_swallowed_silently() -> None:
    assert text.rest_note("more")
    assert not text.rest_note(" \n")
