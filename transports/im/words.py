"""What the kit itself says to people, in English and Chinese. Pure."""

from __future__ import annotations

import re
from typing import Literal

from transports.bus.routes import Route

Language = Literal["en", "zh"]

NOT_AUTHORISED = "not authorised / 未授权"
"""The one line for everybody who is not on the allow-list: always the same, whatever they wrote, in whatever language."""

_WORDS: dict[str, tuple[str, str]] = {
    "asked": ("Asked in {where} by {who}:", "{who} 在 {where} 中提问:"),
    "asked_nobody": ("Asked in {where}:", "在 {where} 中提问:"),
    "queued": ("Waiting, place {place}", "排队中,第 {place} 位"),
    "thinking": ("thinking", "思考中"),
    "tools": ("{count} tools", "{count} 个工具"),
    "tool": ("1 tool", "1 个工具"),
    "tool_calls": ("Tool calls ({count})", "工具调用({count})"),
    "thoughts": ("Thoughts", "思考过程"),
    "plan": ("Plan", "计划"),
    "done": ("done", "完成"),
    "stopped": ("stopped", "已停止"),
    "failed": ("failed", "失败"),
    "no_text": ("(no text)", "(没有文字)"),
    "stop": ("⏹ Stop", "⏹ 停止"),
    "question": ("The agent asks", "代理请求许可"),
    "who_turn": ("May answer: {who}, or an owner.", "可以回答的人:{who} 或所有者。"),
    "who": ("May answer: the person whose turn it is, or an owner.", "可以回答的人:提问者或所有者。"),
    "expires": ("Open for {time}.", "{time} 内有效。"),
    "unanswered": ("Unanswered it counts as: {option}", "不回答则视为:{option}"),
    "reply_number": ("Reply with a number:", "请回复数字:"),
    "or_cancel": ("or “cancel”", "或“取消”"),
    "lasting": ("lasting", "持久"),
    "decided": ("{outcome} by {who}, {at}", "{who} 已选择:{outcome},{at}"),
    "decided_nobody": ("{outcome}, {at}", "{outcome},{at}"),
    "late": ("This was decided already: {outcome}", "已经决定:{outcome}"),
    "gone": ("This question is not open any more.", "这个问题已经关闭。"),
    "foreign": ("This button is not for you or not of this chat.", "这个按钮不属于你或此聊天。"),
    "taken": ("Noted.", "已收到。"),
    "turn_over": ("That turn is over.", "这一轮已经结束。"),
    "stopping": ("Stopping.", "正在停止。"),
    "stopped_count": ("Stopped: {cancelled} running, {dropped} waiting.", "已停止:{cancelled} 个运行中,{dropped} 个等待中。"),
    "not_now": ("VibeAround is busy, press again in a moment.", "正忙,请稍后再按。"),
    "file_big": ("{name} was not taken: larger than {limit}.", "未接收 {name}:超过 {limit}。"),
    "file_failed": ("{name} could not be fetched: {why}", "无法获取 {name}:{why}"),
    "files_none": ("This chat takes no files.", "此聊天不支持文件。"),
    "file_refused": ("{name} was not sent: {why}", "未发送 {name}:{why}"),
    "file_outside": ("it lies outside of the workspace.", "它不在工作区内。"),
    "file_missing": ("there is no such file.", "没有这个文件。"),
    "file_odd": ("it is no plain file.", "它不是普通文件。"),
    "file_too_big": ("it is larger than {limit}.", "它超过 {limit}。"),
    "file_link": ("it is reached through a link.", "它是通过链接访问的。"),
    "as_file": ("The whole answer is in the file.", "完整回答见文件。"),
    "repeated": ("(sent again after a break; it may stand here twice)", "(中断后重发,可能重复)"),
    "welcome": ("You are the owner now. Write to the agent, or /help.", "你现在是所有者。直接给代理写消息,或使用 /help。"),
    "failed_send": ("A message could not be shown here: {why}", "有一条消息无法显示:{why}"),
    "older": ("(the beginning was shown before)", "(开头已显示)"),
    "part_missing": ("(a part of this answer could not be read: {why})", "(回答的一部分无法读取:{why})"),
}

_CHANNELS: dict[str, tuple[str, str]] = {"cli": ("terminal", "终端"), "web": ("the web page", "网页")}

_CHINESE = re.compile(r"[\u4e00-\u9fff]")


def say(language: Language, word: str, **values: object) -> str:
    """The sentence `word` in the language. KeyError for a word that there is not."""
    return _WORDS[word][1 if language == "zh" else 0].format(**values)


def words() -> list[str]:
    return list(_WORDS)


def language_of(setting: str, told: str, text: str) -> Language:
    """`setting`: auto, en or zh; `told`: what the platform says of the person ("zh-hans"); `text`: what he wrote."""
    if setting in ("en", "zh"):
        return "zh" if setting == "zh" else "en"
    if _CHINESE.search(text) or told.lower().startswith("zh"):
        return "zh"
    return "en"


def where(language: Language, route: str) -> str:
    """A route for people: "terminal", "the web page", "telegram"."""
    channel = route.partition(":")[0]
    known = _CHANNELS.get(channel)
    if known is not None:
        name = known[1 if language == "zh" else 0]
        try:
            chat = Route.parse(route).chat
        except Exception:  # noqa: BLE001 - a label only: what cannot be parsed is shown by its channel
            return name
        return f"{name} {chat}" if channel == "cli" and chat != "main" else name
    return channel or "?"


def clock(seconds: float) -> str:
    """A length of time as 0:42, 12:03, 1:02:03."""
    whole = max(0, int(seconds))
    hours, rest = divmod(whole, 3600)
    return f"{hours}:{rest // 60:02}:{rest % 60:02}" if hours else f"{rest // 60}:{rest % 60:02}"


_STOPS = ".!、。.!))"
_ALLOW = {"yes", "y", "ok", "okay", "allow", "approve", "允许", "同意", "好", "好的", "是", "可以", "批准"}
_REJECT = {"no", "n", "deny", "reject", "拒绝", "不", "不行", "否", "不可以", "不允许"}
_ALWAYS = {"always", "always allow", "allow always", "始终允许", "总是允许", "一直允许"}
_CANCEL = {"cancel", "c", "取消"}


def meant(text: str) -> str:
    """What a word of answer means: allow_once, reject_once, allow_always, cancel, or "" for something else."""
    word = " ".join(text.casefold().split()).rstrip(_STOPS)
    for meaning, known in (("allow_once", _ALLOW), ("reject_once", _REJECT), ("allow_always", _ALWAYS), ("cancel", _CANCEL)):
        if word in known:
            return meaning
    return ""


_DIGITS = str.maketrans("0123456789一二三四五六七八九", "0123456789123456789")


def number(text: str) -> int:
    """The number that a line consists of (also 1、 or "2." or 一), 0 when it is something else."""
    word = text.strip().rstrip(_STOPS).translate(_DIGITS)
    return int(word) if word.isascii() and word.isdigit() and len(word) <= 3 else 0
