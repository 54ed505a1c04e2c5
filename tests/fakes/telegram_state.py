"""What the fake Telegram holds: bots, chats, messages, updates that wait, drafts, files. No network in here."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from tests.fakes.telegram_rules import Refused, bad, found_entities

QUIET_UPDATES = frozenset({"chat_member", "message_reaction", "message_reaction_count"})
"""Left out unless they are asked for by name."""


@dataclass
class Bot:
    token: str
    id: int
    username: str
    privacy: bool = True
    features: set[str] = field(default_factory=lambda: {"drafts", "rich"})
    """drafts, rich: methods that this server knows; topics: private chats have them."""
    updates: list[dict[str, Any]] = field(default_factory=list)
    history: list[dict[str, Any]] = field(default_factory=list)
    """All updates there ever were."""
    next_update: int = 1000
    allowed: list[str] = field(default_factory=list)
    webhook: str = ""
    poll: int = 0
    """Number of the newest getUpdates; an older one that still waits is terminated."""
    commands: dict[str, list[dict[str, str]]] = field(default_factory=dict)
    queries: dict[str, bool] = field(default_factory=dict)
    """Callback query → answered."""

    def user(self) -> dict[str, Any]:
        return {"id": self.id, "is_bot": True, "first_name": self.username, "username": self.username}

    def me(self) -> dict[str, Any]:
        return {
            **self.user(), "can_join_groups": True, "can_read_all_group_messages": not self.privacy, "supports_inline_queries": False,
            "can_connect_to_business": False, "has_main_web_app": False, "has_topics_enabled": "topics" in self.features,
        }  # fmt: skip


@dataclass
class Chat:
    id: int
    type: str
    title: str = ""
    forum: bool = False
    topics: dict[int, str] = field(default_factory=dict)
    closed_topics: set[int] = field(default_factory=set)
    messages: dict[int, dict[str, Any]] = field(default_factory=dict)
    deleted: set[int] = field(default_factory=set)
    next_message: int = 1
    migrated_to: int = 0
    shut: str = ""
    """Why no bot may write there: the words of the 403."""
    drafts: dict[tuple[int, int, int], dict[str, Any]] = field(default_factory=dict)
    """(bot, topic, draft id) → what is shown."""
    reactions: dict[int, str] = field(default_factory=dict)
    started: bool = True

    def public(self) -> dict[str, Any]:
        base: dict[str, Any] = {"id": self.id, "type": self.type}
        if self.type == "private":
            return {**base, "first_name": self.title or f"user{self.id}"}
        return {**base, "title": self.title, **({"is_forum": True} if self.forum else {})}


class Telegram:
    """The whole of it. Chats come into being when a person writes, or by the control door."""

    def __init__(self) -> None:
        self.bots: dict[str, Bot] = {}
        self.chats: dict[int, Chat] = {}
        self.files: dict[str, tuple[str, bytes, int]] = {}
        """File id → path, content, size that is told."""

    # --- set up ---

    def add_bot(self, token: str, username: str, **more: Any) -> Bot:
        bot = Bot(token, int(token.partition(":")[0]), username, privacy=bool(more.get("privacy", True)))
        bot.features |= set(more.get("features", ()))
        bot.features -= set(more.get("without", ()))
        self.bots[token] = bot
        return bot

    def bot(self, username: str) -> Bot:
        return next(b for b in self.bots.values() if username in (b.username, "", str(b.id)))

    def add_chat(self, id: int, type: str = "private", title: str = "", **more: Any) -> Chat:
        chat = Chat(id, type, title, forum=bool(more.get("forum")), started=bool(more.get("started", True)))
        for topic, name in (more.get("topics") or {}).items():
            chat.topics[int(topic)] = str(name)
        self.chats[id] = chat
        return chat

    # --- people ---

    def person(self, id: int, name: str = "", language: str = "") -> dict[str, Any]:
        more = {"language_code": language} if language else {}
        return {"id": id, "is_bot": False, "first_name": name or f"user{id}", **more}

    def post(self, chat: Chat, sender: dict[str, Any] | None, body: dict[str, Any], *, topic: int = 0, reply: int = 0) -> dict[str, Any]:
        """A new message in the chat."""
        number = chat.next_message
        chat.next_message += 1
        message: dict[str, Any] = {"message_id": number, "date": int(time.time()), "chat": chat.public(), **body}
        if sender is not None:
            message["from"] = sender
        if topic:
            message["message_thread_id"] = topic
            message["is_topic_message"] = True
        if reply and reply in chat.messages:
            answered = dict(chat.messages[reply])
            answered.pop("reply_to_message", None)
            message["reply_to_message"] = answered
        chat.messages[number] = message
        return message

    def say(self, bot: Bot, chat: Chat, sender: dict[str, Any] | None, body: dict[str, Any], *, topic: int = 0, reply: int = 0) -> dict[str, Any]:
        """A person writes; the update goes to the bot, unless privacy mode keeps it away."""
        words = "text" if "text" in body else "caption"
        text = str(body.get(words) or "")
        if text and f"{words}_entities" not in body and "entities" not in body:
            found = found_entities(text, bot.username)
            if found:
                body = {**body, ("entities" if words == "text" else "caption_entities"): found}
        message = self.post(chat, sender, body, topic=topic, reply=reply)
        answered = (message.get("reply_to_message") or {}).get("from", {}).get("id") == bot.id
        seen = chat.type == "private" or not bot.privacy or text.startswith("/") or answered or f"@{bot.username}".lower() in text.lower()
        if seen or "new_chat_members" in body or "migrate_to_chat_id" in body or "migrate_from_chat_id" in body:
            self.update(bot, "message", message)
        return message

    def press(self, bot: Bot, chat: Chat, number: int, data: str, sender: dict[str, Any], *, force: bool = False) -> str:
        """A person presses a button; `force`: one that a stale client still shows."""
        message = chat.messages[number]
        shown = [b.get("callback_data") for row in message.get("reply_markup", {}).get("inline_keyboard", []) for b in row]
        if data not in shown and not force:
            raise bad(f"there is no button {data!r}, only {shown}")
        query = f"{bot.next_update}0{number}"
        bot.queries[query] = False
        self.update(bot, "callback_query", {"id": query, "from": sender, "message": message, "chat_instance": str(chat.id), "data": data})
        return query

    def migrate(self, old: Chat, new_id: int) -> Chat:
        """A group becomes a supergroup: both service messages, and the old id refuses from now on."""
        new = self.add_chat(new_id, "supergroup", old.title)
        for bot in self.bots.values():
            sender = self.person(1)
            self.say(bot, old, sender, {"migrate_to_chat_id": new_id})
            self.say(bot, new, sender, {"migrate_from_chat_id": old.id})
        old.migrated_to = new_id
        return new

    # --- updates ---

    def update(self, bot: Bot, kind: str, body: dict[str, Any]) -> int:
        if (kind not in bot.allowed) if bot.allowed else (kind in QUIET_UPDATES):
            return 0
        number = bot.next_update
        bot.next_update += 1
        bot.updates.append({"update_id": number, kind: body})
        bot.history.append(bot.updates[-1])
        return number

    # --- what a bot may do where ---

    def target(self, bot: Bot, raw: Any, topic: Any) -> tuple[Chat, int]:
        """The chat and topic that a call names; refuses as Telegram does."""
        try:
            chat = self.chats[int(raw)]
        except (KeyError, TypeError, ValueError):
            raise bad("chat not found") from None
        if chat.migrated_to:
            raise bad("group chat was upgraded to a supergroup chat", migrate_to_chat_id=chat.migrated_to)
        if chat.shut:
            raise Refused(403, f"Forbidden: {chat.shut}")
        if not chat.started:
            raise Refused(403, "Forbidden: bot can't initiate conversation with a user")
        if topic in (None, "", 0):
            return chat, 0
        number = int(topic)
        if number not in chat.topics or (chat.type == "private" and "topics" not in bot.features):
            raise bad("message thread not found")
        if number in chat.closed_topics:
            raise bad("TOPIC_CLOSED")
        return chat, number

    def own(self, bot: Bot, chat: Chat, raw: Any) -> dict[str, Any]:
        """A message of the bot's own that can be edited."""
        try:
            message = chat.messages[int(raw)]
        except (KeyError, TypeError, ValueError):
            raise bad("message to edit not found") from None
        if message.get("from", {}).get("id") != bot.id:
            raise bad("message can't be edited")
        return message

    def screen(self, chat: Chat) -> list[dict[str, Any]]:
        """What a person sees, top to bottom; drafts last."""
        return [m for n, m in sorted(chat.messages.items()) if n not in chat.deleted]
