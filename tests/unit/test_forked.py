"""Two wrote on one old state: both ends become sessions of their own, the chat goes on in its own, and both are named."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agents_registry.sessions.claude import ClaudeStore
from agents_registry.sessions.claude_ends import split_ends
from tests.unit.world import World
from transports.bus.api import Delivery
from transports.bus.vocabulary.conversation import Ok

OLD = "11111111-1111-4111-8111-111111111111"
Row = tuple[str, str, str, int]
"""uuid, parent, text (a person's; an answer begins with "+"), second"""
BEFORE: list[Row] = [("u1", "", "start", 1), ("a1", "u1", "+started", 2)]
OURS: list[Row] = [("u2", "a1", "ours", 11), ("a2", "u2", "+to ours", 14)]
THEIRS: list[Row] = [("u3", "a1", "theirs", 12), ("a3", "u3", "+to theirs", 13)]


def transcript(root: Path, rows: list[Row]) -> Path:
    path = root / "projects" / "-w" / f"{OLD}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = []
    for mine, parent, text, second in rows:
        kind = "assistant" if text.startswith("+") else "user"
        message: dict[str, Any] = {"role": kind, "content": [{"type": "text", "text": text.lstrip("+")}]}
        if kind == "assistant":
            message |= {"id": f"m{mine}", "model": "m", "stop_reason": "end_turn"}
        lines.append(json.dumps({
            "type": kind, "uuid": mine, "parentUuid": parent or None, "sessionId": OLD, "cwd": "/w", "isSidechain": False,
            "timestamp": f"2026-01-01T00:00:{second:02d}.000Z", "message": message,
        }))  # fmt: skip
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


def ends(root: Path, rows: list[Row], since: float = 10.0) -> tuple[str, str] | None:
    transcript(root, rows)
    store = ClaudeStore()
    info = store.resolve(root, OLD)[0]
    ids = iter(["new-1", "new-2"])
    return split_ends(info, 1767225600.0 + since, "ours", new_id=lambda: next(ids))


def texts(root: Path, session: str) -> list[str]:
    store = ClaudeStore()
    return [turn.text for turn in store.read(store.resolve(root, session)[0]).turns if turn.role == "user"]


@pytest.mark.requires("M1.fork-named")
@pytest.mark.parametrize("theirs_last", [True, False])
def test_each_end_can_be_resumed_and_the_transcript_itself_is_left_alone(tmp_path: Path, theirs_last: bool) -> None:
    rows = [*BEFORE, *(OURS + THEIRS if theirs_last else THEIRS + OURS)]
    before = transcript(tmp_path, rows).read_bytes()
    found = ends(tmp_path, rows)
    assert found == ("new-1", OLD if theirs_last else "new-2")
    assert texts(tmp_path, found[0]) == ["start", "ours"]
    assert texts(tmp_path, found[1]) == ["start", "theirs"]
    assert (tmp_path / "projects" / "-w" / f"{OLD}.jsonl").read_bytes() == before


@pytest.mark.parametrize("rows", [
    [*BEFORE, *OURS],
    [*BEFORE, *OURS, ("u3", "a2", "theirs, behind ours", 15)],
    [*BEFORE, ("u0", "a1", "theirs, before ours", 11), ("u2", "u0", "ours", 12)],
    [*BEFORE, ("u0", "u1", "an old branch", 5), *OURS],
])  # fmt: skip
def test_what_stands_on_one_branch_or_was_there_before_is_no_fork(tmp_path: Path, rows: list[Row]) -> None:
    assert ends(tmp_path, rows) is None
    assert [p.stem for p in (tmp_path / "projects" / "-w").iterdir()] == [OLD]


class SplitWorld(World):
    def _reader(self, delivery: Delivery) -> None:
        if delivery.message.op == "split":
            self.reads.append(delivery.message)
            told = Ok({"ours": "end-ours", "theirs": "end-theirs"})
            self.loop.switch.send(delivery.sender, told, sender="reader", corr=-delivery.corr)
        else:
            super()._reader(delivery)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[SplitWorld]:
    made = SplitWorld(tmp_path)
    yield made
    made.close()


@pytest.mark.requires("M1.fork-named")
def test_the_chat_goes_on_in_its_own_end_and_names_the_other(world: SplitWorld) -> None:
    heard = world.listen("a")
    world.write("a", "first")
    first = world.host
    first.answer("one")
    first.state = "idle"
    world.loop.pass_time(3.0)
    asked = world.reads[-1].args if world.reads[-1].op == "split" else {}
    assert asked["prompt"] == "first"
    named = next(e for e in heard if e.get("what") == "forked")
    assert "end-ours" in named["text"]
    assert "/session end-theirs" in named["text"]
    assert first.stopped
    world.session("end-ours")
    world.write("a", "second")
    assert (world.host.request.start, world.host.request.session) == ("resume", "end-ours")
