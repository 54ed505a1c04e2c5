"""The fake Bot API is right if the two most used clients, each with its own idea of the schema, work against it and report
its refusals as what they are. They live in an environment of their own (.cache/telegram-clients), made here once."""

from __future__ import annotations

import json
import subprocess
import venv
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.telegram_process import TOKEN, FakeTelegram

_ROOT = Path(__file__).resolve().parents[2]
_CLIENTS = ("aiogram>=3.31,<3.32", "python-telegram-bot>=22.8,<22.9")


@pytest.fixture(scope="module")
def clients() -> Path:
    """The Python that has both clients."""
    home = _ROOT / ".cache" / "telegram-clients"
    python, stamp = home / "bin" / "python", home / ".stamp"
    wanted = "\n".join(_CLIENTS)
    if not stamp.exists() or stamp.read_text() != wanted:
        venv.create(home, with_pip=True, clear=True)
        command = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check", *_CLIENTS]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, f"the clients could not be installed: {done.stderr[-2000:]}"
        stamp.write_text(wanted)
    return python


def _drive(python: Path, script: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    with FakeTelegram() as telegram:
        telegram.control("chat", id=-77, type="supergroup", title="Forum", forum=True, topics={"5": "Five"})
        telegram.control("chat", id=43)
        telegram.control("shut", chat=43)
        telegram.control("chat", id=-5, type="group", title="Old")
        telegram.say("/start hello @va_test_bot")
        telegram.control("migrate", chat=-5, to=-1005)
        telegram.control("fault", kind="429", retry_after=7, holds='"flood"')
        telegram.control("fault", kind="html", holds='"html"')
        telegram.control("fault", kind="cut_after", holds='"cut"')
        done = subprocess.run(
            [str(python), "-I", str(_ROOT / "tests" / "fakes" / script), telegram.url, TOKEN], capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, done.stderr[-3000:]
        return json.loads(done.stdout), telegram.screen()


@pytest.mark.timeout(700)
@pytest.mark.requires("S2.fake-api")
def test_aiogram_works_against_the_fake_and_names_each_refusal(clients: Path) -> None:
    seen, screen = _drive(clients, "oracle_aiogram.py")
    assert seen["me"] == "va_test_bot"
    assert seen["updates"][0] == ["message", "/start hello @va_test_bot"]
    assert seen["entities"][:2] == ["bot_command", "mention"]
    assert seen["left"] == 0
    assert seen["sent"] == ["Grüße 😀 fett", 9, "success", 1]
    assert seen["edited"] == ["42", True]
    assert seen["rich"] == "paragraph"
    assert seen["document"] == ["a.txt", "see"]
    assert seen["download"] == "content"
    assert seen["photo"] == 90
    assert seen["menu"] == ["pickup"]
    assert seen["in topic"] == [5, True]
    assert seen["2048 emoji"] == "accepted"
    assert seen["flood"] == "retry 7"
    assert seen["migrated"] == "migrate -1005"
    said = {
        "not modified": "message is not modified", "2049 emoji": "message is too long", "caption": "caption is too long",
        "empty": "text is empty", "65 bytes": "BUTTON_DATA_INVALID", "outside": "ENTITY_BOUNDS_INVALID", "torn": "ENTITY_BOUNDS_INVALID",
        "crossing": "crosses", "unknown type": "unsupported entity type", "topic": "thread not found", "group draft": "private chats",
        "no chat": "chat not found", "blocked": "TelegramForbiddenError", "html": "ClientDecodeError", "cut": "TelegramNetworkError",
        "reaction invalid": "REACTION_INVALID", "old press": "query is too old", "two pollers": "terminated by other getUpdates",
        "webhook poll": "webhook is active",
    }  # fmt: skip
    for name, words in said.items():
        assert words in seen[name], f"{name}: {seen[name]}"
    assert sum(m.get("text") == "cut" for m in screen) == 1, "what was cut off after it was stored stands there once"


@pytest.mark.timeout(700)
@pytest.mark.requires("S2.fake-api")
def test_python_telegram_bot_works_against_the_fake_and_names_each_refusal(clients: Path) -> None:
    seen, _ = _drive(clients, "oracle_ptb.py")
    assert seen["me"] == "va_test_bot"
    assert seen["updates"][0] == "/start hello @va_test_bot"
    assert seen["left"] == 0
    assert seen["sent"] == ["Grüße 😀 fett", "fett", "y" * 64]
    assert seen["edited"] == "42"
    assert seen["download"] == "content"
    assert seen["flood"] == "retry 7"
    assert seen["migrated"] == "migrate -1005"
    assert "not modified" in seen["not modified"]
    assert "too long" in seen["2049 emoji"]
    assert seen["blocked"].startswith("Forbidden")
    assert seen["html"].startswith("NetworkError")
    assert "too old" in seen["old press"]
    assert seen["bad token"].startswith("InvalidToken")
