"""Telegram, by its Bot API: a thin client on aiohttp, long polling, entities instead of a parse mode."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from urllib.parse import urlsplit

import aiohttp as aiohttp  # said to be missing here, by the module's name, and not when the first bot starts
import markdown_it as markdown_it

from agents_registry.errors import UsageError
from transports.im.errors import Ambiguous, BadCredentials, Transient
from transports.im.platform import Buttons, Capability, Checked, Option, Platform, Rate
from transports.im.telegram.surface import TelegramSurface, learn

DEFAULT_BASE = "https://api.telegram.org"
_TOKEN = re.compile(r"\d{3,20}:[A-Za-z0-9_-]{20,100}")

OPTIONS = (
    Option("token", "the bot's token, from @BotFather", required=True, secret=True),
    Option("api_base_url", "the Bot API's address, for a server of your own", default=DEFAULT_BASE),
    Option("drafts", "stream by Telegram's own drafts in private chats (auto), or by edits (off)", default="auto"),
    Option("rich", "send tables as rich messages (auto), or as fixed text for old apps (off)", default="auto"),
    Option("proxy", "HTTP proxy for this bot, http://host:port; else HTTPS_PROXY of the environment", default=""),
)
_CHOICES = {"drafts": ("auto", "off"), "rich": ("auto", "off")}

# Rates: about one message a second and chat in bursts, 20 a minute in a group, 30 a second in all; edits and drafts count.
CAPABILITY = Capability(
    max_text=4096,
    unit="utf16",
    markup="entities",
    edit=True,
    edit_interval_s=1.5,
    group_edit_interval_s=4.0,
    stream="telegram_draft",
    stream_where="direct",
    stream_interval_s=1.0,
    stream_keep_s=30.0,
    buttons=Buttons(count=100, per_row=8, label=40, data_bytes=64),
    reactions=True,
    typing_s=5.0,
    threads=True,
    file_in_bytes=20 * 1024 * 1024,
    file_out_bytes=50 * 1024 * 1024,
    chat_budget=Rate(1.0, 4.0),
    group_budget=Rate(20 / 60, 5.0),
    bot_budget=Rate(28.0, 28.0),
    menu=100,
)


def validate(options: Mapping[str, str]) -> None:
    """Raises UsageError for what cannot be right, never with the token in it."""
    if not _TOKEN.fullmatch(options.get("token", "")):
        raise UsageError("This is no Telegram bot token.", hint="It looks like 123456789:AA…; @BotFather shows it for your bot.")
    for name in ("api_base_url", "proxy"):
        address = urlsplit(options.get(name, ""))
        if options.get(name) and (address.scheme not in ("http", "https") or not address.hostname or address.query or address.fragment):
            raise UsageError(f"The option {name} is no http(s) address.", hint=f"For example {DEFAULT_BASE}.")
    for name, choices in _CHOICES.items():
        if options.get(name, choices[0]) not in choices:
            raise UsageError(f"The option {name} cannot be {options[name][:40]!r}.", hint=f"One of: {', '.join(choices)}.")


def check(options: Mapping[str, str]) -> Checked:
    """Ask Telegram who the bot is. Blocking, at most 15 s."""
    validate(options)
    try:
        me = asyncio.run(learn(options["token"], options.get("api_base_url") or DEFAULT_BASE, options.get("proxy", "")))
    except (TimeoutError, Ambiguous) as error:
        raise Transient("Telegram did not answer in time.", hint="Try again; behind a firewall, set the option proxy.") from error
    if not me.get("is_bot"):
        raise BadCredentials("This token does not belong to a bot.")
    name = str(me.get("username") or "")
    notes = []
    if me["webhook"]:
        notes.append("A webhook is set for this bot: another service receives its messages. Remove it, or use another bot.")
    if me.get("can_join_groups", True) and not me.get("can_read_all_group_messages"):
        notes.append("In groups it sees commands, mentions and replies only (privacy mode, set by @BotFather).")
    if me.get("has_topics_enabled"):
        notes.append("Topics are on in private chats: each is a conversation of its own.")
    return Checked(f"@{name}", str(me["id"]), f"https://t.me/{name}", tuple(notes))


PLATFORM = Platform(
    kind="telegram", title="Telegram", capability=CAPABILITY, options=OPTIONS, check=check, surface=TelegramSurface
)
