"""A conversation on the phone, from the first word to the answer: real daemon, real bridge, a strict Telegram."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("aiohttp")

from tests.daemon import needs_va
from tests.fakes.telegram_process import TOKEN, told
from tests.process.telegram_rig import ANNA, BEN, EVE, Phone, needs_bridges, option

pytestmark = [needs_va, needs_bridges, pytest.mark.timeout(180)]
PNG = "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c6360000002000001e221bc330000000049454e44ae426082"


@pytest.fixture(scope="module")
def phone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Phone]:
    with Phone(tmp_path_factory.mktemp("telegram")) as one:
        yield one


def _code(printed: str) -> str:
    """The one-time code in what `va bridge add` printed: "/start CODE"."""
    return printed.split("/start ", 1)[1].split()[0].strip(".`'\"")


def test_one_turn_is_one_message_that_becomes_the_answer_and_notifies_once(phone: Phone) -> None:
    since = phone.say("slow 8")
    phone.answer("done.", since=since)
    sent = [c for c in phone.telegram.calls(since=since) if c["method"] in ("sendMessage", "sendRichMessage")]
    assert len(sent) == 1, [told(c) for c in sent]
    assert "second 8 of 8" in phone.shown()[-1]


def test_a_receipt_is_seen_at_once(phone: Phone) -> None:
    since = phone.say("hello")
    phone.telegram.wait(lambda c: c["method"] == "setMessageReaction" and c["outcome"] == "ok", since=since)
    phone.answer('You said: "hello"', since=since)


def test_the_stop_button_stops_the_turn_and_is_gone_then(phone: Phone) -> None:
    phone.telegram.control("chat", id=-510, type="supergroup", title="Team")
    since = phone.say("@va_test_bot hang", chat=-510)
    number, shown = phone.question("⏳", chat=-510, since=since)
    phone.press(number, option(shown, "stop"), chat=-510)
    phone.wait(lambda c: "⏹" in told(c) and "reply_markup" not in c["params"], chat=-510, since=since)
    assert "reply_markup" not in phone.message(number, -510)


def test_the_stop_of_a_draft_stops_the_turn(phone: Phone) -> None:
    since = phone.say("hang")
    phone.wait(lambda c: c["method"] == "sendMessageDraft" and "⏳" in told(c), since=since)
    phone.telegram.control("stop", chat=ANNA)
    phone.answer("⏹", since=since)


def test_what_waits_says_its_place_in_a_message_that_becomes_its_answer(phone: Phone) -> None:
    since = phone.say("slow 16")
    phone.wait(lambda c: c["method"] == "sendMessageDraft" and "second 1" in told(c), since=since)
    second = phone.say("after it")
    waiting = phone.wait(lambda c: c["method"] == "sendMessage" and "place 1" in told(c), since=second)
    phone.wait(lambda c: c["method"] == "sendMessageDraft", since=waiting["number"])
    done = phone.answer('You said: "after it"', since=second)
    assert done["params"]["message_id"] == waiting["result"]


def test_a_stop_drops_what_waits_too_and_both_say_so(phone: Phone) -> None:
    since = phone.say("hang")
    phone.wait(lambda c: c["method"] == "sendMessageDraft", since=since)
    second = phone.say("never run")
    waiting = phone.wait(lambda c: c["method"] == "sendMessage" and "place 1" in told(c), since=second)
    phone.say("/stop")
    phone.wait(lambda c: c["method"] == "sendMessage" and "⏹" in told(c), since=waiting["number"])
    phone.wait(lambda c: c["params"].get("message_id") == waiting["result"] and "stopped" in told(c) and "⏹" in told(c), since=second)


def test_a_stranger_gets_one_line_and_no_agent(phone: Phone) -> None:
    since = phone.say("run: touch pwned", user=EVE)
    call = phone.wait(lambda c: True, chat=EVE, since=since)
    for text in ("/start ABCDEFGH", "/status", "/pickup AAAA"):
        phone.say(text, user=EVE)
    phone.ask("ping", 'You said: "ping"')
    assert "not authorised" in told(call)
    assert set(phone.shown(EVE)) == {told(call)}, "always the same line"


def test_the_owner_claims_the_bot_with_the_code_and_nobody_after_him(tmp_path: Path) -> None:
    with Phone(tmp_path) as phone:
        second = "700000002:BBFakeTokenForTestsOnly_0123456789abcde"
        phone.telegram.control("bot", token=second, username="second_bot")
        phone.daemon.env["TG_SECOND"] = second
        (tmp_path / "token").write_text(second + "\n")
        (tmp_path / "token").chmod(0o600)
        printed = phone.daemon.va(
            "bridge", "add", "telegram", "--name", "second", "--set", f"token=file:{tmp_path / 'token'}",
            "--set", f"api_base_url={phone.telegram.url}",
        ).out  # fmt: skip
        assert second not in printed
        code = _code(printed)
        since = phone.say("/start WRONG", user=EVE, bot="second_bot")
        phone.wait_text("not authorised", chat=EVE, since=since)
        since = phone.say(f"/start {code}", user=77, bot="second_bot")
        phone.wait(lambda c: "owner" in told(c).lower() or "所有者" in told(c), chat=77, since=since)
        phone.say(f"/start {code}", user=EVE, bot="second_bot")
        phone.ask("hello", 'You said: "hello"', user=77, bot="second_bot")
        users = {u["id"]: u["role"] for u in phone.bridge("second")["users"]}
        assert users == {"77": "owner"}
        assert all(text.startswith("not authorised") for text in phone.shown(EVE))


def test_two_bots_are_two_conversations(tmp_path: Path) -> None:
    second = "700000002:BBFakeTokenForTestsOnly_0123456789abcde"
    with Phone(tmp_path) as phone:
        phone.telegram.control("bot", token=second, username="second_bot")
        (tmp_path / "token").write_text(second)
        (tmp_path / "token").chmod(0o600)
        phone.daemon.va(
            "bridge", "add", "telegram", "--name", "other", "--set", f"token=file:{tmp_path / 'token'}",
            "--set", f"api_base_url={phone.telegram.url}",
        )  # fmt: skip
        phone.approve(ANNA, "owner", "other")
        phone.ask("remember banana", "banana", bot="va_test_bot")
        since = phone.say("recall", bot="second_bot")
        call = phone.answer("said", since=since)
        assert call["bot"] == "second_bot"
        assert "banana" not in told(call)


def test_in_a_group_only_a_mention_is_answered(phone: Phone) -> None:
    phone.telegram.control("chat", id=-500, type="supergroup", title="Team")
    since = phone.say("just chatting, @somebody", chat=-500)
    phone.telegram.say("reply among people", chat=-500, user=ANNA)
    phone.ask("@va_test_bot ping", 'You said: "ping"', chat=-500)
    sent = [c for c in phone.telegram.calls(since=since) if c["params"].get("chat_id") == -500 and c["method"] == "sendMessage"]
    assert len(sent) == 1


def test_a_member_may_write_and_a_stranger_in_the_same_group_may_not(phone: Phone) -> None:
    phone.telegram.control("chat", id=-501, type="supergroup", title="Team")
    phone.approve(BEN)
    phone.ask("@va_test_bot from ben", 'You said: "from ben"', chat=-501, user=BEN)
    since = phone.say("@va_test_bot from eve", chat=-501, user=EVE)
    phone.ask("@va_test_bot again", 'You said: "again"', chat=-501, user=BEN)
    assert not [c for c in phone.telegram.calls(since=since) if "from eve" in told(c)]


def test_a_group_that_becomes_a_supergroup_keeps_its_conversation(phone: Phone) -> None:
    phone.telegram.control("chat", id=-600, type="group", title="Old")
    phone.ask("@va_test_bot remember cherry", "cherry", chat=-600)
    phone.telegram.control("migrate", chat=-600, to=-100600)
    phone.ask("@va_test_bot recall", "cherry", chat=-100600)


def test_the_command_menu_is_set_in_two_languages(phone: Phone) -> None:
    phone.telegram.wait(lambda c: c["method"] == "setMyCommands" and c["params"].get("language_code") == "zh")
    menu = phone.telegram.control("commands")
    assert {"pickup", "stop", "status", "help"} <= {c["command"] for c in menu["default/"]}
    assert {c["command"] for c in menu["default/"]} == {c["command"] for c in menu["default/zh"]}


def test_a_command_is_answered_in_the_chat(phone: Phone) -> None:
    since = phone.say("/status")
    assert "demo" in told(phone.wait(lambda c: c["method"] == "sendMessage", since=since))


def test_a_file_that_is_sent_reaches_the_agents_turn(phone: Phone) -> None:
    phone.telegram.control("file", ident="DOC1", text="the content")
    body = {"document": {"file_id": "DOC1", "file_unique_id": "u", "file_name": "../../etc/passwd", "file_size": 11}, "caption": "look at this"}
    call = phone.ask("", "look at this", body=body)
    assert "❌" not in told(call)


def test_a_picture_reaches_the_agent(phone: Phone) -> None:
    phone.telegram.control("file", ident="PIC1", hex=PNG)
    body = {"photo": [{"file_id": "PIC1", "file_unique_id": "u", "width": 1, "height": 1, "file_size": len(PNG) // 2}], "caption": "what is it?"}
    call = phone.ask("", "what is it?", body=body)
    assert "❌" not in told(call)


def test_a_file_that_is_too_large_is_refused_with_a_word(phone: Phone) -> None:
    phone.telegram.control("file", ident="BIG1", text="x", size=30_000_000)
    body = {"document": {"file_id": "BIG1", "file_unique_id": "u", "file_name": "big.bin", "file_size": 30_000_000}, "caption": "take it"}
    since = phone.say("", body=body)
    assert "big.bin" in told(phone.wait_text("big.bin", since=since))


def test_the_token_is_in_no_log_and_no_list(phone: Phone) -> None:
    listed = phone.daemon.va("bridge", "list", "--json").out + phone.daemon.va("bridge", "logs", "tg", check=False).out
    assert TOKEN not in listed
    for file in phone.daemon.data.rglob("*"):
        if file.is_file():
            assert TOKEN.encode() not in file.read_bytes(), file
