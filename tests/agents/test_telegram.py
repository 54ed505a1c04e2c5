"""Claude Code and a phone: a conversation leaves the terminal, goes on in Telegram, asks there, and comes back."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("aiohttp")

from tests.agents.kinds import CLAUDE_KIND, code_for, code_in
from tests.agents.rig import AgentHome, FakeModel, Tui
from tests.daemon import VA, needs_va
from tests.fakes.telegram_process import buttons, told, words
from tests.process.telegram_rig import Phone, needs_bridges, option

pytestmark = [pytest.mark.agents, needs_va, needs_bridges, pytest.mark.timeout(240)]
PNG = "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c6360000002000001e221bc330000000049454e44ae426082"


@pytest.mark.requires("S4.telegram-claude")
def test_claude_code_goes_from_the_terminal_to_telegram_asks_there_and_comes_back(
    model: FakeModel, home: AgentHome, work: Path, tmp_path: Path
) -> None:
    session = CLAUDE_KIND.session(home, work)
    with Phone(tmp_path / "phone", env=home.env(), agents__default="claude") as phone:
        code = code_for(phone.daemon, CLAUDE_KIND, session, work)
        since = phone.say(f"/pickup {code}")
        phone.wait_text(str(work), since=since)
        phone.ask("what was it", "ECHO#2: what was it")
        assert model.wait_text("what was it").holds("remember banana", "ECHO#1: remember banana")

        since = phone.say("SHELL{touch from-telegram}")
        number, shown = phone.question("touch from-telegram", since=since)
        assert any("lasting" in label for label in shown), "what lasts says so"
        once = next(data for label, data in shown.items() if "allow" in label.lower() and "lasting" not in label.lower())
        phone.press(number, once)
        phone.answer("TOOL-RESULT", since=since, seconds=60)
        assert (work / "from-telegram").exists()
        assert buttons(phone.message(number)) == {}

        since = phone.say("SHELL{touch never}")
        number, shown = phone.question("touch never", since=since)
        phone.press(number, option(shown, "no", "reject", "deny"))
        phone.wait(lambda c: any(sign in told(c) for sign in ("✅", "⏹", "❌")), since=since, seconds=60)
        assert not (work / "never").exists()
        assert "touch never" in words(phone.message(number))

        phone.telegram.control("file", ident="PIC1", hex=PNG)
        body = {"photo": [{"file_id": "PIC1", "file_unique_id": "u", "width": 1, "height": 1}], "caption": "look at the picture"}
        phone.ask("", "ECHO", body=body)
        asked = model.wait_text("photo.jpg")
        assert asked.holds("look at the picture")
        assert '"image"' in str(asked.body).replace("'", '"'), "the picture reached the model as a picture"

        since = phone.say("/handover")
        back = code_in(told(phone.wait(lambda c: c["method"] == "sendMessage" and "pickup" in told(c), since=since)))
        with Tui([str(VA), "pickup", back], cwd=tmp_path, env=phone.daemon.env) as tui:
            tui.wait_for(CLAUDE_KIND.prompt)
            tui.type("and in the terminal")
            tui.wait_for(": and in the terminal")
        assert model.wait_text("and in the terminal").holds("remember banana", "what was it")
