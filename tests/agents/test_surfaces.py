"""Several surfaces on one conversation with real Claude Code: a phone, a chat in the terminal, and kills in mid-turn."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("aiohttp")

from tests.agents.kinds import CLAUDE_KIND, code_for, code_in
from tests.agents.rig import AgentHome, FakeModel
from tests.daemon import needs_va
from tests.fakes.telegram_process import buttons, told, words
from tests.process.telegram_rig import Phone, needs_bridges, option
from tests.waiting import until

pytestmark = [pytest.mark.agents, needs_va, needs_bridges, pytest.mark.timeout(240)]


@pytest.mark.requires("S4.cross-permission")
def test_a_permission_asked_on_the_phone_is_answered_in_the_terminal_and_both_show_it(
    model: FakeModel, home: AgentHome, work: Path, tmp_path: Path
) -> None:
    session = CLAUDE_KIND.session(home, work)
    with Phone(tmp_path / "phone", env=home.env(), agents__default="claude") as phone:
        code = code_for(phone.daemon, CLAUDE_KIND, session, work)
        phone.wait_text(str(work), since=phone.say(f"/pickup {code}"))
        since = phone.say("/handover")
        shared = code_in(told(phone.wait(lambda c: c["method"] == "sendMessage" and "pickup" in told(c), since=since)))
        assert phone.daemon.send(f"/pickup {shared}", chat="desk").code == 0
        desk = phone.daemon.listen("desk")
        try:
            since = phone.say("SHELL{echo once >> from-phone}")
            number, shown = phone.question("echo once >> from-phone", since=since)
            asked = desk.wait("permission")
            assert not (work / "from-phone").exists()
            chosen = next(o["id"] for o in asked["options"] if o["kind"] == "allow_once")
            phone.daemon.answer("desk", asked["id"], chosen)
            phone.answer("TOOL-RESULT", since=since, seconds=60)
            assert (work / "from-phone").exists()
            done = desk.wait("permission_done")
            assert (done["id"], done["option"]) == (asked["id"], chosen)
            until(lambda: buttons(phone.message(number)) == {}, "the phone shows that it is decided")
            assert "echo once >> from-phone" in words(phone.message(number))
            assert phone.press(number, option(shown, "allow once", "yes", "allow"), force=True), "a late press is told so"
            desk.wait("text", lambda event: event["final"] and "TOOL-RESULT" in event["text"])
        finally:
            desk.end()
    assert (work / "from-phone").read_text() == "once\n"


@pytest.mark.requires("S4.cross-bridge-killed", "S4.cross-daemon-killed")
@pytest.mark.parametrize("victim", ["bridge", "daemon"])
def test_a_kill_in_mid_turn_loses_and_doubles_nothing_on_the_phone(
    model: FakeModel, home: AgentHome, work: Path, tmp_path: Path, victim: str
) -> None:
    session = CLAUDE_KIND.session(home, work)
    with Phone(tmp_path / "phone", env=home.env(), agents__default="claude") as phone:
        code = code_for(phone.daemon, CLAUDE_KIND, session, work)
        phone.wait_text(str(work), since=phone.say(f"/pickup {code}"))
        since = phone.say("SLOW{6|0} GATE{half}")
        phone.wait_text("slow-0", since=since)
        if victim == "bridge":
            phone.kill_bridge()
            model.release("half")
        else:
            phone.daemon.kill()
            phone.say("sent while it was down")
            model.release("half")
            phone.daemon.start()
        phone.answer("slow-5", since=since, seconds=90)
        if victim == "daemon":
            phone.answer("sent while it was down", since=since, seconds=90)
            assert sum("sent while it was down" in text for text in phone.shown()) == 1
        assert sum("slow-5" in text for text in phone.shown()) == 1
        assert not [text for text in phone.shown() if "⏳" in text], "no message is left in the making"
        phone.ask("what was it", "what was it")
        assert model.wait_text("what was it").holds("remember banana", "slow-5")
    assert len([request for request in model.requests() if "GATE{half}" in request.last_user]) == 1
