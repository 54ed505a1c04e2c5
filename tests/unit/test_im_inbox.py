"""What people send: who may, in which order, when it is acknowledged; presses, numbers, files."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import replace
from pathlib import Path

import pytest

from agents_registry.errors import BusyError, NotRunningError, RefusedError
from tests.unit.im_rig import EDITS, OWNER, PLAIN, Rig, play
from transports.bus.vocabulary.bridges import BridgeClaim, BridgePeople
from transports.bus.vocabulary.conversation import Ok
from transports.bus.vocabulary.surface import Accepted, Answer, Listen, StopTurn, Submit
from transports.im.platform import Chat, FileRef, Message, Migration, Stopped, Transient, User
from transports.im.words import NOT_AUTHORISED

OPTIONS = [
    {"id": "allow", "name": "Allow once", "kind": "allow_once"},
    {"id": "always", "name": "Always", "kind": "allow_always"},
    {"id": "reject", "name": "Reject", "kind": "reject_once"},
]
STRANGER = User("666", "Mallory")


def ask(rig: Rig, seq: int = 5, ident: str = "pm_1") -> None:
    tool = {"title": "Run", "rawInput": {"command": "rm -rf build", "cwd": "/w"}}
    rig.item(seq, "permission", id=ident, title="rm -rf build", tool=tool, options=OPTIONS, expires_in_s=3600)


# --- order and acknowledgement ---


@pytest.mark.requires("S1.inbound")
def test_a_message_is_acknowledged_only_when_its_route_has_it(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        durable = asyncio.Event()

        async def later(request: Submit) -> Accepted:
            await durable.wait()
            return Accepted(request.key)

        rig.link.answers[Submit] = later
        done = rig.kit.take(Message("u1", Chat("c1"), OWNER, text="hello"))
        await rig.link.until(lambda: bool(rig.link.of(Submit)))
        assert not done.done()
        durable.set()
        async with asyncio.timeout(10):
            await done
        request = rig.link.of(Submit)[0]
        assert (request.key, request.text) == ("toy:t:u1", "hello")
        assert request.sender == {"id": "toy:1", "name": "Ann", "role": "owner"}

    play(tmp_path, EDITS, scene)


@pytest.mark.requires("S1.inbound")
def test_a_supervisor_that_goes_leaves_the_message_unacknowledged(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        rig.link.answers[Submit] = lambda request: NotRunningError("gone")
        with pytest.raises(NotRunningError):
            await rig.write("hello")

    play(tmp_path, EDITS, scene)


@pytest.mark.requires("S1.inbound")
def test_messages_of_a_chat_keep_the_order_of_their_receipt_though_a_file_is_slow(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        rig.surface.hold["download"] = asyncio.Event()
        first = rig.kit.take(Message("u1", Chat("c1"), OWNER, text="one", files=(FileRef("f1", "a.png", "image/png", 5, True),)))
        second = rig.kit.take(Message("u2", Chat("c1"), OWNER, text="two"))
        other = rig.kit.take(Message("u3", Chat("c2"), OWNER, text="elsewhere"))
        async with asyncio.timeout(10):
            await other
        assert [r.text for r in rig.link.of(Submit)] == ["elsewhere"]
        rig.surface.hold["download"].set()
        async with asyncio.timeout(10):
            await asyncio.gather(first, second)
        assert [r.text for r in rig.link.of(Submit)] == ["elsewhere", "one", "two"]

    play(tmp_path, EDITS, scene)


@pytest.mark.requires("S1.past-what-waits")
def test_a_stop_goes_past_what_waits(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        rig.surface.hold["download"] = asyncio.Event()
        first = rig.kit.take(Message("u1", Chat("c1"), OWNER, text="one", files=(FileRef("f1", "a"),)))
        await rig.write("/stop", "u2")
        assert [r.text for r in rig.link.of(Submit)] == ["/stop"]
        rig.surface.hold["download"].set()
        async with asyncio.timeout(10):
            await first

    play(tmp_path, EDITS, scene)


def test_the_chat_is_listened_to_before_its_first_message_is_handed_over(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        await rig.write("hello")
        assert [type(m) for _, m in rig.link.asked[:2]] == [Listen, Submit]
        await rig.crash()
        await rig.link.until(lambda: len(rig.link.of(Listen)) == 2)

    play(tmp_path, EDITS, scene)


def test_a_refusal_is_a_visible_word_and_the_message_is_acknowledged(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        rig.link.answers[Submit] = lambda request: BusyError("64 messages wait already.", hint="Wait, or /stop.")
        await rig.write("hello")
        await rig.surface.until(lambda: "❌ 64 messages wait already.\nWait, or /stop." in rig.surface.shown())

    play(tmp_path, EDITS, scene)


def test_the_reply_of_a_command_is_shown(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        rig.link.answers[Submit] = lambda request: Ok({"event": "reply", "text": "All **is** well."})
        await rig.write("/status")
        await rig.surface.until(lambda: bool(rig.surface.messages))
        assert rig.surface.messages["m1"].now.content.parts[0].kind == "plain"
        assert rig.surface.shown() == ["All **is** well."]

    play(tmp_path, EDITS, scene)


def test_topics_are_routes_of_their_own(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        await rig.write("one", "u1", chat=Chat("c1", "7"))
        await rig.write("two", "u2", chat=Chat("c1", "8"))
        assert [a for a, m in rig.link.asked if isinstance(m, Submit)] == ["route/toy:t:c1:7", "route/toy:t:c1:8"]

    play(tmp_path, EDITS, scene)


def test_a_chat_that_got_a_new_id_keeps_its_route(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        await rig.write("one")
        await rig.kit.take(Migration("u2", Chat("c1"), OWNER, to="c-100"))
        await rig.write("two", "u3", chat=Chat("c-100"))
        assert [a for a, m in rig.link.asked if isinstance(m, Submit)] == ["route/toy:t:c1"] * 2
        rig.asked(1)
        await rig.surface.until(lambda: "m1" in rig.surface.messages)
        assert rig.surface.messages["m1"].chat.id == "c-100"

    play(tmp_path, EDITS, scene)


# --- access ---


@pytest.mark.requires("S1.strangers")
def test_strangers_get_one_line_always_the_same_and_not_often(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        for number, words in enumerate(("hello", "/start", "/start ABCD", "/pickup ABCD", "/help")):
            await rig.write(words, f"u{number}", user=STRANGER, chat=Chat("c9"))
        await rig.write("hello", "u9", user=User("667"), chat=Chat("c8"))
        await rig.surface.until(lambda: len(rig.surface.messages) == 2)
        assert set(rig.surface.shown()) == {NOT_AUTHORISED}
        assert not rig.link.asked
        assert rig.state.data["routes"] == {}

    play(tmp_path, EDITS, scene)


@pytest.mark.requires("S1.knock")
def test_a_stranger_who_was_told_the_line_is_named_to_the_desk_with_the_owners_own_chat(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        await rig.write("hello", "u0", user=User("666", "Eve"), chat=Chat("c9"))
        await rig.write("hello", "u1")
        await rig.write("hello", "u2", user=User("2", "Bob"), chat=Chat("c3"))
        await rig.write("again, a moment later", "u3", user=User("666", "Eve"), chat=Chat("c9"))
        await rig.write("hello", "u4", user=User("667", "Mal"), chat=Chat("c8"))
        assert [(k.user_id, k.user_name, k.routes) for k in rig.link.asked_of_the_desk] == [("666", "Eve", []), ("667", "Mal", ["toy:t:c1"])]

    play(tmp_path, EDITS, scene)


@pytest.mark.requires("S1.strangers")
def test_a_crowd_of_strangers_cannot_use_up_the_budget(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        for number in range(40):
            await rig.write("hello", f"u{number}", user=User(f"9{number}"), chat=Chat(f"c9{number}"))
        await rig.write("hello", "mine")
        await rig.surface.until(lambda: len(rig.surface.messages) >= 10)
        assert len(rig.surface.messages) == 10

    play(tmp_path, EDITS, scene)


def test_the_owner_claims_by_code_in_a_direct_chat_and_the_supervisor_decides(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        rig.kit.people(BridgePeople([], True))
        rig.link.answers[BridgeClaim] = lambda claim: Ok({"outcome": "owner" if claim.code == "GOOD2345" else "refused"})
        await rig.write("/start WRONG234", "u1", user=STRANGER)
        await rig.write("/start GOOD2345", "u2", user=User("1", "Ann"), chat=Chat("c2"))
        await rig.write("/start GOOD2345", "u3", user=User("5", "Eve"), chat=Chat("g", direct=False))
        await rig.surface.until(lambda: len(rig.surface.messages) == 3)
        assert [c.code for c in rig.link.of(BridgeClaim)] == ["WRONG234", "GOOD2345"]
        assert rig.surface.shown()[0] == NOT_AUTHORISED
        assert rig.surface.shown()[1].startswith("You are the owner now.")

    play(tmp_path, EDITS, scene)


def test_a_member_with_the_code_becomes_the_owner_and_an_opened_chat_gets_help(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        rig.kit.people(BridgePeople(rig.users, True))
        rig.link.answers[BridgeClaim] = lambda claim: Ok({"outcome": "owner"})
        await rig.write("/start GOOD2345", "u1", user=User("2", "Bob"))
        await rig.write("/start GOOD2345", "u2")
        await rig.write("/start", "u3", user=User("2", "Bob"))
        assert [c.user_id for c in rig.link.of(BridgeClaim)] == ["2"]
        assert [r.text for r in rig.link.of(Submit)] == ["/help", "/help"]

    play(tmp_path, EDITS, scene)


@pytest.mark.requires("S1.people")
def test_somebody_taken_off_the_list_is_a_stranger_at_once(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        await rig.write("one")
        rig.kit.people(BridgePeople([], False))
        await rig.write("two", "u2")
        assert [r.text for r in rig.link.of(Submit)] == ["one"]
        assert await rig.press("q:aaaaaaaa:0") == NOT_AUTHORISED

    play(tmp_path, EDITS, scene)


@pytest.mark.parametrize(("groups", "texts"), [("mention", ["for you"]), ("all", ["not for you", "for you"])])
def test_in_a_group_only_what_is_addressed_counts_unless_set_otherwise(tmp_path: Path, groups: str, texts: list[str]) -> None:
    group = Chat("g", direct=False)

    async def scene(rig: Rig) -> None:
        await rig.write("not for you", "u1", chat=group, addressed=False)
        await rig.write("for you", "u2", chat=group)
        await rig.write("stranger", "u3", chat=group, user=STRANGER, addressed=False)
        assert [r.text for r in rig.link.of(Submit)] == texts
        assert NOT_AUTHORISED not in rig.surface.shown()

    play(tmp_path, EDITS, scene, groups=groups)


# --- questions ---


@pytest.mark.requires("S1.questions")
def test_a_permission_is_its_own_message_with_the_exact_command_and_becomes_its_outcome(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        await rig.write("hello")
        ask(rig)
        await rig.acked(5)
        text = rig.surface.messages["m1"].text
        assert "rm -rf build" in text and "/w" in text and "owner" in text and "60 min" in text.replace("1 hour", "60 min")
        buttons = rig.buttons("m1")
        assert list(buttons) == ["✅ Allow once", "✅ Always (lasting)", "❌ Reject"]
        assert all(len(data.encode()) <= 16 for data in buttons.values())
        assert await rig.press(buttons["✅ Allow once"]) == "Noted."
        answer = rig.link.of(Answer)[0]
        assert (answer.id, answer.option, answer.sender["id"]) == ("pm_1", "allow", "toy:1")
        assert rig.surface.messages["m1"].now.buttons  # the decision is shown when it is one
        rig.item(6, "permission_done", id="pm_1", option="allow", outcome="Allow once", by="Ann")
        await rig.acked(6)
        assert "✅ Allow once by Ann" in rig.surface.messages["m1"].text
        assert not rig.surface.messages["m1"].now.buttons

    play(tmp_path, EDITS, scene)


@pytest.mark.requires("S1.buttons")
def test_a_late_press_is_told_what_was_decided_and_loses_its_buttons(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        await rig.write("hello")
        ask(rig)
        await rig.acked(5)
        data = rig.buttons("m1")["❌ Reject"]
        rig.item(6, "permission_done", id="pm_1", option="allow", outcome="Allow once", by="Ann")
        await rig.acked(6)
        await rig.crash()
        assert await rig.press(data) == "This was decided already: Allow once"
        assert not rig.link.of(Answer)

    play(tmp_path, EDITS, scene)


@pytest.mark.requires("S1.buttons")
def test_a_button_counts_only_in_its_own_chat_and_forged_ones_nowhere(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        await rig.write("hello")
        await rig.write("hello", "u2", chat=Chat("c2"))
        ask(rig)
        await rig.acked(5)
        data = rig.buttons("m1")["✅ Allow once"]
        words = "This button is not for you or not of this chat."
        assert await rig.press(data, "b1", chat=Chat("c2")) == words
        assert await rig.press(data, "b2", chat=Chat("c3")) == words
        for number, forged in enumerate(("q:abcdefgh:0", data[:-1] + "9", "q::", "x", "", "q:" + "é" * 40)):
            assert await rig.press(forged, f"b1{number}") == words
        assert not rig.link.of(Answer)

    play(tmp_path, EDITS, scene)


@pytest.mark.requires("S1.buttons")
def test_who_may_not_answer_is_told_so_and_the_buttons_stay(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        await rig.write("hello")
        ask(rig)
        await rig.acked(5)
        rig.link.answers[Answer] = lambda answer: RefusedError("Only the person whose turn it is, or an owner.", code="foreign")
        told = await rig.press(rig.buttons("m1")["✅ Allow once"], user=User("2", "Bob"))
        assert told == "Only the person whose turn it is, or an owner."
        assert rig.surface.messages["m1"].now.buttons

    play(tmp_path, EDITS, scene)


@pytest.mark.requires("S1.past-what-waits")
def test_a_press_does_not_wait_behind_the_messages_of_its_chat(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        await rig.write("hello")
        ask(rig)
        await rig.acked(5)
        rig.surface.hold["download"] = asyncio.Event()
        waiting = rig.kit.take(Message("u2", Chat("c1"), OWNER, text="file", files=(FileRef("f1", "a"),)))
        assert await rig.press(rig.buttons("m1")["✅ Allow once"]) == "Noted."
        rig.surface.hold["download"].set()
        async with asyncio.timeout(10):
            await waiting

    play(tmp_path, EDITS, scene)


def test_three_permissions_of_one_turn_have_buttons_of_their_own(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        await rig.write("hello")
        for number in range(3):
            ask(rig, 5 + number, f"pm_{number}")
        await rig.acked(7)
        datas = {data for m in ("m1", "m2", "m3") for data in rig.buttons(m).values()}
        assert len(datas) == 9
        await rig.press(rig.buttons("m2")["❌ Reject"])
        assert rig.link.of(Answer)[0].id == "pm_1"

    play(tmp_path, EDITS, scene)


@pytest.mark.requires("S1.capability")
@pytest.mark.parametrize(("typed", "option"), [("1", "allow"), ("3.", "reject"), ("二", "always"), ("允许", "allow"), ("拒绝", "reject"), ("No", "reject"), ("Always", "always"), ("取消", "")])
def test_without_buttons_a_number_or_a_word_answers(tmp_path: Path, typed: str, option: str) -> None:
    async def scene(rig: Rig) -> None:
        await rig.write("hello")
        ask(rig)
        await rig.acked(5)
        assert "1. Allow once\n2. Always (lasting)\n3. Reject" in rig.surface.messages["m1"].text
        await rig.write(typed, "u2")
        assert [(a.id, a.option) for a in rig.link.of(Answer)] == [("pm_1", option)]
        assert len(rig.link.of(Submit)) == 1

    play(tmp_path, PLAIN, scene)


def test_with_two_open_questions_each_number_means_one_option(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        await rig.write("hello")
        ask(rig)
        ask(rig, 6, "pm_2")
        await rig.acked(6)
        assert "4. Allow once" in rig.surface.messages["m2"].text
        await rig.write("6", "u2")
        await rig.write("yes", "u3")  # to which of them? it is a prompt
        await rig.write("7", "u4")
        assert [(a.id, a.option) for a in rig.link.of(Answer)] == [("pm_2", "reject")]
        assert [r.text for r in rig.link.of(Submit)] == ["hello", "yes", "7"]

    play(tmp_path, PLAIN, scene)


def test_without_edits_a_decision_is_a_line_of_its_own(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        await rig.write("你好")
        ask(rig)
        rig.item(6, "permission_done", id="pm_1", option="reject", outcome="Reject", by="Ann")
        await rig.acked(6)
        assert "请回复数字" in rig.surface.messages["m1"].text
        assert "Ann 已选择:Reject" in rig.surface.messages["m2"].text

    play(tmp_path, PLAIN, scene)


def test_an_open_question_is_shown_once_over_a_crash(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        await rig.write("hello")
        rig.item(5, "choice", "", id="q1", title="Wait or stop?", options=[{"id": "w", "name": "Wait"}], harmless="w", expires_in_s=60)
        await rig.acked(5)
        await rig.crash()
        rig.item(0, "choice", "", id="q1", title="Wait or stop?", options=[{"id": "w", "name": "Wait"}], harmless="w", expires_in_s=60)
        await rig.press(rig.buttons("m1")["Wait"])
        assert len(rig.surface.messages) == 1
        assert "Unanswered it counts as: Wait" in rig.surface.messages["m1"].text

    play(tmp_path, EDITS, scene)


def test_the_stop_button_stops_and_a_dead_one_says_so(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        await rig.write("hello")
        rig.asked(1)
        await rig.surface.until(lambda: "m1" in rig.surface.messages)
        data = rig.buttons("m1")["⏹ Stop"]
        rig.link.answers[StopTurn] = lambda stop: Ok({"cancelled": 1, "dropped": 2})
        assert await rig.press(data) == "Stopped: 1 running, 2 waiting."
        rig.item(2, "done", stop_reason="cancelled")
        await rig.acked(2)
        assert "⏹" in rig.surface.messages["m1"].text
        assert await rig.press(data, "b2") == "That turn is over."
        await rig.kit.take(Stopped("u9", Chat("c1"), OWNER))
        assert len(rig.link.of(StopTurn)) == 2

    play(tmp_path, EDITS, scene)


# --- files ---


@pytest.mark.requires("S1.files")
def test_a_file_comes_as_a_private_file_under_a_harmless_name(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        files = (FileRef("f1", "../../etc/pass\nwd;.png", "image/png", 9, True), FileRef("f2", "big.bin", size=5000))
        await rig.write("look", files=files)
        request = rig.link.of(Submit)[0]
        (block,) = request.attachments
        path = Path(block["uri"].removeprefix("file://").replace("%20", " "))
        assert path.parent == tmp_path / "files" and path.stat().st_mode & 0o777 == 0o600
        assert (block["type"], block["name"], block["mimeType"], block["size"]) == ("resource_link", "pass_wd_.png", "image/png", 10)
        await rig.surface.until(lambda: any("big.bin was not taken" in text for text in rig.surface.shown()))

    play(tmp_path, EDITS, scene)


def test_a_file_that_cannot_be_fetched_leaves_nothing_and_says_so(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        rig.surface.faults["download"] = deque([Transient("502")])
        await rig.write("look", files=(FileRef("f1", "a.txt"),))
        await rig.surface.until(lambda: "a.txt could not be fetched: 502" in rig.surface.shown())
        assert rig.link.of(Submit)[0].attachments == []
        assert list((tmp_path / "files").iterdir()) == []

    play(tmp_path, EDITS, scene)


def test_a_receipt_is_shown_at_once(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        await rig.write("hello")
        await rig.surface.until(lambda: ("typing",) in rig.surface.calls)
        assert ("react", "pu1", "seen") in rig.surface.calls

    play(tmp_path, replace(EDITS, typing_s=5.0), scene)


def test_in_a_group_the_answer_refers_to_the_message(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        await rig.write("hello", chat=Chat("c1", direct=False))
        rig.asked(1, key="toy:t:u1")
        await rig.surface.until(lambda: "m1" in rig.surface.messages)
        assert rig.surface.messages["m1"].now.reply_to == "pu1"

    play(tmp_path, EDITS, scene)


def test_the_whole_conversation_can_be_chinese(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        await rig.write("你好")
        rig.asked(1)
        await rig.surface.until(lambda: "m1" in rig.surface.messages)
        assert "思考中" in rig.surface.messages["m1"].text
        assert "⏹ 停止" in rig.buttons("m1")

    play(tmp_path, EDITS, scene)


@pytest.mark.requires("S1.state")
def test_a_state_file_that_is_not_ours_is_refused_and_kept(tmp_path: Path) -> None:
    from agents_registry.errors import UsageError
    from transports.im.state import StateFile

    path = tmp_path / "state.json"
    for raw in (b"{", b"[]", b'{"version":99,"routes":{}}'):
        path.write_bytes(raw)
        with pytest.raises(UsageError):
            StateFile(path)
        assert path.read_bytes() == raw


@pytest.mark.requires("S1.state")
def test_a_full_disk_delays_and_loses_nothing(tmp_path: Path) -> None:
    from transports.im.state import StateFile

    async def scene() -> None:
        fails = deque([OSError(28, "No space left on device")])
        written: list[bytes] = []

        def write(path: Path, raw: bytes) -> None:
            if fails:
                raise fails.popleft()
            written.append(raw)

        state = StateFile(tmp_path / "s.json", write)
        state.data["routes"]["x"] = {}
        with pytest.raises(OSError, match="No space"):
            await state.saved()
        await asyncio.gather(*(state.saved() for _ in range(50)))
        assert b'"x"' in written[-1] and len(written) <= 3

    asyncio.run(scene())


