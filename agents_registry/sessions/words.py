"""Text cut into the words that the full-text index knows, so that Chinese, Japanese and Korean words are found too.

SQLite's FTS5 takes a run of such characters for one long word, and its trigram tokenizer knows nothing shorter than
three characters. Here each run becomes its overlapping pairs and, at its end, its last character: 我们决定了 gives
我们 们决 决定 定了 了. A word of two characters is then one token, a longer one a phrase of tokens, and a single
character the beginning of a token.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

# Han (with extensions and compatibility forms), kana, Hangul.
_CJK = "\u3005\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
_RUN = re.compile(f"[{_CJK}]+")


def has_cjk(text: str) -> bool:
    """Whether anything in it needs `indexable`."""
    return not text.isascii() and _RUN.search(text) is not None


def indexable(text: str) -> str:
    """The text as it is given to the index."""
    if not has_cjk(text):
        return text
    return _RUN.sub(lambda found: f" {' '.join(_pairs(found.group()))} ", text)


def _pairs(run: str) -> Iterator[str]:
    for index in range(len(run) - 1):
        yield run[index : index + 2]
    yield run[-1]


def query(words: str) -> str:
    """An FTS5 query for sessions that hold all words (each as a beginning of one); "" when there is nothing to look for."""
    return " ".join(f'"{phrase}"{"*" if opened else ""}' for word in words.split() for phrase, opened in _phrases(word))


def _phrases(word: str) -> Iterator[tuple[str, bool]]:
    """(phrase, whether its last token may go on) for the parts of one word; quotes and punctuation fall away."""
    at = 0
    for found in _RUN.finditer(word):
        yield from _plain(word[at : found.start()])
        run = found.group()
        tokens = [run] if len(run) == 1 else [run[index : index + 2] for index in range(len(run) - 1)]
        yield " ".join(tokens), len(run) == 1
        at = found.end()
    yield from _plain(word[at:])


def _plain(text: str) -> Iterator[tuple[str, bool]]:
    tokens = re.findall(r"\w+", text)
    if tokens:
        yield " ".join(tokens), True
