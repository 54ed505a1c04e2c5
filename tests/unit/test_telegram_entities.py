"""Markdown becomes text and entities that a strict Telegram takes, whatever the agent wrote; nothing of it is lost."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("markdown_it")

from tests.fakes.telegram_rules import cut, entities_of, rich_of, text_of, units
from transports.im.content import Content, Outgoing, Part, markdown
from transports.im.split import split
from transports.im.telegram import entities, rich

_SIGNS = ["a", "b c", "😀", "👩‍💻", "项目", "*", "**", "_", "~~", "`", "``", "\n", "\n\n", "- ", "1. ", "> ", "# ", "[x](http://y.z)", "[", "](", ")",
          "|", "|-|-|\n", "```py\n", "```\n", "    ", "\\", "<b>", "&amp;", "![i](u)", "---\n", "\ud83d", "\x00", "\t", "\r\n", " "]  # fmt: skip
_markdown = st.lists(st.sampled_from(_SIGNS), max_size=120).map("".join)
_kinds = st.sampled_from(["markdown", "plain", "code", "diff", "folded", "status"])
_parts = st.lists(st.builds(Part, _kinds, _markdown, st.sampled_from(["", "Title", "😀"])), min_size=1, max_size=4)


def _shown(source: str) -> dict[str, list[str]]:
    """Entity type → the pieces that it covers."""
    text, found = entities.render(Outgoing(markdown(source)))
    pieces: dict[str, list[str]] = {}
    for entity in found:
        pieces.setdefault(entity["type"], []).append(cut(text, entity["offset"], entity["length"]))
    return pieces


@given(_parts)
@pytest.mark.requires("S2.entities")
def test_whatever_is_rendered_a_strict_telegram_takes_as_it_is(parts: list[Part]) -> None:
    outgoing = Outgoing(Content(tuple(parts)))
    text, found = entities.render(outgoing)
    kept, moved = text_of(text, 10**6, may_be_empty=True)
    assert (kept, moved) == (text, 0), "already trimmed as Telegram trims"
    for start in range(0, len(found), 100):
        entities_of(found[start : start + 100], text, 0)
    assert units(text) == entities.units(text)


@given(_markdown)
@pytest.mark.requires("S2.entities")
def test_no_word_of_an_answer_is_lost_in_rendering(source: str) -> None:
    text, _ = entities.render(Outgoing(markdown(source)))
    for sign in ("a", "b", "c", "😀", "项", "💻"):
        told = source.replace("&amp;", "").replace("<b>", "").count(sign)
        if "```" not in source:  # the first line of a fence is its language
            assert text.count(sign) >= told, (sign, source, text)


@given(st.lists(st.sampled_from([*_SIGNS, "word " * 40, "x" * 300, "😀" * 200, "[l](http://a.b) " * 9]), min_size=20, max_size=120).map("".join))
@pytest.mark.requires("S2.splitting")
def test_a_long_answer_is_cut_into_messages_that_telegram_takes(source: str) -> None:
    pieces = split(markdown(source), lambda c: entities.fits(Outgoing(c)), room=4096, unit="utf16")
    for piece in pieces:
        text, found = entities.render(Outgoing(piece))
        kept, _ = text_of(text, 4096, may_be_empty=True)
        entities_of(found, kept, 0)


@given(_parts)
@pytest.mark.requires("S2.rich")
def test_rich_blocks_are_such_as_telegram_takes(parts: list[Part]) -> None:
    blocks = rich.blocks_of(Content(tuple(parts)))
    if blocks is not None:
        rich_of({"blocks": blocks}, draft=True)


def test_entities_are_counted_in_utf16_units() -> None:
    text, found = entities.render(Outgoing(markdown("😀 **fett** 👩‍💻 `code`")))
    assert text == "😀 fett 👩‍💻 code"
    assert [(e["type"], e["offset"], e["length"]) for e in found] == [("bold", 3, 4), ("code", 14, 4)]


@pytest.mark.parametrize(
    ("source", "kind", "piece"),
    [
        ("**b**", "bold", "b"), ("*i*", "italic", "i"), ("~~s~~", "strikethrough", "s"), ("`c`", "code", "c"),
        ("# Title", "bold", "Title"), ("> said", "blockquote", "said"), ("[l](https://x.y)", "text_link", "l"),
        ("```py\nx = 1\n```", "pre", "x = 1"), ("    x = 1", "pre", "x = 1"),
    ],
)  # fmt: skip
def test_each_kind_of_markdown_has_its_entity(source: str, kind: str, piece: str) -> None:
    assert piece in [p.strip() for p in _shown(f"before\n\n{source}")[kind]]


def test_code_in_bold_stays_code_and_the_bold_goes_on_behind_it() -> None:
    assert _shown("**run `make` now**") == {"bold": ["run ", " now"], "code": ["make"]}


def test_a_link_to_a_file_of_the_workspace_shows_its_path() -> None:
    text, found = entities.render(Outgoing(markdown("see [the test](tests/test_a.py)")))
    assert (text, found) == ("see the test (tests/test_a.py)", [])


def test_html_in_an_answer_is_text() -> None:
    assert entities.render(Outgoing(markdown("a <b>x</b> <script>"))) == ("a <b>x</b> <script>", [])


def test_literal_parts_are_shown_as_they_are() -> None:
    text, found = entities.render(Outgoing(Content((Part("plain", "**no** _markup_ `here`"),))))
    assert (text, found) == ("**no** _markup_ `here`", [])


def test_tool_calls_fold() -> None:
    text, found = entities.render(Outgoing(Content((Part("folded", "✓ Read a\n✓ Edit b", title="Tool calls (2)"),))))
    assert text == "Tool calls (2)\n✓ Read a\n✓ Edit b"
    assert found[0] == {"type": "expandable_blockquote", "offset": 0, "length": len(text)}


def test_a_narrow_table_is_fixed_text_and_a_wide_one_is_told_row_by_row() -> None:
    assert _shown("|a|b|\n|-|-|\n|1|22|")["pre"] == ["a │ b\n──┼───\n1 │ 22"]
    text, _ = entities.render(Outgoing(markdown("|Name|What it does|Where it stands|\n|-|-|-|\n|run|starts it all|main.py of the package|")))
    assert text == "run\n  What it does: starts it all\n  Where it stands: main.py of the package"


def test_a_first_line_of_code_keeps_its_indentation() -> None:
    text, found = entities.render(Outgoing(Content((Part("code", "    return x", language="py"),))))
    assert text == "…\n    return x"
    assert cut(text, found[0]["offset"], found[0]["length"]) == "    return x"


def test_the_last_resort_is_the_plain_text_without_entities() -> None:
    assert entities.render(Outgoing(markdown("**b** \ud83d"), plain=True)) == ("**b** ?", [])


def test_two_hundred_links_are_too_many_for_one_message() -> None:
    source = " ".join(f"[{n}](http://x.y/{n})" for n in range(200))
    assert not entities.fits(Outgoing(markdown(source)))
    pieces = split(markdown(source), lambda c: entities.fits(Outgoing(c)), room=4096, unit="utf16")
    numbers = [n for piece in pieces for n in re.findall(r"\d+", entities.render(Outgoing(piece))[0])]
    assert numbers == [str(n) for n in range(200)]


def test_a_table_is_worth_a_rich_message_and_prose_is_not() -> None:
    assert rich.worth_it(markdown("|a|b|\n|-|-|\n|1|2|"))
    assert not rich.worth_it(markdown("# Title\n\n- a | b"))
    (table,) = rich.blocks_of(markdown("|a|b|\n|-|-:|\n|**1**|`2`|")) or []
    assert table["cells"][1] == [
        {"text": {"type": "bold", "text": "1"}, "align": "left", "valign": "top"},
        {"text": {"type": "code", "text": "2"}, "align": "right", "valign": "top"},
    ]
