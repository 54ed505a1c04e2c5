"""Cutting messages: nothing lost, everything fits, fences closed and opened again."""

from __future__ import annotations

import re
from functools import partial

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from transports.im.content import Content, Part, Unit, length, markdown
from transports.im.split import split

LINES = ["word", "two words", "", "```", "~~~", "- item", "**bold", "😀👩‍💻🇯🇵", "好好好，好。", "a" * 90, "    four", "> quote", "`x`"]


def fits(content: Content, room: int, unit: Unit) -> bool:
    return length(content.plain(), unit) <= room


def cut(content: Content, room: int, unit: Unit = "codepoints") -> list[Content]:
    return split(content, partial(fits, room=room, unit=unit), room=room, unit=unit)


def signs(text: str) -> str:
    """What must not be lost: all but blanks and fences."""
    return re.sub(r"[\s`~]", "", text)


texts = st.one_of(
    st.lists(st.sampled_from(LINES), max_size=60).map("\n".join),
    st.text(st.sampled_from([*"ab`~\n 😀好.🇯🇵́", "\u200d"]), max_size=400),
)


@pytest.mark.requires("S1.splitting")
@given(texts, st.integers(40, 200), st.sampled_from(["codepoints", "utf16", "utf8"]))
@example("x" * 41, 40, "codepoints")
@example("```\n" + "y" * 100, 40, "utf8")
@example("```\n```\n" * 30, 40, "codepoints")
def test_every_piece_fits_and_nothing_is_lost(text: str, room: int, unit: Unit) -> None:
    pieces = cut(markdown(text), room, unit)
    assert all(fits(piece, room, unit) for piece in pieces)
    assert signs("".join(piece.plain() for piece in pieces)) == signs(text)
    if text.strip():
        assert all(piece for piece in pieces)


kinds = st.sampled_from(["markdown", "plain", "code", "diff", "folded", "status"])


@given(st.lists(st.builds(Part, kinds, texts), max_size=5), st.integers(60, 200))
def test_parts_of_all_kinds_are_cut_without_loss(parts: list[Part], room: int) -> None:
    content = Content(tuple(parts))
    pieces = cut(content, room)
    wanted = "".join(signs(part.text) for part in parts if part.text.strip())
    shown = "".join(signs(part.text) for piece in pieces for part in piece.parts)
    assert shown == wanted
    assert all(fits(piece, room, "codepoints") for piece in pieces)


@pytest.mark.requires("S1.splitting")
@pytest.mark.parametrize("fence", ["```python", "~~~~ sh", "  ```"])
def test_a_cut_fence_is_closed_and_opened_again_with_its_language(fence: str) -> None:
    marks = re.search(r"[`~]+", fence)
    assert marks is not None
    text = "before\n\n" + fence + "\n" + "\n".join(f"line {n}" for n in range(40)) + "\n" + marks[0] + "\n\nafter"
    pieces = [piece.plain() for piece in cut(markdown(text), 120)]
    assert len(pieces) > 2
    for piece in pieces:
        fences = [line for line in piece.split("\n") if line.strip().startswith(marks[0])]
        assert len(fences) % 2 == 0
        assert all(line.replace(" ", "") == fence.replace(" ", "") for line in fences[::2])
    lines = [line for piece in pieces for line in piece.split("\n") if line.startswith("line")]
    assert lines == [f"line {n}" for n in range(40)]


def test_a_message_is_cut_between_paragraphs_where_there_are_any() -> None:
    paragraphs = [f"{n} " + "word " * 12 for n in range(12)]
    pieces = cut(markdown("\n\n".join(paragraphs)), 200)
    assert all(re.match(r"\d+ word", piece.plain()) for piece in pieces)


def test_a_measure_that_grows_with_rendering_is_obeyed() -> None:
    def twice(content: Content) -> bool:
        return 2 * len(content.plain()) <= 100

    pieces = split(markdown("ab cd " * 50), twice, room=100)
    assert all(twice(piece) for piece in pieces)
    assert signs("".join(piece.plain() for piece in pieces)) == "abcd" * 50


@pytest.mark.requires("S1.splitting")
def test_the_limit_counts_utf16_units_where_the_platform_does() -> None:
    assert len(cut(markdown("😀" * 2048), 4096, "utf16")) == 1
    assert next(piece.plain() for piece in cut(markdown("😀" * 2049), 4096, "utf16")) in ("😀" * n for n in range(1, 2049))


def test_a_flag_and_a_family_are_not_torn() -> None:
    for sign in ("🇯🇵", "👩‍💻", "é", "👍🏽"):
        for piece in cut(markdown(sign * 60), 41):
            assert piece.plain().replace(sign, "") == ""


def test_a_status_line_goes_to_the_next_message_as_a_whole() -> None:
    content = Content((Part("markdown", "w " * 45), Part("status", "claude · 0:42 · 7 tools")))
    assert cut(content, 100)[-1].parts == (Part("status", "claude · 0:42 · 7 tools"),)
