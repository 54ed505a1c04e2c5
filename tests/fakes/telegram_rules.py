"""What Telegram's Bot API accepts and what it says about the rest, as pure functions. Stricter than the real one where that
is lenient (it drops what it cannot use), so that a client that leans on the leniency is found out.

Limits and words: Bot API 10.x documentation, as carried in aiogram's docstrings and python-telegram-bot's constants.
"""

from __future__ import annotations

import re
from typing import Any

TEXT_UNITS = 4096
CAPTION_UNITS = 1024
ENTITIES = 100
ROW_BUTTONS = 8
BUTTONS = 100
DATA_BYTES = 64
RICH_CHARS, RICH_BLOCKS, RICH_DEPTH, RICH_COLUMNS = 32768, 500, 16, 20

ENTITY_TYPES = frozenset({
    "mention", "hashtag", "cashtag", "bot_command", "url", "email", "phone_number", "bold", "italic", "underline", "strikethrough",
    "spoiler", "blockquote", "expandable_blockquote", "code", "pre", "text_link", "text_mention", "custom_emoji", "date_time",
})  # fmt: skip
REACTIONS = frozenset("👍👎🔥🥰👏😁🤔🤯😱🤬😢🎉🤩🤮💩🙏👌🕊🤡🥱🥴😍🐳🌚🌭💯🤣🏆💔🤨😐🍓🍾💋🖕😈😴😭🤓👻👀🎃🙈😇😨🤝🤗🫡🎅🎄💅🤪🗿🆒🦄😘💊🙊😎👾😡") | {"❤", "⚡", "✍", "☃"}
_BLOCKS = frozenset({
    "paragraph", "heading", "pre", "footer", "divider", "list", "blockquote", "expandable_blockquote", "pullquote", "table", "details", "thinking",
    "mathematical_expression", "anchor", "buttons",
})  # fmt: skip


class Refused(Exception):
    """A call that the API refuses."""

    def __init__(self, code: int, description: str, **parameters: Any) -> None:
        super().__init__(description)
        self.code = code
        self.description = description
        self.parameters = parameters


def bad(description: str, **parameters: Any) -> Refused:
    return Refused(400, f"Bad Request: {description}", **parameters)


def units(text: str) -> int:
    """UTF-16 code units."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def cut(text: str, offset: int, length: int) -> str:
    """The piece of `text` by UTF-16 units; raises UnicodeDecodeError when it tears a pair."""
    return text.encode("utf-16-le")[2 * offset : 2 * (offset + length)].decode("utf-16-le")


def text_of(raw: Any, limit: int, *, may_be_empty: bool, what: str = "message") -> tuple[str, int]:
    """The text as it will stand (trimmed), and how many units were cut off its start."""
    if raw is None:
        raw = ""
    if not isinstance(raw, str):
        raise bad(f"{what} text must be a string")
    try:
        raw.encode("utf-8")
    except UnicodeEncodeError:
        raise bad("strings must be encoded in UTF-8") from None
    kept = raw.rstrip()
    start = len(kept) - len(kept.lstrip())
    kept = kept[start:]
    if not kept and not may_be_empty:
        raise bad("message text is empty")
    if units(kept) > limit:
        raise bad("message is too long" if what == "message" else "message caption is too long")
    return kept, units(raw[:start])


def entities_of(raw: Any, text: str, moved: int) -> list[dict[str, Any]]:
    """The entities, sorted, with offsets in the trimmed text. Refuses what does not lie in the text, tears a sign, has an
    unknown type, crosses another, is nested where nothing may be, or comes as number 101."""
    if raw is None:
        return []
    if not isinstance(raw, list) or not all(isinstance(e, dict) for e in raw):
        raise bad("can't parse entities: expected an Array of MessageEntity")
    if len(raw) > ENTITIES:
        raise bad(f"can't parse entities: {len(raw)} of them, only {ENTITIES} are kept")
    whole, done = units(text), []
    for entity in raw:
        kind, offset, length = entity.get("type"), entity.get("offset"), entity.get("length")
        if kind not in ENTITY_TYPES:
            raise bad(f'can\'t parse entities: unsupported entity type "{kind}"')
        if type(offset) is not int or type(length) is not int or offset < 0 or length <= 0:
            raise bad("ENTITY_BOUNDS_INVALID")
        start, end = max(0, offset - moved), min(whole, offset - moved + length)
        if offset - moved + length > whole + 64 or end <= start:
            raise bad("ENTITY_BOUNDS_INVALID")
        try:
            cut(text, 0, start), cut(text, start, end - start)
        except UnicodeDecodeError:
            raise bad("ENTITY_BOUNDS_INVALID") from None
        if kind == "text_link" and not re.match(r"(?i)(https?|tg|ton|mailto|tel):", str(entity.get("url") or "")):
            raise bad("can't parse entities: invalid URL")
        if kind == "pre" and not isinstance(entity.get("language", ""), str):
            raise bad("can't parse entities: language must be a string")
        done.append({**entity, "offset": start, "length": end - start})
    done.sort(key=lambda e: (e["offset"], -e["length"]))
    _nesting(done)
    return done


def _nesting(entities: list[dict[str, Any]]) -> None:
    open_: list[dict[str, Any]] = []
    for entity in entities:
        start, end = entity["offset"], entity["offset"] + entity["length"]
        while open_ and open_[-1]["offset"] + open_[-1]["length"] <= start:
            open_.pop()
        for around in open_:
            if end > around["offset"] + around["length"]:
                raise bad(f"can't parse entities: {entity['type']} crosses {around['type']}")
            if around["type"] in ("code", "pre"):
                raise bad(f"can't parse entities: {entity['type']} inside of {around['type']}")
            if around["type"] == entity["type"]:
                raise bad(f"can't parse entities: {entity['type']} inside of itself")
            if "blockquote" in around["type"] and "blockquote" in entity["type"]:
                raise bad("can't parse entities: nested blockquotes")
            if entity["type"] in ("code", "pre") and "blockquote" not in around["type"]:
                raise bad(f"can't parse entities: {entity['type']} can't be a part of {around['type']}")
        open_.append(entity)


def keyboard_of(raw: Any) -> list[list[dict[str, Any]]]:
    """The inline keyboard, [] for none."""
    if raw is None or raw == {}:
        return []
    if not isinstance(raw, dict):
        raise bad("object expected as reply markup")
    rows = raw.get("inline_keyboard")
    if not isinstance(rows, list) or not all(isinstance(row, list) for row in rows):
        raise bad("field \"inline_keyboard\" must be of type Array")
    if sum(len(row) for row in rows) > BUTTONS or any(len(row) > ROW_BUTTONS for row in rows):
        raise bad("reply markup is too long")
    for button in (button for row in rows for button in row):
        if not isinstance(button, dict) or not str(button.get("text") or "").strip():
            raise bad("text buttons are unallowed in the inline keyboard")
        actions = [key for key in ("url", "callback_data", "copy_text", "switch_inline_query", "web_app") if key in button]
        if len(actions) != 1:
            raise bad("text buttons are unallowed in the inline keyboard")
        if "callback_data" in button and not 1 <= len(str(button["callback_data"]).encode()) <= DATA_BYTES:
            raise bad("BUTTON_DATA_INVALID")
        if "url" in button and not re.match(r"(https?|tg)://", str(button["url"])):
            raise bad("inline keyboard button URL is invalid: Wrong HTTP URL")
        if button.get("style", "primary") not in ("primary", "success", "danger"):
            raise bad("invalid button style specified")
    return [row for row in rows if row]


def rich_of(raw: Any, *, draft: bool) -> dict[str, Any]:
    """An InputRichMessage within its limits."""
    if not isinstance(raw, dict):
        raise bad("object expected as rich message")
    given = [key for key in ("html", "markdown", "blocks") if raw.get(key)]
    if len(given) != 1:
        raise bad("exactly one of html, markdown and blocks must be used")
    blocks = raw.get("blocks") or []
    counted = [0]
    for block in blocks:
        _block(block, 1, counted, draft)
    text = rich_text_of(raw)
    if len(text) > RICH_CHARS:
        raise bad("rich message is too long")
    if not text.strip() and not draft:
        raise bad("rich message is empty")
    return raw


def _block(block: Any, depth: int, counted: list[int], draft: bool) -> None:
    counted[0] += 1
    if not isinstance(block, dict) or block.get("type") not in _BLOCKS:
        raise bad(f"unsupported rich block type {block.get('type') if isinstance(block, dict) else block!r}")
    if counted[0] > RICH_BLOCKS or depth > RICH_DEPTH:
        raise bad("too many rich blocks")
    kind = block["type"]
    if kind == "thinking" and not draft:
        raise bad("thinking blocks are allowed in drafts only")
    if kind == "table":
        rows = block.get("cells")
        if not isinstance(rows, list) or not rows or any(len(row) > RICH_COLUMNS for row in rows):
            raise bad("invalid table")
        for cell in (cell for row in rows for cell in row):
            if cell.get("align") not in ("left", "center", "right") or cell.get("valign") not in ("top", "middle", "bottom"):
                raise bad("invalid table cell")
            _rich_text(cell.get("text") or "")
    if kind == "heading" and block.get("size") not in range(1, 7):
        raise bad("invalid heading size")
    if kind == "list":
        for item in block["items"]:
            for inner in item["blocks"]:
                _block(inner, depth + 1, counted, draft)
    elif kind in ("details", "blockquote"):
        for inner in block["blocks"]:
            _block(inner, depth + 1, counted, draft)
    if kind in ("paragraph", "heading", "pre", "footer", "thinking", "expandable_blockquote"):
        _rich_text(block.get("text"))
    if kind == "details":
        _rich_text(block.get("summary"))


def _rich_text(text: Any) -> None:
    if isinstance(text, str):
        return
    if isinstance(text, list):
        for piece in text:
            _rich_text(piece)
        return
    if not isinstance(text, dict) or text.get("type") not in ("bold", "italic", "underline", "strikethrough", "spoiler", "code", "url"):
        raise bad("unsupported rich text")
    if text["type"] == "url" and not str(text.get("url") or ""):
        raise bad("invalid URL in rich text")
    _rich_text(text.get("text"))


def rich_text_of(value: Any) -> str:
    """All text of a rich message, for its length and for a test to read."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return " ".join(rich_text_of(v) for v in value)
    if isinstance(value, dict):
        keys = ("html", "markdown", "summary", "text", "blocks", "items", "cells")
        return "\n".join(rich_text_of(value[key]) for key in keys if value.get(key))
    return ""


def commands_of(raw: Any) -> list[dict[str, str]]:
    if not isinstance(raw, list) or len(raw) > 100:
        raise bad("BOT_COMMANDS_TOO_MUCH")
    for command in raw:
        if not re.fullmatch(r"[a-z0-9_]{1,32}", str(command.get("command") or "")):
            raise bad("BOT_COMMAND_INVALID")
        if not 1 <= len(str(command.get("description") or "")) <= 256:
            raise bad("BOT_COMMAND_DESCRIPTION_INVALID")
    return raw


def found_entities(text: str, username: str) -> list[dict[str, Any]]:
    """The entities that Telegram finds by itself in what a person wrote: commands, mentions, links."""
    found = []
    for kind, pattern in (
        ("bot_command", r"(?<![\w/])/[A-Za-z0-9_]{1,64}(?:@\w+)?"), ("mention", r"(?<![\w/])@\w{3,32}"), ("url", r"https?://\S+")
    ):  # fmt: skip
        for match in re.finditer(pattern, text):
            found.append({"type": kind, "offset": units(text[: match.start()]), "length": units(match[0])})
    return sorted(found, key=lambda e: e["offset"])
