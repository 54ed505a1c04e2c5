"""A bridge process: `python -P -m transports.im.main KIND NAME --run SOCKET --data-dir DIR --secret-fd FD`.

It says hello, learns its people, runs the platform's surface, and ends with its connection: the supervisor that comes back
starts its own. Exit codes: 0 the supervisor went or told it to end, 5 bad credentials, 2 bad definition, 1 anything else.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from agents_registry.errors import NotRunningError, UsageError, VibeAroundError
from transports.bus.access import read_secret
from transports.bus.api import Delivery
from transports.bus.client import BusClient
from transports.bus.vocabulary.bridges import BridgeHello, BridgePeople, BridgeWelcome
from transports.im.calls import Calls
from transports.im.definitions import dereference, find
from transports.im.errors import BadCredentials, Conflict, PlatformError
from transports.im.gate import Gate
from transports.im.kinds import load
from transports.im.kit import Kit
from transports.im.link import BRIDGES, BusLink
from transports.im.menu import entries
from transports.im.options import whole
from transports.im.platform import Platform, Setup, Surface
from transports.im.shared import Shared
from transports.im.state import StateFile
from transports.im.turnstile import Turnstile

VERSION = "1"
"""Of the conversation between a bridge process and the supervisor; not of the product."""
_HELLO_S = 20.0
_CONFLICT_S = (30.0, 600.0)
_AGAIN_S = (1.0, 60.0)
_STEADY_S = 120.0
"""A run that lasted so long was a good one: the next pause is short again."""


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m transports.im.main")
    parser.add_argument("kind")
    parser.add_argument("name")
    for name in ("--run", "--data-dir"):
        parser.add_argument(name, required=True)
    parser.add_argument("--secret-fd", type=int, required=True)
    options = parser.parse_args(argv)
    secret = read_secret(options.secret_fd)
    try:
        return asyncio.run(_main(options.kind, options.name, Path(options.run), Path(options.data_dir), secret))
    except VibeAroundError as error:
        log(str(error))
        return error.exit_code


def log(line: str) -> None:
    """One line of the bridge's log."""
    print(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {line}", file=sys.stderr, flush=True)  # noqa: T201 - stderr is the log


def private_dir(data_dir: Path, name: str) -> Path:
    """Where a bridge keeps what is its own: its state, and its platform's cursors. 0700."""
    path = data_dir / "bridges" / name
    for part in (data_dir / "bridges", path):
        part.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path


async def _main(kind: str, name: str, run: Path, data_dir: Path, secret: bytes) -> int:
    def connect(on_message: Callable[[Delivery], None], on_state: Callable[[str], None]) -> BusClient:
        return BusClient(
            run, kind="bridge", name=f"bridge/{kind}:{name}", secret=secret, on_message=on_message, on_state=on_state, stay=False
        )

    link = BusLink(kind, name, data_dir, connect)
    ending = asyncio.create_task(_until_told(link))
    working = asyncio.create_task(_work(kind, name, link))
    try:
        await asyncio.wait({ending, working}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            working.cancel()
            await asyncio.wait({working})
        if link.why:
            log(f"the supervisor is gone: {link.why}")
        if working.cancelled():
            return 0
        error = working.exception()
        if isinstance(error, NotRunningError):
            return 0
        if error is not None:
            link.state("failed", error.message if isinstance(error, VibeAroundError) else f"{type(error).__name__}: {error}")
            raise error
        return 0
    finally:
        ending.cancel()
        await asyncio.to_thread(link.close)


async def _until_told(link: BusLink) -> None:
    """Until the supervisor is gone, or a signal says so."""
    told = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, told.set)
    waits = [asyncio.ensure_future(told.wait()), asyncio.ensure_future(link.ended.wait())]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()


async def _work(kind: str, name: str, link: BusLink) -> None:
    welcome = await link.request(BRIDGES, BridgeHello(kind, name, VERSION), _HELLO_S)
    if not isinstance(welcome, BridgeWelcome):
        raise VibeAroundError(f"The supervisor answered {type(welcome).__name__} to a bridge's hello.", hint="Are both of one version?")
    link.state("starting")
    platform = load(kind)
    options = resolved(platform, find(link.data_dir, name).options)
    private = private_dir(link.data_dir, name)
    gate = Gate(welcome.users, welcome.claim_open)
    link.set_people(gate.people)
    setup = Setup(name, options, platform_dir(private), lambda state, error: link.state(state, error), log)
    if platform.serve is not None:
        await _serve(platform, link, setup, gate)
    else:
        await _chat(platform, link, setup, gate, private)


def resolved(platform: Platform, given: Mapping[str, str]) -> dict[str, str]:
    """All options with their values, secrets as what they refer to."""
    options = whole(platform, given)
    for option in platform.options:
        if option.secret and options[option.name]:
            options[option.name] = dereference(options[option.name])
    return options


async def _serve(platform: Platform, link: BusLink, setup: Setup, gate: Gate) -> None:
    """A surface of another shape: it gets the link, the people, and the same care."""
    serve = platform.serve
    assert serve is not None

    def heard(message: object) -> None:
        if isinstance(message, BridgePeople):
            gate.update(message.users, message.claim_open)
            link.set_people(gate.people)

    link.on_other(heard)

    async def once() -> None:
        await serve(link, setup)

    await _again(once, link)


async def _chat(platform: Platform, link: BusLink, setup: Setup, gate: Gate, private: Path) -> None:
    state = StateFile(private / "state.json")
    assert platform.surface is not None
    surface = platform.surface(setup)
    clock = asyncio.get_running_loop().time
    calls = Calls(Turnstile(platform.capability, clock), clock, asyncio.sleep, log)
    kit = Kit(Shared(link, surface, platform.capability, setup.options, calls, state, private, log), gate)
    link.on_other(lambda message: kit.people(message) if isinstance(message, BridgePeople) else None)
    kit.start()
    menu = asyncio.create_task(_menu(surface, platform))

    async def once() -> None:
        link.state("running")
        await surface.run(kit)

    try:
        await _again(once, link)
    finally:
        menu.cancel()
        await kit.stop()
        try:
            async with asyncio.timeout(3.0):
                await surface.close()
        except (TimeoutError, PlatformError) as error:
            log(f"closing: {error!r}")
        if calls.counts:
            log("counts: " + ", ".join(f"{name} {count}" for name, count in sorted(calls.counts.items())))


async def _again(once: Callable[[], Awaitable[None]], link: BusLink) -> None:
    """Run it again after each failure, with a pause that fits; raises what can only be mended by a person."""
    backoff, conflicts = _AGAIN_S[0], _CONFLICT_S[0]
    loop = asyncio.get_running_loop()
    while True:
        started = loop.time()
        try:
            await once()
            reason, pause = "it ended by itself", backoff
        except (BadCredentials, UsageError):
            raise
        except Conflict as error:
            reason, pause = error.message, conflicts
            conflicts = min(_CONFLICT_S[1], conflicts * 2)
        except NotRunningError:
            raise
        except VibeAroundError as error:
            reason, pause = error.message, backoff
        except Exception as error:  # noqa: BLE001 - a defect of one platform's module: shown as its state, and tried again
            reason, pause = f"{type(error).__name__}: {error}", backoff
        if loop.time() - started >= _STEADY_S:
            backoff, conflicts = _AGAIN_S[0], _CONFLICT_S[0]
        log(f"{reason}; again in {pause:g} s")
        link.state("retrying", reason)
        await asyncio.sleep(pause)
        backoff = min(_AGAIN_S[1], backoff * 2)


async def _menu(surface: Surface, platform: Platform) -> None:
    """The command menu, in both languages; a courtesy: tried a few times."""
    if not platform.capability.menu:
        return
    for pause in (0.0, 10.0, 60.0, 600.0):
        await asyncio.sleep(pause)
        try:
            for language in ("", "zh"):
                await surface.menu(entries(language)[: platform.capability.menu], language)
            return
        except PlatformError as error:
            log(f"the command menu was not set: {error}")


def platform_dir(private: Path) -> Path:
    """What the platform's module keeps for itself."""
    path = private / "platform"
    path.mkdir(mode=0o700, exist_ok=True)
    return path


if __name__ == "__main__":
    sys.exit(main())
