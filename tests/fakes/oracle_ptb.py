"""Drives a Bot API with python-telegram-bot, in an environment of its own:  python oracle_ptb.py URL TOKEN  → one JSON object."""
# mypy: ignore-errors

import asyncio
import io
import json
import sys

from telegram import Bot, InlineKeyboardButton, InlineKeyboardMarkup, MessageEntity, ReactionTypeEmoji
from telegram.error import ChatMigrated, RetryAfter, TelegramError

CHAT, GROUP = 42, -77
seen = {}


async def refused(name, call):
    try:
        await call
        seen[name] = "accepted"
    except RetryAfter as error:
        seen[name] = f"retry {error.retry_after if isinstance(error.retry_after, int) else int(error.retry_after.total_seconds())}"
    except ChatMigrated as error:
        seen[name] = f"migrate {error.new_chat_id}"
    except TelegramError as error:
        seen[name] = f"{type(error).__name__}: {error}"


async def main():
    url, token = sys.argv[1:]
    async with Bot(token, base_url=f"{url}/bot", base_file_url=f"{url}/file/bot") as bot:
        seen["me"] = (await bot.get_me()).username
        updates = await bot.get_updates(timeout=2)
        seen["updates"] = [u.message.text for u in updates]
        seen["left"] = len(await bot.get_updates(offset=updates[-1].update_id + 1))
        keys = InlineKeyboardMarkup([[InlineKeyboardButton("Yes", callback_data="y" * 64)]])
        sent = await bot.send_message(CHAT, "Grüße 😀 fett", entities=[MessageEntity("bold", 9, 4)], reply_markup=keys)
        seen["sent"] = [sent.text, sent.parse_entity(sent.entities[0]), sent.reply_markup.inline_keyboard[0][0].callback_data]
        edited = await bot.edit_message_text("42", CHAT, sent.message_id)
        seen["edited"] = edited.text
        seen["reaction"] = await bot.set_message_reaction(CHAT, 1, [ReactionTypeEmoji("👀")])
        document = await bot.send_document(CHAT, io.BytesIO(b"content"), filename="a.txt", caption="see")
        seen["document"] = document.document.file_name
        file = await bot.get_file(document.document.file_id)
        seen["download"] = bytes(await file.download_as_bytearray()).decode()
        seen["menu"] = await bot.set_my_commands([("pickup", "Take over")])
        await refused("not modified", bot.edit_message_text("42", CHAT, sent.message_id))
        await refused("2049 emoji", bot.send_message(CHAT, "😀" * 2049))
        await refused("blocked", bot.send_message(43, "x"))
        await refused("migrated", bot.send_message(-5, "x"))
        await refused("flood", bot.send_message(CHAT, "flood"))
        await refused("html", bot.send_message(CHAT, "html"))
        await refused("old press", bot.answer_callback_query("nothing"))
        await refused("bad token", Bot("1:x", base_url=f"{url}/bot").initialize())
    print(json.dumps(seen, ensure_ascii=False))


asyncio.run(main())
