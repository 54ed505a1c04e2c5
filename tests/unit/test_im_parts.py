"""The small parts of the kit: what a turn folds into, words, options, definitions, kinds."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.commands.table import COMMANDS
from agents_registry.errors import NotFoundError, RefusedError, UsageError
from transports.im import definitions, infiles, kinds, menu, outfiles, words
from transports.im.content import Outgoing, length
from transports.im.live import LiveTurn
from transports.im.options import all_options, whole
from transports.im.platform import Capability, Option, Platform
from transports.im.questions import MAX_DETAIL, Questions, details
from transports.im.record import RouteRecord


def turn(**more: object) -> LiveTurn:
    return LiveTurn("k", 0.0, **more)  # type: ignore[arg-type]


@given(st.text(min_size=1, max_size=60), st.data())
def test_pieces_in_any_overlap_give_the_text_and_the_finished_block_has_the_last_word(text: str, data: st.DataObject) -> None:
    live = turn()
    at = 0
    while at < len(text):
        end = data.draw(st.integers(at + 1, len(text)))
        start = data.draw(st.integers(0, at))
        live.take({"event": "text", "final": False, "text": text[start:end], "offset": start, "block": 1}, "r")
        at = end
        assert live.texts["text1"] == text[:at]
    live.take({"event": "text", "final": True, "text": "whole", "block": 1}, "r")
    live.take({"event": "text", "final": False, "text": "late", "offset": 0, "block": 1}, "r")
    assert live.texts == {"text1": "whole"}


def test_a_missing_piece_leaves_what_was_there() -> None:
    live = turn()
    live.take({"event": "text", "final": False, "text": "abc", "offset": 0, "block": 1}, "r")
    live.take({"event": "text", "final": False, "text": "xyz", "offset": 9, "block": 1}, "r")
    assert live.texts == {"text1": "abc"}


def test_every_text_of_a_turn_stands_in_its_answer_in_order() -> None:
    live = turn()
    for block, text in enumerate(("First look.", "Then this.", "Done.")):
        live.take({"event": "text", "text": text, "block": block}, "r")
        live.take({"event": "tool", "id": f"t{block}", "title": "x"}, "r")
    live.take({"event": "done", "stop_reason": "end_turn"}, "r")
    assert live.answer(5.0).plain().startswith("First look.\n\nThen this.\n\nDone.")


def test_what_a_turn_dumps_is_what_it_loads() -> None:
    live = turn()
    live.take({"event": "asked", "route": "cli:local:main", "by": "A", "text": "q"}, "r")
    live.take({"event": "text", "text": "one", "block": 1}, "r")
    live.take({"event": "tool", "id": "t", "title": "x", "status": "completed"}, "r")
    again = turn()
    again.load(live.dump())
    assert again.answer(3.0) == live.answer(3.0)


def test_a_live_message_shows_the_newest_text_and_opens_a_cut_fence() -> None:
    live = turn(agent="claude")
    live.take({"event": "text", "text": "```py\n" + "x = 1\n" * 500, "block": 1}, "r")
    shown = live.live(42.0, 300).plain()
    assert len(shown) < 400 and "⏳ claude · 0:42" in shown
    assert shown.count("```py") == 1


@pytest.mark.parametrize("show", ["quiet", "normal", "full"])
def test_how_much_is_shown_is_a_setting(show: str) -> None:
    live = turn(show=show)
    live.take({"event": "thought", "text": "hmm", "block": 0}, "r")
    live.take({"event": "tool", "id": "t", "title": "Edit", "status": "completed"}, "r")
    live.take({"event": "text", "text": "Done.", "block": 1}, "r")
    live.take({"event": "done"}, "r")
    text = live.answer(1.0).plain()
    assert ("Edit" in text) == (show != "quiet")
    assert ("hmm" in text) == (show == "full")


def test_every_word_is_there_in_both_languages_with_the_same_fields() -> None:
    import string

    def fields(text: str) -> set[str]:
        return {name for _, name, _, _ in string.Formatter().parse(text) if name}

    for word in words.words():
        english, chinese = words._WORDS[word]
        assert english and chinese and fields(english) == fields(chinese), word
        assert word == "decided_nobody" or any("\u4e00" <= sign <= "\u9fff" for sign in chinese), word


@given(st.text(max_size=30))
def test_any_line_is_read_as_an_answer_without_failing(text: str) -> None:
    assert words.meant(text) in ("", "allow_once", "reject_once", "allow_always", "cancel")
    assert 0 <= words.number(text) <= 999


def test_the_menu_offers_only_commands_that_there_are() -> None:
    for language in ("", "zh"):
        assert {entry.name for entry in menu.entries(language)} <= set(COMMANDS)


@given(st.lists(st.tuples(st.integers(1, 40), st.booleans()), max_size=60))
def test_a_position_never_passes_an_item_that_is_not_handled(steps: list[tuple[int, bool]]) -> None:
    record = RouteRecord({})
    received: set[int] = set()
    handled: set[int] = set()
    for seq, done in steps:
        if seq > max(received, default=0):
            assert record.received(seq)
            received.add(seq)
        elif seq in received:
            assert not record.received(seq)
        if done and seq in received:
            record.handled(seq)
            handled.add(seq)
        assert all(seq in handled for seq in received if seq <= record.through)
        again = RouteRecord(dict(record.data))
        assert all(not again.received(seq) for seq in handled)
    record.handled(*received)
    assert record.through == max(received, default=0)


def test_a_diff_is_shown_as_one_and_a_huge_one_is_cut() -> None:
    small = details({"content": [{"type": "diff", "path": "app.py", "oldText": "a\nb\n", "newText": "a\nc\n"}]})
    assert small == [["diff", "--- app.py\n+++ app.py\n@@ -1,2 +1,2 @@\n a\n-b\n+c", "app.py"]]
    huge = details({"rawInput": {"command": "x" * 10_000}})
    assert len(huge[0][1]) <= MAX_DETAIL and "more)" in huge[0][1]
    odds: list[object] = [None, [], {"content": [1, {"type": "diff"}]}, {"rawInput": {"a": 1}}, {"rawInput": "x"}]
    for odd in odds:
        details(odd)


def test_decided_questions_are_forgotten_in_the_end_and_open_ones_never() -> None:
    questions = Questions(iter(f"{n:08}" for n in range(1000)).__next__)
    for number in range(200):
        questions.ask({"event": "permission", "id": f"p{number}", "options": []}, 0.0)
    for number in range(150):
        questions.decide({"id": f"p{number}", "outcome": "cancelled"})
    assert len(questions.open()) == 50
    assert len(questions.save()) < 120
    again = Questions(lambda: "x", questions.save())
    assert again.save() == questions.save()


TOY = Platform("toy", "Toy", Capability(100), (Option("token", "its token", required=True, secret=True),), surface=lambda setup: None)  # type: ignore[arg-type, return-value]


def test_options_are_whole_or_refused_by_name() -> None:
    assert whole(TOY, {"token": "env:T"}) == {"token": "env:T", "groups": "mention", "show": "normal", "language": "auto"}
    assert len(all_options(TOY)) == 4
    for given_options in ({}, {"token": "x", "colour": "red"}, {"token": "x", "show": "loud"}):
        with pytest.raises(UsageError):
            whole(TOY, given_options)


def test_a_secret_is_what_its_reference_names_and_errors_do_not_show_it(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("s3cret\n")
    secret.chmod(0o600)
    assert definitions.dereference(f"file:{secret}") == "s3cret"
    assert definitions.dereference("env:T", {"T": "tok"}) == "tok"
    for reference in ("s3cret", "env:", "env:NONE", f"file:{tmp_path}", "file:/none", "http:x"):
        with pytest.raises(UsageError) as raised:
            definitions.dereference(reference, {})
        assert "s3cret" not in str(raised.value).replace(reference, "")
    secret.chmod(0o644)
    with pytest.raises(RefusedError):
        definitions.dereference(f"file:{secret}")


def test_definitions_are_read_by_name_and_a_damaged_file_is_an_error(tmp_path: Path) -> None:
    assert definitions.read(tmp_path) == {}
    (tmp_path / "bridges.toml").write_text('[work]\nkind = "telegram"\n[work.options]\ntoken = "env:T"\n')
    assert definitions.find(tmp_path, "work").options == {"token": "env:T"}
    with pytest.raises(NotFoundError):
        definitions.find(tmp_path, "none")
    for raw in ("x", "[Bad]\nkind='a'", "[a]\n", "a = 1"):
        (tmp_path / "bridges.toml").write_text(raw)
        with pytest.raises(UsageError):
            definitions.read(tmp_path)


def test_kinds_are_listed_without_loading_them_and_unknown_ones_are_errors() -> None:
    assert "telegram" in kinds.KINDS
    assert not kinds.known("nonsense") and not kinds.known("../x")
    with pytest.raises(NotFoundError):
        kinds.load("nonsense")


@given(st.text(max_size=200))
def test_a_senders_name_for_a_file_is_harmless(name: str) -> None:
    safe = infiles.safe_name(name)
    assert safe and "/" not in safe and "\0" not in safe and not safe.startswith(".") and len(safe.encode()) < 250


def test_only_plain_files_of_the_workspace_are_copied_and_privately(tmp_path: Path) -> None:
    work, private = tmp_path / "w", tmp_path / "p"
    (work / "sub").mkdir(parents=True)
    private.mkdir()
    (work / "a.txt").write_text("a" * 10)
    (tmp_path / "out.txt").write_text("x")
    (work / "up").symlink_to(tmp_path)
    import os

    os.mkfifo(work / "pipe")
    ready = outfiles.fetch("a.txt", str(work), private, 100)
    assert isinstance(ready, outfiles.Ready) and stat.S_IMODE(ready.path.stat().st_mode) == 0o600
    for target, why in [
        ("../out.txt", "outside"), ("up/out.txt", "outside"), (str(tmp_path / "out.txt"), "outside"), ("/etc/passwd", "outside"),
        ("none", "missing"), ("sub", "odd"), ("pipe", "odd"), (".", "outside"),
    ]:  # fmt: skip
        assert outfiles.fetch(target, str(work), private, 100) == outfiles.Refused(Path(target).name or "file", why)
    assert isinstance(outfiles.fetch("a.txt", str(work), private, 5), outfiles.Refused)
    assert isinstance(outfiles.fetch("a.txt", "/", private, 100), outfiles.Refused)


def test_links_in_code_and_plain_references_are_no_files() -> None:
    text = "![a](a.png) [b](b.py) `![c]`\n```\n![d](d.png)\n```\n[e](file:///w/e%20f.txt) ![g](https://x/g.png) ![h](data:image/png;base64,xx)"
    assert outfiles.linked(text) == ["a.png", "/w/e f.txt"]


def test_lengths_are_counted_in_the_platforms_unit() -> None:
    assert [length("a😀é", unit) for unit in ("utf16", "codepoints", "utf8")] == [4, 3, 7]


def test_a_question_without_room_for_its_buttons_is_numbered() -> None:
    from transports.im.platform import Buttons

    questions = Questions(lambda: "abcdefgh")
    options = [{"id": str(n), "name": f"Option {n}"} for n in range(5)]
    question = questions.ask({"event": "choice", "id": "q", "title": "Which?", "options": options}, 0.0)
    shown: Outgoing = questions.shown(question, "en", Buttons(3, 3, 20, 64), 0.0)
    assert shown.buttons == () and "5. Option 4" in shown.content.plain()


