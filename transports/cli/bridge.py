"""`va bridge`: chat platforms that reach this machine's agents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from transports.cli.output import clean, emit, emit_json, json_option, remark, table, when
from transports.human import shorten

if TYPE_CHECKING:
    from transports.im.platform import Checked, Platform

_LIMIT_S = 70.0


@click.group("bridge")
def bridge() -> None:
    """Reach your agents from a phone chat: add a bot, approve people."""


@bridge.command("add")
@click.argument("kind", metavar="KIND")
@click.option("--name", default="", metavar="NAME", help="What to call it (else as its kind); several bots have several names.")
@click.option("--set", "given", multiple=True, metavar="OPTION=VALUE", help="An option; a secret as env:NAME or file:PATH.")
@json_option
def add(kind: str, name: str, given: tuple[str, ...], as_json: bool) -> None:
    """Add a bot: checks its credentials, starts it, and shows the code that makes you its owner."""
    from agents_registry.errors import NotRunningError, UsageError
    from transports import paths
    from transports.bus.vocabulary.bridges import AddBridge
    from transports.cli.connect import ask
    from transports.im import definitions, kinds

    _only_people()
    platform = kinds.load(kind)
    name = name or kind.replace("_", "-")
    if not definitions.NAME.fullmatch(name):
        raise UsageError(f"{name[:40]!r} is no name for a bridge.", hint="Small letters, digits and -, at most 32.")
    data_dir = paths.data_dir()
    known = definitions.read(data_dir).get(name)
    if known is not None and known.kind != kind:
        raise UsageError(f"The bridge {name} is one for {known.kind}.", hint="Give the new one another --name.")
    options = _options(platform, given, dict(known.options) if known is not None else {})
    checked = _check(platform, options)
    definitions.change(data_dir, name, definitions.Definition(name, kind, options))
    try:
        answer: dict[str, Any] = ask("bridges", AddBridge(name, kind), _LIMIT_S).data
    except NotRunningError:
        remark(f"The bridge {name} is set up. Start it with `va up`, and get a code with `va bridge claim {name}`.")
        return
    if as_json:
        emit_json({**answer, "account": checked.account, "link": checked.link, "notes": list(checked.notes)})
        return
    emit(f"{platform.title}: {clean(checked.account or name)} is added as {name}.")
    for note in checked.notes:
        emit(f"  {clean(note)}")
    if answer.get("state") == "failed":
        remark(f"It does not run: {clean(str(answer.get('error') or ''))}")
    if platform.surface is not None:  # a page has no people to claim it
        _show_claim(answer, checked)


@bridge.command("claim")
@click.argument("name", metavar="NAME")
def claim(name: str) -> None:
    """A new code for an owner, shown once; it is good for ten minutes and five tries."""
    from transports.im.platform import Checked

    _only_people()
    _show_claim(_control(name, "claim"), Checked(""))


@bridge.command("list")
@json_option
def list_bridges(as_json: bool) -> None:
    """Show the bridges, how they are, and who is on their lists."""
    from transports.bus.vocabulary.bridges import ListBridges
    from transports.cli.connect import ask

    rows: list[dict[str, Any]] = ask("bridges", ListBridges(), _LIMIT_S).data["bridges"]
    if as_json:
        emit_json(rows)
        return
    if not rows:
        emit("No bridges yet. Add one with `va bridge add telegram --set token=env:NAME`.")
        return
    lines = [(r["name"], r["kind"], r["state"], when(r["since"]), shorten(clean(r["error"]), 60) or "-") for r in rows]
    emit(table(lines, ("NAME", "KIND", "STATE", "SINCE", "ERROR")))
    for row in rows:
        for user in row["users"]:
            emit(f"  {row['name']}: {clean(user['name'] or '-')} ({user['id']}), {user['role']}")
        for knock in row.get("knocks") or []:
            emit(f"  {row['name']}: {clean(knock['name'] or '-')} ({knock['id']}) wrote and is on no list: va bridge approve {row['name']} {knock['id']}")


@bridge.command("start")
@click.argument("name", metavar="NAME")
def start(name: str) -> None:
    """Start a bridge."""
    _control(name, "start")
    emit(f"{name} is starting.")


@bridge.command("stop")
@click.argument("name", metavar="NAME")
def stop(name: str) -> None:
    """Stop a bridge until it is started, or the daemon is."""
    _only_people()
    _control(name, "stop")
    emit(f"{name} is stopped.")


@bridge.command("restart")
@click.argument("name", metavar="NAME")
def restart(name: str) -> None:
    """Start a bridge anew, with what its definition says now."""
    _control(name, "restart")
    emit(f"{name} is starting anew.")


@bridge.command("remove")
@click.argument("name", metavar="NAME")
def remove(name: str) -> None:
    """Take a bridge away, with its list of people."""
    from agents_registry.errors import NotFoundError, NotRunningError
    from transports import paths
    from transports.bus.vocabulary.bridges import RemoveBridge
    from transports.cli.connect import ask
    from transports.im import definitions

    _only_people()
    data_dir = paths.data_dir()
    definitions.find(data_dir, name)
    try:
        ask("bridges", RemoveBridge(name), _LIMIT_S)
    except NotRunningError as error:
        raise NotRunningError("A bridge is removed while VibeAround runs: its people are to be forgotten too.", hint="Start it with `va up`.") from error
    except NotFoundError:
        remark("(it did not run)")
    definitions.change(data_dir, name, None)
    emit(f"{name} is removed.")


@bridge.command("logs")
@click.argument("name", metavar="NAME")
@click.option("--lines", type=click.IntRange(1, 10_000), default=100, show_default=True, help="At most so many, the newest.")
def logs(name: str, lines: int) -> None:
    """Show a bridge's log."""
    from collections import deque

    from agents_registry.errors import NotFoundError
    from transports import paths
    from transports.im import definitions

    definitions.find(paths.data_dir(), name)
    path = paths.data_dir() / "logs" / f"bridge-{name}.log"
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            for line in deque(file, lines):
                emit(clean(line.rstrip("\n")))
    except FileNotFoundError as error:
        raise NotFoundError(f"The bridge {name} has no log yet.", hint="It is written when the bridge starts.") from error


@bridge.command("test")
@click.argument("name", metavar="NAME")
def test(name: str) -> None:
    """Try a bridge's credentials now."""
    from transports import paths
    from transports.im import definitions, kinds

    definition = definitions.find(paths.data_dir(), name)
    platform = kinds.load(definition.kind)
    checked = _check(platform, definition.options)
    emit(f"{name}: {clean(checked.account) or 'ok'}" + (f"  {checked.link}" if checked.link else ""))
    for note in checked.notes:
        emit(f"  {clean(note)}")


@bridge.command("approve")
@click.argument("name", metavar="NAME")
@click.argument("user", metavar="USER_ID")
@click.option("--role", type=click.Choice(["owner", "member", "viewer"]), default="member", show_default=True, help="What he may do.")
@click.option("--called", default="", metavar="WHO", help="His name, for your list.")
def approve(name: str, user: str, role: str, called: str) -> None:
    """Put a person on a bridge's list, by the platform's own user id."""
    from transports.bus.vocabulary.bridges import ApproveUser
    from transports.cli.connect import ask

    ask("bridges", ApproveUser(name, user, role, called), _LIMIT_S)
    emit(f"{user} is {'an' if role == 'owner' else 'a'} {role} of {name}.")


@bridge.command("revoke")
@click.argument("name", metavar="NAME")
@click.argument("user", metavar="USER_ID")
def revoke(name: str, user: str) -> None:
    """Take a person off a bridge's list; he is a stranger at once."""
    from transports.bus.vocabulary.bridges import RevokeUser
    from transports.cli.connect import ask

    ask("bridges", RevokeUser(name, user), _LIMIT_S)
    emit(f"{user} is off the list of {name}.")


def _control(name: str, action: str) -> dict[str, Any]:
    from transports.bus.vocabulary.bridges import ControlBridge
    from transports.cli.connect import ask

    answer: dict[str, Any] = ask("bridges", ControlBridge(name, action), _LIMIT_S).data
    return answer


def _show_claim(answer: dict[str, Any], checked: Checked) -> None:
    where = f" ({clean(checked.link)})" if checked.link else ""
    emit(f"To become its owner, send it this within {answer['expires_in_s'] / 60:.0f} minutes{where}:")
    emit(f"\n  /start {answer['code']}\n")


def _options(platform: Platform, given: tuple[str, ...], known: dict[str, str]) -> dict[str, str]:
    """The options as they are written down; a missing one is asked for at a terminal."""
    import sys

    from agents_registry.errors import UsageError
    from transports.im.options import all_options, whole

    options = known
    for pair in given:
        key, sign, value = pair.partition("=")
        if not sign:
            raise UsageError(f"{key[:40]!r} is no option with a value.", hint="Write --set OPTION=VALUE.")
        options[key.strip()] = value.strip()
    for option in all_options(platform):
        if option.required and not options.get(option.name) and sys.stdin.isatty():
            how = " (env:NAME or file:PATH)" if option.secret else ""
            options[option.name] = str(click.prompt(f"{option.name}, {option.help}{how}", err=True)).strip()
    whole(platform, options)
    return {name: value for name, value in options.items() if value}


def _check(platform: Platform, options: dict[str, str]) -> Checked:
    from transports.im.definitions import dereference
    from transports.im.options import whole

    values = whole(platform, options)
    for option in platform.options:
        if option.secret and values[option.name]:
            values[option.name] = dereference(values[option.name])
    return platform.check(values)


def _only_people() -> None:
    """The definitions lie in a file, which no actor guards."""
    from transports.cli.people import only_people

    only_people("change the bridges")
