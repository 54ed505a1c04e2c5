"""Telegram's updates → the kit's. Pure. What is not for us (other bots' commands, service messages, bots) gives None."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from transports.im.inbound import Chat, FileRef, Membership, Message, Migration, Press, Stopped, Update, User

ALLOWED = ["message", "callback_query", "my_chat_member", "stopped_message_generation"]
"""What is asked for; Telegram remembers the list, so it is always sent."""
_NAMES = {
    "photo": ("photo.jpg", "image/jpeg"), "voice": ("voice.ogg", "audio/ogg"), "audio": ("audio", "audio/mpeg"),
    "video": ("video.mp4", "video/mp4"), "video_note": ("video.mp4", "video/mp4"), "animation": ("animation.mp4", "video/mp4"),
    "sticker": ("sticker.webp", "image/webp"), "document": ("file", ""),
}  # fmt: skip


class Reader:
    """`me`: the bot's getMe."""

    def __init__(self, me: dict[str, Any]) -> None:
        self._id = int(me["id"])
        self._name = str(me.get("username") or "").lower()

    def read(self, raw: dict[str, Any]) -> Update | None:
        """One update; None for what is of no interest. Raises KeyError, TypeError, ValueError for a malformed one."""
        key = str(raw["update_id"])
        if "message" in raw:
            return self._message(key, raw["message"])
        if "callback_query" in raw:
            return self._press(key, raw["callback_query"])
        if "my_chat_member" in raw:
            change = raw["my_chat_member"]
            here = change["new_chat_member"].get("status") not in ("left", "kicked")
            return Membership(key, _chat(change), _user(change.get("from")), present=here)
        if "stopped_message_generation" in raw:
            stop = raw["stopped_message_generation"]
            topic = str(stop.get("message_thread_id") or "")
            chat = replace(_chat(stop), topic=topic)
            return Stopped(key, chat, User(str(stop["chat"]["id"])), draft=int(stop["draft_id"]))
        return None

    def _press(self, key: str, query: dict[str, Any]) -> Press | None:
        message = query.get("message")
        if not isinstance(message, dict) or "data" not in query:
            return None
        return Press(
            key, _chat(message), _user(query["from"]), data=str(query["data"]), message=str(message["message_id"]), press=str(query["id"])
        )

    def _message(self, key: str, message: dict[str, Any]) -> Update | None:
        chat = _chat(message)
        if message.get("migrate_to_chat_id"):
            return Migration(key, chat, _user(message.get("from")), to=str(message["migrate_to_chat_id"]))
        sender = message.get("from")
        if not isinstance(sender, dict) or (sender.get("is_bot") and "sender_chat" not in message):
            return None
        # an anonymous admin or a channel writes through a helper account: nobody that could be told apart
        user = User("") if "sender_chat" in message or sender.get("is_bot") else _user(sender)
        files = tuple(_files(message))
        text = str(message.get("text") or message.get("caption") or "") or _told(message)
        if not text and not files:
            return None
        entities = message.get("entities") or message.get("caption_entities") or []
        heard, addressed = self._addressed(text, entities)
        if heard is None:
            return None
        answered = message.get("reply_to_message")
        if isinstance(answered, dict) and "forum_topic_created" not in answered:
            addressed = addressed or (answered.get("from") or {}).get("id") == self._id
        quote = message.get("quote") or {}
        return Message(
            key, chat, user, message=str(message["message_id"]), text=heard, files=files, quote=str(quote.get("text") or "") if quote.get("is_manual") else "",
            addressed=chat.direct or addressed,
        )  # fmt: skip

    def _addressed(self, text: str, entities: list[dict[str, Any]]) -> tuple[str | None, bool]:
        """The text without the mention of this bot, and whether there was one. (None, False): a command to another bot."""
        raw, addressed = text.encode("utf-16-le", "surrogatepass"), False
        for entity in sorted(entities, key=lambda e: -int(e["offset"])):
            start, end = 2 * int(entity["offset"]), 2 * (int(entity["offset"]) + int(entity["length"]))
            word = raw[start:end].decode("utf-16-le", "replace")
            if entity["type"] == "bot_command" and start == 0:
                name, _, bot = word.partition("@")
                if bot and bot.lower() != self._name:
                    return None, False
                addressed = True
                raw = name.encode("utf-16-le") + raw[end:]
            elif (entity["type"] == "mention" and word[1:].lower() == self._name) or (
                entity["type"] == "text_mention" and (entity.get("user") or {}).get("id") == self._id
            ):
                addressed = True
                raw = raw[:start] + raw[end:]
        found = raw.decode("utf-16-le", "replace").strip()
        return found, addressed


def merge_albums(updates: list[dict[str, Any]]) -> list[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """Each update with those that belong to it: the further pictures of an album, which Telegram sends as messages of their own."""
    merged: list[tuple[dict[str, Any], list[dict[str, Any]]]] = []
    albums: dict[tuple[int, str], int] = {}
    for update in updates:
        message = update.get("message")
        album = message.get("media_group_id") if isinstance(message, dict) else None
        if album is None or not isinstance(message, dict):
            merged.append((update, []))
            continue
        key = (int(message["chat"]["id"]), str(album))
        if key in albums:
            merged[albums[key]][1].append(update)
        else:
            albums[key] = len(merged)
            merged.append((update, []))
    return merged


def album_of(updates: list[dict[str, Any]]) -> bool:
    """Whether the last update is a part of an album, of which more may be on its way."""
    return bool(updates) and isinstance(updates[-1].get("message"), dict) and "media_group_id" in updates[-1]["message"]


def joined(first: Update | None, others: list[Update | None]) -> Update | None:
    """One message of an album's messages: all files, the first text that there is."""
    messages = [u for u in (first, *others) if isinstance(u, Message)]
    if not messages:
        return first
    files = tuple(file for message in messages for file in message.files)
    text = next((m.text for m in messages if m.text), "")
    return replace(messages[0], files=files, text=text, addressed=any(m.addressed for m in messages))


def _chat(holder: dict[str, Any]) -> Chat:
    """The chat of a message or of another object that has one; the topic only where the message is one of a topic."""
    chat = holder["chat"]
    direct = chat.get("type") == "private"
    title = str(chat.get("title") or chat.get("first_name") or "")
    topic = str(holder["message_thread_id"]) if holder.get("is_topic_message") and holder.get("message_thread_id") else ""
    return Chat(str(int(chat["id"])), topic, direct, title)


def _user(raw: Any) -> User:
    if not isinstance(raw, dict):
        return User("")
    name = " ".join(str(raw[key]) for key in ("first_name", "last_name") if raw.get(key))
    return User(str(int(raw["id"])), name or str(raw.get("username") or ""), str(raw.get("language_code") or ""))


def _files(message: dict[str, Any]) -> list[FileRef]:
    found = []
    for kind, (name, mime) in _NAMES.items():
        raw = message.get(kind)
        if kind == "photo" and isinstance(raw, list) and raw:
            raw = max(raw, key=lambda size: (int(size.get("file_size") or 0), int(size.get("width") or 0)))
        if not isinstance(raw, dict) or "file_id" not in raw or (kind == "document" and "animation" in message):
            continue
        mime = str(raw.get("mime_type") or mime)
        if kind == "sticker" and (raw.get("is_animated") or raw.get("is_video")):
            name, mime = "sticker", "application/octet-stream"
        found.append(
            FileRef(
                str(raw["file_id"]), str(raw.get("file_name") or name), mime, int(raw.get("file_size") or -1),
                image=kind == "photo" or mime in ("image/png", "image/jpeg", "image/webp", "image/gif"),
            )
        )  # fmt: skip
    return found


def _told(message: dict[str, Any]) -> str:
    """Words for what is neither text nor file."""
    if isinstance(place := message.get("location"), dict):
        return f"📍 {place.get('latitude')}, {place.get('longitude')}"
    if isinstance(contact := message.get("contact"), dict):
        return " ".join(str(contact[key]) for key in ("first_name", "last_name", "phone_number") if contact.get(key))
    if isinstance(poll := message.get("poll"), dict):
        options = "\n".join(f"- {option.get('text')}" for option in poll.get("options") or [])
        return f"{poll.get('question')}\n{options}"
    return ""
