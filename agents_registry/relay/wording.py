"""The words of a brief in English and Chinese, and the words by which decisions and constraints are known."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

DECISIONS: dict[str, tuple[str, ...]] = {
    "en": (
        "decided", "decision", "we will use", "we'll use", "let's use", "let's go with", "go with", "agreed", "conclusion", "concluded",
        "instead of", "switch to", "switched to", "settled on", "chose", "chosen", "root cause", "the cause is", "turns out", "confirmed",
        "the plan is",
    ),
    "zh": ("决定", "确认", "改为", "采用", "结论", "选择了", "问题在于", "原因是", "方案", "确定", "改用"),
}  # fmt: skip
"""Words that mark a decision or a conclusion, of the human or of the agent."""
CONSTRAINTS: dict[str, tuple[str, ...]] = {
    "en": (
        "must", "must not", "do not", "don't", "never", "always", "should not", "shouldn't", "only use", "keep", "avoid", "make sure",
        "no longer", "without", "required", "at most", "at least",
    ),
    "zh": ("不要", "必须", "注意", "不能", "只能", "禁止", "务必", "一定要", "避免", "至少", "最多", "不得", "保持"),
}  # fmt: skip
"""Words that mark a constraint; only the human's words are looked at."""
OPEN: dict[str, tuple[str, ...]] = {
    "en": ("todo", "next step", "next i", "still open", "remaining", "left to do", "not yet", "follow-up"),
    "zh": ("待办", "下一步", "接下来", "还没", "尚未", "剩下", "后续"),
}
"""Words of the agent that mark what is open."""

_CHINESE = re.compile("[\u3400-\u9fff]")
_KANA = re.compile("[\u3040-\u30ff\uac00-\ud7a3]")


@dataclass(frozen=True, slots=True)
class Words:
    """The fixed words of a brief in one language."""

    opening: str
    title: str
    came_from: str
    summary: str
    goal: str
    constraints: str
    decisions: str
    todos: str
    changed: str
    read: str
    commands: str
    errors: str
    next: str
    drift: str
    recent: str
    boundary_title: str
    boundary: str
    you: str
    omitted: str
    ended_well: str
    ended_open: str
    failed: str
    succeeded: str
    no_outcome: str
    unanswered: str
    last_words: str
    no_next: str
    gone: str
    confirm: str
    again: str
    agent: str
    session: str
    time: str
    directory: str
    branch: str
    model: str
    skipped: str


ENGLISH = Words(
    opening="Record of earlier work with another tool, not a new request.",
    title="Brief",
    came_from="Where it comes from",
    summary="Summary of what was before (written by the other tool)",
    goal="Goal (the first request)",
    constraints="Constraints named later",
    decisions="Decisions and conclusions",
    todos="Todo list",
    changed="Files changed",
    read="Files read",
    commands="Commands run",
    errors="Errors met",
    next="What is next",
    drift="Files that changed since",
    recent="The last turns, word by word",
    boundary_title="Where this record ends",
    boundary="Everything above was recorded by another tool ({source}) and may be incomplete. Only what is above is known: check the files "
    "before acting, and ask before assuming. No tool call above was made by you in this session.",
    you="User",
    omitted="- {n} omitted",
    ended_well="later succeeded",
    ended_open="not seen to succeed",
    failed="failed",
    succeeded="ok",
    no_outcome="no result recorded",
    unanswered="The last request was not answered: {text}",
    last_words="The last words of {agent}: {text}",
    no_next="No next step is recorded.",
    gone="missing now",
    confirm="Confirm in two lines what you know of this, and wait for the next request.",
    again="What happened since in the other tool, as far as you have not seen it.",
    agent="Agent",
    session="Session",
    time="Time",
    directory="Directory",
    branch="Branch",
    model="Model",
    skipped="Damaged records left out",
)
CHINESE = Words(
    opening="这是在另一个工具中已完成工作的记录，不是新的请求。",
    title="简报",
    came_from="来源",
    summary="此前内容的摘要（由另一个工具写成）",
    goal="目标（第一个请求）",
    constraints="后来提出的约束",
    decisions="决定与结论",
    todos="待办清单",
    changed="改动过的文件",
    read="读过的文件",
    commands="运行过的命令",
    errors="遇到的错误",
    next="下一步",
    drift="之后发生变化的文件",
    recent="最近的对话（原文）",
    boundary_title="记录到此为止",
    boundary="以上内容由另一个工具（{source}）记录，可能不完整。已知的只有以上内容：行动前先核对文件，不确定时先询问，不要假设。以上工具调用都不是你在本会话中执行的。",
    you="用户",
    omitted="- 省略 {n} 项",
    ended_well="后来成功",
    ended_open="未见成功",
    failed="失败",
    succeeded="成功",
    no_outcome="没有记录结果",
    unanswered="最后的请求尚未得到回答：{text}",
    last_words="{agent} 最后说：{text}",
    no_next="没有记录下一步。",
    gone="现在不存在",
    confirm="请用两行说明你从中了解到什么，然后等待下一个请求。",
    again="另一个工具中之后发生的、你尚未看到的内容。",
    agent="代理",
    session="会话",
    time="时间",
    directory="目录",
    branch="分支",
    model="模型",
    skipped="略去的损坏记录",
)
LANGUAGES = {"en": ENGLISH, "zh": CHINESE}


def language_of(texts: Iterable[str]) -> str:
    """`zh` when the human writes Chinese, else `en`. A Chinese character weighs as much as three Latin letters."""
    chinese = latin = 0
    for text in texts:
        part = text[:2000]
        if _KANA.search(part):
            return "en"
        chinese += len(_CHINESE.findall(part))
        latin += sum(1 for char in part if char.isascii() and char.isalpha())
    return "zh" if chinese * 3 > latin else "en"


def pattern(words: dict[str, tuple[str, ...]]) -> re.Pattern[str]:
    """Matches any of the words of all languages; Latin ones as whole words in any case."""
    latin = "|".join(re.escape(word) for word in sorted(words.get("en", ()), key=len, reverse=True))
    others = "|".join(re.escape(word) for language, listed in words.items() if language != "en" for word in listed)
    parts = [part for part in (rf"\b(?:{latin})\b" if latin else "", others) if part]
    return re.compile("|".join(parts) or r"(?!)", re.IGNORECASE)
