"""Tokens by estimate, and cuts that leave whole what a reader sees as one character.

The estimate needs no tokenizer and no network: four ASCII characters are a token, as with the tokenizers of the large
vendors on English and code (3.5 to 4.5); a Chinese, Japanese or Korean character is one; any other character, such as
Cyrillic or an emoji's parts, half a token. It errs upwards for prose and is the same on every machine.
"""

from __future__ import annotations

import re
import unicodedata

WINDOWS: dict[str, int] = {"claude": 200_000, "codex": 258_400, "gemini": 1_048_576, "antigravity": 1_048_576, "qwen-code": 262_144, "kimi": 262_144}
"""Tokens of context of an agent's usual model."""
USUAL_WINDOW = 128_000
"""Of an agent that is not in the table."""
MOST = 16_000
"""Tokens of the largest default budget."""

_WIDE = re.compile("[\u1100-\u11ff\u2e80-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]")
_ASCII = re.compile(r"[\x00-\x7f]+")


def estimate(text: str) -> int:
    """Tokens that `text` takes, rounded up."""
    if text.isascii():
        return (len(text) + 3) // 4
    plain = len(text.encode("ascii", "ignore"))
    wide = len(_WIDE.findall(text))
    return (plain + 3) // 4 + wide + (len(text) - plain - wide + 1) // 2


def window(agent: str) -> int:
    """Tokens of context of `agent`'s usual model."""
    return WINDOWS.get(agent, USUAL_WINDOW)


def default_budget(agent: str) -> int:
    """A fifth of the window, at most `MOST`."""
    return min(MOST, window(agent) // 5)


def border(text: str, at: int) -> int:
    """The last place at or before `at` where the text can be cut without parting one visible character."""
    if at >= len(text):
        return len(text)
    at = max(at, 0)
    low = max(0, at - 64)  # no visible character is that long
    while at > low and _joined(text, at):
        at -= 1
    return at


def _joined(text: str, at: int) -> bool:
    after, before = text[at], text[at - 1]
    if after < "\x80" and before < "\x80":
        return before == "\r" and after == "\n"
    code = ord(after)
    if after in "\u200d\ufe0e\ufe0f\u20e3" or before == "\u200d" or 0x1F3FB <= code <= 0x1F3FF or 0xE0020 <= code <= 0xE007F:
        return True
    if unicodedata.category(after) in ("Mn", "Mc", "Me"):
        return True
    if "\u1160" <= after <= "\u11ff":  # a Hangul vowel or final behind its syllable
        return "\u1100" <= before <= "\u11ff" or "\uac00" <= before <= "\ud7a3"
    if _flag(after) and _flag(before):
        run = 0
        while at - 1 - run >= 0 and _flag(text[at - 1 - run]):
            run += 1
        return run % 2 == 1
    return False


def _flag(char: str) -> bool:
    return "\U0001f1e6" <= char <= "\U0001f1ff"


def shorten(text: str, limit: int) -> str:
    """At most about `limit` characters of one line, the cut marked with an ellipsis."""
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: border(line, limit - 1)].rstrip() + "…"


def cut(text: str, limit: int, mark: str = "[… {n} characters omitted …]") -> tuple[str, int]:
    """(text of at most `limit` characters and the mark, characters omitted); the middle goes: two thirds of what is
    kept are the begin, one third is the end."""
    if len(text) <= limit:
        return text, 0
    front = border(text, limit * 2 // 3)
    back = border(text, len(text) - limit // 3)
    omitted = back - front
    return f"{text[:front]}\n{mark.format(n=omitted)}\n{text[back:]}", omitted


def cut_to_tokens(text: str, tokens: int) -> tuple[str, int]:
    """The same with a limit in tokens; 0 or less keeps nothing but the mark."""
    if estimate(text) <= tokens:
        return text, 0
    limit = max(0, int(len(text) * tokens / max(1, estimate(text))) - 40)
    made, omitted = cut(text, limit)
    while estimate(made) > tokens and limit > 0:
        limit = limit * 4 // 5 - 1
        made, omitted = cut(text, max(limit, 0))
    return made, omitted
