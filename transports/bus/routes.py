"""Routes: the stable address of one conversation path through a channel, as a value and as text.

The text form `channel:bot:chat[:topic]` is percent-escaped, so that it is plain ASCII without spaces, slashes or
further colons, whatever a platform calls its chats: it stands in bus addresses, in the journal, and in listings.
One route has exactly one text: `Route.parse(text).text` is the canonical spelling of what a person typed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from agents_registry.errors import UsageError

MAX_TEXT = 1024
"""Characters of a route's text form; no platform comes near it, and a name of a megabyte is a mistake."""

_PLAIN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~@+!$,=")
_KIND = re.compile(r"[a-z][a-z0-9_-]{0,31}")
_ESCAPE = re.compile(rb"%([0-9A-Fa-f]{2})")
_BROKEN_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")

LOCAL_BOT = "local"
"""The bot part of routes that belong to this machine itself: the terminal and the web page."""


def escape(part: str) -> str:
    """One part of a route, escaped. Raises UsageError for text that is not valid Unicode."""
    try:
        raw = part.encode("utf-8")
    except UnicodeEncodeError as error:
        raise UsageError(
            f"the name {part!r} is not valid text.", hint="Use letters, digits and signs of UTF-8.", code="bad_route"
        ) from error
    return "".join(chr(b) if b in _PLAIN else f"%{b:02X}" for b in raw)


def unescape(part: str) -> str:
    """The reverse of `escape`. Raises UsageError for a broken escape or for bytes that are not UTF-8."""
    if _BROKEN_ESCAPE.search(part):
        raise UsageError(f"the route part {part!r} has a broken percent escape.", code="bad_route")
    try:
        raw = _ESCAPE.sub(lambda m: bytes((int(m[1], 16),)), part.encode("utf-8"))
        return raw.decode("utf-8")
    except (UnicodeDecodeError, UnicodeEncodeError) as error:
        raise UsageError(f"the route part {part!r} is not valid UTF-8.", code="bad_route") from error


@dataclass(frozen=True, slots=True)
class Route:
    """One conversation path: a channel kind, the bot's account there, the chat, and perhaps a topic in it.

    Raises UsageError when the channel is not a plain word, a part is empty, or the text form would be too long.
    """

    channel: str
    bot: str
    chat: str
    topic: str = ""

    def __post_init__(self) -> None:
        if not _KIND.fullmatch(self.channel):
            raise UsageError(
                f"{self.channel!r} is not a channel.",
                hint="A channel is a short lower-case word such as cli, web or telegram.",
                code="bad_route",
            )
        if not self.bot or not self.chat:
            raise UsageError("a route needs a channel, a bot and a chat.", hint="Write channel:bot:chat.", code="bad_route")
        if len(self.text) > MAX_TEXT:
            raise UsageError(f"the name of the chat is longer than a route can carry ({MAX_TEXT}).", code="bad_route")

    @property
    def text(self) -> str:
        """The canonical text form."""
        parts = [self.channel, escape(self.bot), escape(self.chat)]
        if self.topic:
            parts.append(escape(self.topic))
        return ":".join(parts)

    @property
    def address(self) -> str:
        """Where on the bus this route is reached."""
        return f"route/{self.text}"

    @classmethod
    def parse(cls, text: str) -> Route:
        """The route that `text` (or a bus address `route/<text>`) names. Raises UsageError when it names none."""
        parts = text.removeprefix("route/").split(":")
        if len(parts) not in (3, 4) or not all(parts):
            raise UsageError(
                f"{text[:80]!r} is not a route.", hint="Write channel:bot:chat or channel:bot:chat:topic.", code="bad_route"
            )
        return cls(parts[0], *(unescape(part) for part in parts[1:]))

    def __str__(self) -> str:
        return self.text


def terminal_route(name: str) -> Route:
    """The route of the terminal chat `name` (`va chat --chat NAME`)."""
    return Route("cli", LOCAL_BOT, name)


def web_route(thread: str) -> Route:
    """The one route of a thread's web page, for all its tabs."""
    return Route("web", LOCAL_BOT, thread)
