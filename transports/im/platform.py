"""The port: what a platform's module implements, and what the kit gives it. Code against this file alone.

A platform is one module `transports/im/<kind>.py` that exports `PLATFORM`, an instance of `Platform`. A chat platform gives a
`surface` factory: the kit then does access, order, durability, live messages, splitting, budgets, buttons, permissions and
files, and calls the `Surface` for each single operation. A surface of another shape (the web page) gives `serve` instead
and speaks the bus through `Link`; people, state, lifeline are the kit's there too.

Everything here runs on one asyncio loop. The process, started by the supervisor with the reader's secret and lifeline, is
`python -P -m transports.im.main KIND NAME --run SOCKET --data-dir DIR --secret-fd FD`; its log is its stderr.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from transports.im.content import Button, Content, Outgoing, Part, Rows, Unit, length, markdown, plain
from transports.im.errors import (
    Ambiguous,
    BadCredentials,
    BadMarkup,
    Conflict,
    Forbidden,
    Gone,
    Migrated,
    PlatformError,
    RetryAfter,
    TooLong,
    Transient,
    Unsupported,
)
from transports.im.inbound import Chat, Command, FileRef, Membership, Message, Migration, Press, Stopped, Update, User

__all__ = [
    "Ambiguous", "BadCredentials", "BadMarkup", "Button", "Buttons", "Capability", "Chat", "Checked", "Command", "Conflict",
    "Content", "FileRef", "Forbidden", "Gone", "Inbox", "Link", "Membership", "MenuEntry", "Message", "Migrated", "Migration",
    "Option", "Outgoing", "Part", "Person", "Platform", "PlatformError", "Press", "Rate", "RetryAfter", "Rows", "Setup", "Stopped",
    "Surface", "TooLong", "Transient", "Unit", "Unsupported", "Update", "User", "length", "markdown", "plain",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Rate:
    """A token bucket: `per_s` operations a second in the long run, `burst` at once."""

    per_s: float
    burst: float = 1.0


@dataclass(frozen=True, slots=True)
class Buttons:
    """`count` per message, `per_row`; `label` in code points; `data_bytes` of `Button.data`, at least 16."""

    count: int
    per_row: int
    label: int
    data_bytes: int


@dataclass(frozen=True, slots=True)
class Capability:
    """What a platform can do. Whatever is missing degrades: native stream → throttled edits → one final message;
    buttons → numbered text."""

    max_text: int
    """Longest message, in `unit`, as `Surface.fits` judges."""
    unit: Unit = "codepoints"
    markup: str = "none"
    """entities, html, mrkdwn, md or none: for people and logs; rendering is the surface's."""
    edit: bool = False
    """Messages of the bot can be edited. Without it, a turn is one final message and questions are not updated."""
    edit_interval_s: float = 1.5
    """Least time between two edits of one message while text is in the making."""
    group_edit_interval_s: float = 0.0
    """The same in groups; 0 = as `edit_interval_s`."""
    stream: str = ""
    """Kind of native streaming (telegram_draft, slack_stream ...): `Surface.draft` works. "" = none."""
    stream_where: Literal["direct", "all"] = "direct"
    stream_interval_s: float = 0.4
    stream_keep_s: float = 0.0
    """A draft disappears after so many seconds without an update: it is refreshed before. 0 = it stays."""
    buttons: Buttons | None = None
    reactions: bool = False
    typing_s: float = 0.0
    """How long one `Surface.typing` is shown; it is repeated a second earlier. 0 = not supported."""
    threads: bool = False
    """Chats have topics or threads (`Chat.topic`)."""
    file_in_bytes: int = 0
    """Largest file that `Surface.download` can get; 0 = no files in."""
    file_out_bytes: int = 0
    """Largest file that `Surface.send_file` takes; 0 = no files out."""
    chat_budget: Rate = Rate(1.0, 3.0)
    """Sends, edits and drafts together, per direct chat."""
    group_budget: Rate | None = None
    """The same per group; None = as `chat_budget`."""
    bot_budget: Rate = Rate(25.0, 25.0)
    """The same over all chats."""
    menu: int = 0
    """Most entries of the command menu (`Surface.menu`); 0 = none."""
    send_key: bool = False
    """Sends with one `Outgoing.key` appear once, however often they are repeated."""
    max_parts: int = 6
    """An answer of more messages than this is sent as its beginning and a file (or as all messages, without files out)."""


@dataclass(frozen=True, slots=True)
class Option:
    """One option of an instance, as `--set name=value` and in bridges.toml. A secret's value is a reference
    (env:NAME, file:PATH); the platform gets what it refers to. `default` is for those not required."""

    name: str
    help: str
    required: bool = False
    secret: bool = False
    default: str = ""


@dataclass(frozen=True, slots=True)
class Checked:
    """What `Platform.check` learnt. `account`: the bot's name for people ("@my_bot"). `ident`: its immutable id there.
    `link`: where a person finds it ("https://t.me/my_bot"). `notes`: what the owner should know ("privacy mode is on")."""

    account: str
    ident: str = ""
    link: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MenuEntry:
    """One command of the menu: name without slash, description for people."""

    name: str
    description: str


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody on the allow-list: platform user id, shown name, role owner, member or viewer."""

    id: str
    name: str
    role: str


class Inbox(Protocol):
    """Where a surface puts what it receives."""

    def take(self, update: Update) -> Awaitable[None]:
        """Call in the platform's order; the place in the chat's order is taken by this call itself, at once.

        The returned future is done when the update may be acknowledged to the platform: it is durable, was refused with a
        visible word, or is of no interest. Do not wait for one before giving the next: start them all, then acknowledge a
        batch (or a prefix of it) when its futures are done. It raises only when this process is ending: then acknowledge
        nothing, the platform will deliver again, and a second delivery has no effect.
        """
        ...


class Surface(Protocol):
    """One running connection to the platform. Each operation is one try of one call, and raises what errors.py lists;
    pauses, repetitions, order and splitting are the kit's. Message ids are text, unique within their chat.

    Operations on one chat are never called concurrently, except `answer_press`, `typing`, `react` and `download`.
    """

    async def run(self, inbox: Inbox) -> None:
        """Connect, receive and report, until cancelled. Short losses of connection are the surface's own (reconnect with a
        back-off, say so by `Setup.state("retrying", why)` and `Setup.state("running")`).
        Raises Conflict, BadCredentials, or Transient; the kit calls `run` again after a pause, except for BadCredentials."""
        ...

    async def close(self) -> None:
        """Release what is open. Called once, last."""
        ...

    def fits(self, outgoing: Outgoing) -> bool:
        """Whether the rendered message is within the platform's limits (length, entities, blocks). Pure and fast; text that
        fits stays fitting when its end is cut off. `length(outgoing.content.plain(), unit) <= max_text` is right for
        platforms without markup."""
        ...

    async def send(self, chat: Chat, outgoing: Outgoing) -> str:
        """Send one message; its id."""
        ...

    async def edit(self, chat: Chat, message: str, outgoing: Outgoing) -> None:
        """Replace content and buttons of one of the bot's messages. "Not modified" is success. Only with `Capability.edit`."""
        ...

    async def draft(self, chat: Chat, draft: int, outgoing: Outgoing) -> None:
        """Show text in the making by the platform's native stream; the same `draft` (> 0) replaces what it showed. It ends
        when a message is sent to the chat (`end_draft` is called first). Only with `Capability.stream`."""
        ...

    async def end_draft(self, chat: Chat, draft: int) -> None:
        """The stream is over and its final message follows. A no-op where drafts go by themselves."""
        ...

    async def drop_buttons(self, chat: Chat, message: str) -> None:
        """Take the buttons from a message and leave its content. Only with `Capability.buttons`."""
        ...

    async def delete(self, chat: Chat, message: str) -> None:
        """Delete one of the bot's messages, or (where it may) a person's, such as one with a code in it. Else Unsupported."""
        ...

    async def react(self, chat: Chat, message: str, what: Literal["seen", "queued", "done", "failed", ""]) -> None:
        """Put the bot's reaction on a person's message, "" takes it away. Only with `Capability.reactions`."""
        ...

    async def typing(self, chat: Chat) -> None:
        """Show for `Capability.typing_s` seconds that the bot works."""
        ...

    async def send_file(self, chat: Chat, path: Path, name: str, mime: str, outgoing: Outgoing) -> str:
        """Send the file at `path` (private, already confined and within `file_out_bytes`) under `name`, with the
        outgoing content as its caption; its message id."""
        ...

    async def download(self, file: FileRef, target: Path, limit: int) -> int:
        """Write the file to `target` (exists, empty, mode 0600), never more than `limit` bytes; the size. TooLong if larger."""
        ...

    async def answer_press(self, press: str, text: str, alert: bool = False) -> None:
        """Answer a button press: `text` (≤ 200 code points, "" = nothing to say) shown briefly to the one who pressed."""
        ...

    async def menu(self, entries: Sequence[MenuEntry], language: str) -> None:
        """Set the command menu for a language ("" = all others, "zh"). Called once after each start, when `Capability.menu`."""
        ...


class Link(Protocol):
    """The bus as a surface with `serve` sees it (WEB). All on the loop; a connection that ends ends the process."""

    kind: str
    name: str
    data_dir: Path
    people: Mapping[str, Person]
    """The allow-list by user id, always current."""

    async def request(self, address: str, message: Any, timeout: float = 30.0) -> Any:
        """The answer. Raises what a `Failed` answer says, BusyError after `timeout` seconds, NotRunningError at the end."""
        ...

    def send(self, address: str, message: Any) -> None:
        """Send without an answer (`ItemAck`)."""
        ...

    def on_item(self, hear: Callable[[Any], None]) -> None:
        """`hear` gets each RouteItem and Preview of the routes that were listened to, in order. It must not block."""
        ...

    def on_people(self, hear: Callable[[], None]) -> None:
        """`hear` is called after each change of `people`."""
        ...

    def state(self, state: Literal["starting", "running", "retrying", "failed"], error: str = "") -> None:
        """Report the bridge's state; shown by `va bridge list`. Repetitions are left out."""
        ...


@dataclass(frozen=True, slots=True)
class Setup:
    """What a surface is made from. `options`: all of `Platform.options`, secrets resolved, defaults filled in.
    `private`: a directory of this instance alone (0700, exists), for cursors and caches of the platform.
    `state`: as `Link.state`. `log`: one line for people in the bridge's log, without secrets."""

    name: str
    options: Mapping[str, str]
    private: Path
    state: Callable[[Literal["starting", "running", "retrying", "failed"], str], None]
    log: Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Platform:
    """What a platform's module exports as PLATFORM. Exactly one of `surface` and `serve` is given.

    `check(options)`: tries the credentials at once (blocking, at most 15 s; secrets are resolved); raises BadCredentials,
    Transient or UsageError with words for the person at the keyboard, never with the secret in them.
    The module may load its libraries at import; `kinds.py` knows enough to list platforms without importing them.
    """

    kind: str
    title: str
    capability: Capability
    options: tuple[Option, ...] = field(default=())
    check: Callable[[Mapping[str, str]], Checked] = lambda options: Checked("")
    surface: Callable[[Setup], Surface] | None = None
    serve: Callable[[Link, Setup], Awaitable[None]] | None = None
    """Runs until cancelled, like `Surface.run`."""
