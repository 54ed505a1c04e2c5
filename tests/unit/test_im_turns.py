"""A turn in a chat: one message that becomes the answer, shown once, also over a crash or a lost answer."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.im_rig import EDITS, PLAIN, ROUTE, Rig, play
from transports.im.content import Part
from transports.im.errors import Ambiguous, BadMarkup, Forbidden, Gone, RetryAfter, TooLong, Transient, Unsupported


def faults(*errors: Exception) -> deque[Exception]:
    return deque(errors)


async def begin(rig: Rig) -> None:
    """The chat writes and its turn begins."""
    await rig.write("hello")
    rig.asked(1)
    rig.item(2, "session", agent="claude", cwd=str(rig.folder), session="s1")


def end(rig: Rig, text: str = "The answer.", first: int = 3) -> int:
    rig.item(first, "text", text=text, block=1, final=True)
    rig.item(first + 1, "done", stop_reason="end_turn")
    return first + 1


@pytest.mark.requires("S1.one-message")
def test_one_turn_is_one_message_that_becomes_the_answer(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        await begin(rig)
        await rig.surface.until(lambda: "m1" in rig.surface.messages)
        rig.item(3, "tool", id="t1", title="Edit app.py", status="in_progress")
        rig.piece("The ans")
        await rig.surface.until(lambda: "The ans" in rig.surface.messages["m1"].text)
        live = rig.surface.messages["m1"].text
        assert "claude" in live and "1 tool" in live and "Edit app.py" in live
        assert next(iter(rig.buttons("m1").values())).startswith("s:")
        await rig.acked(end(rig, first=4))
        assert list(rig.surface.messages) == ["m1"]
        assert rig.surface.messages["m1"].text.startswith("The answer.")
        assert "✅ claude" in rig.surface.messages["m1"].text
        assert not rig.surface.messages["m1"].now.buttons
        assert rig.state.data["routes"][ROUTE]["turns"] == {}

    play(tmp_path, EDITS, scene)


@pytest.mark.requires("S1.capability")
def test_without_edits_a_turn_is_one_final_message(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        await begin(rig)
        rig.piece("The ans")
        await rig.acked(end(rig))
        assert len(rig.surface.messages) == 1
        assert len(rig.surface.messages["m1"].versions) == 1

    play(tmp_path, PLAIN, scene)


@pytest.mark.requires("S1.capability")
def test_a_native_stream_is_used_where_it_is_to_be_had_and_ends_in_one_message(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        await begin(rig)
        rig.piece("The ans")
        await rig.surface.until(lambda: any(c[0] == "draft" and "The ans" in c[2].content.plain() for c in rig.surface.calls))
        assert not rig.surface.messages
        await rig.acked(end(rig))
        assert [c[0] for c in rig.surface.calls if c[0] in ("end_draft", "send", "edit")] == ["end_draft", "send", "edit"]
        assert rig.surface.messages["m1"].text.startswith("The answer.")

    play(tmp_path, replace(EDITS, stream="toy", stream_interval_s=0.0), scene)


@pytest.mark.requires("S1.capability")
def test_where_the_native_stream_is_refused_edits_take_its_place(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        rig.surface.faults["draft"] = faults(Unsupported("old server"))
        await begin(rig)
        rig.piece("The ans")
        await rig.surface.until(lambda: "m1" in rig.surface.messages and "The ans" in rig.surface.messages["m1"].text)
        await rig.acked(end(rig))
        assert list(rig.surface.messages) == ["m1"]

    play(tmp_path, replace(EDITS, stream="toy", stream_interval_s=0.0), scene)


@pytest.mark.requires("S1.once")
def test_a_crash_in_mid_turn_leaves_one_answer(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        await begin(rig)
        rig.piece("The ans")
        await rig.surface.until(lambda: "m1" in rig.surface.messages and "The ans" in rig.surface.messages["m1"].text)
        await rig.crash()
        await rig.acked(end(rig))
        assert list(rig.surface.messages) == ["m1"]
        assert rig.surface.messages["m1"].text.startswith("The answer.")

    play(tmp_path, EDITS, scene)


@pytest.mark.requires("S1.once")
@pytest.mark.parametrize("at", range(1, 12))
def test_a_crash_at_any_call_of_a_long_answer_shows_each_part_once(tmp_path: Path, at: int) -> None:
    async def scene(rig: Rig) -> None:
        await begin(rig)
        count = 0
        did = rig.surface._did

        async def counted(*call: object) -> None:
            nonlocal count
            await did(*call)
            count += 1
            rig.link.changed.set()

        rig.surface._did = counted  # type: ignore[method-assign]
        text = "\n\n".join(f"paragraph {n} " + "w" * 90 for n in range(8))
        last = end(rig, text)
        await rig.link.until(lambda: count >= at or rig.link.acked.get(f"route/{ROUTE}", 0) >= last)
        await rig.crash()
        await rig.acked(last)
        whole = "\n".join(rig.surface.shown())
        for n in range(8):
            assert whole.count(f"paragraph {n} ") == 1

    play(tmp_path, replace(EDITS, max_parts=20, file_out_bytes=0, reactions=False), scene)


def test_acknowledged_items_that_come_again_are_not_shown_again(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        await begin(rig)
        last = end(rig)
        await rig.acked(last)
        rig.link.acked.clear()
        await rig.crash()
        await rig.acked(last)
        assert list(rig.surface.messages) == ["m1"]

    play(tmp_path, EDITS, scene)


def test_a_notice_shown_during_a_turn_is_not_shown_again_after_a_crash(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        await begin(rig)
        rig.item(3, "notice", "", text="Somebody joined.")
        await rig.surface.until(lambda: "Somebody joined." in rig.surface.shown())
        await rig.link.until(lambda: True)
        while 3 not in rig.state.data["routes"][ROUTE]["beyond"]:
            await rig.state.saved()
        await rig.crash()
        await rig.acked(end(rig, first=4))
        assert rig.surface.shown().count("Somebody joined.") == 1

    play(tmp_path, EDITS, scene)


@pytest.mark.requires("S1.retry-after")
def test_an_edit_told_to_wait_pauses_that_message_only_and_ends_with_the_newest(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        rig.surface.faults["edit"] = faults(RetryAfter(0.4, "message"))
        await begin(rig)
        await rig.surface.until(lambda: "m1" in rig.surface.messages)
        rig.piece("The ans")
        await rig.surface.until(lambda: any(c[:2] == ("fault", "edit") for c in rig.surface.calls))
        rig.item(3, "permission", id="pm_1", title="rm x", options=[{"id": "a", "name": "Allow", "kind": "allow_once"}])
        await rig.surface.until(lambda: "m2" in rig.surface.messages)
        assert len(rig.surface.messages["m1"].versions) == 1
        await rig.acked(end(rig, first=4))
        assert rig.surface.messages["m1"].text.startswith("The answer.")

    play(tmp_path, EDITS, scene)


@pytest.mark.requires("S1.once")
@pytest.mark.parametrize(
    "error", [RetryAfter(0.01), RetryAfter(0.01, "bot"), Transient("502"), Ambiguous("cut"), BadMarkup("entity"), Gone("deleted")]
)
def test_a_final_edit_that_fails_is_tried_until_the_answer_stands_there(tmp_path: Path, error: Exception) -> None:
    async def scene(rig: Rig) -> None:
        rig.surface.faults["edit"] = faults(error)
        await begin(rig)
        await rig.surface.until(lambda: "m1" in rig.surface.messages)
        await rig.acked(end(rig))
        assert sum("The answer." in text for text in rig.surface.shown()) == 1

    play(tmp_path, replace(EDITS, edit_interval_s=60.0), scene)


@pytest.mark.requires("S1.once")
def test_a_lost_answer_to_a_send_makes_no_second_text_where_there_are_edits(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        rig.surface.after["send"] = faults(Ambiguous("cut"))
        await begin(rig)
        await rig.acked(end(rig))
        assert sum("The answer." in text for text in rig.surface.shown()) == 1

    play(tmp_path, EDITS, scene)


@pytest.mark.requires("S1.ambiguous")
def test_a_lost_answer_without_edits_is_repeated_once_and_marked(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        rig.surface.after["send"] = faults(Ambiguous("cut"), Ambiguous("cut"))
        await begin(rig)
        await rig.acked(end(rig))
        first, second = rig.surface.shown()
        assert first.startswith("The answer.")
        assert "sent again" in second and "The answer." in second
        assert rig.calls.counts["repeated"] == 1

    play(tmp_path, PLAIN, scene)


@pytest.mark.requires("S1.ambiguous")
def test_a_platform_that_knows_our_keys_gets_the_same_key_again_unmarked(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        rig.surface.after["send"] = faults(Ambiguous("cut"))
        await begin(rig)
        await rig.acked(end(rig))
        first, second = rig.surface.messages.values()
        assert first.now == second.now and first.now.key

    play(tmp_path, replace(PLAIN, send_key=True), scene)


def test_what_the_platform_finds_too_long_is_split_smaller(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        rig.surface.faults["edit"] = faults(TooLong("4096"))
        await begin(rig)
        await rig.surface.until(lambda: "m1" in rig.surface.messages)
        await rig.acked(end(rig, "word " * 60))
        assert len(rig.surface.messages) == 2
        assert sum(text.count("word") for text in rig.surface.shown()) == 60

    play(tmp_path, replace(EDITS, edit_interval_s=60.0), scene)


def test_a_chat_that_forbids_writing_waits_and_gets_everything_when_somebody_writes(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        await begin(rig)
        await rig.surface.until(lambda: "m1" in rig.surface.messages)
        rig.surface.faults["edit"] = faults(Forbidden("blocked"))
        last = end(rig)
        await rig.surface.until(lambda: any(c[:2] == ("fault", "edit") for c in rig.surface.calls))
        await rig.write("back again", "u2")
        await rig.acked(last)
        assert sum("The answer." in text for text in rig.surface.shown()) == 1

    play(tmp_path, replace(EDITS, edit_interval_s=60.0), scene)


def test_a_very_long_turn_is_acknowledged_before_its_end_and_loses_nothing_in_a_crash(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        await begin(rig)
        rig.item(3, "text", text="The beginning.", block=0, final=True)
        for seq in range(4, 204):
            rig.item(seq, "tool", id=f"t{seq}", title=f"step {seq}", status="completed")
        await rig.acked(100)
        await rig.crash()
        await rig.acked(end(rig, first=300))
        whole = "\n".join(rig.surface.shown())
        assert whole.count("The beginning.") == 1 and whole.count("The answer.") == 1
        assert "200 tools" in whole

    play(tmp_path, replace(EDITS, max_text=4000), scene)


def test_an_answer_of_many_messages_is_its_beginning_and_a_file(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        await begin(rig)
        text = "\n\n".join(f"paragraph {n} " + "w" * 60 for n in range(30))
        await rig.acked(end(rig, text))
        assert "The whole answer is in the file." in rig.surface.messages["m1"].text
        files = [c for c in rig.surface.calls if c[0] == "file"]
        assert [f[1] for f in files] == ["answer.md"]
        assert b"paragraph 29" in files[0][2]
        assert not list(rig.folder.glob("out-*"))

    play(tmp_path, replace(EDITS, file_out_bytes=10_000), scene)


@pytest.mark.requires("S1.files")
def test_a_file_of_the_workspace_goes_out_and_nothing_from_outside(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "plot.png").write_bytes(b"PNG")
    (tmp_path / "secret.txt").write_text("secret")
    (work / "link.png").symlink_to(tmp_path / "secret.txt")

    async def scene(rig: Rig) -> None:
        await rig.write("hello")
        rig.asked(1)
        rig.item(2, "session", agent="claude", cwd=str(work), session="s1")
        text = f"![p](plot.png) ![l](link.png) [f](file://{tmp_path}/secret.txt) ![n](none.png) [src](app.py:3) ![u](http://x/y.png)"
        await rig.acked(end(rig, text))
        assert [c[1:] for c in rig.surface.calls if c[0] == "file"] == [("plot.png", b"PNG")]
        shown = "\n".join(rig.surface.shown())
        assert "link.png was not sent: it lies outside of the workspace." in shown
        assert "secret.txt was not sent" in shown and "none.png was not sent" in shown

    play(tmp_path, EDITS, scene)


@pytest.mark.requires("S1.elsewhere")
def test_what_was_asked_elsewhere_says_where_and_by_whom(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        await rig.write("/status")
        rig.asked(1, route="cli:local:main", by="Ann", text="fix the tests")
        await rig.acked(end(rig))
        assert rig.surface.messages["m1"].text.startswith("💬 Asked in terminal by Ann: fix the tests")

    play(tmp_path, EDITS, scene)


def test_the_whole_of_a_large_text_is_read_from_its_file(tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "x").write_text("head and tail")

    async def scene(rig: Rig) -> None:
        await begin(rig)
        rig.item(3, "text", text="head", block=1, final=True, ref={"path": str(tmp_path / "files" / "x")})
        rig.item(4, "done", stop_reason="end_turn")
        await rig.acked(4)
        assert rig.surface.messages["m1"].text.startswith("head and tail")

    play(tmp_path, EDITS, scene)


def test_the_tools_of_an_answer_are_folded(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        await begin(rig)
        rig.item(3, "tool", id="t", title="Edit app.py", status="completed")
        await rig.acked(end(rig, first=4))
        assert Part("folded", "✓ Edit app.py", title="Tool calls (1)") in rig.surface.messages["m1"].now.content.parts

    play(tmp_path, EDITS, scene)


def test_an_error_ends_the_turn_with_its_words_and_hint(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        await begin(rig)
        rig.item(3, "error", code="agent_failed", message="The agent broke.", hint="Send it again.")
        await rig.acked(3)
        assert "❌ The agent broke.\nSend it again." in rig.surface.messages["m1"].text

    play(tmp_path, EDITS, scene)
