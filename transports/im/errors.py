"""What can go wrong between a bridge and its platform, by what the kit does about it."""

from __future__ import annotations

from typing import ClassVar, Literal

from agents_registry.errors import VibeAroundError

Scope = Literal["message", "chat", "bot"]


class PlatformError(VibeAroundError):
    """Root: an operation failed for good, for a reason with no rule of its own. The kit logs it and says so in the chat
    where it can; it is not repeated."""

    default_code: ClassVar[str] = "platform"


class RetryAfter(PlatformError):
    """Too fast. `seconds`: how long the platform wants silence; `scope`: what has to be silent.

    "message" pauses the edits of that one message (and only these), "chat" everything to that chat, "bot" everything.
    When the platform does not say, "message" is right for an edit or a draft and "chat" for a send.
    The operation had no effect and is repeated after the pause, with the newest content.
    """

    default_code: ClassVar[str] = "retry_after"

    def __init__(self, seconds: float, scope: Scope = "chat", message: str = "") -> None:
        super().__init__(message or f"the platform wants {seconds:g} seconds of silence.")
        self.seconds = max(0.0, seconds)
        self.scope: Scope = scope


class Transient(PlatformError):
    """No effect, and likely to work soon: connection refused, name not resolved, 5xx or HTML instead of an answer
    *before* the platform took the request. Repeated with a back-off."""

    default_code: ClassVar[str] = "transient"


class Ambiguous(PlatformError):
    """The connection broke after the request was sent: it may have had its effect. An edit is simply repeated; a send is
    repeated once, marked, and counted (or not marked where `Capability.send_key` makes it harmless)."""

    default_code: ClassVar[str] = "ambiguous"


class Forbidden(PlatformError):
    """The bot may not write in this chat (any more): blocked, removed, no rights. The chat is left alone until somebody
    writes from it; what waits stays in the journal within its limits."""

    default_code: ClassVar[str] = "forbidden"


class Gone(PlatformError):
    """The message (or the chat's topic) does not exist any more. An edit becomes a new message."""

    default_code: ClassVar[str] = "gone"


class BadMarkup(PlatformError):
    """The platform refused the markup. The same content is sent again with `Outgoing.plain`."""

    default_code: ClassVar[str] = "bad_markup"


class TooLong(PlatformError):
    """The platform found the content longer than it takes, though `Surface.fits` said yes: it is split again, smaller."""

    default_code: ClassVar[str] = "too_long"


class Unsupported(PlatformError):
    """This chat, client or server does not do this operation (native stream, reaction, file ...). The kit takes the next
    lower step and, for this chat, does not try it again for an hour."""

    default_code: ClassVar[str] = "unsupported"


class Conflict(PlatformError):
    """Somebody else receives with the same credentials. Raised by `Surface.run`: shown as the bridge's state, tried again
    with long pauses (30 s to 10 min), never in a tight loop."""

    default_code: ClassVar[str] = "conflict"
    exit_code = 8


class BadCredentials(PlatformError):
    """The platform refuses the token or password. Final: the bridge's state becomes failed and the process ends."""

    default_code: ClassVar[str] = "bad_credentials"
    exit_code = 5


class Migrated(PlatformError):
    """The chat has a new id (`chat`): the kit moves the chat and repeats the operation there."""

    default_code: ClassVar[str] = "migrated"

    def __init__(self, chat: str, message: str = "") -> None:
        super().__init__(message or f"the chat is now {chat}.")
        self.chat = chat
