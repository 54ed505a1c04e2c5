"""The guard round Gemini's loading: its two ways to destroy a session, played by hand (agents-others, Gemini A and B)."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from actors.host_guards import GeminiGuard
from agents_registry.errors import AgentError

ID = "0c0ffee0-1234-4321-8888-123456789abc"
NOW = datetime(2026, 3, 4, 10, 30, 20, tzinfo=UTC).timestamp()


class Scene:
    def __init__(self, root: Path, minute: str) -> None:
        self.chats = root / "gemini" / "tmp" / "proj" / "chats"
        self.chats.mkdir(parents=True)
        self.file = self.chats / f"session-{minute}-{ID[:8]}.jsonl"
        lines = [
            {"sessionId": ID, "projectHash": "x", "startTime": "t", "kind": "main"},
            {"id": "1", "type": "user", "content": "secret word"},
            {"id": "2", "type": "gemini", "content": "noted"},
        ]
        self.file.write_text("".join(json.dumps(line) + "\n" for line in lines))
        self.before = self.file.read_bytes()
        self.now = NOW
        self.slept: list[float] = []
        self.notes: list[str] = []
        self.keep = root / "keep"
        self.guard = GeminiGuard(
            root / "gemini", ID, self.keep, self.notes.append, now=lambda: self.now, sleep=self._sleep
        )

    def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds

    def append(self, record: object) -> None:
        with self.file.open("a") as file:
            file.write(json.dumps(record) + "\n")


@pytest.mark.requires("H3.gemini-same-minute")
def test_a_session_is_not_loaded_in_the_minute_it_began(tmp_path: Path) -> None:
    scene = Scene(tmp_path, "2026-03-04T10-30")
    scene.guard.before_load()
    assert datetime.fromtimestamp(scene.now, UTC).minute == 31
    assert len(scene.slept) == 1 and 40 <= scene.slept[0] <= 41 and "waiting" in scene.notes[0]


def test_an_older_session_is_loaded_at_once(tmp_path: Path) -> None:
    scene = Scene(tmp_path, "2026-03-04T10-29")
    scene.guard.before_load()
    assert scene.slept == []


def test_a_history_that_the_load_emptied_is_put_back(tmp_path: Path) -> None:
    scene = Scene(tmp_path, "2026-03-04T09-00")
    scene.guard.before_load()
    scene.append({"$set": {"messages": [{"type": "user", "content": "<session_context>"}]}})
    scene.guard.after_load()
    assert scene.file.read_bytes() == scene.before and "put back" in scene.notes[0]


@pytest.mark.requires("H3.gemini-junk")
def test_the_junk_file_of_a_load_is_removed_and_the_session_stays(tmp_path: Path) -> None:
    scene = Scene(tmp_path, "2026-03-04T09-00")
    scene.guard.before_load()
    junk = scene.chats / f"session-2026-03-04T10-30-{ID[:8]}.jsonl"
    junk.write_text(json.dumps({"sessionId": ID}) + "\n" + json.dumps({"$set": {"lastUpdated": "t"}}) + "\n")
    other = scene.chats / "session-2026-03-04T10-30-ffffffff.jsonl"
    other.write_text("{}\n")
    scene.guard.after_load()
    assert not junk.exists() and other.exists() and scene.file.read_bytes() == scene.before


@pytest.mark.requires("H3.gemini-junk")
def test_a_session_that_vanished_while_hosted_is_there_again_at_the_end(tmp_path: Path) -> None:
    scene = Scene(tmp_path, "2026-03-04T09-00")
    scene.guard.before_load()
    scene.guard.after_load()
    scene.file.unlink()
    scene.guard.at_end()
    assert scene.file.read_bytes() == scene.before and list(scene.keep.iterdir()) == []


def test_what_the_agent_rightly_added_is_left_alone(tmp_path: Path) -> None:
    scene = Scene(tmp_path, "2026-03-04T09-00")
    scene.guard.before_load()
    scene.guard.after_load()
    scene.append({"id": "3", "type": "user", "content": "more"})
    scene.append({"$set": {"messages": [{"type": "user"}, {"type": "gemini"}]}})
    grown = scene.file.read_bytes()
    scene.guard.at_end()
    assert scene.file.read_bytes() == grown and scene.notes == []


def test_a_session_too_large_to_keep_is_not_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("actors.host_guards.MAX_COPY", 10)
    scene = Scene(tmp_path, "2026-03-04T09-00")
    with pytest.raises(AgentError) as refused:
        scene.guard.before_load()
    assert refused.value.code == "guard_too_large" and scene.file.read_bytes() == scene.before
