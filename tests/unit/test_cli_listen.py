"""`va chat listen` and the interactive view, against a supervisor that answers by script."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agents_registry.errors import RefusedError
from tests.fakes.scripted_supervisor import ScriptedSupervisor
from transports.bus.api import Delivery
from transports.bus.vocabulary.conversation import Ok
from transports.bus.vocabulary.surface import ItemAck, Listen
from transports.cli.chat_listen import Listener
from transports.cli.chat_view import TextView
from transports.cli.main import run

ROUTE = "cli:local:main"
ADDRESS = f"route/{ROUTE}"


@pytest.fixture
def supervisor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedSupervisor]:
    monkeypatch.setenv("VIBEAROUND_DATA_DIR", str(tmp_path / "data"))
    fake = ScriptedSupervisor(tmp_path / "data")
    fake.start()
    yield fake
    fake.close()


def feeds(*numbers: int) -> Any:
    def answer(delivery: Delivery, fake: ScriptedSupervisor) -> None:
        fake.reply(delivery, Ok({"position": 0}))
        for number in numbers:
            fake.item(delivery.sender, ROUTE, {"event": "reply", "text": f"item {number}"}, turn="t", seq=number)

    return answer


def test_what_reaches_the_chat_is_shown_with_its_turn_and_then_acknowledged(supervisor: ScriptedSupervisor) -> None:
    supervisor.answers[ADDRESS, Listen] = feeds(7, 9)
    shown: list[dict[str, Any]] = []
    acked: list[int] = []
    supervisor.answers[ADDRESS, ItemAck] = lambda d, f: acked.append(d.message.seq)
    Listener("main").run(shown.append, lambda _: None, lambda: len(acked) == 2)
    assert [(e["text"], e["turn"], e["thread"]) for e in shown] == [("item 7", "t", "wt_1"), ("item 9", "t", "wt_1")]
    assert acked == [7, 9]


def test_after_a_restart_of_the_supervisor_listening_goes_on_and_nothing_is_shown_twice(supervisor: ScriptedSupervisor) -> None:
    shown: list[str] = []
    told: list[str] = []
    listens: list[int] = []

    def answer(delivery: Delivery, fake: ScriptedSupervisor) -> None:
        listens.append(1)
        feeds(1, 2)(delivery, fake) if len(listens) == 1 else feeds(2, 3)(delivery, fake)
        if len(listens) == 1:
            fake.later(0.1, restart)

    def restart() -> None:
        supervisor.stop()
        supervisor.start()

    supervisor.answers[ADDRESS, Listen] = answer
    supervisor.answers[ADDRESS, ItemAck] = lambda d, f: None
    Listener("main").run(lambda e: shown.append(e["text"]), told.append, lambda: "item 3" in shown)
    assert shown == ["item 1", "item 2", "item 3"]
    assert "went away" in told[0]


def test_a_second_listener_is_refused_with_5(supervisor: ScriptedSupervisor, capsys: Any) -> None:
    def taken(delivery: Delivery, fake: ScriptedSupervisor) -> None:
        raise RefusedError("Somebody listens to this chat already.")

    supervisor.answers[ADDRESS, Listen] = taken
    assert run(["chat", "listen", "--json"]) == 5
    assert "listens to this chat already" in capsys.readouterr().err


def test_listening_ends_with_ctrl_c_and_130(supervisor: ScriptedSupervisor) -> None:
    supervisor.answers[ADDRESS, Listen] = feeds(1)
    argv = [sys.executable, "-c", "from transports.cli.main import main; main(['chat', 'listen', '--json'])"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=dict(os.environ)) as child:
        assert child.stdout is not None
        first = json.loads(child.stdout.readline())
        child.send_signal(signal.SIGINT)
        assert child.wait(timeout=10) == 130
    assert first["text"] == "item 1"


@pytest.fixture
def view(capsys: Any) -> TextView:
    return TextView("main", interactive=True)


PERMISSION = {
    "event": "permission", "id": "p1", "title": "Run make",
    "options": [{"id": "yes", "name": "Allow"}, {"id": "no", "name": "Reject"}],
}


@pytest.mark.parametrize(("line", "chosen"), [("1\n", "yes"), (" 2 ", "no"), ("no", "no"), ("allow", "yes"), ("c", ""), ("CANCEL", "")])
def test_a_question_is_answered_by_number_id_name_or_cancelled(view: TextView, line: str, chosen: str) -> None:
    view.show(PERMISSION)
    assert view.choose(line) == ("p1", chosen)
    assert not view.wants_input()


@pytest.mark.parametrize("line", ["3", "0", "what?", "-1"])
def test_another_word_leaves_the_question_open_and_says_what_is_expected(view: TextView, line: str, capsys: Any) -> None:
    view.show(PERMISSION)
    assert view.choose(line) is None
    assert view.wants_input()
    assert "from 1 to 2" in capsys.readouterr().err


def test_a_question_answered_elsewhere_is_open_here_no_more_and_says_by_whom(view: TextView, capsys: Any) -> None:
    view.show(PERMISSION)
    view.show({"event": "permission_done", "id": "p1", "option": "yes", "by": "Ann"})
    assert not view.wants_input()
    assert "by Ann: yes" in capsys.readouterr().err


def test_questions_are_answered_in_the_order_they_came(view: TextView) -> None:
    view.show(PERMISSION)
    view.show({**PERMISSION, "id": "p2"})
    assert view.choose("1") == ("p1", "yes")
    assert view.choose("2") == ("p2", "no")


def test_the_end_of_the_input_leaves_questions_to_other_surfaces(view: TextView, monkeypatch: pytest.MonkeyPatch) -> None:
    with open(os.devnull) as nothing:
        monkeypatch.setattr(sys, "stdin", nothing)
        view.show(PERMISSION)
        assert view.poll_input() is None
    assert not view.wants_input()


def test_a_remark_in_the_midst_of_streamed_text_does_not_repeat_what_was_shown(view: TextView, capsys: Any) -> None:
    piece = {"event": "text", "block": 1, "final": False}
    view.show({**piece, "offset": 0, "text": "one "})
    view.show({"event": "notice", "text": "Ann joined."})
    view.show({**piece, "offset": 4, "text": "two"})
    view.show({"event": "text", "block": 1, "final": True, "text": "one two"})
    out = capsys.readouterr().out
    assert out == "one \ntwo\n"


def test_two_turns_with_the_same_block_number_are_two_texts(view: TextView, capsys: Any) -> None:
    view.show({"event": "text", "block": 1, "final": False, "offset": 0, "text": "abc", "turn": "a"})
    view.show({"event": "text", "block": 1, "final": True, "text": "abcd", "turn": "b"})
    assert capsys.readouterr().out == "abc\nabcd\n"


def test_an_event_of_an_unknown_kind_is_shown_not_swallowed(view: TextView, capsys: Any) -> None:
    view.show({"event": "novelty", "text": "something new"})
    assert "novelty: something new" in capsys.readouterr().err


