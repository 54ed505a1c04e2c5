"""The supervisor's desk for bridges: the owner's claim, the people, and which bridges run."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from actors.bridges import CLAIM_S, CLAIM_TRIES, Bridges
from agents_registry.errors import UsageError, from_wire
from tests.unit.support import Loop
from transports.bus.api import Delivery, Peer
from transports.bus.vocabulary.bridges import (
    AddBridge,
    ApproveUser,
    BridgeClaim,
    BridgeHello,
    BridgeKnock,
    BridgePeople,
    BridgeState,
    ControlBridge,
    ListBridges,
    RemoveBridge,
    RevokeUser,
    StartBridge,
)
from transports.bus.vocabulary.children import ChildExited, HostState, StopChild
from transports.bus.vocabulary.conversation import Failed, Ok
from transports.bus.vocabulary.threads import RouteNotice

CHILD = "bridge/toy:t"
PROCESS = Peer("peer/9", 9, 0, "bridge", CHILD)


class Desk:
    """The desk on a loop, with a spawner that notes what it is asked."""

    def __init__(self, folder: Path, *definitions: tuple[str, str]) -> None:
        self.loop = Loop(folder)
        self.started: list[str] = []
        self.ended: list[str] = []
        self.pushed: list[BridgePeople] = []
        self.pids = itertools.count(100)
        self.slow = False
        """A process takes its time to end: the test says when."""
        self.lacks = ""
        """Why no process can be started."""
        self.loop.add("spawner", self._spawner)
        self.loop.add(CHILD, lambda d: self.pushed.append(d.message))
        self.begin(*definitions)

    def begin(self, *definitions: tuple[str, str]) -> None:
        """A supervisor starts over the same journal."""
        letters = itertools.cycle("ABCDEFGHJKLMNPQRSTUVWXYZ23456789")
        self.desk = Bridges(self.loop.switch, self.loop.clock, definitions, lambda: next(letters))
        self.loop.switch.unregister("bridges")
        self.loop.add("bridges", self.desk.receive)
        self.loop.switch.send("bridges", HostState("", "begin"))
        self.loop.run()

    def _spawner(self, delivery: Delivery) -> None:
        message = delivery.message
        if isinstance(message, StartBridge):
            self.started.append(message.name)
            answer: Ok | Failed = Ok({"pid": next(self.pids)})
            if self.lacks:
                answer = Failed(UsageError(self.lacks, hint="Set it.").to_wire())
            self.loop.switch.send(delivery.sender, answer, sender="spawner", corr=-delivery.corr)
        elif isinstance(message, StopChild):
            self.ended.append(message.name)
            if not self.slow:
                self.exit("it was ended")

    def exit(self, reason: str = "killed by SIGKILL") -> None:
        self.loop.switch.send("bridges", ChildExited(CHILD, reason))
        self.loop.run()

    def ask(self, message: Any, **more: Any) -> Any:
        answer = self.loop.ask("bridges", message, **more)
        if isinstance(answer, Failed):
            raise from_wire(answer.error)
        return answer

    def row(self) -> dict[str, Any]:
        return dict(self.ask(ListBridges()).data["bridges"][0])

    def hello(self) -> Any:
        return self.ask(BridgeHello("toy", "t"), peer=PROCESS)

    def claim(self, code: str, user: str = "ann") -> str:
        return str(self.ask(BridgeClaim(user, user.title(), code), peer=PROCESS).data["outcome"])

    def state(self, state: str, error: str = "") -> None:
        self.loop.switch.send("bridges", BridgeState(state, error), sender=CHILD, peer=PROCESS)
        self.loop.run()


@pytest.fixture
def desk(tmp_path: Path) -> Any:
    made = Desk(tmp_path)
    yield made
    made.loop.close()


@pytest.mark.requires("S1.claim")
def test_the_code_makes_one_owner_and_is_then_gone(desk: Desk) -> None:
    code = desk.ask(AddBridge("t", "toy")).data["code"]
    assert desk.hello().claim_open
    assert desk.claim("WRONG") == "refused"
    assert desk.claim(code.lower()) == "owner"
    assert desk.claim(code, "eve") == "refused"
    assert [u["id"] for u in desk.hello().users] == ["ann"]
    assert not desk.hello().claim_open
    assert desk.pushed[-1] == BridgePeople([{"id": "ann", "name": "Ann", "role": "owner"}], False)


@pytest.mark.requires("S1.claim")
def test_racers_for_one_code_have_one_winner(desk: Desk) -> None:
    code = desk.ask(AddBridge("t", "toy")).data["code"]
    for user in ("a", "b", "c"):
        desk.loop.switch.send("bridges", BridgeClaim(user, user, code), sender="peer/9", corr=1, peer=PROCESS)
    desk.loop.run()
    assert len(desk.hello().users) == 1


@pytest.mark.requires("S1.claim")
def test_five_wrong_codes_close_the_claim(desk: Desk) -> None:
    code = desk.ask(AddBridge("t", "toy")).data["code"]
    assert [desk.claim("WRONG") for _ in range(CLAIM_TRIES)] == ["refused"] * CLAIM_TRIES
    assert desk.claim(code) == "refused"
    again = desk.ask(ControlBridge("t", "claim")).data["code"]
    assert again != code and desk.claim(again) == "owner"


@pytest.mark.requires("S1.claim")
@pytest.mark.parametrize(("after", "outcome"), [(CLAIM_S - 0.1, "owner"), (CLAIM_S + 0.1, "refused")])
def test_a_claim_is_open_for_ten_minutes(desk: Desk, after: float, outcome: str) -> None:
    code = desk.ask(AddBridge("t", "toy")).data["code"]
    desk.loop.pass_time(after)
    assert desk.claim(code) == outcome


@pytest.mark.requires("S1.people")
def test_people_outlive_the_supervisor_and_a_revoked_one_is_off_at_once(desk: Desk) -> None:
    desk.ask(AddBridge("t", "toy"))
    desk.ask(ApproveUser("t", "ann", "owner", "Ann"))
    desk.ask(ApproveUser("t", "bob", "viewer", "Bob"))
    desk.ask(ApproveUser("t", "bob", "member"))
    desk.ask(RevokeUser("t", "ann"))
    assert desk.pushed[-1].users == [{"id": "bob", "name": "Bob", "role": "member"}]
    desk.begin(("t", "toy"))
    assert desk.row()["users"] == [{"id": "bob", "name": "Bob", "role": "member"}]
    assert desk.started == ["t", "t"]


@pytest.mark.parametrize(
    "message",
    [ApproveUser("none", "a"), ApproveUser("t", "a", "king"), ApproveUser("t", " "), RevokeUser("t", "nobody"), ControlBridge("t", "dance"),
     ControlBridge("none", "start"), RemoveBridge("none"), AddBridge("t", "other")],
)  # fmt: skip
def test_what_makes_no_sense_is_refused_with_a_hint(desk: Desk, message: Any) -> None:
    desk.ask(AddBridge("t", "toy"))
    answer = desk.loop.ask("bridges", message)
    assert isinstance(answer, Failed) and from_wire(answer.error).hint


def test_a_bridge_that_dies_is_started_again_and_given_up_after_a_burst(desk: Desk) -> None:
    desk.ask(AddBridge("t", "toy"))
    desk.state("running")
    assert desk.row()["state"] == "running"
    for _ in range(400):
        if desk.row()["pid"]:
            desk.exit()
        elif desk.row()["state"] == "failed":
            break
        desk.loop.pass_time(0.5)
    assert 2 <= len(desk.started) <= 10
    assert desk.row()["state"] == "failed" and "again and again" in desk.row()["error"]
    desk.ask(ControlBridge("t", "start"))
    assert desk.row()["state"] == "starting"


def test_a_bridge_that_says_it_failed_waits_for_a_person(desk: Desk) -> None:
    desk.ask(AddBridge("t", "toy"))
    desk.state("failed", "the token is refused")
    desk.exit("exit code 5")
    desk.loop.pass_time(600.0)
    assert desk.started == ["t"]
    assert (desk.row()["state"], desk.row()["error"]) == ("failed", "the token is refused")


def test_a_stopped_bridge_stays_stopped_and_a_removed_one_is_forgotten(desk: Desk) -> None:
    desk.ask(AddBridge("t", "toy"))
    desk.ask(ApproveUser("t", "ann"))
    desk.ask(ControlBridge("t", "stop"))
    desk.loop.pass_time(600.0)
    assert desk.row()["state"] == "stopped" and desk.row()["pid"] == 0
    desk.ask(ControlBridge("t", "restart"))
    assert desk.started == ["t", "t"]
    desk.ask(RemoveBridge("t"))
    assert desk.ask(ListBridges()).data["bridges"] == []
    desk.ask(AddBridge("t", "toy"))
    assert desk.row()["users"] == []


def test_a_bridge_speaks_for_itself_alone(desk: Desk) -> None:
    desk.ask(AddBridge("t", "toy"))
    other = Peer("peer/8", 8, 0, "bridge", "bridge/toy:other")
    answer = desk.loop.ask("bridges", BridgeHello("toy", "t"), peer=other)
    assert isinstance(answer, Failed)


def test_a_start_that_meets_the_end_of_a_stop_starts(desk: Desk) -> None:
    desk.ask(AddBridge("t", "toy"))
    desk.slow = True
    desk.ask(ControlBridge("t", "stop"))
    desk.ask(ControlBridge("t", "start"))
    desk.exit("it was ended")
    assert desk.started == ["t", "t"] and desk.row()["state"] == "starting"


def test_a_stop_that_meets_a_restart_stops(desk: Desk) -> None:
    desk.ask(AddBridge("t", "toy"))
    desk.slow = True
    desk.ask(ControlBridge("t", "restart"))
    desk.ask(ControlBridge("t", "stop"))
    desk.state("running")
    desk.exit("it was ended")
    desk.loop.pass_time(600.0)
    assert desk.started == ["t"] and desk.row()["state"] == "stopped"


def test_a_bridge_that_said_it_failed_and_still_runs_is_started_anew(desk: Desk) -> None:
    desk.ask(AddBridge("t", "toy"))
    desk.state("failed", "the token is refused")
    desk.ask(ControlBridge("t", "start"))
    assert desk.started == ["t", "t"] and desk.row()["state"] == "starting"


def test_what_a_start_lacks_is_said_to_the_one_who_adds_the_bridge(desk: Desk) -> None:
    desk.lacks = "The environment variable TOKEN is not set."
    row = desk.ask(AddBridge("t", "toy")).data
    assert row["state"] == "failed" and desk.lacks in row["error"] and row["code"]
    desk.lacks = ""
    desk.ask(ControlBridge("t", "start"))
    assert desk.row()["state"] == "starting"


def test_files_that_came_with_old_messages_are_named_for_removal(tmp_path: Path) -> None:
    loop = Loop(tmp_path)
    link = {"type": "resource_link", "uri": "file:///d/files/in-1-a%20b.png", "name": "a b.png"}
    loop.record(["inbox_add", "toy:t:a", "k1", "look", {}, [link], "", 1.0], ["inbox_done", "toy:t:a", "k1"])
    loop.record(["inbox_add", "toy:t:a", "k2", "look", {}, [link], "", 9.0])
    answer = loop.record(["forget_old", 5.0])
    assert answer.results[0] == ["/d/files/in-1-a b.png"]
    assert loop.record(["forget_old", 5.0]).results[0] == []
    loop.close()


@pytest.mark.requires("S1.knock")
def test_owners_hear_of_a_stranger_with_the_command_that_lets_him_in(desk: Desk) -> None:
    heard: list[str] = []
    desk.loop.add("route/toy:t:ann", lambda d: heard.append(d.message.text) if isinstance(d.message, RouteNotice) else None)
    desk.loop.add("route/toy:other:ann", lambda d: heard.append("foreign"))

    def knock(user: str, name: str = "Eve") -> None:
        message = BridgeKnock(user, name, ["toy:t:ann", "toy:other:ann"])
        desk.loop.switch.send("bridges", message, sender=CHILD, peer=PROCESS)
        desk.loop.run()

    desk.ask(AddBridge("t", "toy"))
    knock("7", "Eve\x1b[2J`rm`")
    assert len(heard) == 1 and heard[0].endswith("va bridge approve t 7")
    assert "\x1b" not in heard[0] and "`" not in heard[0]
    knock("7")
    assert len(heard) == 1, "one stranger is told of once an hour"
    for number in range(20):
        knock(f"crowd{number}")
    assert len(heard) == 3, "a crowd does not fill the chat"
    assert [k["id"] for k in desk.row()["knocks"]][-1] == "crowd19" and len(desk.row()["knocks"]) == 16
    desk.ask(ApproveUser("t", "crowd19"))
    assert "crowd19" not in [k["id"] for k in desk.row()["knocks"]]
    desk.loop.pass_time(3601.0)
    knock("7")
    assert len(heard) == 4
