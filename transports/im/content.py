"""What the kit wants shown: neutral parts that each platform renders in its own markup, with buttons below."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

Unit = Literal["utf16", "codepoints", "utf8"]
"""In what a platform counts its text."""

PartKind = Literal["markdown", "plain", "code", "diff", "folded", "status"]


@dataclass(frozen=True, slots=True)
class Part:
    """One block of a message; blocks are set apart by a blank line (a status line by a line break).

    markdown  the agent's words, CommonMark with tables and strikethrough; may be cut anywhere that closes its fences
    plain     our own or a person's words, to be shown literally, whatever signs they hold
    code      literal text in a fixed font; `language` may be ""
    diff      a unified diff, where the platform has colours for it, else like code with language "diff"
    folded    literal lines that a reader opens when he wants them; `title` is what shows. Without folding: title and lines
    status    one line: agent, time, tools. Literal, less prominent than the rest where the platform can
    """

    kind: PartKind
    text: str
    title: str = ""
    language: str = ""


@dataclass(frozen=True, slots=True)
class Content:
    """Parts in order. Falsy when there is nothing to show."""

    parts: tuple[Part, ...] = ()

    def __bool__(self) -> bool:
        return any(part.text.strip() or part.title.strip() for part in self.parts)

    def plain(self) -> str:
        """The whole as text for a surface without markup (Markdown stays as written, code is fenced)."""
        pieces: list[str] = []
        for part in self.parts:
            text = plain_part(part)
            if text:
                pieces.append(text)
        return "\n\n".join(pieces)


def plain_part(part: Part) -> str:
    """One part as text without markup."""
    text = part.text.strip("\n")
    if part.kind in ("code", "diff") and text:
        ticks = "```"
        while ticks in text:
            ticks += "`"
        return f"{ticks}{part.language or ('diff' if part.kind == 'diff' else '')}\n{text}\n{ticks}"
    return "\n".join(piece for piece in (part.title, text) if piece)


def markdown(text: str) -> Content:
    return Content((Part("markdown", text),))


def plain(text: str) -> Content:
    return Content((Part("plain", text),))


def length(text: str, unit: Unit) -> int:
    """Length of `text` in the platform's unit. Lone surrogates count as one (they are replaced when sent)."""
    if unit == "codepoints":
        return len(text)
    if unit == "utf8":
        return len(text.encode("utf-8", "replace"))
    return len(text) + sum(1 for c in text if c > "\uffff")


@dataclass(frozen=True, slots=True)
class Button:
    """`data` comes back in a `Press`: ASCII, at most `Capability.buttons.data_bytes` bytes. `label` is at most
    `Capability.buttons.label` code points. `style` is a hint: "", "primary", "success", "danger"."""

    label: str
    data: str
    style: str = ""


Rows = tuple[tuple[Button, ...], ...]


@dataclass(frozen=True, slots=True)
class Outgoing:
    """One message to send, or the new state of one that is edited (buttons included: none means none).

    `reply_to`: id of the person's message that this answers, "" for none; ignored by edits. `silent`: no notification.
    `plain`: use no markup at all, the last resort after BadMarkup: send `content.plain()`.
    `key`: the same for a repetition of the same send, for platforms with `Capability.send_key`.
    """

    content: Content
    buttons: Rows = ()
    reply_to: str = ""
    silent: bool = False
    plain: bool = False
    key: str = ""

    def as_plain(self) -> Outgoing:
        return replace(self, plain=True)
