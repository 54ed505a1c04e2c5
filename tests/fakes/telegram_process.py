"""The fake Telegram as a process, from the side of a test: start, stop, speak as a person, wait for what a bot does."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

_ROOT = Path(__file__).resolve().parents[2]
TOKEN = "700000001:AAFakeTokenForTestsOnly_0123456789abcde"
Call = dict[str, Any]


class FakeTelegram:
    """A context manager. `url` is what a bot takes as its API's base. One bot, `va_test_bot`, is there from the start."""

    def __init__(self, *, bot: bool = True, **features: Any) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._with_bot, self._features = bot, features
        self.port = 0
        self.url = ""

    def __enter__(self) -> FakeTelegram:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.fakes.telegram_api"], cwd=_ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        first = self._process.stdout.readline()
        if not first:
            raise RuntimeError(f"the fake Telegram ended before it told its port (exit {self._process.wait(10)})")
        self.port = json.loads(first)["port"]
        self.url = f"http://127.0.0.1:{self.port}"
        if self._with_bot:
            self.control("bot", token=TOKEN, username="va_test_bot", **self._features)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()

    def stop(self) -> None:
        """Also in the middle of a test: the platform is gone."""
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None and process.stdout is not None
        process.stdin.close()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(5)
        process.stdout.close()

    # --- the control door ---

    def control(self, operation: str, **body: Any) -> Any:
        request = urllib.request.Request(
            f"{self.url}/control/{operation}", json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        try:
            with urllib.request.urlopen(request, timeout=40) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                raise AssertionError(f"{operation}: {error.code} {error.read().decode()[:500]}") from None

    def say(self, text: str, *, chat: int = 0, user: int = 42, **more: Any) -> int:
        """The person `user` writes, to the bot itself unless a `chat` is named; the message's number."""
        return int(self.control("say", chat=chat or user, user=user, text=text, **more))

    def press(self, message: int, data: str, *, chat: int = 0, user: int = 42, **more: Any) -> str:
        return str(self.control("press", chat=chat or user, message=message, data=data, user=user, **more))

    def screen(self, chat: int = 42) -> list[dict[str, Any]]:
        return list(self.control("screen", chat=chat)["messages"])

    def shown(self, chat: int = 42) -> list[str]:
        """The texts of the bot's messages as they stand now."""
        return [words(m) for m in self.screen(chat) if m.get("from", {}).get("is_bot")]

    def calls(self, method: str = "", since: int = 0) -> list[Call]:
        return [c for c in self.control("calls", since=since) if not method or c["method"].lower() == method.lower()]

    def wait(self, found: Callable[[Call], bool], *, since: int = 0, timeout: float = 10.0, count: int = 1) -> Call:
        """The `count`-th call for which `found` holds; AssertionError with what was called instead after `timeout` s."""
        until, seen, hits = time.monotonic() + timeout, [], 0
        while time.monotonic() < until:
            new = self.control("calls", since=since, timeout=max(0.05, until - time.monotonic()))
            for call in new:
                hits += bool(call["outcome"]) and found(call)
                if hits >= count:
                    return dict(call)
                if not call["outcome"]:
                    break  # still in the making: looked at again
                seen.append(call)
                since = call["number"] + 1
        told = "\n".join(f"  {c['method']} {json.dumps(c['params'], ensure_ascii=False)[:300]} → {c['outcome']}" for c in seen[-25:])
        raise AssertionError(f"no such call within {timeout} s; the last were:\n{told}")

    def wait_text(self, text: str, *, chat: int = 42, since: int = 0, timeout: float = 10.0) -> Call:
        """The first accepted call that puts `text` into the chat."""
        return self.wait(
            lambda c: c["outcome"].startswith("ok") and str(c["params"].get("chat_id")) == str(chat) and text in told(c), since=since, timeout=timeout
        )

    def next(self) -> int:
        """The number that the next call will have."""
        return len(self.control("calls"))


def told(call: Call) -> str:
    """The text of a call, wherever it stands."""
    params = call["params"]
    return str(params.get("text") or params.get("caption") or json.dumps(params.get("rich_message") or "", ensure_ascii=False))


def words(message: dict[str, Any]) -> str:
    return str(message.get("text") or message.get("caption") or message.get("_rich") or "")


def buttons(message: dict[str, Any]) -> dict[str, str]:
    """Label → data of a message's buttons."""
    rows = message.get("reply_markup", {}).get("inline_keyboard", [])
    return {b["text"]: b.get("callback_data", b.get("url", "")) for row in rows for b in row}
