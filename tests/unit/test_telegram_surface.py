"""The Telegram surface against a strict Bot API: one call per operation, and each refusal as what the kit does about it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("aiohttp")

from agents_registry.errors import UsageError
from tests.fakes.telegram_process import TOKEN, FakeTelegram, buttons
from transports.im.content import Button, Content, Outgoing, Part, markdown, plain
from transports.im.errors import (
    Ambiguous,
    BadCredentials,
    BadMarkup,
    Conflict,
    Forbidden,
    Gone,
    Migrated,
    PlatformError,
    RetryAfter,
    TooLong,
    Transient,
    Unsupported,
)
from transports.im.inbound import Chat, FileRef, Message, Press, Update
from transports.im.platform import MenuEntry, Setup
from transports.im.telegram import PLATFORM, check
from transports.im.telegram.lock import token_lock
from transports.im.telegram.surface import TelegramSurface

ANNA = Chat("42")
PNG = b"\x89PNG\r\n\x1a\n0000"


@pytest.fixture(scope="module")
def server() -> Iterator[FakeTelegram]:
    with FakeTelegram(privacy=False) as telegram:
        yield telegram


@pytest.fixture
def telegram(server: FakeTelegram) -> FakeTelegram:
    """The server with a fresh chat 42 and nothing that waits."""
    server.control("chat", id=42)
    server.control("forget")
    return server


class _Inbox:
    def __init__(self, enough: int = 1) -> None:
        self.updates: list[Update] = []
        self.held: dict[str, asyncio.Event] = {}
        self.enough = enough
        self.started, self.full = asyncio.Event(), asyncio.Event()

    async def take(self, update: Update) -> None:
        self.updates.append(update)
        self.started.set()
        if len(self.updates) >= self.enough:
            self.full.set()
        if isinstance(update, Message) and update.text in self.held:
            await self.held[update.text].wait()


class _Rig:
    def __init__(self, telegram: FakeTelegram, folder: Path, **options: str) -> None:
        self.states: list[tuple[str, str]] = []
        self.lines: list[str] = []
        filled = {option.name: option.default for option in PLATFORM.options} | {"token": TOKEN, "api_base_url": telegram.url} | options
        setup = Setup("tg", filled, folder, lambda state, error: self.states.append((state, error)), self.lines.append)
        self.surface = TelegramSurface(setup)

    def do(self, work: Callable[[TelegramSurface], Awaitable[Any]]) -> Any:
        async def main() -> Any:
            try:
                async with asyncio.timeout(20):
                    return await work(self.surface)
            finally:
                await self.surface.close()

        return asyncio.run(main())


@pytest.fixture
def rig(telegram: FakeTelegram, tmp_path: Path) -> _Rig:
    return _Rig(telegram, tmp_path)


def test_a_message_is_sent_with_entities_buttons_and_as_an_answer(telegram: FakeTelegram, rig: _Rig) -> None:
    asked = telegram.say("hello")
    outgoing = Outgoing(markdown("**yes** 😀"), ((Button("Stop", "s:1", "danger"),),), reply_to=str(asked), silent=True)
    sent = rig.do(lambda s: s.send(ANNA, outgoing))
    (message,) = [m for m in telegram.screen() if str(m["message_id"]) == sent]
    assert message["text"] == "yes 😀"
    assert message["entities"] == [{"type": "bold", "offset": 0, "length": 3}]
    assert buttons(message) == {"Stop": "s:1"}
    assert message["reply_to_message"]["message_id"] == asked
    assert message["_silent"]


def test_an_edit_replaces_text_and_buttons_and_the_same_again_is_success(telegram: FakeTelegram, rig: _Rig) -> None:
    async def work(surface: TelegramSurface) -> None:
        sent = await surface.send(ANNA, Outgoing(plain("one"), ((Button("Stop", "s"),),)))
        await surface.edit(ANNA, sent, Outgoing(plain("two")))
        await surface.edit(ANNA, sent, Outgoing(plain("two")))
        await surface.drop_buttons(ANNA, sent)

    rig.do(work)
    assert telegram.shown() == ["two"]
    assert buttons(telegram.screen()[0]) == {}


def test_a_draft_streams_in_a_private_chat_and_goes_with_the_message(telegram: FakeTelegram, rig: _Rig) -> None:
    seen = []

    async def work(surface: TelegramSurface) -> None:
        await surface.draft(ANNA, 3, Outgoing(markdown("so **far")))
        seen.append(telegram.control("screen", chat=42)["drafts"])
        await surface.end_draft(ANNA, 3)
        await surface.send(ANNA, Outgoing(markdown("so **far** so good")))
        seen.append(telegram.control("screen", chat=42)["drafts"])

    rig.do(work)
    assert [d["text"] for d in seen[0]] == ["so **far"]
    assert seen[0][0]["can_stop"]
    assert seen[1] == []


@pytest.mark.requires("S2.drafts")
def test_where_there_are_no_drafts_the_kit_is_told_to_edit(telegram: FakeTelegram, tmp_path: Path) -> None:
    telegram.control("chat", id=-9, type="supergroup")
    with pytest.raises(Unsupported):
        _Rig(telegram, tmp_path).do(lambda s: s.draft(Chat("-9", direct=False), 1, Outgoing(plain("x"))))
    with pytest.raises(Unsupported):
        _Rig(telegram, tmp_path, drafts="off").do(lambda s: s.draft(ANNA, 1, Outgoing(plain("x"))))
    with FakeTelegram(without=["drafts"]) as older:
        older.control("chat", id=42)
        with pytest.raises(Unsupported):
            _Rig(older, tmp_path).do(lambda s: s.draft(ANNA, 1, Outgoing(plain("x"))))


_TABLE = Outgoing(Content((Part("markdown", "Results:\n\n|a|b|\n|-|-|\n|1|2|"), Part("status", "✅ claude"))))


def test_a_table_goes_as_a_rich_message_and_can_be_edited(telegram: FakeTelegram, rig: _Rig) -> None:
    async def work(surface: TelegramSurface) -> None:
        sent = await surface.send(ANNA, Outgoing(plain("⏳")))
        await surface.edit(ANNA, sent, _TABLE)

    rig.do(work)
    (message,) = telegram.screen()
    assert [block["type"] for block in message["rich_message"]["blocks"]] == ["paragraph", "table", "footer"]


def test_a_server_without_rich_messages_gets_entities_and_is_asked_once(tmp_path: Path) -> None:
    with FakeTelegram(without=["rich"]) as older:
        older.control("chat", id=42)

        async def work(surface: TelegramSurface) -> None:
            await surface.send(ANNA, _TABLE)
            await surface.send(ANNA, _TABLE)

        _Rig(older, tmp_path).do(work)
        assert [c["method"] for c in older.calls()] == ["sendRichMessage", "sendMessage", "sendMessage"]
        assert older.shown()[0].startswith("Results:\n\na │ b")


def test_a_topic_is_written_in_and_the_general_one_needs_no_number(telegram: FakeTelegram, rig: _Rig) -> None:
    telegram.control("chat", id=-8, type="supergroup", forum=True, topics={"5": "Five"})

    async def work(surface: TelegramSurface) -> None:
        await surface.send(Chat("-8", "5", False), Outgoing(plain("in five")))
        await surface.send(Chat("-8", "", False), Outgoing(plain("in general")))
        await surface.typing(Chat("-8", "5", False))

    rig.do(work)
    assert [m.get("message_thread_id") for m in telegram.screen(-8)] == [5, None]
    with pytest.raises(Gone):
        rig.do(lambda s: s.send(Chat("-8", "6", False), Outgoing(plain("nowhere"))))


def test_reactions_are_such_as_telegram_knows(telegram: FakeTelegram, rig: _Rig) -> None:
    asked = telegram.say("hello")

    async def work(surface: TelegramSurface) -> list[str]:
        seen = []
        for what in ("seen", "queued", "done", "failed", ""):
            await surface.react(ANNA, str(asked), what)  # type: ignore[arg-type]
            seen.append(telegram.control("screen", chat=42)["reactions"][str(asked)])
        return seen

    assert rig.do(work) == ["👀", "✍", "👌", "💔", ""]


def test_files_go_out_pictures_as_pictures_and_come_in_within_the_limit(telegram: FakeTelegram, rig: _Rig, tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(PNG)
    (tmp_path / "notpng").write_bytes(b"text")
    telegram.control("file", ident="F1", text="content")
    telegram.control("file", ident="F2", text="c", size=30_000_000)
    target = tmp_path / "in"
    target.touch()

    async def work(surface: TelegramSurface) -> int:
        await surface.send_file(ANNA, tmp_path / "a.png", "a.png", "image/png", Outgoing(plain("a picture")))
        await surface.send_file(ANNA, tmp_path / "notpng", "b.png", "image/png", Outgoing(plain("x" * 1100)))
        await surface.send_file(ANNA, tmp_path / "notpng", "c.txt", "text/plain", Outgoing(plain("")))
        return await surface.download(FileRef("F1", "x"), target, 100)

    assert rig.do(work) == 7
    assert target.read_text() == "content"
    first, second, third = telegram.screen()
    assert ("photo" in first, first["caption"]) == (True, "a picture")
    assert (second["document"]["file_name"], len(second["caption"])) == ("b.png", 1024)
    assert third["document"]["file_name"] == "c.txt"
    with pytest.raises(TooLong):
        rig.do(lambda s: s.download(FileRef("F1", "x"), target, 3))
    with pytest.raises(TooLong):
        rig.do(lambda s: s.download(FileRef("F2", "x"), target, 40_000_000))


@pytest.mark.requires("S2.menu")
def test_the_menu_is_set_by_language(telegram: FakeTelegram, rig: _Rig) -> None:
    async def work(surface: TelegramSurface) -> None:
        await surface.menu([MenuEntry("pickup", "Take over")], "")
        await surface.menu([MenuEntry("pickup", "接手")], "zh")

    rig.do(work)
    assert telegram.control("commands") == {
        "default/": [{"command": "pickup", "description": "Take over"}], "default/zh": [{"command": "pickup", "description": "接手"}],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        ({"kind": "429", "retry_after": 149}, RetryAfter),
        ({"kind": "html", "code": 502}, Transient),
        ({"kind": "html", "code": 504}, Ambiguous),
        ({"kind": "cut_before"}, Ambiguous),
        ({"kind": "cut_after"}, Ambiguous),
        ({"kind": "refuse", "code": 500, "description": "Internal Server Error"}, Transient),
        ({"kind": "refuse", "code": 403, "description": "Forbidden: bot was kicked from the supergroup chat"}, Forbidden),
        ({"kind": "refuse", "code": 400, "description": "Bad Request: not enough rights to send text messages to the chat"}, Forbidden),
        ({"kind": "refuse", "code": 400, "description": "Bad Request: can't parse entities: x"}, BadMarkup),
        ({"kind": "refuse", "code": 400, "description": "Bad Request: message is too long"}, TooLong),
        ({"kind": "refuse", "code": 400, "description": "Bad Request: message thread not found"}, Gone),
        ({"kind": "refuse", "code": 400, "description": "Bad Request: TOPIC_CLOSED"}, Forbidden),
        ({"kind": "refuse", "code": 400, "description": "x", "parameters": {"migrate_to_chat_id": -1009}}, Migrated),
        ({"kind": "refuse", "code": 401, "description": "Unauthorized"}, BadCredentials),
        ({"kind": "refuse", "code": 400, "description": "Bad Request: something new"}, PlatformError),
    ],
)
@pytest.mark.requires("S2.client")
def test_each_refusal_of_a_send_is_told_as_what_to_do_about_it(telegram: FakeTelegram, rig: _Rig, fault: dict[str, Any], error: type[PlatformError]) -> None:
    telegram.control("fault", method="sendMessage", **fault)
    with pytest.raises(PlatformError) as raised:
        rig.do(lambda s: s.send(ANNA, Outgoing(plain("x"))))
    assert type(raised.value) is error
    assert TOKEN not in str(raised.value)
    if isinstance(raised.value, RetryAfter):
        assert (raised.value.seconds, raised.value.scope) == (149.0, "chat")
    if isinstance(raised.value, Migrated):
        assert raised.value.chat == "-1009"


def test_a_flood_of_edits_silences_that_message_only(telegram: FakeTelegram, rig: _Rig) -> None:
    telegram.control("fault", method="editMessageText", kind="429", retry_after=35)
    sent = rig.do(lambda s: s.send(ANNA, Outgoing(plain("x"))))
    with pytest.raises(RetryAfter) as raised:
        rig.do(lambda s: s.edit(ANNA, sent, Outgoing(plain("y"))))
    assert (raised.value.seconds, raised.value.scope) == (35.0, "message")


def test_an_unreachable_server_is_transient_and_its_words_hold_no_token(telegram: FakeTelegram, tmp_path: Path) -> None:
    rig = _Rig(telegram, tmp_path, api_base_url="http://127.0.0.1:9")
    with pytest.raises(Transient) as raised:
        rig.do(lambda s: s.send(ANNA, Outgoing(plain("x"))))
    assert TOKEN not in repr(raised.value)


def test_a_press_that_is_too_old_is_answered_in_vain_without_a_fuss(telegram: FakeTelegram, rig: _Rig) -> None:
    rig.do(lambda s: s.answer_press("gone", "too late"))
    assert "too old" in telegram.calls("answerCallbackQuery")[-1]["outcome"]


# --- receiving ---


def _receive(rig: _Rig, inbox: Callable[[], _Inbox], during: Callable[[_Inbox], Awaitable[None]]) -> _Inbox:
    async def work(surface: TelegramSurface) -> _Inbox:
        box = inbox()
        running = asyncio.create_task(surface.run(box))
        try:
            await during(box)
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
        return box

    found: _Inbox = rig.do(work)
    return found


@pytest.mark.requires("S2.confirm")
def test_an_update_is_confirmed_only_when_it_was_accepted(telegram: FakeTelegram, rig: _Rig) -> None:
    telegram.say("slow")

    async def during(box: _Inbox) -> None:
        box.held["slow"] = asyncio.Event()
        await box.full.wait()
        assert telegram.control("state")["waiting"] == 1

    assert [u.text for u in _receive(rig, _Inbox, during).updates if isinstance(u, Message)][-1] == "slow"
    assert telegram.control("state")["waiting"] == 1, "not accepted, so not confirmed: it comes again"

    async def again(box: _Inbox) -> None:
        await box.full.wait()
        assert await asyncio.to_thread(telegram.control, "drained")

    box = _receive(rig, _Inbox, again)
    assert [u.text for u in box.updates if isinstance(u, Message)] == ["slow"]


@pytest.mark.requires("S2.confirm")
def test_a_press_is_not_kept_waiting_by_a_slow_message_of_another_chat(telegram: FakeTelegram, rig: _Rig) -> None:
    sent = rig.do(lambda s: s.send(ANNA, Outgoing(plain("?"), ((Button("Yes", "p:1:y"),),))))
    telegram.say("slow", user=77)

    async def during(box: _Inbox) -> None:
        box.held["slow"] = asyncio.Event()
        await box.started.wait()
        telegram.press(int(sent), "p:1:y")
        await box.full.wait()
        box.held["slow"].set()
        assert await asyncio.to_thread(telegram.control, "drained")

    box = _receive(rig, lambda: _Inbox(2), during)
    assert [type(u) for u in box.updates] == [Message, Press]


@pytest.mark.requires("S4.telegram-67-two-pollers")
def test_two_pollers_are_told_what_to_do(telegram: FakeTelegram, rig: _Rig) -> None:
    telegram.control("fault", method="getUpdates", kind="refuse", code=409, description="Conflict: terminated by other getUpdates request")
    with pytest.raises(Conflict, match="Somebody else receives"):
        rig.do(lambda s: s.run(_Inbox()))
    telegram.control("webhook", url="https://example.org")
    try:
        with pytest.raises(Conflict, match="A webhook is set"):
            rig.do(lambda s: s.run(_Inbox()))
    finally:
        telegram.control("webhook", url="")


@pytest.mark.requires("S4.telegram-67-two-pollers")
def test_a_second_daemon_on_this_machine_is_refused_before_telegram_is_asked(telegram: FakeTelegram, rig: _Rig) -> None:
    since = telegram.next()
    with token_lock(TOKEN, telegram.url), pytest.raises(Conflict, match="Another VibeAround"):
        rig.do(lambda s: s.run(_Inbox()))
    assert telegram.calls(since=since) == []


def test_a_broken_poll_is_tried_again_and_nothing_is_lost(telegram: FakeTelegram, rig: _Rig) -> None:
    for kind in ("html", "cut_before", "429"):
        telegram.control("fault", method="getUpdates", kind=kind, retry_after=0)
    telegram.say("after the storm")

    async def during(box: _Inbox) -> None:
        await box.full.wait()
        assert await asyncio.to_thread(telegram.control, "drained")

    box = _receive(rig, _Inbox, during)
    assert [u.text for u in box.updates if isinstance(u, Message)] == ["after the storm"]
    assert ("running", "") in rig.states
    assert all(TOKEN not in line for line in rig.lines)


def test_a_wrong_token_ends_it(telegram: FakeTelegram, tmp_path: Path) -> None:
    rig = _Rig(telegram, tmp_path, token="123456:" + "x" * 35)
    with pytest.raises(BadCredentials):
        rig.do(lambda s: s.run(_Inbox()))


# --- the check of the credentials ---


@pytest.mark.requires("S2.api-base-url")
def test_the_check_tells_who_the_bot_is_and_what_the_owner_should_know(telegram: FakeTelegram) -> None:
    found = check({"token": TOKEN, "api_base_url": telegram.url})
    assert (found.account, found.ident, found.link) == ("@va_test_bot", TOKEN.partition(":")[0], "https://t.me/va_test_bot")
    telegram.control("webhook", url="https://example.org")
    try:
        assert "webhook" in check({"token": TOKEN, "api_base_url": telegram.url}).notes[0]
    finally:
        telegram.control("webhook", url="")


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"token": "123456:" + "x" * 35}, BadCredentials), ({"token": "nonsense-secret"}, UsageError), ({"api_base_url": "ftp://x"}, UsageError),
        ({"drafts": "sometimes"}, UsageError), ({"api_base_url": "http://127.0.0.1:9"}, Transient),
    ],
)  # fmt: skip
@pytest.mark.requires("S2.api-base-url")
def test_the_check_refuses_with_words_that_hold_no_secret(telegram: FakeTelegram, options: dict[str, str], error: type[Exception]) -> None:
    whole = {"token": TOKEN, "api_base_url": telegram.url, **options}
    with pytest.raises(error) as raised:
        check(whole)
    assert whole["token"] not in str(raised.value)
