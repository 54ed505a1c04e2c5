"""Telegram as the kit sees it: each operation of the port as one call of the Bot API."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

from transports.im.content import Outgoing, Rows
from transports.im.errors import BadMarkup, Forbidden, Gone, PlatformError, TooLong, Unsupported
from transports.im.inbound import Chat, FileRef
from transports.im.platform import Inbox, MenuEntry, Setup
from transports.im.telegram import entities, rich
from transports.im.telegram.client import BotApi
from transports.im.telegram.lock import token_lock
from transports.im.telegram.polling import Poller
from transports.im.telegram.updates import Reader

_REACTIONS = {"seen": "👀", "queued": "✍", "done": "👌", "failed": "💔", "": ""}
_STYLES = ("primary", "success", "danger")
_PHOTO_BYTES = 10 * 1024 * 1024
_RICH_AGAIN_S = 3600.0
_DESCRIPTION = 256


class TelegramSurface:
    """One bot. `clock` is monotonic, in seconds."""

    def __init__(self, setup: Setup, clock: Callable[[], float] = time.monotonic) -> None:
        options = setup.options
        self._setup, self._clock = setup, clock
        self._api = BotApi(options["token"], options["api_base_url"], proxy=options.get("proxy", ""))
        self._rich = options.get("rich", "auto") != "off"
        self._drafts = options.get("drafts", "auto") != "off"
        self._plain_until: dict[str, float] = {}
        """Chat → until when no rich message is tried there; "" = nowhere."""

    # --- receiving ---

    async def run(self, inbox: Inbox) -> None:
        with token_lock(self._setup.options["token"], self._setup.options["api_base_url"]):
            me = await self._api.call("getMe")
            await Poller(self._api, Reader(me), self._setup.state, self._setup.log).run(inbox)

    async def close(self) -> None:
        await self._api.close()

    # --- messages ---

    def fits(self, outgoing: Outgoing) -> bool:
        return entities.fits(outgoing)

    async def send(self, chat: Chat, outgoing: Outgoing) -> str:
        params = {**_where(chat), **_how(outgoing), **_keyboard(outgoing.buttons)}
        if (blocks := self._blocks(chat, outgoing)) is not None:
            try:
                sent = await self._api.call("sendRichMessage", {**params, "rich_message": {"blocks": blocks}})
                return str(sent["message_id"])
            except (BadMarkup, Unsupported, TooLong) as error:
                self._no_rich(chat, error)
        sent = await self._api.call("sendMessage", {**params, **_text(outgoing), "link_preview_options": {"is_disabled": True}})
        return str(sent["message_id"])

    async def edit(self, chat: Chat, message: str, outgoing: Outgoing) -> None:
        params = {"chat_id": int(chat.id), "message_id": int(message), **_keyboard(outgoing.buttons)}
        if (blocks := self._blocks(chat, outgoing)) is not None:
            try:
                await self._api.call("editMessageText", {**params, "rich_message": {"blocks": blocks}}, scope="message")
                return
            except (BadMarkup, Unsupported, TooLong) as error:
                self._no_rich(chat, error)
        text = {**_text(outgoing), "link_preview_options": {"is_disabled": True}}
        await self._api.call("editMessageText", {**params, **text}, scope="message")

    async def draft(self, chat: Chat, draft: int, outgoing: Outgoing) -> None:
        if not self._drafts or not chat.direct:
            raise Unsupported("Drafts are for private chats, and can be switched off.")
        params = {**_where(chat), "draft_id": draft, **_text(outgoing), "can_stop": True, "keep_on_stop": True}
        try:
            await self._api.call("sendMessageDraft", params, scope="message")
        except (Forbidden, Gone, BadMarkup, TooLong, Unsupported):
            raise
        except PlatformError as error:
            if type(error) is PlatformError:  # a server that has no drafts says so in words of its own
                raise Unsupported(str(error)) from None
            raise

    async def end_draft(self, chat: Chat, draft: int) -> None:
        """Drafts go with the message that is sent."""

    async def drop_buttons(self, chat: Chat, message: str) -> None:
        await self._api.call("editMessageReplyMarkup", {"chat_id": int(chat.id), "message_id": int(message)}, scope="message")

    async def delete(self, chat: Chat, message: str) -> None:
        try:
            await self._api.call("deleteMessage", {"chat_id": int(chat.id), "message_id": int(message)})
        except Forbidden as error:
            raise Unsupported(str(error)) from None

    async def react(self, chat: Chat, message: str, what: Literal["seen", "queued", "done", "failed", ""]) -> None:
        sign = _REACTIONS[what]
        reaction = [{"type": "emoji", "emoji": sign}] if sign else []
        params = {"chat_id": int(chat.id), "message_id": int(message), "reaction": reaction}
        await self._api.call("setMessageReaction", params, scope="message")

    async def typing(self, chat: Chat) -> None:
        await self._api.call("sendChatAction", {**_where(chat), "action": "typing"}, scope="message")

    async def answer_press(self, press: str, text: str, alert: bool = False) -> None:
        params: dict[str, Any] = {"callback_query_id": press, **({"text": text[:200], "show_alert": alert} if text else {})}
        try:
            await self._api.call("answerCallbackQuery", params, scope="message")
        except PlatformError as error:
            if "query" not in str(error).lower():  # too old to be answered: nobody waits for it any more
                raise

    # --- files ---

    async def send_file(self, chat: Chat, path: Path, name: str, mime: str, outgoing: Outgoing) -> str:
        params = {**_where(chat), **_how(outgoing), **_caption(outgoing), **_keyboard(outgoing.buttons)}
        if mime in ("image/png", "image/jpeg", "image/webp") and path.stat().st_size <= _PHOTO_BYTES:
            try:
                sent = await self._api.call("sendPhoto", params, file=("photo", path, name, mime))
                return str(sent["message_id"])
            except (Unsupported, TooLong):
                pass  # not a picture that Telegram shows (its sides, its format): as a file then
        sent = await self._api.call("sendDocument", params, file=("document", path, name, mime))
        return str(sent["message_id"])

    async def download(self, file: FileRef, target: Path, limit: int) -> int:
        found = await self._api.call("getFile", {"file_id": file.id})
        if int(found.get("file_size") or 0) > limit:
            raise TooLong(f"The file is larger than {limit} bytes.")
        return await self._api.download(str(found["file_path"]), target, limit)

    # --- the menu ---

    async def menu(self, entries: Sequence[MenuEntry], language: str) -> None:
        commands = [{"command": e.name.lower(), "description": e.description[:_DESCRIPTION] or e.name} for e in entries[:100]]
        params: dict[str, Any] = {"commands": commands, **({"language_code": language[:2]} if language else {})}
        await self._api.call("setMyCommands", params, scope="bot")

    # --- rich messages ---

    def _blocks(self, chat: Chat, outgoing: Outgoing) -> list[dict[str, Any]] | None:
        """The blocks of a rich message, where one is worth it and may be tried."""
        if not self._rich or outgoing.plain or not rich.worth_it(outgoing.content):
            return None
        now = self._clock()
        if any(self._plain_until.get(key, 0.0) > now for key in ("", chat.id)):
            return None
        return rich.blocks_of(outgoing.content)

    def _no_rich(self, chat: Chat, error: PlatformError) -> None:
        """A server that does not know the method is not asked again for an hour, a chat neither."""
        everywhere = isinstance(error, Unsupported)
        if len(self._plain_until) > 1000:
            self._plain_until.clear()
        self._plain_until["" if everywhere else chat.id] = self._clock() + _RICH_AGAIN_S


def _where(chat: Chat) -> dict[str, Any]:
    return {"chat_id": int(chat.id), **({"message_thread_id": int(chat.topic)} if chat.topic else {})}


def _how(outgoing: Outgoing) -> dict[str, Any]:
    reply = {"message_id": int(outgoing.reply_to), "allow_sending_without_reply": True} if outgoing.reply_to else None
    return {**({"reply_parameters": reply} if reply else {}), **({"disable_notification": True} if outgoing.silent else {})}


def _text(outgoing: Outgoing) -> dict[str, Any]:
    text, found = entities.render(outgoing)
    return {"text": text, **({"entities": found} if found else {})}


def _caption(outgoing: Outgoing) -> dict[str, Any]:
    text, found = entities.render(outgoing)
    if entities.units(text) > entities.MAX_CAPTION:
        text, found = text.encode("utf-16-le")[: 2 * entities.MAX_CAPTION - 2].decode("utf-16-le", "ignore") + "…", []
    return {**({"caption": text} if text else {}), **({"caption_entities": found} if found else {})}


def _keyboard(rows: Rows) -> dict[str, Any]:
    if not any(rows):
        return {}
    shown = [
        [{"text": b.label, "callback_data": b.data, **({"style": b.style} if b.style in _STYLES else {})} for b in row] for row in rows if row
    ]
    return {"reply_markup": {"inline_keyboard": shown}}


async def learn(token: str, base: str, proxy: str) -> dict[str, Any]:
    """getMe and getWebhookInfo in one: what `Platform.check` tells."""
    api = BotApi(token, base, proxy=proxy)
    try:
        async with asyncio.timeout(14):
            me = await api.call("getMe", timeout=12)
            hook = await api.call("getWebhookInfo", timeout=12)
    finally:
        await api.close()
    return {**me, "webhook": bool(hook.get("url"))}
