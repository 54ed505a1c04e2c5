"""Threads, routes and hosts against a simple model: whatever people, agents and crashes do in whatever order, each accepted
message runs at most once, none is lost, each chat's messages run in its order, and a thread has one host at a time."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from tests.unit.world import Host, World
from transports.bus.vocabulary.conversation import Failed
from transports.bus.vocabulary.hosting import HostHello
from transports.bus.vocabulary.surface import Accepted, Answer, StopTurn

CHATS = ("a", "b", "c")
chats = st.sampled_from(CHATS)
picks = st.integers(min_value=0, max_value=7)
_MEMORY = Path("/dev/shm")


class ThreadMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="va-machine-", dir=_MEMORY if _MEMORY.is_dir() else None))
        self.world = World(self.folder)
        self.accepted: dict[str, tuple[str, str]] = {}
        """Text -> (chat, key), in the order of acceptance."""
        self.again: list[str] = []
        """Texts that a person let run again."""
        self.closed: set[str] = set()
        """Questions that have been answered."""
        self.number = 0
        for chat in CHATS:
            self.world.listen(chat)

    def teardown(self) -> None:
        try:
            self._settle()
            self._nothing_lost()
        finally:
            self.world.close()
            shutil.rmtree(self.folder)

    # --- what there is ---

    def _living(self) -> list[Host]:
        return [h for h in self.world.hosts if not h.over]

    def _busy(self) -> list[Host]:
        return [h for h in self._living() if h.state == "busy"]

    def _questions(self, kind: str) -> list[tuple[str, dict[str, Any]]]:
        found = []
        for chat, events in self.world.shown.items():
            done = {e["id"] for e in events if e["event"] == f"{kind}_done"} | self.closed
            found += [(chat, e) for e in events if e["event"] == kind and e["id"] not in done]
        return found

    # --- what people do ---

    @rule(chat=chats)
    def write(self, chat: str) -> None:
        self.number += 1
        text, key = f"message {self.number}", f"key-{self.number}"
        if isinstance(self.world.write(chat, text, key=key), Accepted):
            self.accepted[text] = (chat, key)

    @precondition(lambda self: self.accepted)
    @rule(pick=picks)
    def deliver_again(self, pick: int) -> None:
        """A platform's redelivery of a message that was accepted."""
        text = list(self.accepted)[-1 - pick % len(self.accepted)]
        chat, key = self.accepted[text]
        answer = self.world.write(chat, text, key=key)
        assert isinstance(answer, Accepted)
        assert answer.duplicate

    @rule(chat=chats)
    def stop(self, chat: str) -> None:
        self.world.loop.ask(f"route/cli:local:{chat}", StopTurn())
        for host in self._busy():
            if host.prompts[-1].turn in host.cancelled:
                host.end("cancelled")

    @rule(chat=chats, word=st.sampled_from(["/new", "/close"]))
    def leave(self, chat: str, word: str) -> None:
        self.world.write(chat, word)

    @rule(chat=chats, other=chats)
    def join(self, chat: str, other: str) -> None:
        """Hand over in one chat, pick up in another."""
        stored = {session["id"] for session in self.world.sessions}
        for session in {h.session for h in self.world.hosts if h.prompts} - stored:
            self.world.session(session)
        answer = self.world.write(other, "/handover")
        if not isinstance(answer, Failed) and "/pickup " in answer.data["text"]:
            code = answer.data["text"].split("/pickup ", 1)[1].split()[0]
            self.world.write(chat, f"/pickup {code}")

    @precondition(lambda self: self._questions("choice"))
    @rule(pick=picks, option=picks)
    def decide(self, pick: int, option: int) -> None:
        questions = self._questions("choice")
        chat, question = questions[pick % len(questions)]
        chosen = question["options"][option % len(question["options"])]["id"]
        self._decide(chat, question, chosen)

    def _decide(self, chat: str, question: dict[str, Any], chosen: str) -> None:
        self.closed.add(question["id"])
        if chosen == "again":
            self.again.append(self._text_of(question["key"]))
        self.world.loop.ask(f"route/cli:local:{chat}", Answer(question["id"], chosen))
        for host in self._busy():
            if host.prompts[-1].turn in host.cancelled:
                host.end("cancelled")

    def _text_of(self, key: str) -> str:
        return next(text for text, (_, known) in self.accepted.items() if known == key.split("~", 1)[0])

    @precondition(lambda self: self._questions("permission"))
    @rule(pick=picks, option=st.sampled_from(["yes", "no", "always", ""]), chat=chats)
    def press(self, pick: int, option: str, chat: str) -> None:
        questions = self._questions("permission")
        _, question = questions[pick % len(questions)]
        self.world.loop.ask(f"route/cli:local:{chat}", Answer(question["id"], option))

    # --- what agents do ---

    @precondition(lambda self: self._busy())
    @rule(pick=picks)
    def answer(self, pick: int) -> None:
        busy = self._busy()
        busy[pick % len(busy)].answer("an answer")

    @precondition(lambda self: self._busy())
    @rule(pick=picks)
    def ask(self, pick: int) -> None:
        busy = self._busy()
        self.number += 1
        busy[pick % len(busy)].ask(f"rq{self.number}")

    @precondition(lambda self: self._living())
    @rule(pick=picks)
    def host_dies(self, pick: int) -> None:
        living = self._living()
        living[pick % len(living)].die()

    # --- what time and crashes do ---

    @rule(seconds=st.sampled_from([1.0, 4.0, 61.0, 700.0]))
    def time_passes(self, seconds: float) -> None:
        self.world.loop.pass_time(seconds)

    @rule(alive=st.booleans())
    def supervisor_is_killed(self, alive: bool) -> None:
        world = self.world
        living = self._living()
        world.alive_after_restart = alive
        world.restart()
        if not alive:
            for host in living:
                host.over = True
        self._recover()
        for host in living if alive else []:
            self._hello(host)
        for chat in CHATS:
            world.listen(chat)

    def _recover(self) -> None:
        """As the supervisor does at its start."""
        data = self.world.loop.query("recovery")
        for thread in sorted({h["thread"] for h in data["hosts"]} | set(data["threads"])):
            self.world.wake(f"thread/{thread}")
        for route in data["routes"]:
            self.world.wake(f"route/{route}")

    def _hello(self, host: Host) -> None:
        loop, r = self.world.loop, host.request
        loop._corr += 1
        turn = host.prompts[-1].turn if host.state == "busy" else ""
        hello = HostHello(r.thread, r.instance, r.epoch, 100, 1, 200, 200, 2, host.state, host.session, turn, list(host.turns), host.seq)
        loop.switch.send(f"thread/{r.thread}", hello, sender=host.address, corr=loop._corr)
        loop.run()
        assert not host.told_to_end, "a living host of the newest epoch is adopted"

    # --- what must hold ---

    @invariant()
    def everything_holds(self) -> None:
        self.each_message_ran_at_most_once_unless_a_person_said_again()
        self.a_thread_has_one_host_and_a_session_one_writer()
        self.a_permission_is_decided_once()
        self.each_chat_keeps_its_order()

    def each_message_ran_at_most_once_unless_a_person_said_again(self) -> None:
        ran = [p.blocks[0]["text"] for h in self.world.hosts for p in h.prompts]
        for text in set(ran):
            assert ran.count(text) <= 1 + self.again.count(text), text

    def a_thread_has_one_host_and_a_session_one_writer(self) -> None:
        living = self._living()
        assert len({h.request.thread for h in living}) == len(living)
        assert len({h.session for h in living}) == len(living)

    def a_permission_is_decided_once(self) -> None:
        for host in self.world.hosts:
            decided = {(a.request, a.option) for a in host.answers}
            assert len({request for request, _ in decided}) == len(decided)

    def each_chat_keeps_its_order(self) -> None:
        started = [(r["route"], r["prompt"]) for r in self._rows("SELECT route, prompt, key FROM turns WHERE instr(key, '~') = 0 ORDER BY rowid")]
        for chat in CHATS:
            ran = [prompt for route, prompt in started if route == f"cli:local:{chat}"]
            wrote = [text for text, (where, _) in self.accepted.items() if where == chat and text in ran]
            assert ran == wrote

    def _rows(self, query: str) -> list[Any]:
        return list(self.world.loop.journal._connection.execute(query))

    def _settle(self) -> None:
        """Everybody does the harmless thing until nothing is going on."""
        for _ in range(200):
            for chat, question in self._questions("choice"):
                self._decide(chat, question, question["harmless"])
            busy = self._busy()
            for host in busy:
                host.answer("the last answer")
            self.world.loop.pass_time(5.0)
            if not busy and not self._questions("choice") and not self._rows("SELECT id FROM turns WHERE ended_at IS NULL"):
                waiting = self._rows("SELECT key FROM inbox WHERE state != 'done'")
                if not waiting:
                    return
        raise AssertionError(f"it does not come to rest: {[dict(r) for r in self._rows('SELECT * FROM inbox')][-5:]}")

    def _nothing_lost(self) -> None:
        """Accepted = answered, by the end of a turn or by a visible word."""
        ended = {r["key"] for r in self._rows("SELECT key FROM turns WHERE ended_at IS NOT NULL")}
        told = {r["key"] for r in self._rows("SELECT json_extract(body, '$.key') AS key FROM events WHERE kind IN ('done', 'error', 'reply')")}
        for text, (chat, key) in self.accepted.items():
            assert key in ended | told, (text, chat)


@pytest.mark.requires("M4.state-machine")
def test_whatever_happens_in_whatever_order_nothing_runs_twice_and_nothing_is_lost() -> None:
    run_state_machine_as_test(ThreadMachine, settings=settings(max_examples=120, stateful_step_count=30))
