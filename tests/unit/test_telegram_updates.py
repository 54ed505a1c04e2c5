"""What Telegram reports, as the kit understands it."""

from __future__ import annotations

from typing import Any

from transports.im.inbound import Chat, Membership, Message, Migration, Press, Stopped
from transports.im.telegram.updates import Reader, joined, merge_albums

ME = {"id": 7, "is_bot": True, "username": "va_test_bot"}
ANNA = {"id": 42, "is_bot": False, "first_name": "Anna", "last_name": "A.", "language_code": "zh-hans"}
DIRECT = {"id": 42, "type": "private", "first_name": "Anna"}
GROUP = {"id": -1001, "type": "supergroup", "title": "Team", "is_forum": True}


def _read(message: dict[str, Any]) -> Any:
    return Reader(ME).read({"update_id": 5, "message": {"message_id": 9, "date": 1, "from": ANNA, "chat": DIRECT, **message}})


def _entity(kind: str, offset: int, length: int, **more: Any) -> dict[str, Any]:
    return {"type": kind, "offset": offset, "length": length, **more}


def test_a_message_to_the_bot_is_read_with_who_and_where() -> None:
    found = _read({"text": "hello"})
    assert isinstance(found, Message)
    assert (found.update, found.message, found.text, found.addressed) == ("5", "9", "hello", True)
    assert (found.user.id, found.user.name, found.user.language) == ("42", "Anna A.", "zh-hans")
    assert (found.chat, found.chat.direct) == (Chat("42"), True)


def test_a_topic_counts_only_where_the_message_is_one_of_a_topic() -> None:
    assert _read({"text": "x", "chat": GROUP, "message_thread_id": 3, "is_topic_message": True}).chat == Chat("-1001", "3")
    assert _read({"text": "x", "chat": GROUP, "message_thread_id": 3}).chat == Chat("-1001", "")


def test_in_a_group_only_mention_reply_and_command_are_addressed() -> None:
    assert not _read({"text": "hello all", "chat": GROUP}).addressed
    mention = _read({"text": "😀 @VA_test_bot do it", "chat": GROUP, "entities": [_entity("mention", 3, 12)]})
    assert (mention.addressed, mention.text) == (True, "😀  do it")
    assert not _read({"text": "@another_bot x", "chat": GROUP, "entities": [_entity("mention", 0, 12)]}).addressed
    assert _read({"text": "yes", "chat": GROUP, "reply_to_message": {"message_id": 1, "from": ME}}).addressed
    made = {"message_id": 3, "from": ME, "forum_topic_created": {"name": "t"}}
    assert not _read({"text": "chat in a topic that the bot made", "chat": GROUP, "reply_to_message": made}).addressed


def test_a_command_to_another_bot_is_not_ours_and_one_to_ours_loses_its_name() -> None:
    assert _read({"text": "/status@other_bot", "chat": GROUP, "entities": [_entity("bot_command", 0, 17)]}) is None
    ours = _read({"text": "/pickup@va_test_bot K7QM", "chat": GROUP, "entities": [_entity("bot_command", 0, 19)]})
    assert (ours.text, ours.addressed) == ("/pickup K7QM", True)


def test_nobody_in_particular_has_no_user_id() -> None:
    helper = {"id": 1087968824, "is_bot": True, "first_name": "Group"}
    assert _read({"text": "x", "chat": GROUP, "from": helper, "sender_chat": GROUP}).user.id == ""
    assert _read({"text": "x", "chat": GROUP, "from": {"id": 99, "is_bot": True, "first_name": "bot"}}) is None


def test_files_come_with_name_kind_and_size_and_the_largest_of_a_picture() -> None:
    sizes = [{"file_id": "small", "file_size": 10, "width": 9}, {"file_id": "large", "file_size": 900, "width": 90}]
    picture = _read({"caption": "see", "photo": sizes})
    assert (picture.text, picture.files[0].id, picture.files[0].image) == ("see", "large", True)
    (document,) = _read({"document": {"file_id": "d", "file_name": "../../x.py", "mime_type": "text/x-python", "file_size": 3}}).files
    assert (document.name, document.mime, document.size, document.image) == ("../../x.py", "text/x-python", 3, False)
    assert _read({"voice": {"file_id": "v", "duration": 1}}).files[0].mime == "audio/ogg"
    assert _read({"pinned_message": {}}) is None


def test_an_album_is_one_message_with_all_its_pictures() -> None:
    def part(number: int, chat: dict[str, Any] = DIRECT, **more: Any) -> dict[str, Any]:
        photo = [{"file_id": f"p{number}", "width": 1}]
        message = {"message_id": number, "date": 1, "from": ANNA, "chat": chat, "photo": photo, "media_group_id": "m", **more}
        return {"update_id": number, "message": message}

    merged = merge_albums([part(1), part(2, caption="both"), part(3, GROUP), {"update_id": 4, "callback_query": {}}])
    assert [(u["update_id"], len(o)) for u, o in merged] == [(1, 1), (3, 0), (4, 0)]
    reader = Reader(ME)
    whole = joined(reader.read(merged[0][0]), [reader.read(o) for o in merged[0][1]])
    assert isinstance(whole, Message)
    assert (whole.update, whole.text, [f.id for f in whole.files]) == ("1", "both", ["p1", "p2"])


def test_presses_stops_migrations_and_memberships_are_told() -> None:
    reader = Reader(ME)
    message = {"message_id": 8, "date": 1, "chat": GROUP, "message_thread_id": 3, "is_topic_message": True}
    press = reader.read({"update_id": 6, "callback_query": {"id": "q", "from": ANNA, "message": message, "data": "p:1:a"}})
    assert isinstance(press, Press)
    assert (press.chat, press.data, press.message, press.press, press.user.id) == (Chat("-1001", "3"), "p:1:a", "8", "q", "42")
    stop = reader.read({"update_id": 7, "stopped_message_generation": {"chat": DIRECT, "draft_id": 11}})
    assert isinstance(stop, Stopped)
    assert (stop.draft, stop.user.id) == (11, "42")
    moved = _read({"chat": {"id": -5, "type": "group"}, "migrate_to_chat_id": -1005})
    assert isinstance(moved, Migration)
    assert (moved.chat.id, moved.to) == ("-5", "-1005")
    change = {"chat": DIRECT, "from": ANNA, "old_chat_member": {"status": "member"}, "new_chat_member": {"status": "kicked"}}
    left = reader.read({"update_id": 8, "my_chat_member": change})
    assert isinstance(left, Membership)
    assert not left.present


def test_only_what_was_quoted_on_purpose_is_a_quote() -> None:
    assert _read({"text": "this?", "quote": {"text": "line 3", "is_manual": True, "position": 0}}).quote == "line 3"
    assert _read({"text": "this?", "quote": {"text": "all", "position": 0}}).quote == ""
