"""The rules of delivery and of questions on Telegram, each by its number in the list of lessons: kit, surface, strict server."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

pytest.importorskip("aiohttp")

from tests.fakes.telegram_process import buttons, told, words
from tests.unit.telegram_kit_rig import ANNA, BEN, EVE, Scene, play

PNG = "89504e470d0a1a0a0000000d49484452"


@pytest.mark.requires("S2.one-message", "S2.drafts")
def test_one_turn_is_streamed_as_a_draft_and_becomes_one_message(tmp_path: Path) -> None:
    async def scene(s: Scene) -> None:
        since = await s.say("hold")
        draft = await s.wait(lambda c: c["method"] == "sendMessageDraft" and "held so far" in told(c), since=since)
        assert draft["params"]["can_stop"]
        s.supervisor.released.set()
        await s.answer('You said: "hold"', since=since)
        sent = await s.calls_to(ANNA, "sendMessage", since)
        assert [bool(c["params"].get("disable_notification")) for c in sent] == [False], "one message, one notification"
        assert len(await s.shown()) == 1

    play(tmp_path, scene)


@pytest.mark.requires("S2.one-message", "S2.stop-button")
def test_without_drafts_one_message_is_edited_until_it_is_the_answer_and_its_stop_button_goes(tmp_path: Path) -> None:
    async def scene(s: Scene) -> None:
        since = await s.say("hold")
        number, shown = await s.question("⏳", since=since)
        await s.wait(lambda c: c["method"] == "editMessageText" and "held so far" in told(c), since=since)
        assert "Stopped" in await s.press(number, shown["⏹ Stop"])
        s.supervisor.released.set()
        await s.answer('You said: "hold"', since=since)
        assert len(await s.calls_to(ANNA, "sendMessage", since)) == 1
        assert buttons(await s.message(number)) == {}
        assert await s.press(number, shown["⏹ Stop"], force=True) == "That turn is over."

    play(tmp_path, scene, drafts="off")


@pytest.mark.requires("S2.drafts", "S2.stop-button")
def test_the_stop_of_a_draft_stops_the_turn(tmp_path: Path) -> None:
    async def scene(s: Scene) -> None:
        since = await s.say("hold")
        await s.wait(lambda c: c["method"] == "sendMessageDraft", since=since)
        await s.control("stop", chat=ANNA)
        from transports.bus.vocabulary.surface import StopTurn

        await s.supervisor.link.until(lambda: bool(s.supervisor.link.of(StopTurn)))
        s.supervisor.released.set()
        await s.answer("hold", since=since)

    play(tmp_path, scene)


@pytest.mark.requires("S2.receipt")
def test_a_message_is_acknowledged_by_a_reaction(tmp_path: Path) -> None:
    async def scene(s: Scene) -> None:
        since = await s.say("hello")
        call = await s.wait(lambda c: c["method"] == "setMessageReaction", since=since)
        assert call["params"]["reaction"][0]["emoji"] == "👀"
        await s.answer("hello", since=since)

    play(tmp_path, scene)


@pytest.mark.requires("S4.telegram-54-redelivery")
def test_54_one_update_delivered_five_times_and_after_a_restart_is_one_turn(tmp_path: Path) -> None:
    async def scene(s: Scene) -> None:
        await s.ask("once", 'You said: "once"')
        await s.control("again", times=4)
        await s.crash()
        await s.control("again", times=2)
        await s.ask("then", 'You said: "then"')
        assert [text for _, text in s.supervisor.turns] == ["once", "then"]

    play(tmp_path, scene)


@pytest.mark.requires("S4.telegram-57-splitting")
@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        (" ".join(f"**word{n}😀**" for n in range(330)), [f"word{n}😀" for n in range(330)]),
        (" ".join(f"[l{n}.](http://a.b/{n})" for n in range(200)), [f"l{n}." for n in range(200)]),
        ("😀" * 2040 + " end", ["😀" * 50, "end"]),
        ("```py\n" + "\n".join(f"line_{n} = '{'x' * 30}'" for n in range(90)) + "\n```", [f"line_{n} " for n in range(90)]),
    ],
    ids=["bold", "links", "emoji", "fence"],
)
def test_57_what_is_too_long_for_one_message_arrives_whole_in_several(tmp_path: Path, text: str, pieces: list[str]) -> None:
    async def scene(s: Scene) -> None:
        since = await s.say(f"say {text}", body={"text": f"say {text}", "entities": []})
        await s.wait(lambda c: "✅ claude" in told(c) and c["method"] == "editMessageText", since=since)
        for piece in pieces:
            assert any(piece in shown for shown in await s.shown()), piece
        refused = [c["outcome"] for c in await s.calls_to(ANNA, since=since) if c["outcome"].startswith("400")]
        assert not refused

    play(tmp_path, scene)


@pytest.mark.requires("S4.telegram-57-splitting")
def test_57_markup_that_is_refused_goes_as_plain_text(tmp_path: Path) -> None:
    async def scene(s: Scene) -> None:
        refusal = {"kind": "refuse", "code": 400, "description": "Bad Request: can't parse entities: nobody knows why"}
        await s.control("fault", method="editMessageText", holds='"bold"', **refusal)
        call = await s.ask("say **bold** words", "**bold** words")
        assert "entities" not in call["params"]

    play(tmp_path, scene)


@pytest.mark.requires("S4.telegram-58-flood")
def test_58_edits_pause_as_told_and_the_answer_comes_whole_once(tmp_path: Path) -> None:
    async def scene(s: Scene) -> None:
        await s.control("fault", method="editMessageText", kind="429", retry_after=2)
        since = await s.say("hold")
        refused = await asyncio.to_thread(lambda: s.telegram.wait(lambda c: c["outcome"] == "fault 429", since=since, timeout=15))
        s.supervisor.released.set()
        final = await s.answer('You said: "hold"', since=since)
        assert final["time"] - refused["time"] >= 2.0, "the pause is kept"
        assert sum('You said: "hold"' in text for text in await s.shown()) == 1

    play(tmp_path, scene, drafts="off")


@pytest.mark.requires("S4.telegram-58-flood", "S4.telegram-60-order")
def test_58_60_a_refused_send_waits_is_not_overtaken_and_other_chats_go_on(tmp_path: Path) -> None:
    async def scene(s: Scene) -> None:
        await s.control("fault", method="sendMessage", chat=ANNA, kind="429", retry_after=3)
        since = await s.say("first")
        refused = await asyncio.to_thread(lambda: s.telegram.wait(lambda c: c["outcome"] == "fault 429", since=since, timeout=15))
        await s.say("second")
        await s.ask("ben", 'You said: "ben"', user=BEN)
        assert not any("first" in text for text in await s.shown())
        await s.answer('You said: "second"', since=since)
        first = next(c for c in await s.calls_to(ANNA, "sendMessage", since) if c["outcome"] == "ok")
        assert first["time"] - refused["time"] >= 3.0
        order = [text.split('"')[1] for text in await s.shown()]
        assert order == ["first", "second"]

    play(tmp_path, scene)


@pytest.mark.requires("S4.telegram-62-busy")
def test_62_messages_in_mid_turn_are_all_handed_on_in_order(tmp_path: Path) -> None:
    async def scene(s: Scene) -> None:
        since = await s.say("hold")
        await s.wait(lambda c: "held so far" in told(c), since=since)
        for number in range(3):
            await s.say(f"meanwhile {number}")
        s.supervisor.released.set()
        await s.answer('You said: "meanwhile 2"', since=since)
        assert [text for _, text in s.supervisor.turns] == ["hold", "meanwhile 0", "meanwhile 1", "meanwhile 2"]

    play(tmp_path, scene)


@pytest.mark.requires("S4.telegram-64-topic", "S4.telegram-66-topics", "S2.topics")
def test_64_66_each_topic_is_a_route_of_its_own_and_is_answered_in_its_place(tmp_path: Path) -> None:
    async def scene(s: Scene) -> None:
        await s.control("chat", id=-700, type="supergroup", title="Forum", forum=True, topics={"1": "One", "2": "Two"})
        numbers = []
        for topic in (1, 2, 0):
            call = await s.ask(f"@va_test_bot in {topic}", f'You said: "in {topic}"', chat=-700, topic=topic)
            numbers.append(int(call["params"]["message_id"]))
        assert [route for route, _ in s.supervisor.turns] == ["telegram:tg:-700:1", "telegram:tg:-700:2", "telegram:tg:-700"]
        assert [(await s.message(n, -700)).get("message_thread_id") for n in numbers] == [1, 2, None]

    play(tmp_path, scene)


@pytest.mark.requires("S2.groups")
def test_in_a_group_only_what_is_addressed_to_the_bot_is_a_prompt_and_it_is_answered_as_a_reply(tmp_path: Path) -> None:
    async def scene(s: Scene) -> None:
        await s.control("bot", token="7:x", username="other_bot")
        await s.control("chat", id=-500, type="supergroup", title="Team")
        await s.say("chatting among people", chat=-500)
        await s.say("/status@other_bot", chat=-500, bot="va_test_bot")
        since = await s.say("@va_test_bot ping", chat=-500, bot="va_test_bot")
        await s.answer('You said: "ping"', chat=-500, since=since)
        assert [text for _, text in s.supervisor.turns] == ["ping"]
        (sent,) = await s.calls_to(-500, "sendMessage")
        assert sent["params"]["reply_parameters"]["message_id"] == 3

    play(tmp_path, scene)


@pytest.mark.requires("S2.migration")
def test_a_group_that_becomes_a_supergroup_keeps_its_route(tmp_path: Path) -> None:
    async def scene(s: Scene) -> None:
        await s.control("chat", id=-600, type="group", title="Old")
        since = await s.say("@va_test_bot hold", chat=-600)
        await s.wait(lambda c: "⏳" in told(c), chat=-600, since=since)
        await s.control("migrate", chat=-600, to=-100600)
        s.supervisor.released.set()
        await s.answer('You said: "hold"', chat=-100600, since=since)
        await s.ask("@va_test_bot again", 'You said: "again"', chat=-100600)
        assert len({route for route, _ in s.supervisor.turns}) == 1, "the same conversation"

    play(tmp_path, scene)


@pytest.mark.requires("S4.telegram-70-three-questions", "S2.permission")
def test_70_three_questions_in_one_turn_are_three_messages_with_independent_buttons(tmp_path: Path) -> None:
    async def scene(s: Scene) -> None:
        since = await s.say("ask 3")
        seen = []
        for number in range(3):
            message, shown = await s.question(f"echo {number}", since=since)
            assert await s.press(message, shown["✅ Allow once"])
            seen.append((message, shown["✅ Allow once"]))
        await s.answer('You said: "ask 3"', since=since)
        assert len({m for m, _ in seen}) == len({d for _, d in seen}) == 3
        assert all(len(data.encode()) <= 64 for _, data in seen)
        assert [(a.id, a.option) for a in s.supervisor.answers] == [(f"tn1-p{n}", "y") for n in range(3)]
        for message, _ in seen:
            shown_now = await s.message(message)
            assert buttons(shown_now) == {}
            assert "Allow once by Anna" in words(shown_now)

    play(tmp_path, scene)


@pytest.mark.requires("S2.permission", "S2.late-press")
def test_a_permission_shows_the_command_who_may_answer_and_until_when_and_late_or_foreign_presses_are_told(tmp_path: Path) -> None:
    async def scene(s: Scene) -> None:
        since = await s.say("ask 1")
        message, shown = await s.question("echo 0", since=since)
        text = words(await s.message(message))
        assert "May answer: user42" in text
        assert "Open for 10 min" in text
        await s.control("say", chat=BEN, user=BEN, text="hello")
        other = await s.answer("hello", chat=BEN)
        place = int(other["params"]["message_id"])
        assert "not for you" in await s.press(place, shown["❌ Reject"], user=BEN, force=True)
        assert "not authorised" in await s.press(message, shown["❌ Reject"], user=EVE, chat=ANNA)
        assert "Only the one who asked" in await s.press(message, shown["❌ Reject"], user=BEN, chat=ANNA)
        assert buttons(await s.message(message)) == shown, "still open"
        await s.press(message, shown["❌ Reject"])
        await s.answer("ask 1", since=since)
        assert "decided already: Reject" in await s.press(message, shown["✅ Allow once"], force=True)
        assert [a.option for a in s.supervisor.answers] == ["n"]

    play(tmp_path, scene)


@pytest.mark.requires("S4.telegram-68-open-question")
def test_68_an_open_question_is_answered_over_a_restart_by_its_old_buttons_and_shown_once(tmp_path: Path) -> None:
    async def scene(s: Scene) -> None:
        since = await s.say("ask 1")
        message, shown = await s.question("echo 0", since=since)
        await s.recorded()
        await s.crash()
        await s.press(message, shown["✅ Allow once"])
        await s.answer("ask 1", since=since)
        questions = [text for text in await s.shown() if "echo 0" in text]
        assert len(questions) == 1
        assert len(s.supervisor.answers) == 1

    play(tmp_path, scene)


@pytest.mark.requires("S2.files-in")
def test_pictures_and_files_are_handed_on_as_private_files_and_an_album_as_one_message(tmp_path: Path) -> None:
    async def scene(s: Scene) -> None:
        await s.control("file", ident="PIC1", hex=PNG)
        await s.control("file", ident="DOC1", text="content")
        photo = [{"file_id": "PIC1", "file_unique_id": "u", "width": 1, "height": 1}]
        document = {"file_id": "DOC1", "file_unique_id": "u", "file_name": "../../x.txt", "file_size": 7, "mime_type": "text/plain"}
        await s.control("fault", method="getUpdates", kind="html")
        for body in ({"photo": photo, "media_group_id": "m", "caption": "both"}, {"document": document, "media_group_id": "m"}):
            await s.control("say", chat=ANNA, user=ANNA, body=body)
        await s.answer('You said: "both"')
        assert len(s.supervisor.turns) == 1
        picture, text = s.supervisor.blocks
        assert (picture["type"], picture["mimeType"]) == ("resource_link", "image/jpeg")
        assert text["name"] == "x.txt"
        path = Path(text["uri"].removeprefix("file://"))
        assert (path.read_text(), path.stat().st_mode & 0o777, path.parent) == ("content", 0o600, s.folder / "files")

    play(tmp_path, scene)


@pytest.mark.requires("S2.files-out")
def test_files_of_the_workspace_go_out_and_others_are_refused_with_a_word(tmp_path: Path) -> None:
    work = tmp_path / "bridge"
    work.mkdir()
    (work / "plot.png").write_bytes(bytes.fromhex(PNG))
    (tmp_path / "secret.txt").write_text("secret")
    (work / "link.png").symlink_to(tmp_path / "secret.txt")

    async def scene(s: Scene) -> None:
        since = await s.say("say see ![plot](plot.png) ![no](link.png) [secret](file:///etc/passwd)")
        await s.wait(lambda c: c["method"] in ("sendPhoto", "sendDocument"), since=since)
        answer = (await s.shown())[0]
        assert "link.png was not sent" in answer
        assert "passwd was not sent" in answer
        files = [c for c in await s.calls_to(ANNA, since=since) if c["method"] in ("sendPhoto", "sendDocument")]
        assert len(files) == 1

    play(work, scene)


@pytest.mark.requires("S4.telegram-67-two-pollers")
def test_67_a_second_poller_is_named(tmp_path: Path) -> None:
    from transports.im.errors import Conflict

    async def scene(s: Scene) -> None:
        await s.ask("hello", "hello")
        await asyncio.to_thread(s.telegram.control, "webhook", url="https://example.org")
        await s.control("fault", method="getUpdates", kind="html")
        with pytest.raises(Conflict, match="webhook"):
            async with asyncio.timeout(20):
                await asyncio.to_thread(s.telegram.say, "wake up")
                await s._running

    play(tmp_path, scene)


@pytest.mark.requires("S4.telegram-faults")
@pytest.mark.parametrize("kind", ["html", "cut_before", "cut_after"])
def test_gateway_errors_and_cut_connections_double_and_lose_nothing(tmp_path: Path, kind: str) -> None:
    async def scene(s: Scene) -> None:
        for method in ("getUpdates", "editMessageText", "setMessageReaction", "sendMessageDraft"):
            await s.control("fault", method=method, kind=kind)
        await s.ask("through it", 'You said: "through it"')
        await s.ask("next", 'You said: "next"')
        assert sum('You said: "through it"' in text for text in await s.shown()) == 1
        assert [text for _, text in s.supervisor.turns] == ["through it", "next"]

    play(tmp_path, scene)


@pytest.mark.requires("S4.telegram-faults")
def test_a_placeholder_whose_confirmation_was_cut_off_never_doubles_the_text(tmp_path: Path) -> None:
    async def scene(s: Scene) -> None:
        await s.control("fault", method="sendMessage", kind="cut_after")
        await s.ask("text once", 'You said: "text once"')
        assert sum('You said: "text once"' in text for text in await s.shown()) == 1

    play(tmp_path, scene)


@pytest.mark.requires("S4.telegram-faults")
def test_a_person_who_blocked_the_bot_stops_nobody_and_hears_again_when_he_writes(tmp_path: Path) -> None:
    async def scene(s: Scene) -> None:
        since = await s.say("hold", user=BEN)
        await s.wait(lambda c: "held so far" in told(c), chat=BEN, since=since)
        await s.control("shut", chat=BEN)
        s.supervisor.released.set()
        await s.ask("anna", 'You said: "anna"')
        await s.control("shut", chat=BEN, why="")
        await s.say("back", user=BEN)
        await s.answer('You said: "hold"', chat=BEN, since=since)
        await s.answer('You said: "back"', chat=BEN, since=since)

    play(tmp_path, scene)


def test_a_stranger_reads_the_one_line_and_no_more(tmp_path: Path) -> None:
    async def scene(s: Scene) -> None:
        since = await s.say("let me in", user=EVE)
        await s.wait(lambda c: True, chat=EVE, since=since)
        for text in ("/status", "/start ABCDEFGH", "run: touch x"):
            await s.say(text, user=EVE)
        await s.ask("anna", "anna")
        assert await s.shown(EVE) == ["not authorised / 未授权"]
        assert [text for _, text in s.supervisor.turns] == ["anna"]
        assert "not authorised" in json.dumps((await s.calls_to(EVE))[0]["params"], ensure_ascii=False)

    play(tmp_path, scene)


@pytest.mark.requires("S2.rich")
def test_a_table_of_an_answer_is_a_real_table(tmp_path: Path) -> None:
    async def scene(s: Scene) -> None:
        text = "say |a|b|\n|-|-|\n|1|2|"
        await s.say(text)
        call = await s.wait(lambda c: "rich_message" in c["params"])
        assert any(block["type"] == "table" for block in call["params"]["rich_message"]["blocks"])

    play(tmp_path, scene)
