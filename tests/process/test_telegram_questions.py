"""Permissions and pickup codes on the phone (each by its number in the list of lessons), on a real bridge and daemon."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("aiohttp")

from tests.daemon import needs_va
from tests.fakes.telegram_process import buttons, told, words
from tests.process.telegram_rig import ANNA, BEN, Phone, needs_bridges, option

pytestmark = [needs_va, needs_bridges, pytest.mark.timeout(180)]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Phone]:
    with Phone(tmp_path_factory.mktemp("telegram")) as one:
        one.approve(BEN)
        yield one


@pytest.fixture
def phone(shared: Phone) -> Phone:
    shared.telegram.control("forget")
    return shared


def test_a_permission_shows_the_exact_command_and_once_decided_by_whom(phone: Phone) -> None:
    since = phone.say("run: echo granted-$((40+2))")
    number, shown = phone.question("echo granted-$((40+2))", since=since)
    assert all(len(data.encode()) <= 64 for data in shown.values())
    phone.press(number, option(shown, "yes", "allow", "once"))
    phone.answer("granted-42", since=since)
    message = phone.message(number)
    assert buttons(message) == {}
    assert "user42" in words(message)
    assert "echo granted" in words(message)


def test_a_late_press_is_told_so_and_changes_nothing(phone: Phone) -> None:
    since = phone.say("run: echo late")
    number, shown = phone.question("echo late", since=since)
    phone.press(number, option(shown, "no", "reject", "deny"))
    phone.answer("", since=since)
    before = words(phone.message(number))
    said = phone.press(number, option(shown, "yes", "allow"), force=True)
    assert said
    assert words(phone.message(number)) == before


def test_a_press_of_somebody_else_is_refused_and_the_question_stays_open(phone: Phone) -> None:
    phone.telegram.control("chat", id=-800, type="supergroup", title="Team")
    since = phone.say("@va_test_bot run: echo mine", chat=-800)
    number, shown = phone.question("echo mine", chat=-800, since=since)
    said = phone.press(number, option(shown, "yes", "allow"), user=BEN, chat=-800)
    assert said
    assert phone.press(number, option(shown, "yes", "allow"), user=666, chat=-800)
    assert buttons(phone.message(number, -800)) == shown
    phone.press(number, option(shown, "yes", "allow"), chat=-800)
    phone.answer("mine", chat=-800, since=since)


def test_a_button_of_another_chat_decides_nothing(phone: Phone) -> None:
    since = phone.say("run: echo bound")
    number, shown = phone.question("echo bound", since=since)
    other = phone.say("hello", user=BEN)
    answer = phone.answer('You said: "hello"', chat=BEN, since=other)
    place = int(answer["params"].get("message_id") or answer["result"])
    assert phone.press(place, option(shown, "yes", "allow"), user=BEN, force=True)
    assert buttons(phone.message(number)) == shown
    phone.press(number, option(shown, "no", "reject", "deny"))
    phone.answer("", since=since)


@pytest.mark.requires("S4.telegram-68-open-question")
def test_68_an_open_question_outlives_bridge_and_daemon_and_is_answered_exactly_once(tmp_path: Path) -> None:
    with Phone(tmp_path) as phone:
        since = phone.say("run: echo ran >> runs.txt; cat runs.txt")
        number, _ = phone.question("echo ran", since=since)
        phone.kill_bridge()
        phone.daemon.kill()
        phone.daemon.start()
        phone.wait_state("running")
        open_ = [m for m in phone.telegram.screen() if "echo ran" in words(m) and buttons(m)]
        place = open_[-1]
        phone.press(int(place["message_id"]), option(buttons(place), "yes", "allow"))
        call = phone.answer("ran", since=since, seconds=60)
        assert not re.search(r"ran\s+ran", told(call)), "run once"
        for left in [m for m in phone.telegram.screen() if "echo ran" in words(m) and buttons(m)]:
            # sent, and the bridge was gone before it could note so: a press is told, and takes the buttons away
            since = phone.telegram.next()
            assert phone.press(int(left["message_id"]), next(iter(buttons(left).values())))
            phone.wait(lambda c: c["method"] == "editMessageReplyMarkup", since=since)
        assert not [m for m in phone.telegram.screen() if "echo ran" in words(m) and buttons(m)], "no button is left"
        assert number


@pytest.mark.requires("S4.telegram-70-three-questions")
def test_70_three_questions_in_one_turn_are_three_messages_with_buttons_of_their_own(phone: Phone) -> None:
    since = phone.say("ask three")
    seen = []
    for number in (1, 2, 3):
        message, shown = phone.question(f"echo {number}", since=since)
        seen.append((message, option(shown, "yes", "allow")))
        phone.press(message, seen[-1][1])
    phone.answer("I asked three times.", since=since)
    assert len({message for message, _ in seen}) == 3
    assert len({data for _, data in seen}) == 3


def test_a_question_can_be_answered_in_words(phone: Phone) -> None:
    since = phone.say("run: echo by-word-$((1+1))")
    phone.question("echo by-word", since=since)
    phone.say("yes")
    phone.answer("by-word-2", since=since)


# --- pickup codes ---


def _code(phone: Phone, text: str) -> str:
    """A fresh code of a session that remembers `text`."""
    turn = phone.daemon.send(f"remember {text}", chat=f"term-{text}", workspace=phone.daemon.cwd)
    found = json.loads(
        phone.daemon.va(
            "handover", "--agent", "demo", "--session", str(turn.session["session"]), "--cwd", str(phone.daemon.cwd), "--json"
        ).out
    )  # fmt: skip
    return str(found["code"])


def test_a_conversation_from_the_terminal_goes_on_in_telegram(phone: Phone) -> None:
    code = _code(phone, "mango")
    since = phone.say(f"/pickup {code[:2].lower()} {code[2:].lower()}")
    phone.wait(lambda c: c["method"] == "sendMessage", since=since)
    phone.ask("recall", "mango")


@pytest.mark.requires("S4.telegram-80-codes")
def test_80_a_code_has_one_winner_and_wrong_guesses_lock_one_person_out_and_not_the_others(phone: Phone) -> None:
    code = _code(phone, "papaya")
    since = phone.telegram.next()
    phone.telegram.say(f"/pickup {code}", user=ANNA)
    phone.telegram.say(f"/pickup {code}", user=BEN)
    for user in (ANNA, BEN):
        phone.wait(lambda c: c["method"] == "sendMessage", chat=user, since=since)
    phone.ask("recall", "said", user=ANNA)
    phone.ask("recall", "said", user=BEN)
    winners = [user for user in (ANNA, BEN) if any("papaya" in text for text in phone.shown(user)[-1:])]
    assert len(winners) == 1
    since = phone.telegram.next()
    for number in range(12):
        phone.telegram.say(f"/pickup ZZ{'ABCDEFGHJKLM'[number]}Z", user=BEN)
    phone.wait(lambda c: "locked" in told(c).lower() or "too many" in told(c).lower() or "wait" in told(c).lower(), chat=BEN, since=since)
    fresh = _code(phone, "lychee")
    since = phone.say(f"/pickup {fresh}", user=BEN)
    phone.wait(lambda c: c["method"] == "sendMessage", chat=BEN, since=since)
    since = phone.say(f"/pickup {fresh}", user=ANNA)
    phone.wait(lambda c: c["method"] == "sendMessage", chat=ANNA, since=since)
    phone.ask("recall", "lychee", user=ANNA)
