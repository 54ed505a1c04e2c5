"""A phone, a strict Telegram, and a real daemon with a bridge between them; everything is a process of its own."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest

from tests.daemon import Daemon, plain_env
from tests.fakes.telegram_process import TOKEN, Call, FakeTelegram, buttons, told, words
from tests.waiting import until

_ROOT = Path(__file__).resolve().parents[2]
_BUILT = (_ROOT / "actors" / "bridges.py").exists() and any((_ROOT / "transports" / "cli").glob("bridge*.py"))
needs_bridges = pytest.mark.skipif(not _BUILT, reason="the supervisor's side of bridges is not built yet")
ANNA, BEN, EVE = 42, 43, 666
"""The owner, a member, and a stranger."""
DONE = ("✅", "⏹", "❌")


class Phone:
    """A context manager. `telegram` is the platform, `daemon` the product; the bridge is called `tg`."""

    def __init__(self, folder: Path, *, env: Mapping[str, str] | None = None, options: dict[str, str] | None = None, **settings: object) -> None:
        self.telegram = FakeTelegram()
        base = dict(env) if env is not None else plain_env(folder)
        settings.setdefault("agents__default", "demo")
        self.daemon = Daemon(folder / "va", {**base, "TG_TOKEN": TOKEN}, **settings)
        self._options = options or {}

    def __enter__(self) -> Phone:
        self.telegram.__enter__()
        try:
            self.daemon.__enter__()
            self.add("tg", "TG_TOKEN", **self._options)
            self.approve(ANNA, "owner")
        except BaseException as error:
            self.__exit__(type(error), error, None)
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            self.daemon.__exit__(kind, error, trace)
        finally:
            self.telegram.stop()

    # --- the owner's side ---

    def add(self, name: str, variable: str, **options: str) -> str:
        """`va bridge add telegram`; what it printed."""
        given = {"token": f"env:{variable}", "api_base_url": self.telegram.url, **options}
        pairs = [word for key, value in given.items() for word in ("--set", f"{key}={value}")]
        return self.daemon.va("bridge", "add", "telegram", "--name", name, *pairs).out

    def approve(self, user: int, role: str = "member", name: str = "tg") -> None:
        self.daemon.va("bridge", "approve", name, str(user), "--role", role)

    def bridge(self, name: str = "tg") -> dict[str, Any]:
        """Its line in `va bridge list --json`."""
        found = json.loads(self.daemon.va("bridge", "list", "--json").out)
        rows = found["bridges"] if isinstance(found, dict) else found
        return next(row for row in rows if row["name"] == name)

    def wait_state(self, state: str, name: str = "tg", *, seconds: float = 20.0) -> dict[str, Any]:
        return until(lambda: row if (row := self.bridge(name))["state"] == state else None, f"the bridge is {state}", seconds=seconds)

    def pid(self, name: str = "tg") -> int:
        """The bridge's process."""
        return until(
            lambda: next((p for p, line in self.daemon.processes().items() if "transports.im.main" in line and f" {name} " in f"{line} "), 0),
            "the bridge runs",
        )

    def kill_bridge(self, name: str = "tg") -> None:
        """kill -9; the supervisor starts it again."""
        os.kill(self.pid(name), signal.SIGKILL)

    # --- the phone's side ---

    def say(self, text: str, *, user: int = ANNA, chat: int = 0, **more: Any) -> int:
        """Write to the bot; gives the number that the next call will have, to wait from."""
        since = self.telegram.next()
        self.telegram.say(text, user=user, chat=chat or user, **more)
        return since

    def ask(self, text: str, answer: str, *, user: int = ANNA, chat: int = 0, seconds: float = 30.0, **more: Any) -> Call:
        """Write, and wait for the finished answer that holds `answer`."""
        since = self.say(text, user=user, chat=chat, **more)
        return self.answer(answer, chat=chat or user, since=since, seconds=seconds)

    def answer(self, text: str, *, chat: int = ANNA, since: int = 0, seconds: float = 30.0) -> Call:
        """The call that put a finished turn with `text` into the chat."""
        return self.wait(lambda c: text in told(c) and any(sign in told(c) for sign in DONE), chat=chat, since=since, seconds=seconds)

    def wait(self, found: Callable[[Call], bool], *, chat: int = ANNA, since: int = 0, seconds: float = 30.0) -> Call:
        """The first accepted call to the chat for which `found` holds."""
        return self.telegram.wait(
            lambda c: c["outcome"].startswith("ok") and str(c["params"].get("chat_id")) == str(chat) and found(c), since=since, timeout=seconds
        )

    def wait_text(self, text: str, *, chat: int = ANNA, since: int = 0, seconds: float = 30.0) -> Call:
        return self.wait(lambda c: text in told(c), chat=chat, since=since, seconds=seconds)

    def question(self, text: str, *, chat: int = ANNA, since: int = 0, seconds: float = 30.0) -> tuple[int, dict[str, str]]:
        """The message that asks `text` with buttons: its number, and label → data."""
        call = self.wait(
            lambda c: c["method"] in ("sendMessage", "sendRichMessage") and text in told(c) and bool(c["params"].get("reply_markup")),
            chat=chat, since=since, seconds=seconds,
        )  # fmt: skip
        return int(call["result"]), buttons(call["params"])

    def press(self, message: int, data: str, *, user: int = ANNA, chat: int = 0, force: bool = False) -> str:
        """Press a button; what the bot said to the one who pressed ("" for nothing)."""
        since = self.telegram.next()
        query = self.telegram.press(message, data, user=user, chat=chat or user, force=force)
        call = self.telegram.wait(
            lambda c: c["method"] == "answerCallbackQuery" and c["params"]["callback_query_id"] == query, since=since, timeout=10
        )
        return str(call["params"].get("text") or "")

    def message(self, number: int, chat: int = ANNA) -> dict[str, Any]:
        return next(m for m in self.telegram.screen(chat) if m["message_id"] == number)

    def shown(self, chat: int = ANNA) -> list[str]:
        return self.telegram.shown(chat)

    def transcript(self, chat: int = ANNA) -> str:
        """The chat as a person sees it."""
        lines = []
        for message in self.telegram.screen(chat):
            who = "BOT" if message.get("from", {}).get("is_bot") else str(message.get("from", {}).get("first_name"))
            lines.append(f"[{message['message_id']}] {who}: {words(message)}")
            for label, data in buttons(message).items():
                lines.append(f"      ({label}) {data}")
        return "\n".join(lines)


def option(shown: dict[str, str], *labels: str) -> str:
    """The data of the first button whose label holds one of the words."""
    return next(data for label, data in shown.items() if any(word in label.lower() for word in labels))
