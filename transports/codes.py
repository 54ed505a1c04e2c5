"""Handover codes as people type them. Pure; used by the chats' `/pickup` and the terminal's `va pickup`."""

from __future__ import annotations

import re
from dataclasses import dataclass

CODE_LETTERS = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
CODE_LENGTH = 4


@dataclass(frozen=True, slots=True)
class CodeText:
    """What was typed as a code. `code` is "" when it cannot be one, and `problem` says why, in a full sentence."""

    code: str
    problem: str = ""


def read_code(typed: str) -> CodeText:
    """A handover code as people type it: any case, spaces and dashes, full-width letters, a pasted `/pickup`.

    O and 0, I and 1 are not letters of codes, so that they cannot be mistaken; the answer says which one was met.
    """
    text = _narrow(typed).upper()
    text = re.sub(r"^\s*(/?(VA|VIBEAROUND)\s+)?/?PICKUP\b", "", text)
    code = re.sub(r"[\s\-_.,:;!'\"`<>()\[\]*#\u200b-\u200f\u2060\ufeff]+", "", text)
    if not code:
        return CodeText("", "A code has 4 characters, for example K7QM; none was given.")
    confused = sorted({c for c in code if c in "O0I1"})
    if confused and len(code) == CODE_LENGTH:
        return CodeText(
            "",
            f"Codes never contain {' or '.join(confused)}: the letters O and I and the digits 0 and 1 are left out because "
            "they look alike. Look at the code again.",
        )
    if len(code) != CODE_LENGTH:
        return CodeText("", f"A code has {CODE_LENGTH} characters; {code[:16]!r} has {len(code)}.")
    if any(c not in CODE_LETTERS for c in code):
        return CodeText("", f"{code!r} is not a code: codes have {CODE_LENGTH} letters A to Z or digits 2 to 9.")
    return CodeText(code)


def _narrow(text: str) -> str:
    """Full-width forms, as East Asian keyboards write them, as plain characters."""
    return "".join(chr(ord(c) - 0xFEE0) if "！" <= c <= "～" else c for c in text)
