"""The rules of delivery learnt from others' bugs (each by its number in the list of lessons), on a real bridge and daemon."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("aiohttp")

from tests.daemon import needs_va
from tests.fakes.telegram_process import told
from tests.process.telegram_rig import ANNA, BEN, Phone, needs_bridges
from tests.waiting import until

pytestmark = [needs_va, needs_bridges, pytest.mark.timeout(180)]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Phone]:
    with Phone(tmp_path_factory.mktemp("telegram")) as one:
        one.approve(BEN, "owner")
        yield one


@pytest.fixture
def phone(shared: Phone) -> Phone:
    shared.telegram.control("forget")
    return shared


@pytest.mark.requires("S4.telegram-54-redelivery")
def test_54_one_update_delivered_five_times_and_after_a_restart_is_one_turn(phone: Phone) -> None:
    since = phone.say("remember fig once")
    phone.answer("fig once", since=since)
    phone.telegram.control("again", times=4)
    # the confirmation of the next update is lost: the bridge dies while it confirms
    phone.telegram.control("fault", method="getUpdates", kind="gate", gate="never", times=50, holds=f'"offset": {phone.telegram.control("state")["next"] + 1}')
    second = phone.say("remember fig twice")
    phone.wait_text("fig twice", since=second)
    phone.kill_bridge()
    phone.telegram.control("forget")
    phone.telegram.control("again", times=2)
    phone.ask("ping after it", 'You said: "ping after it"')
    said = phone.ask("recall", "ping after it")
    assert told(said).count("fig once") == 1
    assert told(said).count("fig twice") == 1


@pytest.mark.requires("S4.telegram-57-splitting")
def test_57_a_long_answer_with_emoji_and_bold_over_the_cut_arrives_whole(phone: Phone) -> None:
    text = " ".join(f"**word{n}😀**" for n in range(300))
    since = phone.say(text)
    phone.answer("word299", since=since)
    shown = "\n".join(phone.shown()[-6:])
    assert all(f"word{n}😀" in shown for n in range(300))
    assert not [c for c in phone.telegram.calls(since=since) if c["outcome"].startswith("400") and "not modified" not in c["outcome"]]


@pytest.mark.requires("S4.telegram-57-splitting")
def test_57_two_hundred_links_arrive_whole(phone: Phone) -> None:
    text = " ".join(f"[l{n}](http://a.b/{n})" for n in range(180))
    since = phone.say(text)
    phone.answer("l179", since=since)
    shown = "\n".join(phone.shown()[-6:])
    assert all(f"l{n} " in f"{shown} ".replace('"', " ").replace("\n", " ") for n in range(180))


@pytest.mark.requires("S4.telegram-57-splitting")
def test_57_markup_that_is_refused_goes_as_plain_text(phone: Phone) -> None:
    refusal = {"kind": "refuse", "code": 400, "description": "Bad Request: can't parse entities: nobody knows why"}
    phone.telegram.control("fault", holds='"entities"', times=3, **refusal)
    phone.ask("**bold** words", "bold")


@pytest.mark.requires("S4.telegram-58-flood")
def test_58_retry_after_pauses_the_edits_and_the_answer_comes_whole_once(phone: Phone) -> None:
    phone.telegram.control("fault", method="editMessageText", kind="429", retry_after=3)
    phone.telegram.control("fault", method="sendMessageDraft", kind="429", retry_after=3)
    since = phone.say("slow 16")
    final = phone.answer("done.", since=since)
    calls = phone.telegram.calls(since=since)
    refused = [c for c in calls if c["outcome"] == "fault 429"]
    assert refused
    for refusal in refused:
        later = [c for c in calls if c["method"] == refusal["method"] and c["number"] > refusal["number"]]
        assert all(c["time"] - refusal["time"] >= 2.9 for c in later), "the pause is kept"
    assert "second 16 of 16" in told(final)
    assert sum("second 16 of 16" in text for text in phone.shown()) == 1


@pytest.mark.requires("S4.telegram-58-flood")
def test_58_a_refused_send_is_repeated_after_the_pause_and_stands_there_once(phone: Phone) -> None:
    phone.telegram.control("fault", method="sendMessage", kind="429", retry_after=2)
    since = phone.say("patience")
    phone.answer('You said: "patience"', since=since)
    assert sum('You said: "patience"' in text for text in phone.shown()) == 1


@pytest.mark.requires("S4.telegram-60-order")
def test_60_a_refused_message_is_not_overtaken_and_other_chats_go_on(phone: Phone) -> None:
    phone.telegram.control("fault", method="sendMessage", chat=ANNA, kind="429", retry_after=4)
    since = phone.say("first of anna")
    phone.telegram.wait(lambda c: c["outcome"] == "fault 429", since=since)
    phone.say("second of anna")
    phone.ask("ben meanwhile", 'You said: "ben meanwhile"', user=BEN)
    assert not any("first of anna" in text for text in phone.shown())
    phone.answer('You said: "second of anna"', since=since)
    shown = phone.shown()
    order = [next(i for i, text in enumerate(shown) if f'You said: "{which} of anna"' in text) for which in ("first", "second")]
    assert order == sorted(order)


@pytest.mark.requires("S4.telegram-62-busy")
def test_62_what_comes_while_the_agent_is_busy_is_queued_visibly_and_answered_in_order(phone: Phone) -> None:
    since = phone.say("slow 12")
    phone.wait_text("second 1", since=since)
    for number in (1, 2, 3):
        phone.say(f"meanwhile {number}")
    phone.answer('You said: "meanwhile 3"', since=since)
    shown = phone.shown()
    places = [next(i for i, text in enumerate(shown) if f'You said: "meanwhile {n}"' in text) for n in (1, 2, 3)]
    assert places == sorted(places)
    seen = [told(c) for c in phone.telegram.calls(since=since)]
    reactions = [c for c in phone.telegram.calls(since=since) if c["method"] == "setMessageReaction"]
    assert any("place" in text.lower() for text in seen) or len(reactions) >= 4, "waiting is shown"


@pytest.mark.requires("S4.telegram-64-topic", "S4.telegram-66-topics")
def test_64_66_each_topic_is_a_conversation_and_is_answered_in_its_place(phone: Phone) -> None:
    phone.telegram.control("chat", id=-700, type="supergroup", title="Forum", forum=True, topics={"1": "One", "2": "Two"})
    one = phone.ask("@va_test_bot remember apple", "apple", chat=-700, topic=1)
    two = phone.ask("@va_test_bot remember pear", "pear", chat=-700, topic=2)
    general = phone.ask("@va_test_bot recall", "said", chat=-700)
    again = phone.ask("@va_test_bot recall", "apple", chat=-700, topic=1)
    assert "pear" not in told(again)
    assert "apple" not in told(general)
    by_number = {m["message_id"]: m.get("message_thread_id") for m in phone.telegram.screen(-700)}
    places = [by_number[int(c["params"].get("message_id") or c["result"])] for c in (one, two, general, again)]
    assert places == [1, 2, None, 1]


@pytest.mark.requires("S4.telegram-67-two-pollers")
def test_67_a_second_poller_is_named_and_waited_for_without_a_crash_loop(tmp_path: Path) -> None:
    with Phone(tmp_path) as phone:
        phone.ask("hello", 'You said: "hello"')
        phone.telegram.control("webhook", url="https://example.org")
        row = until(lambda: r if (r := phone.bridge())["state"] in ("retrying", "failed") else None, "the conflict is shown", seconds=70)
        assert "webhook" in str(row["error"]).lower()
        pid = phone.pid()
        phone.telegram.control("webhook", url="")
        phone.say("waiting for you")
        phone.answer('You said: "waiting for you"', seconds=60)
        assert phone.pid() == pid, "the process was not restarted over it"


@pytest.mark.requires("S4.telegram-faults")
@pytest.mark.parametrize("kind", ["html", "cut_before"])
def test_a_gateway_error_or_a_cut_connection_costs_nothing(phone: Phone, kind: str) -> None:
    for method in ("getUpdates", "sendMessage", "editMessageText", "setMessageReaction"):
        phone.telegram.control("fault", method=method, kind=kind)
    since = phone.say(f"through {kind}")
    phone.answer(f'You said: "through {kind}"', since=since)
    assert sum(f'You said: "through {kind}"' in text for text in phone.shown()) == 1


@pytest.mark.requires("S4.telegram-faults")
def test_an_answer_whose_confirmation_was_cut_off_stands_there_once(phone: Phone) -> None:
    phone.telegram.control("fault", method="editMessageText", kind="cut_after", holds="✅")
    since = phone.say("cut after")
    phone.answer('You said: "cut after"', since=since)
    phone.ask("next", 'You said: "next"')
    assert sum('You said: "cut after"' in text for text in phone.shown()) == 1


@pytest.mark.requires("S4.telegram-faults")
def test_a_person_who_blocked_the_bot_stops_nobody_else(phone: Phone) -> None:
    phone.say("slow 6", user=BEN)
    phone.telegram.control("shut", chat=BEN)
    phone.ask("not blocked", 'You said: "not blocked"')
    phone.telegram.control("shut", chat=BEN, why="")
    phone.ask("back again", 'You said: "back again"', user=BEN)


@pytest.mark.requires("S4.telegram-kill")
def test_a_bridge_killed_in_mid_turn_loses_and_doubles_nothing(phone: Phone) -> None:
    since = phone.say("slow 13")
    phone.wait_text("second 2", since=since)
    phone.kill_bridge()
    phone.answer("second 13 of 13", since=since, seconds=60)
    assert sum("second 13 of 13" in text for text in phone.shown()) == 1
    assert not [text for text in phone.shown() if "⏳" in text], "no message is left in the making"


@pytest.mark.requires("S4.telegram-kill")
def test_a_daemon_killed_in_mid_turn_loses_and_doubles_nothing(tmp_path: Path) -> None:
    with Phone(tmp_path) as phone:
        since = phone.say("slow 16")
        phone.wait_text("second 2", since=since)
        phone.daemon.kill()
        phone.say("sent while it was down")
        phone.daemon.start()
        phone.answer("second 16 of 16", since=since, seconds=60)
        phone.answer('You said: "sent while it was down"', since=since, seconds=60)
        assert sum("second 16 of 16" in text for text in phone.shown()) == 1
        assert sum('You said: "sent while it was down"' in text for text in phone.shown()) == 1


def test_a_platform_that_is_away_for_a_while_loses_nothing(phone: Phone) -> None:
    pid = phone.telegram._process.pid  # type: ignore[union-attr]
    os.kill(pid, signal.SIGSTOP)
    try:
        assert phone.bridge()["state"] in ("running", "retrying")
    finally:
        os.kill(pid, signal.SIGCONT)
    phone.ask("still there?", 'You said: "still there?"')
