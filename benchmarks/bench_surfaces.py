"""What a chat bridge adds: to the way of a message in, to the way of an answer out, in memory, and with 200 chats at once.

The platform is the tests' strict Telegram, a process on loopback; its record of calls has the times (monotonic, seconds; one
clock for all processes of a machine).
"""

from __future__ import annotations

import hashlib
import itertools
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from benchmarks._daemon import Daemon, daemon
from benchmarks.harness import Case, Pair, at_least_times, at_most_plus, pss_mb
from tests.fakes.telegram_process import TOKEN, FakeTelegram, told
from transports.bus.client import SyncClient
from transports.bus.vocabulary.bridges import (
    AddBridge,
    ApproveUser,
    BridgeHello,
    BridgePeople,
    BridgeState,
    BridgeWelcome,
    ListBridges,
)

FLOOR = Path(__file__).with_name("_telegram_floor.py")
FLOOR_TOKEN = TOKEN.replace("7", "8", 1)
CHAT, FLOOR_CHAT = 42, 4242
REST_S = 5.0
"""Between two turns in one chat, for the bridge's own send budget (4 at once, then one a second)."""
CHATS = 200
PER_S = 28.0
"""What a bot may send (transports/im/telegram): 28 a second."""
WINDOW_S = 10.0
_STAMP = re.compile(r"at (\w+) (\d+\.\d+)")
_WORDS = itertools.count(1)


@contextmanager
def _floor_bot(address: str) -> Iterator[subprocess.Popen[bytes]]:
    made = subprocess.Popen([sys.executable, str(FLOOR), address], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert made.stdin is not None and made.stdout is not None
    try:
        made.stdout.readline()
        yield made
    finally:
        made.stdin.close()
        made.kill()
        made.wait(10)


def _define(data: Path, url: str) -> None:
    secret = data / "bot-token"
    secret.write_text(TOKEN)
    secret.chmod(0o600)
    text = f'[tg]\nkind = "telegram"\n[tg.options]\ntoken = "file:{secret}"\napi_base_url = "{url}"\n'
    (data / "bridges.toml").write_text(text)


def _running(peer: SyncClient) -> int:
    """The pid of the bridge, once it runs."""
    end = time.monotonic() + 30.0
    while time.monotonic() < end:
        row = peer.request("bridges", ListBridges(), 10.0).data["bridges"][0]
        if row["state"] == "running" and row["pid"]:
            return int(row["pid"])
        if row["state"] == "failed":
            raise RuntimeError(f"the bridge failed: {row['error']}")
        time.sleep(0.05)
    raise RuntimeError("the bridge does not run")


@contextmanager
def _bridge(made: Daemon, telegram: FakeTelegram) -> Iterator[int]:
    _define(made.data, telegram.url)
    with made.client() as peer:
        peer.request("bridges", AddBridge("tg", "telegram"), 60.0)
        peer.request("bridges", ApproveUser("tg", str(CHAT), "owner"), 30.0)
        yield _running(peer)


def _trip(telegram: FakeTelegram, chat: int, bot: str) -> tuple[float, float]:
    """Milliseconds from the person's message to whoever answers it, and from there to the call that shows the answer."""
    word = f"n{next(_WORDS)}"
    since = telegram.next()
    began = time.monotonic()
    telegram.control("say", chat=chat, user=chat, text=f"clock {word}", bot=bot)

    call = telegram.wait(lambda c: f"at {word} " in told(c), since=since, timeout=30.0)
    found = _STAMP.search(told(call))
    assert found is not None
    at = float(found[2])
    return (at - began) * 1e3, (call["time"] - at) * 1e3


@contextmanager
def _trips(which: int) -> Iterator[Pair]:
    with FakeTelegram() as telegram, daemon() as made, _bridge(made, telegram):
        telegram.control("bot", token=FLOOR_TOKEN, username="bare_bot")
        with _floor_bot(f"{telegram.url}/bot{FLOOR_TOKEN}"):

            def floor() -> float:
                return _trip(telegram, FLOOR_CHAT, "bare_bot")[which]

            def ours() -> float:
                time.sleep(REST_S)
                return _trip(telegram, CHAT, "va_test_bot")[which]

            floor()
            ours()
            yield floor, ours


@contextmanager
def to_agent() -> Iterator[Pair]:
    with _trips(0) as pair:
        yield pair


@contextmanager
def to_phone() -> Iterator[Pair]:
    with _trips(1) as pair:
        yield pair


@contextmanager
def at_rest() -> Iterator[Pair]:
    with FakeTelegram() as telegram, daemon() as made, _bridge(made, telegram) as pid, _floor_bot("idle") as bare:
        yield lambda: pss_mb(bare.pid), lambda: pss_mb(pid)


# --- 200 chats ---


class _Many:
    """A supervisor by script that streams a turn to each of the chats, and the Telegram bridge below it."""

    def __init__(self, folder: Path, telegram: FakeTelegram) -> None:
        from actors.policy import allow
        from tests.fakes.scripted_supervisor import ScriptedSupervisor
        from transports.bus.access import Access
        from transports.bus.endpoint import Endpoint
        from transports.bus.vocabulary.conversation import Ok
        from transports.bus.vocabulary.surface import Accepted, ItemAck, Listen, Submit

        self._secret = os.urandom(32)
        self._over = threading.Event()
        self._lengths: dict[int, int] = {}
        digest = hashlib.sha256(self._secret).hexdigest()
        secrets = {("bridge", "bridge/telegram:tg"): digest}

        class Script(ScriptedSupervisor):
            @property
            def socket(script) -> Path:
                return script._directory / "bus.sock"

            def start(script) -> None:
                script._endpoint = Endpoint(
                    script.socket, script._switch, access=Access(policy=allow, secret_hash=lambda kind, name: secrets.get((kind, name))),
                    bind_names=lambda peer, hello: [], on_gone=lambda peer, reason: None, clock=script._clock, version="bench",
                )  # fmt: skip
                script._endpoint.start()

        data = folder / "data"
        data.mkdir(mode=0o700)
        _define(data, telegram.url)
        self.script = Script(data)
        self.script.start()
        people = [{"id": str(n), "name": f"P{n}", "role": "member"} for n in range(1, CHATS + 1)]
        answers = self.script.answers
        answers["bridges", BridgeHello] = lambda d, s: BridgeWelcome(people, False)
        answers["bridges", BridgeState] = lambda d, s: None
        answers["bridges", BridgePeople] = lambda d, s: None
        for number in range(1, CHATS + 1):
            route = f"route/telegram:tg:{number}"
            answers[route, Listen] = lambda d, s: Ok({"position": 0})
            answers[route, ItemAck] = lambda d, s: None
            answers[route, Submit] = lambda d, s: self._submitted(d, Accepted)
        read, write = os.pipe()
        os.write(write, self._secret)
        os.close(write)
        argv = [sys.executable, "-P", "-m", "transports.im.main", "telegram", "tg", "--run", str(self.script.socket), "--data-dir", str(data), "--secret-fd", str(read)]
        self.process = subprocess.Popen(argv, pass_fds=(read,), stderr=subprocess.DEVNULL)
        os.close(read)

    def _submitted(self, delivery: Any, accepted: Any) -> Any:
        route, key = delivery.address.removeprefix("route/"), delivery.message.key
        number = int(route.rpartition(":")[2])
        peer = delivery.sender
        asked = {"event": "asked", "key": key, "route": route, "by": f"P{number}", "text": delivery.message.text}
        self.script.later(0.05, lambda: self._begin(peer, route, number, asked))
        return accepted(key)

    def _begin(self, peer: str, route: str, number: int, asked: dict[str, Any]) -> None:
        self.script.item(peer, route, asked, turn=f"tn{number}", seq=1)
        self._stream(peer, route, number)

    def _stream(self, peer: str, route: str, number: int) -> None:
        if self._over.is_set():
            return
        offset = self._lengths.get(number, 0)
        text = f"word{offset} "
        self._lengths[number] = offset + len(text)
        event = {"event": "text", "text": text, "block": 1, "offset": offset, "final": False}
        self.script.preview(peer, route, event, turn=f"tn{number}")
        self.script.later(0.5, lambda: self._stream(peer, route, number))

    @property
    def streaming(self) -> int:
        return len(self._lengths)

    def close(self) -> None:
        self._over.set()
        self.process.kill()
        self.process.wait(10)
        self.script.close()


_served: list[int] = []


@contextmanager
def many_chats() -> Iterator[Pair]:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True)))
        telegram = stack.enter_context(FakeTelegram())
        many = _Many(folder, telegram)
        stack.callback(many.close)
        for number in range(1, CHATS + 1):
            telegram.say("stream", user=number)
        end = time.monotonic() + 60.0
        while many.streaming < CHATS and time.monotonic() < end:
            time.sleep(0.1)
        if many.streaming < CHATS:
            raise RuntimeError(f"only {many.streaming} chats stream")

        def ours() -> float:
            since = telegram.next()
            began = time.monotonic()
            time.sleep(WINDOW_S)
            calls = [c for c in telegram.calls(since=since) if _spends(c) and c["time"] <= began + WINDOW_S]
            _served.append(len({str(c["params"].get("chat_id")) for c in calls}))
            return len(calls) / WINDOW_S

        yield lambda: PER_S, ours


def _spends(call: dict[str, Any]) -> bool:
    method = str(call["method"])
    return method.startswith(("send", "edit")) and method != "sendChatAction" and str(call["outcome"]).startswith("ok")


CASES = (
    Case("Telegram update in, prompt at the agent", "a bare aiohttp client has the update", "ms", at_most_plus(10.0), to_agent),
    Case("agent's text, call to Telegram", "a bare aiohttp client's call", "ms", at_most_plus(10.0), to_phone),
    Case("a Telegram bridge at rest", "a bare aiohttp process", "MB", at_most_plus(12.0), at_rest),
    Case(
        f"{CHATS} chats streaming through one Telegram bridge", "its send budget", "/s", at_least_times(0.95), many_chats,
        ("each chat served", lambda: min(_served) >= CHATS),
    ),
)
