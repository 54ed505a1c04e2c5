"""The methods of the fake Bot API, by their lower-case names: each takes (telegram, bot, parameters) and gives the result."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

from tests.fakes import telegram_rules as rules
from tests.fakes.telegram_rules import bad
from tests.fakes.telegram_state import Bot, Chat, Telegram

Parameters = dict[str, Any]
Upload = tuple[str, bytes]
"""File name and content of an uploaded part."""


def _reply(params: Parameters, chat: Chat) -> int:
    raw = params.get("reply_parameters")
    number = int(raw.get("message_id") or 0) if isinstance(raw, dict) else int(params.get("reply_to_message_id") or 0)
    if number and (number not in chat.messages or number in chat.deleted):
        if isinstance(raw, dict) and raw.get("allow_sending_without_reply"):
            return 0
        raise bad("message to be replied not found")
    return number


def _words(params: Parameters, key: str, limit: int, *, may_be_empty: bool = False) -> tuple[str, list[dict[str, Any]]]:
    entities_key = "entities" if key == "text" else "caption_entities"
    text, moved = rules.text_of(params.get(key), limit, may_be_empty=may_be_empty, what="message" if key == "text" else "caption")
    if params.get("parse_mode"):
        raise bad(f"unsupported parse_mode {params['parse_mode']}: this fake takes entities only")
    return text, rules.entities_of(params.get(entities_key), text, moved)


def _markup(params: Parameters) -> dict[str, Any]:
    rows = rules.keyboard_of(params.get("reply_markup"))
    return {"reply_markup": {"inline_keyboard": rows}} if rows else {}


def _sent(telegram: Telegram, bot: Bot, params: Parameters, body: dict[str, Any]) -> dict[str, Any]:
    chat, topic = telegram.target(bot, params.get("chat_id"), params.get("message_thread_id"))
    reply = _reply(params, chat)
    for key in [key for key in chat.drafts if key[0] == bot.id and key[1] == topic]:
        del chat.drafts[key]
    silent = {"disable_notification": True} if params.get("disable_notification") else {}
    message = telegram.post(chat, bot.user(), {**body, **_markup(params)}, topic=topic, reply=reply)
    chat.messages[message["message_id"]].update({"_silent": True} if silent else {})
    return message


def get_me(telegram: Telegram, bot: Bot, params: Parameters) -> Any:
    return bot.me()


def send_message(telegram: Telegram, bot: Bot, params: Parameters) -> Any:
    telegram.target(bot, params.get("chat_id"), params.get("message_thread_id"))
    text, entities = _words(params, "text", rules.TEXT_UNITS)
    return _sent(telegram, bot, params, {"text": text, **({"entities": entities} if entities else {})})


def send_rich_message(telegram: Telegram, bot: Bot, params: Parameters) -> Any:
    telegram.target(bot, params.get("chat_id"), params.get("message_thread_id"))
    rich = rules.rich_of(params.get("rich_message"), draft=False)
    return _sent(telegram, bot, params, {"rich_message": {"blocks": rich.get("blocks") or []}, "_rich": rules.rich_text_of(rich)})


def edit_message_text(telegram: Telegram, bot: Bot, params: Parameters) -> Any:
    chat, _ = telegram.target(bot, params.get("chat_id"), None)
    message = telegram.own(bot, chat, params.get("message_id"))
    if message["message_id"] in chat.deleted:
        raise bad("message to edit not found")
    if "text" not in message and "rich_message" not in message:
        raise bad("there is no text in the message to edit")
    if params.get("rich_message") is not None:
        rich = rules.rich_of(params["rich_message"], draft=False)
        body: dict[str, Any] = {"rich_message": {"blocks": rich.get("blocks") or []}, "_rich": rules.rich_text_of(rich)}
    else:
        text, entities = _words(params, "text", rules.TEXT_UNITS)
        body = {"text": text, **({"entities": entities} if entities else {})}
    return _changed(message, {**body, **_markup(params)}, ("text", "entities", "rich_message", "_rich", "reply_markup"))


def edit_message_caption(telegram: Telegram, bot: Bot, params: Parameters) -> Any:
    chat, _ = telegram.target(bot, params.get("chat_id"), None)
    message = telegram.own(bot, chat, params.get("message_id"))
    text, entities = _words(params, "caption", rules.CAPTION_UNITS, may_be_empty=True)
    body = {"caption": text, **({"caption_entities": entities} if entities else {}), **_markup(params)}
    return _changed(message, body, ("caption", "caption_entities", "reply_markup"))


def edit_message_reply_markup(telegram: Telegram, bot: Bot, params: Parameters) -> Any:
    chat, _ = telegram.target(bot, params.get("chat_id"), None)
    message = telegram.own(bot, chat, params.get("message_id"))
    return _changed(message, _markup(params), ("reply_markup",))


def _changed(message: dict[str, Any], body: dict[str, Any], keys: tuple[str, ...]) -> dict[str, Any]:
    if all(message.get(key) == body.get(key) for key in keys):
        raise bad(
            "message is not modified: specified new message content and reply markup are exactly the same as a current content "
            "and reply markup of the message"
        )
    for key in keys:
        message.pop(key, None)
    message.update(body)
    message["edit_date"] = message["date"]
    return message


def delete_message(telegram: Telegram, bot: Bot, params: Parameters) -> Any:
    chat, _ = telegram.target(bot, params.get("chat_id"), None)
    number = int(params.get("message_id") or 0)
    if number not in chat.messages or number in chat.deleted:
        raise bad("message to delete not found")
    chat.deleted.add(number)
    return True


def _draft(telegram: Telegram, bot: Bot, params: Parameters, body: dict[str, Any]) -> bool:
    chat, topic = telegram.target(bot, params.get("chat_id"), params.get("message_thread_id"))
    if chat.type != "private":
        raise bad("drafts are available in private chats only")
    draft = params.get("draft_id")
    if not isinstance(draft, int) or draft == 0:
        raise bad("DRAFT_ID_INVALID")
    chat.drafts[bot.id, topic, draft] = {**body, "can_stop": bool(params.get("can_stop"))}
    return True


def send_message_draft(telegram: Telegram, bot: Bot, params: Parameters) -> Any:
    text, entities = _words(params, "text", rules.TEXT_UNITS, may_be_empty=True)
    return _draft(telegram, bot, params, {"text": text, "entities": entities})


def send_rich_message_draft(telegram: Telegram, bot: Bot, params: Parameters) -> Any:
    rich = rules.rich_of(params.get("rich_message"), draft=True)
    return _draft(telegram, bot, params, {"rich": rules.rich_text_of(rich)})


def send_chat_action(telegram: Telegram, bot: Bot, params: Parameters) -> Any:
    telegram.target(bot, params.get("chat_id"), params.get("message_thread_id"))
    if params.get("action") not in ("typing", "upload_document", "upload_photo"):
        raise bad("wrong parameter action in request")
    return True


def set_message_reaction(telegram: Telegram, bot: Bot, params: Parameters) -> Any:
    chat, _ = telegram.target(bot, params.get("chat_id"), None)
    number, reaction = int(params.get("message_id") or 0), params.get("reaction") or []
    if number not in chat.messages:
        raise bad("message to react not found")
    if len(reaction) > 1 or any(r.get("type") != "emoji" or r.get("emoji") not in rules.REACTIONS for r in reaction):
        raise bad("REACTION_INVALID")
    chat.reactions[number] = reaction[0]["emoji"] if reaction else ""
    return True


def answer_callback_query(telegram: Telegram, bot: Bot, params: Parameters) -> Any:
    query = str(params.get("callback_query_id"))
    if bot.queries.get(query, True):
        raise bad("query is too old and response timeout expired or query ID is invalid")
    if len(str(params.get("text") or "")) > 200:
        raise bad("MESSAGE_TOO_LONG")
    bot.queries[query] = True
    return True


def get_file(telegram: Telegram, bot: Bot, params: Parameters) -> Any:
    found = telegram.files.get(str(params.get("file_id")))
    if found is None:
        raise bad("wrong file_id or the file is temporarily unavailable")
    path, _, size = found
    if size > 20 * 1024 * 1024:
        raise bad("file is too big")
    ident = str(params["file_id"])
    return {"file_id": ident, "file_unique_id": f"u{ident}", "file_size": size, "file_path": path}


def _uploaded(telegram: Telegram, params: Parameters, key: str, largest: int) -> dict[str, Any]:
    raw = params.get(key)
    if isinstance(raw, str) and raw.startswith("attach://"):
        raw = params.get(raw.removeprefix("attach://"))
    if not isinstance(raw, tuple):
        raise bad(f"there is no {key} in the request")
    name, content = raw
    if not content:
        raise bad("file must be non-empty")
    if len(content) > largest:
        raise rules.Refused(413, "Request Entity Too Large")
    ident = f"F{hashlib.sha256(content + name.encode()).hexdigest()[:16]}"
    telegram.files[ident] = (f"documents/{ident}", content, len(content))
    return {"file_id": ident, "file_unique_id": f"u{ident}", "file_size": len(content), "file_name": name}


def _captioned(params: Parameters) -> dict[str, Any]:
    text, entities = _words(params, "caption", rules.CAPTION_UNITS, may_be_empty=True)
    return {**({"caption": text} if text else {}), **({"caption_entities": entities} if entities else {})}


def send_document(telegram: Telegram, bot: Bot, params: Parameters) -> Any:
    file = _uploaded(telegram, params, "document", 50 * 1024 * 1024)
    return _sent(telegram, bot, params, {"document": file, **_captioned(params)})


def send_photo(telegram: Telegram, bot: Bot, params: Parameters) -> Any:
    file = _uploaded(telegram, params, "photo", 10 * 1024 * 1024)
    content = telegram.files[file["file_id"]][1]
    if not content.startswith((b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"RIFF")):
        raise bad("IMAGE_PROCESS_FAILED")
    file.pop("file_name")
    return _sent(telegram, bot, params, {"photo": [{**file, "width": 90, "height": 90}], **_captioned(params)})


def set_my_commands(telegram: Telegram, bot: Bot, params: Parameters) -> Any:
    bot.commands[_scope(params)] = rules.commands_of(params.get("commands"))
    return True


def get_my_commands(telegram: Telegram, bot: Bot, params: Parameters) -> Any:
    return bot.commands.get(_scope(params), [])


def delete_my_commands(telegram: Telegram, bot: Bot, params: Parameters) -> Any:
    bot.commands.pop(_scope(params), None)
    return True


def _scope(params: Parameters) -> str:
    scope = params.get("scope") or {}
    return f"{scope.get('type', 'default')}/{params.get('language_code') or ''}"


def set_webhook(telegram: Telegram, bot: Bot, params: Parameters) -> Any:
    bot.webhook = str(params.get("url") or "")
    return True


def delete_webhook(telegram: Telegram, bot: Bot, params: Parameters) -> Any:
    bot.webhook = ""
    if params.get("drop_pending_updates"):
        bot.updates.clear()
    return True


def get_webhook_info(telegram: Telegram, bot: Bot, params: Parameters) -> Any:
    return {"url": bot.webhook, "has_custom_certificate": False, "pending_update_count": len(bot.updates)}


def get_chat(telegram: Telegram, bot: Bot, params: Parameters) -> Any:
    chat, _ = telegram.target(bot, params.get("chat_id"), None)
    return {**chat.public(), "accent_color_id": 0, "max_reaction_count": 11}


_NEEDS = {"sendmessagedraft": "drafts", "sendrichmessage": "rich", "sendrichmessagedraft": "rich"}

METHODS: dict[str, Callable[[Telegram, Bot, Parameters], Any]] = {
    name.replace("_", ""): function
    for name, function in list(globals().items())
    if name.partition("_")[0] in ("get", "send", "edit", "delete", "set", "answer") and callable(function)
}


def method_of(bot: Bot, name: str) -> Callable[[Telegram, Bot, Parameters], Any] | None:
    """None for a method that this server does not know (an older one knows no drafts)."""
    needed = _NEEDS.get(name)
    return METHODS.get(name) if needed is None or needed in bot.features else None
