"""`va chat`: this terminal as a chat, a full route like any other (`cli:local:NAME`)."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeVar

import click

from transports.cli.output import clean, emit, emit_json, emit_line, json_option, remark

F = TypeVar("F", bound=Callable[..., Any])
MAX_TEXT = 256 << 10
"""Bytes of a prompt; the supervisor refuses more too."""


def chat_option(function: F) -> F:
    return click.option("--chat", "name", default="main", show_default=True, metavar="NAME", help="Which chat.")(function)


def workspace_option(function: F) -> F:
    text = "Where a new conversation works; else the current directory."
    return click.option("--workspace", "directory", metavar="DIR", help=text)(function)


@click.group("chat")
def chat() -> None:
    """Use this terminal as a chat with an agent: send, listen, answer, stop; or all in one with `repl`."""


@chat.command("send")
@click.argument("text", nargs=-1, required=True)
@chat_option
@workspace_option
@click.option("--key", default="", metavar="K", help="The same key again runs nothing and shows the first turn.")
@click.option("--json", "as_json", is_flag=True, help="One JSON event a line on stdout.")
def send(text: tuple[str, ...], name: str, directory: str | None, key: str, as_json: bool) -> int:
    """Send TEXT (a prompt or a /command; `-` reads it from stdin) and show what comes of it until its end."""
    from agents_registry.errors import VibeAroundError
    from transports.cli.chat_turn import Turn
    from transports.cli.chat_view import JsonView, TextView

    try:
        words = _text(text)
        turn = Turn(name, words, directory, key)
        view = JsonView() if as_json else TextView(name, interactive=sys.stdin.isatty() and sys.stdout.isatty())
        return turn.run(view)
    except VibeAroundError as error:
        if not as_json:
            raise
        emit_line(error_line(error))
        return error.exit_code


def error_line(error: Any) -> dict[str, Any]:
    """An error as an event of the stream."""
    return {"event": "error", "code": error.code, "message": error.message, "hint": error.hint, "exit_code": error.exit_code}


def _text(words: tuple[str, ...]) -> str:
    from agents_registry.errors import UsageError

    text = sys.stdin.read() if words == ("-",) else " ".join(words)
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        raise UsageError("The text is not valid UTF-8.", hint="Check the terminal's encoding.") from error
    if not text.strip():
        raise UsageError("There is nothing to send.", hint="Write some text.")
    if size > MAX_TEXT:
        raise UsageError(
            f"The text has {size} bytes; a message may have {MAX_TEXT}.", hint="Put it into a file and name the file.", code="too_large"
        )
    return text


@chat.command("listen")
@chat_option
@click.option("--json", "as_json", is_flag=True, help="One JSON event a line on stdout.")
def listen(name: str, as_json: bool) -> None:
    """Print all that reaches the chat, from where the last listener stopped, until Ctrl-C. One listener a chat."""
    from transports.cli.chat_listen import Listener
    from transports.cli.chat_view import JsonView, TextView

    view = JsonView() if as_json else TextView(name, interactive=False, listening=True)
    Listener(name).run(view.show, lambda words: remark(f"({words})"))


@chat.command("answer")
@chat_option
@click.argument("id_", metavar="ID")
@click.argument("option", default="")
@json_option
def answer(name: str, id_: str, option: str, as_json: bool) -> None:
    """Answer the permission or question ID with OPTION; without OPTION it is cancelled."""
    from transports.bus.routes import terminal_route
    from transports.bus.vocabulary.surface import Answer
    from transports.cli.connect import ask, person

    data: dict[str, Any] = ask(terminal_route(name).address, Answer(id_, option, person())).data
    if as_json:
        emit_json({"id": id_, "option": option, **data})
    else:
        emit(f"Answered: {clean(option) or 'cancelled'}.")


@chat.command("stop")
@chat_option
@json_option
def stop(name: str, as_json: bool) -> None:
    """Stop the chat's running turn and drop its waiting messages."""
    from transports.bus.routes import terminal_route
    from transports.bus.vocabulary.surface import StopTurn
    from transports.cli.connect import ask, person
    from transports.human import plural

    data: dict[str, Any] = ask(terminal_route(name).address, StopTurn(person())).data
    if as_json:
        emit_json(data)
        return
    cancelled, dropped = int(data.get("cancelled", 0)), int(data.get("dropped", 0))
    words = ["The running turn is being stopped." if cancelled else "No turn of this chat is running."]
    if dropped:
        words.append(f"{plural(dropped, 'waiting message')} dropped.")
    emit(" ".join(words))


@chat.command("repl")
@chat_option
@workspace_option
def repl(name: str, directory: str | None) -> int:
    """Talk in this terminal: type, read, answer by number. Ctrl-C stops the turn, Ctrl-D leaves."""
    from transports.cli.chat_repl import Repl

    return Repl(name, directory).run()
