"""Drives a Bot API with aiogram, in an environment of its own:  python oracle_aiogram.py URL TOKEN  → one JSON object."""
# mypy: ignore-errors

import asyncio
import json
import sys

from aiogram import Bot
from aiogram.client.session.aiohttp import AiohttpSession
from aiogram.client.telegram import TelegramAPIServer
from aiogram.exceptions import ClientDecodeError, TelegramAPIError, TelegramMigrateToChat, TelegramRetryAfter
from aiogram.types import (
    BotCommand,
    BufferedInputFile,
    InlineKeyboardButton,
    InlineKeyboardMarkup,
    InputRichBlockParagraph,
    InputRichMessage,
    MessageEntity,
    ReactionTypeEmoji,
    ReplyParameters,
    RichTextBold,
)

CHAT, GROUP = 42, -77
seen = {}


async def refused(name, call):
    try:
        await call
        seen[name] = "accepted"
    except TelegramRetryAfter as error:
        seen[name] = f"retry {error.retry_after}"
    except TelegramMigrateToChat as error:
        seen[name] = f"migrate {error.migrate_to_chat_id}"
    except (TelegramAPIError, ClientDecodeError) as error:
        seen[name] = f"{type(error).__name__}: {error}"


async def main():
    session = AiohttpSession(api=TelegramAPIServer.from_base(sys.argv[1]))
    bot = Bot(sys.argv[2], session=session)
    me = await bot.get_me()
    seen["me"] = me.username
    updates = await bot.get_updates(timeout=2)
    seen["updates"] = [(u.event_type, u.event.text) for u in updates]
    seen["entities"] = [e.type for u in updates for e in u.message.entities or []]
    seen["left"] = len(await bot.get_updates(offset=updates[-1].update_id + 1))
    keys = InlineKeyboardMarkup(inline_keyboard=[[InlineKeyboardButton(text="Yes", callback_data="y" * 64, style="success")]])
    sent = await bot.send_message(
        CHAT, "  Grüße 😀 fett", entities=[MessageEntity(type="bold", offset=11, length=4)], reply_markup=keys, reply_parameters=ReplyParameters(message_id=1)
    )
    seen["sent"] = [sent.text, sent.entities[0].offset, sent.reply_markup.inline_keyboard[0][0].style, sent.reply_to_message.message_id]
    edited = await bot.edit_message_text("42", chat_id=CHAT, message_id=sent.message_id)
    seen["edited"] = [edited.text, edited.reply_markup is None]
    seen["draft"] = await bot.send_message_draft(CHAT, 7, text="so far", can_stop=True)
    rich = await bot.send_rich_message(CHAT, InputRichMessage(blocks=[InputRichBlockParagraph(text=["a ", RichTextBold(text="b")])]))
    seen["rich"] = rich.rich_message.blocks[0].type
    seen["action"] = await bot.send_chat_action(CHAT, "typing")
    seen["reaction"] = await bot.set_message_reaction(CHAT, 1, reaction=[ReactionTypeEmoji(emoji="👀")])
    document = await bot.send_document(CHAT, BufferedInputFile(b"content", "a.txt"), caption="see")
    seen["document"] = [document.document.file_name, document.caption]
    seen["download"] = (await bot.download(document.document.file_id)).read().decode()
    photo = await bot.send_photo(CHAT, BufferedInputFile(b"\x89PNG....", "a.png"))
    seen["photo"] = photo.photo[-1].width
    await bot.set_my_commands([BotCommand(command="pickup", description="Take over")], language_code="zh")
    seen["menu"] = [c.command for c in await bot.get_my_commands(language_code="zh")]
    seen["webhook"] = (await bot.get_webhook_info()).pending_update_count
    await refused("not modified", bot.edit_message_text("42", chat_id=CHAT, message_id=sent.message_id))
    await refused("2048 emoji", bot.send_message(CHAT, "😀" * 2048))
    await refused("2049 emoji", bot.send_message(CHAT, "😀" * 2049))
    await refused("caption", bot.send_document(CHAT, BufferedInputFile(b"c", "a"), caption="x" * 1025))
    await refused("empty", bot.send_message(CHAT, " "))
    long = InlineKeyboardMarkup(inline_keyboard=[[InlineKeyboardButton(text="Yes", callback_data="ü" * 33)]])
    await refused("65 bytes", bot.send_message(CHAT, "x", reply_markup=long))
    await refused("outside", bot.send_message(CHAT, "x", entities=[MessageEntity(type="bold", offset=90, length=4)]))
    await refused("torn", bot.send_message(CHAT, "😀", entities=[MessageEntity(type="bold", offset=1, length=1)]))
    crossing = [MessageEntity(type="bold", offset=0, length=3), MessageEntity(type="italic", offset=2, length=3)]
    await refused("crossing", bot.send_message(CHAT, "abcdef", entities=crossing))
    await refused("unknown type", bot.send_message(CHAT, "x", entities=[MessageEntity(type="blink", offset=0, length=1)]))
    await refused("topic", bot.send_message(GROUP, "x", message_thread_id=9))
    topic = await bot.send_message(GROUP, "in topic", message_thread_id=5)
    seen["in topic"] = [topic.message_thread_id, topic.is_topic_message]
    await refused("group draft", bot.send_message_draft(GROUP, 7, text="x"))
    await refused("no chat", bot.send_message(999, "x"))
    await refused("blocked", bot.send_message(43, "x"))
    await refused("migrated", bot.send_message(-5, "x"))
    await refused("flood", bot.send_message(CHAT, "flood"))
    await refused("html", bot.send_message(CHAT, "html"))
    await refused("cut", bot.send_message(CHAT, "cut"))
    await refused("reaction invalid", bot.set_message_reaction(CHAT, 1, reaction=[ReactionTypeEmoji(emoji="🧿")]))
    await refused("old press", bot.answer_callback_query("nothing"))
    first = asyncio.create_task(bot.get_updates(timeout=5))
    await asyncio.sleep(0.2)
    await bot.get_updates(timeout=0)
    await refused("two pollers", first)
    await bot.set_webhook("https://example.org/x")
    await refused("webhook poll", bot.get_updates())
    await bot.delete_webhook()
    await session.close()
    print(json.dumps(seen, ensure_ascii=False))


asyncio.run(main())
