"""`/relay AGENT` and `/session search WORDS` in a chat: what is asked of the reader, where the chat goes, what is said."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from actors.commands import Command, Unknown, parse
from agents_registry.errors import RefusedError
from tests.unit.world import World, kinds, words
from transports.bus.api import Delivery
from transports.bus.vocabulary.conversation import Failed, Ok
from transports.bus.vocabulary.surface import Answer


class RelayWorld(World):
    """`carried` is what the reader answers to a relay; a Failed too."""

    carried: Any
    advice = ""
    changes: tuple[list[str], ...] = ()

    def _reader(self, delivery: Delivery) -> None:
        request = delivery.message
        if request.op == "relay_drift":
            self.reads.append(request)
            self.loop.switch.send(delivery.sender, Ok({"changes": self.changes}), sender="reader", corr=-delivery.corr)
        elif request.op in ("relay", "search", "relay_given"):
            self.reads.append(request)
            answer = self.carried if isinstance(self.carried, Failed) else Ok(self.carried)
            if self.advice and not request.args.get("force"):
                answer = Ok({"advice": self.advice})
            self.loop.switch.send(delivery.sender, answer, sender="reader", corr=-delivery.corr)
        else:
            super()._reader(delivery)

    def asked(self, op: str) -> list[dict[str, Any]]:
        return [read.args for read in self.reads if read.op == op]


def told(way: str, session: str = "", text: str = "", *notes: str) -> dict[str, Any]:
    return {"way": way, "session": session, "store_root": "/store" if session else "", "cwd": "/w", "text": text, "notes": list(notes)}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[RelayWorld]:
    made = RelayWorld(tmp_path)
    made.installed = ["demo", "claude", "codex"]
    yield made
    made.close()


def talked(world: RelayWorld) -> tuple[list[dict[str, Any]], str]:
    """A chat with a conversation of the demo agent; what it hears, and the thread."""
    heard = world.listen("a")
    world.write("a", "plan the parser")
    world.host.answer("planned")
    return heard, world.host.request.thread


def thread_of(world: RelayWorld) -> str:
    row = world.loop.query("route", "cli:local:a")["route"]
    return str(row["thread"])


def notices(heard: list[dict[str, Any]]) -> str:
    return "\n".join(str(event.get("text")) for event in heard if event["event"] == "notice")


@pytest.mark.requires("R6.chat", "R6.linked")
def test_a_relay_moves_the_chat_to_the_written_session_and_the_old_thread_stays_open_and_says_where_it_goes_on(world: RelayWorld) -> None:
    heard, old = talked(world)
    session = world.host.session
    world.session(session)
    stays = world.listen("b")
    world.write("b", f"/pickup {world.code(session)}")
    world.session("cx-1")
    world.carried = told("native", "cx-1", "", "Redacted: github token (request 2).")
    world.write("a", "/relay codex")
    assert world.asked("relay") == [{"agent": "demo", "session": session, "cwd": "/w", "to": "codex", "force": False, "next_step": ""}]
    assert "Codex has what was said" in words(heard)[-1]
    assert "Redacted" in words(heard)[-1]
    new = thread_of(world)
    assert new != old
    assert f"thread {old}" in notices(heard)
    assert {row["id"]: row["status"] for row in world.loop.query("threads", 10, True)["threads"]} == {old: "open", new: "open"}
    assert f"Goes on with Codex in the thread {new}." in notices(stays)
    world.write("a", "go on")
    assert (world.host.request.agent, world.host.request.session, world.host.request.start) == ("codex", "cx-1", "resume")


@pytest.mark.requires("R5.brief-first", "R5.brief-waits")
def test_a_brief_is_the_new_agents_first_turn_and_later_messages_wait_for_its_end(world: RelayWorld) -> None:
    heard, _ = talked(world)
    world.carried = told("brief", "", "Record of earlier work with another tool\n\nall of it")
    world.write("a", "/relay claude")
    assert world.host.request.agent == "claude"
    assert world.host.prompts[0].blocks[0]["text"].startswith("Record of earlier work")
    world.write("a", "and now?")
    assert len(world.host.prompts) == 1
    world.carried = {"kept": 9, "whole": 9}
    world.host.answer("understood")
    assert world.host.prompts[1].blocks[0]["text"] == "and now?"
    assert "brief" in notices(heard)
    shown = [event["text"] for event in heard if event["event"] == "asked"]
    assert "Record of earlier work with another tool …" in shown or not any("all of it" in text for text in shown)


@pytest.mark.requires("R6.back", "R5.read-back")
@pytest.mark.parametrize("late", [False, True])
def test_going_back_joins_the_earlier_conversation_and_says_only_what_is_new(world: RelayWorld, late: bool) -> None:
    heard, old = talked(world)
    demo = world.host.session
    world.session(demo)
    world.session("cx-1")
    world.carried = told("native", "cx-1")
    world.write("a", "/relay codex")
    world.write("a", "cherries")
    world.host.answer("done")
    world.carried = told("resume", demo, "What is new: cherries", "changed since the last relay: /w/a.py")
    world.write("a", "/relay demo")
    assert thread_of(world) == old
    back = next(host for host in world.hosts if host.request.thread == old)
    assert back.prompts[-1].blocks[0]["text"] == "What is new: cherries"
    assert "changed since the last relay: /w/a.py" in notices(heard)
    assert world.asked("relay_given") == []
    world.carried = {"kept": 5, "whole": 19}
    back.answer("understood")
    text = "What is new: cherries"
    assert world.asked("relay_given") == [{"agent": "codex", "session": "cx-1", "cwd": "/w", "to": "demo", "there": demo, "text": text}]
    assert "recorded only" not in notices(heard), "the agent may not have written it yet"
    if late:
        world.carried = {"kept": 19, "whole": 19}
    for _ in range(8):
        world.loop.pass_time(4.0)
    if late:
        assert "recorded only" not in notices(heard) and len(world.asked("relay_given")) == 2
        return
    assert "recorded only 5 of 19 characters" in notices(heard)


@pytest.mark.requires("R4.fresh-advice")
@pytest.mark.parametrize(("choice", "ends"), [("go_on", "native"), ("fresh", "new"), ("cancel", "old")])
def test_a_short_conversation_is_carried_only_when_somebody_says_so(world: RelayWorld, choice: str, ends: str) -> None:
    heard, old = talked(world)
    world.session("cx-1")
    world.advice, world.carried = "only 1 requests", told("native", "cx-1")
    world.write("a", "/relay codex")
    asked = next(event for event in heard if event["event"] == "choice")
    assert [one["id"] for one in asked["options"]] == ["go_on", "fresh", "cancel"]
    world.loop.ask("route/cli:local:a", Answer(asked["id"], choice))
    assert (thread_of(world) == old) == (ends == "old")
    assert [args["force"] for args in world.asked("relay")] == ([False, True] if ends == "native" else [False])
    if ends != "old":
        world.write("a", "go on")
        assert (world.host.request.agent, world.host.request.session) == ("codex", "cx-1" if ends == "native" else "")


@pytest.mark.requires("R6.failed-relay")
def test_a_relay_that_fails_says_why_and_leaves_the_chat_where_it_is(world: RelayWorld) -> None:
    heard, old = talked(world)
    world.carried = Failed(RefusedError("The directory of session s, /gone, is gone.").to_wire())
    world.write("a", "/relay codex")
    assert "is gone" in words(heard)[-1]
    world.write("a", "/relay demo")
    assert "already" in words(heard)[-1]
    world.write("a", "/relay nobody")
    assert "no agent" in words(heard)[-1]
    world.write("a", "/relay kimi")
    assert "not installed" in words(heard)[-1]
    world.write("a", "/relay codex my-profile")
    assert "no profile" in words(heard)[-1]
    assert thread_of(world) == old
    world.write("a", "still here")
    assert world.host.prompts[-1].blocks[0]["text"] == "still here"


def test_the_lines_after_a_relay_are_the_next_step(world: RelayWorld) -> None:
    _, _ = talked(world)
    world.session("cx-1")
    world.carried = told("native", "cx-1")
    world.write("a", "/relay codex\nwrite the lexer")
    assert world.asked("relay")[0]["next_step"] == "write the lexer"
    assert world.host.prompts[0].blocks[0]["text"] == "write the lexer"


@pytest.mark.requires("R6.drift")
def test_files_that_changed_until_the_receivers_first_request_are_named_in_it_and_to_the_user(world: RelayWorld) -> None:
    heard, _ = talked(world)
    world.session("cx-1")
    world.carried = told("native", "cx-1")
    world.write("a", "/relay codex")
    world.changes = (["/w/a.py", "changed"], ["/w/b.py", "missing"])
    world.write("a", "go on")
    sent = world.host.prompts[0].blocks[0]["text"]
    assert "- /w/a.py: changed\n- /w/b.py: missing" in sent
    assert sent.endswith("\n\ngo on")
    assert "/w/b.py: missing" in notices(heard)
    world.host.answer("fine")
    world.write("a", "and then")
    assert world.host.prompts[1].blocks[0]["text"] == "and then"
    assert len(world.asked("relay_drift")) == 1


def test_a_chat_without_a_session_has_nothing_to_carry(world: RelayWorld) -> None:
    heard = world.listen("a")
    world.write("a", "/relay codex")
    assert "no session yet" in words(heard)[-1]


@pytest.mark.requires("R6.reader-process")
def test_a_relay_that_hangs_in_the_stores_delays_no_other_chat(world: RelayWorld) -> None:
    talked(world)
    world.carried = told("native", "cx-1")
    world.loop.switch.unregister("reader")
    world.loop.add("reader", lambda delivery: None)
    world.write("a", "/relay codex")
    heard = world.listen("b")
    world.write("b", "hello")
    world.host.answer("hi")
    assert "text" in kinds(heard)


@pytest.mark.requires("R3.search-chat")
def test_sessions_are_found_from_a_chat_by_what_was_said(world: RelayWorld) -> None:
    hit = {"agent": "codex", "id": "cx-9", "cwd": "/w", "title": "Parser", "updated_at": 1.0, "snippet": "we 决定 bananas"}
    world.carried = {"hits": [hit], "failed": 0}
    answer = world.write("a", "/session search 决定 bananas")
    assert world.asked("search")[0]["words"] == "决定 bananas"
    assert "codex cx-9" in answer.data["text"]
    assert "决定" in answer.data["text"]
    world.carried = {"hits": [], "failed": 0}
    assert "No session" in world.write("a", "/session search kiwi").data["text"]


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("/relay codex", Command("relay", "codex")),
        ("/relay codex work", Command("relay", "codex", profile="work")),
        ("/switch host codex --relay", Command("relay", "codex")),
        ("/switch host codex work --relay", Command("relay", "codex", profile="work")),
        ("/session search two words", Command("session", "two words", "search")),
        ("/relay codex\nnext", Command("relay", "codex", rest="next")),
    ],
)
def test_the_words_for_a_relay_and_a_search(text: str, command: Command) -> None:
    assert parse(text) == command


@pytest.mark.parametrize("text", ["/relay", "/relay a b c", "/relay --x", "/switch host --relay", "/session search"])
def test_a_relay_or_search_used_wrongly_is_told_how(text: str) -> None:
    assert isinstance(parse(text), Unknown)
