"""What a platform reports: one dataclass per kind of update. All are given to `Inbox.take`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Chat:
    """A conversation path on the platform: `id`, and `topic` ("" for none) where topics or threads are routes of their own.

    Equality is by id and topic. `direct`: a private chat of one person with the bot. `title`: for people, may be "".
    """

    id: str
    topic: str = ""
    direct: bool = True
    title: str = ""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Chat) and (self.id, self.topic) == (other.id, other.topic)

    def __hash__(self) -> int:
        return hash((self.id, self.topic))


@dataclass(frozen=True, slots=True)
class User:
    """Who acts, by the platform's own immutable user id (never by a name that can be taken).

    `id` "" = nobody that can be told apart (an anonymous admin, a channel's post): the kit ignores it.
    `language`: as the platform says, such as "zh-hans", "" unknown.
    """

    id: str
    name: str = ""
    language: str = ""


@dataclass(frozen=True, slots=True)
class FileRef:
    """A file that came with a message; `id` is what `Surface.download` takes. `size` in bytes, -1 unknown.

    `name` is the sender's and is not to be trusted: the kit makes it safe. `image`: to be shown to the agent as an image.
    """

    id: str
    name: str
    mime: str = ""
    size: int = -1
    image: bool = False


@dataclass(frozen=True, slots=True)
class Update:
    """`update` is the dedupe key: unique per bot for as long as the platform may deliver it again, the same at each delivery."""

    update: str
    chat: Chat
    user: User


@dataclass(frozen=True, slots=True)
class Message(Update):
    """A person wrote. `message` is its id on the platform. `text` is without the mention of the bot, commands as typed
    ("/status"; of "/status@this_bot" only "/status"; commands to other bots are not reported).

    `addressed`: in a group, it was meant for the bot (mention, reply to the bot, command); always true in a direct chat.
    `quote`: the text that it replies to, where that was quoted by the person on purpose, else "".
    """

    message: str = ""
    text: str = ""
    files: tuple[FileRef, ...] = ()
    addressed: bool = True
    quote: str = ""


@dataclass(frozen=True, slots=True)
class Command(Update):
    """A native command of the platform (a slash command, a menu), `name` without its slash. Same as the message
    "/name arguments"."""

    name: str = ""
    arguments: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class Press(Update):
    """A button was pressed. `press` is what `Surface.answer_press` takes ("" when the platform needs no answer);
    `message` the message that the button is at."""

    data: str = ""
    message: str = ""
    press: str = ""


@dataclass(frozen=True, slots=True)
class Stopped(Update):
    """The person pressed the platform's own stop of a native stream (`Surface.draft`). Same as /stop."""

    draft: int = 0


@dataclass(frozen=True, slots=True)
class Migration(Update):
    """The chat `chat` has the id `to` from now on, with the same people in it."""

    to: str = ""


@dataclass(frozen=True, slots=True)
class Membership(Update):
    """The bot came into the chat, or was removed or blocked (`present` False)."""

    present: bool = True
