"""The requirements of surfaces, by id (S and the section's number), in one line each. See tests/requirements.py."""

from __future__ import annotations

_TELEGRAM = {
    "S2.client": "a thin client on aiohttp: each refusal, cut, gateway error is told as what to do about it, and never with the token",
    "S2.entities": "Markdown becomes text and entities in UTF-16 units that a strict Telegram takes; no word is lost",
    "S2.splitting": "what is too long is cut at paragraph and fence borders into messages that Telegram takes",
    "S2.drafts": "private chats stream by drafts, with their stop; where there are none, edits",
    "S2.rich": "tables are real tables where rich messages are to be had, entities elsewhere",
    "S2.one-message": "a turn is one live message that becomes the answer, and notifies once",
    "S2.stop-button": "a button stops the turn, and is gone when the turn is over",
    "S2.permission": "a permission is a message of its own with the exact command, who may answer, until when; decided, it shows by whom and has no buttons",
    "S2.late-press": "late and foreign presses are told so and change nothing",
    "S2.topics": "a topic is a route of its own",
    "S2.groups": "in a group only mentions, replies and commands count, unless set otherwise",
    "S2.receipt": "a message is acknowledged by a reaction",
    "S2.files-in": "pictures and files come in as private files, an album as one message",
    "S2.images-to-agent": "a picture reaches an agent that takes images as an image, any other as a link",
    "S2.files-out": "files go out from the workspace alone, links resolved",
    "S2.menu": "the command menu is set, by language",
    "S2.migration": "a group that becomes a supergroup keeps its conversation",
    "S2.confirm": "an update is confirmed to Telegram only when it was accepted; one slow chat keeps no other waiting",
    "S2.api-base-url": "the Bot API's address is a setting; token and address are checked at once",
    "S2.fake-api": "the strict fake Bot API serves aiogram and python-telegram-bot as the real one does",
    "S4.telegram-54-redelivery": "lesson 54: an update delivered often, also after a restart, is one turn",
    "S4.telegram-57-splitting": "lesson 57: bold over the cut, many links, emoji, refused markup: nothing is lost",
    "S4.telegram-58-flood": "lesson 58: retry_after is kept, edits are merged, the answer comes whole and once",
    "S4.telegram-60-order": "lesson 60: what waits is not overtaken in its chat, other chats go on",
    "S4.telegram-62-busy": "lesson 62: what comes in mid-turn is handed on in order",
    "S4.telegram-64-topic": "lesson 64: the answer goes to the very topic",
    "S4.telegram-66-topics": "lesson 66: two topics are two conversations",
    "S4.telegram-67-two-pollers": "lesson 67: a second poller is named, by the lock of this machine or by Telegram; no crash loop",
    "S4.telegram-68-open-question": "lesson 68: an open question outlives a restart and is answered exactly once",
    "S4.telegram-70-three-questions": "lesson 70: three questions are three sets of buttons",
    "S4.telegram-80-codes": "lesson 80: a code has one winner; wrong guesses lock out one person and nobody else",
    "S4.telegram-kill": "kill -9 of the bridge, or of the daemon, in mid-turn: nothing lost, nothing doubled",
    "S4.telegram-claude": "with real Claude Code: terminal, Telegram, a permission and a picture there, and back to the terminal",
    "S4.telegram-faults": "502 pages, cut connections, a block: nothing lost, nothing doubled, nobody else stopped",
}

_KIT = {
    "S1.capability": "a platform says what it can do; native stream becomes edits, edits one final message, buttons numbers (English, Chinese)",
    "S1.inbound": "a message is durable in its route before the platform hears so; its place is taken at receipt; a redelivery has no effect",
    "S1.past-what-waits": "presses, stops and typed answers do not wait behind the messages of their chat",
    "S1.one-message": "one turn is one live message that becomes the answer",
    "S1.once": "final text stands there once, over kills of the bridge at any call, lost answers and repeated items",
    "S1.ambiguous": "where a platform has neither edits nor keys, an ambiguous send is repeated once, marked, counted",
    "S1.retry-after": "retry-after pauses that message's edits only, and the answer comes whole",
    "S1.splitting": "cut at paragraph and fence borders in the platform's unit; nothing lost, fences opened again",
    "S1.budget": "200 chats streaming at once use 95 % of the send budget, none starved; answers before previews",
    "S1.strangers": "default nobody; one line, always the same, rate-limited; nothing of a stranger reaches a route",
    "S1.claim": "the owner claims by a one-time code: ten minutes, five tries, one winner",
    "S1.knock": "owners hear of a stranger who wrote, with the command that lets him in, seldom enough; the list shows the last ones",
    "S1.roles": "a bridge reaches its own routes and its own desk alone; a viewer looks and prompts nothing; who is who is set by owners alone",
    "S1.people": "allow-list by user id with roles; approve and revoke take effect at once and outlive restarts",
    "S1.buttons": "buttons are bound to question, chat and who may; short; late and foreign presses are told so",
    "S1.questions": "a permission is its own message with exact command or diff, who may answer, expiry; decided it shows it",
    "S1.files": "files in are private files of ours; files out only from the workspace, links resolved",
    "S1.elsewhere": "what was asked elsewhere says where and by whom",
    "S1.state": "what a bridge must know after a crash is one private file, replaced atomically, never overwritten when foreign",
    "S1.command-line": "va bridge add, claim, list, start, stop, restart, remove, logs, test, approve, revoke; secrets by reference, checked at once",
    "S1.lifeline": "a bridge ends with its supervisor, which starts it again with its people",
    "S1.toy": "a whole platform in 60 lines of the docs runs against a real daemon",
}

_CROSS = {
    "S4.cross-permission": "a permission asked on the phone is answered on another surface; both show it",
    "S4.cross-bridge-killed": "with Claude Code: the bridge killed in mid-turn; nothing lost, nothing doubled, nothing run twice",
    "S4.cross-daemon-killed": "with Claude Code: the daemon killed in mid-turn; nothing lost, nothing doubled, nothing run twice",
}

_SPEED = {
    "S5.telegram-bench": "a Telegram bridge's way in, way out, memory and 200 chats are measured against floors, with their bounds",
}

REQUIREMENTS: dict[str, str] = {**_KIT, **_TELEGRAM, **_CROSS, **_SPEED}
