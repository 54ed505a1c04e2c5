"""The platform that docs/channels.md shows, run as its text stands there: a bridge process on the real bus."""

from __future__ import annotations

import hashlib
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from actors.policy import allow
from tests.daemon import Daemon, plain_env
from tests.fakes.scripted_supervisor import ScriptedSupervisor
from tests.waiting import until
from transports.bus.access import Access
from transports.bus.endpoint import Endpoint
from transports.bus.vocabulary.bridges import BridgeHello, BridgeState, BridgeWelcome
from transports.bus.vocabulary.conversation import Ok
from transports.bus.vocabulary.surface import Accepted, Answer, ItemAck, Listen, Submit

ROOT = Path(__file__).resolve().parents[2]
ROUTE = "toy:t:ann"


def toy_source() -> str:
    """The platform's text in the docs."""
    text = (ROOT / "docs" / "channels.md").read_text("utf-8")
    found = re.search(r"<!-- the test tests/process/test_im_toy.py .*?-->\n```python\n(.*?)```", text, re.S)
    assert found is not None
    return found[1]


def install_toy(folder: Path) -> Path:
    """The folder that PYTHONPATH needs."""
    folder.mkdir(exist_ok=True)
    (folder / "vibearound_toy.py").write_text(toy_source())
    return folder


class Person:
    """Somebody at `nc -U`."""

    def __init__(self, path: Path, name: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(10.0)

        def connected() -> bool:
            try:
                self._socket.connect(str(path))
            except OSError:
                return False
            return True

        until(connected, "the bridge takes connections", seconds=20.0)
        self._file = self._socket.makefile("rw", encoding="utf-8")
        self.say(name)

    def say(self, line: str) -> None:
        self._file.write(line + "\n")
        self._file.flush()

    def hear(self, wanted: str) -> str:
        """Lines up to the one with `wanted` in it."""
        lines: list[str] = []
        while line := self._file.readline():
            lines.append(line)
            if wanted in line:
                return "".join(lines)
        raise AssertionError(f"the connection ended before {wanted!r}: {lines}")

    def close(self) -> None:
        self._file.close()
        self._socket.close()


SECRET = b"a secret of the test"


class Supervisor(ScriptedSupervisor):
    """One that knows the bridge's secret."""

    @property
    def socket(self) -> Path:
        return self._directory / "bus.sock"

    def start(self) -> None:
        digest = hashlib.sha256(SECRET).hexdigest()
        self._endpoint = Endpoint(
            self.socket, self._switch,
            access=Access(policy=allow, secret_hash=lambda kind, name: digest if (kind, name) == ("bridge", "bridge/toy:t") else None),
            bind_names=lambda peer, hello: [], on_gone=lambda peer, reason: None, clock=self._clock, version="test",
        )  # fmt: skip
        self._endpoint.start()
        self.data_dir.mkdir(exist_ok=True)


class Bridge:
    """The bridge process below a scripted supervisor."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.supervisor = Supervisor(folder / "data")
        self.supervisor.start()
        (folder / "data" / "bridges.toml").write_text(f'[t]\nkind = "toy"\n[t.options]\nsocket = "{folder}/toy.sock"\n')
        install_toy(folder / "lib")
        answers = self.supervisor.answers
        people = [{"id": "ann", "name": "Ann", "role": "owner"}]
        answers["bridges", BridgeHello] = lambda d, s: BridgeWelcome(people, False)
        answers["bridges", BridgeState] = lambda d, s: None
        answers[f"route/{ROUTE}", Listen] = self._listened
        answers[f"route/{ROUTE}", Submit] = lambda d, s: Accepted(d.message.key)
        answers[f"route/{ROUTE}", ItemAck] = lambda d, s: None
        answers[f"route/{ROUTE}", Answer] = lambda d, s: Ok({})
        self.peer = ""
        self.process: subprocess.Popen[bytes] | None = None
        self.start()

    def _listened(self, delivery: Any, supervisor: Any) -> Ok:
        self.peer = delivery.sender
        return Ok({"position": 0})

    def start(self) -> None:
        read, write = os.pipe()
        os.write(write, SECRET)
        os.close(write)
        (self.folder / "toy.sock").unlink(missing_ok=True)
        run = str(self.supervisor.socket)
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "transports.im.main", "toy", "t", "--run", run, "--data-dir", str(self.folder / "data"), "--secret-fd", str(read)],
            pass_fds=(read,), env={**os.environ, "PYTHONPATH": str(self.folder / "lib")}, stderr=(self.folder / "log").open("ab"),
        )  # fmt: skip
        os.close(read)

    def seen(self, kind: type) -> list[Any]:
        return [message for _, message in self.supervisor.seen if type(message) is kind]

    def close(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait(10)
        self.supervisor.close()


@pytest.fixture
def bridge(tmp_path: Path) -> Iterator[Bridge]:
    made = Bridge(tmp_path)
    yield made
    made.close()


@pytest.mark.requires("S1.toy")
def test_the_platform_of_the_docs_is_short_enough_to_be_read(tmp_path: Path) -> None:
    lines = [line for line in toy_source().splitlines() if line.strip()]
    assert len(lines) <= 60
    compile(toy_source(), "toy", "exec")


@pytest.mark.requires("S1.once")
def test_a_conversation_goes_through_the_process_and_a_kill_loses_and_doubles_nothing(bridge: Bridge) -> None:
    ann = Person(bridge.folder / "toy.sock", "ann")
    ann.say("hello")
    until(lambda: bridge.seen(Submit), "the message is with its route")
    request = bridge.seen(Submit)[0]
    assert request.text == "hello" and request.sender == {"id": "toy:ann", "name": "ann", "role": "owner"}
    assert bridge.seen(BridgeHello)[0].name == "t"
    tell = bridge.supervisor.item
    asked = {"event": "asked", "key": request.key, "route": ROUTE, "by": "ann", "text": "hello"}
    tell(bridge.peer, ROUTE, asked, turn="tn1", seq=1)
    tell(bridge.peer, ROUTE, {"event": "text", "text": "Half.", "block": 1, "final": True}, turn="tn1", seq=2)
    permission = {"event": "permission", "id": "pm_1", "title": "rm x", "options": [{"id": "a", "name": "Allow", "kind": "allow_once"}]}
    tell(bridge.peer, ROUTE, permission, turn="tn1", seq=3)
    ann.hear("1. Allow")
    ann.say("允许")
    until(lambda: bridge.seen(Answer), "the answer is with its route")
    assert [(a.id, a.option) for a in bridge.seen(Answer)] == [("pm_1", "a")]
    assert bridge.process is not None
    bridge.process.kill()
    bridge.process.wait(10)
    ann.close()
    first, bridge.peer = bridge.peer, ""
    bridge.start()
    until(lambda: bridge.peer not in ("", first), "the bridge listens again", seconds=20.0)
    ann = Person(bridge.folder / "toy.sock", "ann")
    ann.say("here again")
    until(lambda: len(bridge.seen(Submit)) == 2, "the message is with its route")
    tell(bridge.peer, ROUTE, asked, turn="tn1", seq=1)
    tell(bridge.peer, ROUTE, {"event": "text", "text": "Half.", "block": 1, "final": True}, turn="tn1", seq=2)
    tell(bridge.peer, ROUTE, permission, turn="tn1", seq=3)
    tell(bridge.peer, ROUTE, {"event": "text", "text": "Whole.", "block": 2, "final": True}, turn="tn1", seq=4)
    tell(bridge.peer, ROUTE, {"event": "done", "stop_reason": "end_turn"}, turn="tn1", seq=5)
    heard = ann.hear("✅")
    assert heard.count("Half.") == 1 and heard.count("Whole.") == 1 and "1. Allow" not in heard
    until(lambda: any(ack.seq == 5 for ack in bridge.seen(ItemAck)), "the turn is acknowledged")
    ann.close()


@pytest.mark.requires("S1.strangers")
def test_a_stranger_reads_the_one_line_and_nothing_reaches_a_route(bridge: Bridge) -> None:
    eve = Person(bridge.folder / "toy.sock", "eve")
    eve.say("/pickup ABCD")
    assert eve.hear("not authorised") == "not authorised / 未授权\n"
    assert bridge.seen(Submit) == [] and bridge.seen(Listen) == []
    eve.close()


@pytest.mark.requires("S1.lifeline")
def test_the_bridge_ends_with_its_supervisor(bridge: Bridge) -> None:
    until(lambda: any(s.state == "running" for s in bridge.seen(BridgeState)), "the bridge runs", seconds=20.0)
    bridge.supervisor.stop()
    assert bridge.process is not None
    assert bridge.process.wait(10) == 0


# --- with a real daemon ---


class Chatting:
    """A daemon with the toy as a bridge, and its socket."""

    def __init__(self, folder: Path) -> None:
        self.socket = folder / "toy.sock"
        env = {**plain_env(folder), "PYTHONPATH": str(install_toy(folder / "lib"))}
        self.daemon = Daemon(folder / "va", env, agents__default="demo")

    def add(self) -> str:
        """The claim's code, as `va bridge add` shows it."""
        out = self.daemon.va("bridge", "add", "toy", "--name", "t", "--set", f"socket={self.socket}").out
        found = re.search(r"/start (\S+)", out)
        assert found is not None, out
        return found[1]

    def row(self) -> dict[str, Any]:
        rows = self.daemon.va("bridge", "list", "--json").json()
        return dict(rows[0]) if rows else {}

    def running(self) -> dict[str, Any]:
        return until(lambda: row if (row := self.row()).get("state") == "running" else None, "the bridge runs", seconds=20.0)


@pytest.fixture
def chatting(tmp_path: Path) -> Iterator[Chatting]:
    made = Chatting(tmp_path)
    with made.daemon:
        yield made


@pytest.mark.requires("S1.toy")
def test_a_person_claims_a_bridge_and_talks_to_an_agent_through_a_real_daemon(chatting: Chatting) -> None:
    code = chatting.add()
    chatting.running()
    ann = Person(chatting.socket, "ann")
    ann.say("hello")
    assert ann.hear("\n") == "not authorised / 未授权\n"
    ann.say(f"/start {code}")
    ann.hear("You are the owner now.")
    assert [(u["id"], u["role"]) for u in chatting.row()["users"]] == [("ann", "owner")]
    ann.say("say hello twice")
    heard = ann.hear("✅")
    assert "demo" in heard
    ann.say("/status")
    ann.hear("demo")
    eve = Person(chatting.socket, "eve")
    eve.say(f"/start {code}")
    assert eve.hear("\n") == "not authorised / 未授权\n"
    eve.close()
    ann.close()


@pytest.mark.requires("S1.lifeline")
def test_a_bridge_that_was_killed_comes_back_with_its_people(chatting: Chatting) -> None:
    chatting.add()
    chatting.daemon.va("bridge", "approve", "t", "ann", "--role", "owner", "--called", "Ann")
    before = chatting.running()
    os.kill(before["pid"], signal.SIGKILL)
    until(lambda: row["state"] == "running" and row["pid"] not in (0, before["pid"]) if (row := chatting.row()) else False, "it is back", seconds=20.0)
    chatting.daemon.kill()
    chatting.daemon.start()
    row = chatting.running()
    assert row["users"] == [{"id": "ann", "name": "Ann", "role": "owner"}]
    ann = Person(chatting.socket, "ann")
    ann.say("say hello")
    ann.hear("✅")
    chatting.daemon.va("bridge", "revoke", "t", "ann")
    ann.say("hello")
    ann.hear("not authorised")
    ann.close()


@pytest.mark.requires("S1.command-line")
def test_a_bridge_is_stopped_started_tested_and_removed(chatting: Chatting) -> None:
    va = chatting.daemon.va
    chatting.add()
    chatting.running()
    assert "toy" in va("bridge", "test", "t").out
    va("bridge", "stop", "t")
    until(lambda: chatting.row()["pid"] == 0, "it has ended")
    assert chatting.row()["state"] == "stopped"
    va("bridge", "start", "t")
    first = chatting.running()
    va("bridge", "restart", "t")
    until(lambda: row["state"] == "running" and row["pid"] != first["pid"] if (row := chatting.row()) else False, "a new one runs", seconds=20.0)
    assert "/start" in va("bridge", "claim", "t").out
    va("bridge", "logs", "t")
    va("bridge", "remove", "t")
    assert va("bridge", "list", "--json").json() == []
    assert va("bridge", "test", "t", check=False).code == 4


@pytest.mark.requires("S1.command-line")
def test_a_bridge_that_cannot_work_says_why_and_is_not_added(chatting: Chatting) -> None:
    va = chatting.daemon.va
    assert va("bridge", "add", "nonsense", check=False).code == 4
    assert va("bridge", "add", "toy", "--set", "colour=red", check=False).code == 2
    assert va("bridge", "add", "toy", check=False).code == 2
    assert va("bridge", "add", "toy", "--name", "Bad Name", "--set", "socket=x", check=False).code == 2
    assert not (chatting.daemon.data / "bridges.toml").exists()
    (chatting.daemon.data / "bridges.toml").write_text("damaged = [")
    done = va("bridge", "add", "toy", "--set", "socket=x", check=False)
    assert done.code == 2 and "bridges.toml" in done.err
    assert (chatting.daemon.data / "bridges.toml").read_text() == "damaged = ["


@pytest.mark.requires("S1.capability", "S1.questions")
def test_a_permission_of_a_real_turn_is_answered_by_its_number(chatting: Chatting) -> None:
    chatting.add()
    chatting.daemon.va("bridge", "approve", "t", "ann", "--role", "owner")
    chatting.running()
    ann = Person(chatting.socket, "ann")
    ann.say("run: touch made-here")
    asked = ann.hear("owner.")
    assert "touch made-here" in asked and "1. " in asked and "ann" in asked
    ann.say("允许")
    heard = ann.hear("✅ demo")
    assert "✅" in heard
    ann.close()


@pytest.mark.requires("S1.once")
def test_a_daemon_killed_in_mid_turn_delivers_the_answer_once(chatting: Chatting) -> None:
    chatting.add()
    chatting.daemon.va("bridge", "approve", "t", "ann", "--role", "owner")
    chatting.running()
    ann = Person(chatting.socket, "ann")
    ann.say("run: touch made-here")
    ann.hear("owner.")
    chatting.daemon.kill()
    ann.close()
    chatting.daemon.start()
    chatting.running()
    ann = Person(chatting.socket, "ann")
    ann.say("1")
    heard = ann.hear("✅ demo")
    assert heard.count("✅ demo") == 1
    ann.say("say after")
    assert ann.hear("✅ demo").count("after") >= 1
    ann.close()


@pytest.mark.requires("S1.roles")
def test_a_viewer_looks_and_prompts_nothing(chatting: Chatting) -> None:
    chatting.add()
    chatting.daemon.va("bridge", "approve", "t", "vic", "--role", "viewer")
    chatting.running()
    vic = Person(chatting.socket, "vic")
    vic.say("say hello")
    assert "not authorised" in vic.hear("\n")
    vic.say("/status")
    vic.hear("No conversation")
    assert chatting.daemon.status()["threads"] == []
    assert [b["name"] for b in chatting.daemon.status()["bridges"]] == ["t"]
    chatting.daemon.va("bridge", "approve", "t", "vic", "--role", "member")
    vic.say("say hello")
    vic.hear("✅")
    vic.close()


@pytest.mark.requires("S1.command-line")
def test_a_variable_that_the_daemon_lacks_is_named_at_once_with_what_to_do(chatting: Chatting) -> None:
    done = chatting.daemon.va("bridge", "add", "toy", "--name", "t", "--set", "socket=env:NOT_SET_ANYWHERE", NOT_SET_ANYWHERE="here-alone")
    assert "NOT_SET_ANYWHERE is not set for the daemon" in done.err and "va bridge restart t" in done.err
    row = chatting.row()
    assert row["state"] == "failed" and "NOT_SET_ANYWHERE" in row["error"] and "here-alone" not in str(row)
