"""`va chat` against a supervisor that answers by script."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agents_registry.errors import BusyError, RefusedError
from tests.fakes.scripted_supervisor import ScriptedSupervisor
from transports.bus.api import Delivery
from transports.bus.vocabulary.conversation import Ok
from transports.bus.vocabulary.surface import Accepted, Answer, StopTurn, Submit
from transports.cli import chat_turn
from transports.cli.main import run

ROUTE = "cli:local:main"
ADDRESS = f"route/{ROUTE}"
TEXT = {"event": "text", "block": 1, "text": "Hello.", "final": True}
DONE = {"event": "done", "stop_reason": "end_turn"}


@pytest.fixture
def supervisor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedSupervisor]:
    monkeypatch.setenv("VIBEAROUND_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    fake = ScriptedSupervisor(tmp_path / "data")
    fake.start()
    yield fake
    fake.close()


def plays(*events: dict[str, Any], position: int = 0) -> Any:
    """Accept, then show these events of the turn."""

    def answer(delivery: Delivery, fake: ScriptedSupervisor) -> None:
        key = delivery.message.key
        fake.reply(delivery, Accepted(key, False, position))
        for event in events:
            if event.get("final") is False:
                fake.preview(delivery.sender, ROUTE, event, turn=key)
            else:
                fake.item(delivery.sender, ROUTE, event, turn=key)

    return answer


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_send_prints_the_events_of_its_turn_and_ends_with_done(supervisor: ScriptedSupervisor, capsys: Any, tmp_path: Path) -> None:
    supervisor.answers[ADDRESS, Submit] = plays(TEXT, DONE)
    assert run(["chat", "send", "hi", "there", "--key", "k1", "--json"]) == 0
    events = lines(capsys.readouterr().out)
    assert [e["event"] for e in events] == ["accepted", "text", "done"]
    assert events[0]["key"] == "k1"
    submit = supervisor.seen[0][1]
    assert (submit.text, submit.watch, submit.workspace) == ("hi there", True, str(tmp_path))


def test_send_names_its_place_in_the_queue_once(supervisor: ScriptedSupervisor, capsys: Any) -> None:
    supervisor.answers[ADDRESS, Submit] = plays({"event": "queued", "position": 2}, DONE, position=2)
    assert run(["chat", "send", "hi", "--json"]) == 0
    assert [e["event"] for e in lines(capsys.readouterr().out)] == ["accepted", "queued", "done"]


def test_send_shows_only_its_own_turn(supervisor: ScriptedSupervisor, capsys: Any) -> None:
    def answer(delivery: Delivery, fake: ScriptedSupervisor) -> None:
        fake.reply(delivery, Accepted(delivery.message.key))
        fake.item(delivery.sender, ROUTE, {**TEXT, "text": "foreign"}, turn="other")
        fake.item(delivery.sender, ROUTE, DONE, turn="other")
        fake.item(delivery.sender, ROUTE, TEXT, turn=delivery.message.key)
        fake.item(delivery.sender, ROUTE, DONE, turn=delivery.message.key)

    supervisor.answers[ADDRESS, Submit] = answer
    assert run(["chat", "send", "hi", "--json"]) == 0
    assert [e.get("text") for e in lines(capsys.readouterr().out)] == [None, "Hello.", None]


def test_a_command_that_answers_at_once_is_one_reply(supervisor: ScriptedSupervisor, capsys: Any) -> None:
    supervisor.answers[ADDRESS, Submit] = lambda d, f: Ok({"event": "reply", "text": "All is well.", "key": d.message.key})
    assert run(["chat", "send", "/status", "--json"]) == 0
    assert lines(capsys.readouterr().out)[0]["text"] == "All is well."
    assert run(["chat", "send", "/status"]) == 0
    assert capsys.readouterr().out == "All is well.\n"


@pytest.mark.parametrize(
    ("event", "code"),
    [
        ({"event": "error", "code": "agent_failed", "message": "m", "exit_code": 7}, 7),
        ({"event": "error", "code": "not_found", "message": "m"}, 4),
        ({"event": "error", "code": "never heard", "message": "m"}, 1),
        ({"event": "done", "stop_reason": "cancelled"}, 0),
    ],
)
def test_the_exit_code_fits_the_end_of_the_turn(supervisor: ScriptedSupervisor, event: dict[str, Any], code: int) -> None:
    supervisor.answers[ADDRESS, Submit] = plays(event)
    assert run(["chat", "send", "hi", "--json"]) == code


def test_a_refusal_is_an_error_event_and_its_exit_code(supervisor: ScriptedSupervisor, capsys: Any) -> None:
    def refuse(delivery: Delivery, fake: ScriptedSupervisor) -> None:
        raise BusyError("16 messages wait already.", hint="Wait.", code="queue_full")

    supervisor.answers[ADDRESS, Submit] = refuse
    assert run(["chat", "send", "hi", "--json"]) == 8
    assert lines(capsys.readouterr().out) == [
        {"event": "error", "code": "queue_full", "message": "16 messages wait already.", "hint": "Wait.", "exit_code": 8}
    ]
    assert run(["chat", "send", "hi"]) == 8
    assert capsys.readouterr().err == "va: 16 messages wait already.\n    Wait.\n"


def test_text_streams_as_its_pieces_arrive_and_is_never_written_twice(supervisor: ScriptedSupervisor, capsys: Any) -> None:
    piece = {"event": "text", "block": 1, "final": False}
    supervisor.answers[ADDRESS, Submit] = plays(
        {**piece, "offset": 0, "text": "Hel"}, {**piece, "offset": 3, "text": "lo"}, {**TEXT, "text": "Hello, world.\n"}, DONE
    )
    assert run(["chat", "send", "hi"]) == 0
    assert capsys.readouterr().out == "Hello, world.\n"


def test_a_dropped_piece_is_brought_by_the_finished_block(supervisor: ScriptedSupervisor, capsys: Any) -> None:
    piece = {"event": "text", "block": 1, "final": False}
    supervisor.answers[ADDRESS, Submit] = plays(
        {**piece, "offset": 0, "text": "one "}, {**piece, "offset": 8, "text": "three"}, {**TEXT, "text": "one two three"}, DONE
    )
    assert run(["chat", "send", "hi"]) == 0
    assert capsys.readouterr().out == "one two three\n"


def test_a_permission_shows_its_options_and_the_command_that_answers_it(supervisor: ScriptedSupervisor, capsys: Any) -> None:
    options = [{"id": "allow", "name": "Allow", "kind": "allow_once"}, {"id": "no", "name": "Reject", "kind": "reject_once"}]
    supervisor.answers[ADDRESS, Submit] = plays({"event": "permission", "id": "p1", "title": "Run make", "options": options}, DONE)
    assert run(["chat", "send", "hi"]) == 0
    err = capsys.readouterr().err
    assert "Run make" in err
    assert "1. Allow" in err
    assert "va chat answer --chat main p1 OPTION" in err


def test_a_new_mode_is_told_and_a_title_in_the_midst_is_not_in_the_way(supervisor: ScriptedSupervisor, capsys: Any) -> None:
    supervisor.answers[ADDRESS, Submit] = plays({"event": "title", "title": "Herons"}, {"event": "mode", "mode": "plan"}, TEXT, DONE)
    assert run(["chat", "send", "hi"]) == 0
    shown = capsys.readouterr()
    assert shown.err.splitlines() == ["(mode: plan)"]
    assert shown.out == "Hello.\n"


def test_control_characters_of_an_agent_do_not_reach_the_terminal(supervisor: ScriptedSupervisor, capsys: Any) -> None:
    supervisor.answers[ADDRESS, Submit] = plays({**TEXT, "text": "a\x1b[2Jb\x9bc\r"}, DONE)
    assert run(["chat", "send", "hi"]) == 0
    assert capsys.readouterr().out == "a[2Jbc\n"


def test_a_restart_of_the_supervisor_in_the_midst_of_a_turn_shows_every_event_once(supervisor: ScriptedSupervisor, capsys: Any) -> None:
    asked: list[str] = []

    def answer(delivery: Delivery, fake: ScriptedSupervisor) -> None:
        asked.append(delivery.message.key)
        again = len(asked) > 1
        fake.reply(delivery, Accepted(delivery.message.key, again))
        fake.item(delivery.sender, ROUTE, TEXT, turn=delivery.message.key)
        fake.item(delivery.sender, ROUTE, {"event": "tool", "id": "t", "title": "ls", "status": "completed"}, turn=delivery.message.key)
        if again:
            fake.item(delivery.sender, ROUTE, DONE, turn=delivery.message.key)
        else:
            fake.later(0.05, restart)

    def restart() -> None:
        supervisor.stop()
        supervisor.start()

    supervisor.answers[ADDRESS, Submit] = answer
    assert run(["chat", "send", "hi", "--json"]) == 0
    shown = [e["event"] for e in lines(capsys.readouterr().out)]
    assert shown == ["accepted", "text", "tool", "notice", "done"]
    assert asked[0] == asked[1]


def test_ctrl_c_stops_the_turn_and_nothing_is_shown_a_second_time(supervisor: ScriptedSupervisor) -> None:
    from transports.cli.chat_turn import INTERRUPTED, Turn

    tool = {"event": "tool", "id": "t", "title": "ls", "status": "completed"}
    asked: list[str] = []

    def answer(delivery: Delivery, fake: ScriptedSupervisor) -> None:
        asked.append(delivery.message.key)
        fake.reply(delivery, Accepted(delivery.message.key, len(asked) > 1))
        for event in (TEXT, tool, *([DONE] if len(asked) > 1 else [])):
            fake.item(delivery.sender, ROUTE, event, turn=delivery.message.key)

    class View:
        shown: list[str] = []

        def show(self, event: dict[str, Any]) -> None:
            self.shown.append(event["event"])
            if event["event"] == "tool" and self.shown.count("tool") == 1:
                raise KeyboardInterrupt

        def wants_input(self) -> bool:
            return False

        def poll_input(self) -> tuple[str, str] | None:
            return None

    supervisor.answers[ADDRESS, Submit] = answer
    assert Turn("main", "hi", None).run(View()) == INTERRUPTED
    assert View.shown == ["accepted", "text", "tool", "done"]


def test_a_supervisor_that_ends_before_it_has_accepted_is_asked_again_with_the_same_key(supervisor: ScriptedSupervisor, capsys: Any) -> None:
    asked: list[str] = []

    def answer(delivery: Delivery, fake: ScriptedSupervisor) -> None:
        asked.append(delivery.message.key)
        if len(asked) == 1:
            fake.later(0.0, restart)
        else:
            plays(DONE)(delivery, fake)

    def restart() -> None:
        supervisor.stop()
        supervisor.start()

    supervisor.answers[ADDRESS, Submit] = answer
    assert run(["chat", "send", "hi", "--json"]) == 0
    assert [e["event"] for e in lines(capsys.readouterr().out)] == ["notice", "accepted", "done"]
    assert asked[0] == asked[1]


def test_after_a_restart_the_pieces_of_the_open_block_go_on_where_they_were(supervisor: ScriptedSupervisor, capsys: Any) -> None:
    asked: list[str] = []

    def answer(delivery: Delivery, fake: ScriptedSupervisor) -> None:
        asked.append(delivery.message.key)
        again = len(asked) > 1
        fake.reply(delivery, Accepted(delivery.message.key, again))
        piece = {"event": "text", "block": 1, "final": False, "offset": 0, "text": "one two" if again else "one "}
        fake.preview(delivery.sender, ROUTE, piece, turn=delivery.message.key)
        if again:
            fake.item(delivery.sender, ROUTE, {**TEXT, "text": "one two"}, turn=delivery.message.key)
            fake.item(delivery.sender, ROUTE, DONE, turn=delivery.message.key)
        else:
            fake.later(0.05, restart)

    def restart() -> None:
        supervisor.stop()
        supervisor.start()

    supervisor.answers[ADDRESS, Submit] = answer
    assert run(["chat", "send", "hi", "--json"]) == 0
    pieces = [e["text"] for e in lines(capsys.readouterr().out) if e.get("final") is False]
    assert pieces == ["one ", "two"]


def test_a_supervisor_that_does_not_come_back_ends_the_command_with_3(
    supervisor: ScriptedSupervisor, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chat_turn, "_BACK_S", 0.2)

    def answer(delivery: Delivery, fake: ScriptedSupervisor) -> None:
        fake.reply(delivery, Accepted(delivery.message.key))
        fake.later(0.05, fake.stop)

    supervisor.answers[ADDRESS, Submit] = answer
    assert run(["chat", "send", "hi", "--json"]) == 3
    assert "va up" in lines(capsys.readouterr().out)[-1]["hint"]


def test_answer_and_stop_speak_to_the_route_of_the_named_chat(supervisor: ScriptedSupervisor, capsys: Any) -> None:
    address = "route/cli:local:my%20chat"
    supervisor.answers[address, Answer] = lambda d, f: Ok({"decided": True})
    supervisor.answers[address, StopTurn] = lambda d, f: Ok({"cancelled": 1, "dropped": 2})
    assert run(["chat", "answer", "--chat", "my chat", "p1", "allow"]) == 0
    assert run(["chat", "stop", "--chat", "my chat"]) == 0
    assert "2 waiting messages dropped" in capsys.readouterr().out
    assert supervisor.seen[0][1].option == "allow"
    assert run(["chat", "stop", "--chat", "my chat", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"cancelled": 1, "dropped": 2}


def test_a_refused_answer_ends_with_its_exit_code(supervisor: ScriptedSupervisor, capsys: Any) -> None:
    def late(delivery: Delivery, fake: ScriptedSupervisor) -> None:
        raise RefusedError("It was answered already.")

    supervisor.answers[ADDRESS, Answer] = late
    assert run(["chat", "answer", "p1", "allow"]) == 5
    assert "answered already" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["", "   ", "x" * (256 * 1024 + 1), "\udcff"])
def test_text_that_cannot_be_sent_is_refused_without_asking_the_supervisor(supervisor: ScriptedSupervisor, text: str) -> None:
    assert run(["chat", "send", text, "--json"]) == 2
    assert not supervisor.seen


def test_a_workspace_that_does_not_exist_is_not_found(supervisor: ScriptedSupervisor, capsys: Any) -> None:
    assert run(["chat", "send", "hi", "--workspace", "nowhere", "--json"]) == 4
    assert lines(capsys.readouterr().out)[0]["code"] == "cwd_gone"


def test_a_linked_workspace_is_sent_as_its_real_path(supervisor: ScriptedSupervisor, tmp_path: Path) -> None:
    (tmp_path / "real 项目").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real 项目")
    supervisor.answers[ADDRESS, Submit] = plays(DONE)
    assert run(["chat", "send", "hi", "--workspace", "link", "--json"]) == 0
    assert supervisor.seen[0][1].workspace == str((tmp_path / "real 项目").resolve())
