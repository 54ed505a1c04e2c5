"""What the reader process does for a chat's relay and search, on real stores."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import pytest

from actors.reader_ops import run
from agents_registry.errors import NotFoundError, RefusedError
from agents_registry.loader import load_registry
from agents_registry.relay import RelayMap
from agents_registry.sessions import catalog
from agents_registry.sessions.claude_write import ClaudeWriter
from agents_registry.sessions.neutral import Builder
from agents_registry.sessions.port import SessionInfo


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "data").mkdir(mode=0o700)
    (tmp_path / "work").mkdir()
    return {"HOME": str(tmp_path), "PATH": str(tmp_path / "no-programs")}


def session(env: dict[str, str], tmp_path: Path, requests: int = 6, writes: Path | None = None) -> SessionInfo:
    made = Builder("claude", "x")
    made.cwd = str(tmp_path / "work")
    if writes is not None:
        made.user("write it")
        made.call("w", "Write", {"file_path": str(writes), "content": writes.read_text()})
        made.result("w", "ok")
    for number in range(requests):
        made.user(f"request {number} about bananas, token ghp_{'a1B2' * 9}")
        made.text(f"answer {number}: 决定 use descent")
    return ClaudeWriter().write(made.done(), tmp_path / ".claude", session_id=str(uuid.uuid4()), env=env).info


def asked(env: dict[str, str], tmp_path: Path, op: str, **args: Any) -> dict[str, Any]:
    return run(load_registry(None), env, op, {**args, "data_dir": str(tmp_path / "data")})


@pytest.mark.requires("R6.chat", "R6.again")
def test_a_relay_that_is_run_again_after_a_crash_finds_the_session_that_it_wrote(env: dict[str, str], tmp_path: Path) -> None:
    info = session(env, tmp_path)
    request = {"agent": "claude", "session": info.id, "cwd": info.cwd, "to": "codex"}
    first = asked(env, tmp_path, "relay", **request)
    assert (first["way"], first["text"], first["cwd"]) == ("native", "", str(tmp_path / "work"))
    assert any("Redacted" in note for note in first["notes"])
    assert "ghp_" not in str(first)
    again = asked(env, tmp_path, "relay", **request)
    assert (again["way"], again["session"], again["text"]) == ("resume", first["session"], "")
    assert "knows all of it" in again["notes"][0]
    assert len(list((tmp_path / ".codex").rglob("*.jsonl"))) == 1


@pytest.mark.requires("R6.drift")
def test_the_files_of_a_written_session_are_compared_when_its_agent_starts(env: dict[str, str], tmp_path: Path) -> None:
    file = tmp_path / "work" / "a.py"
    file.write_text("one\n")
    info = session(env, tmp_path, writes=file)
    request = {"agent": "claude", "session": info.id, "cwd": info.cwd, "to": "codex"}
    assert asked(env, tmp_path, "relay", **request)["way"] == "native"
    assert asked(env, tmp_path, "relay_drift", **request) == {"changes": []}
    file.write_text("two\n")
    assert asked(env, tmp_path, "relay_drift", **request) == {"changes": [[str(file), "changed"]]}


@pytest.mark.requires("R4.fresh-advice")
def test_a_short_session_is_only_advised_against_until_forced(env: dict[str, str], tmp_path: Path) -> None:
    info = session(env, tmp_path, 2)
    request = {"agent": "claude", "session": info.id, "cwd": info.cwd, "to": "codex"}
    assert set(asked(env, tmp_path, "relay", **request)) == {"advice"}
    assert not (tmp_path / ".codex").exists()
    assert asked(env, tmp_path, "relay", **request, force=True)["way"] == "native"


@pytest.mark.requires("R5.read-back")
def test_a_text_of_a_relay_is_remembered_only_after_it_was_found_in_the_target(env: dict[str, str], tmp_path: Path) -> None:
    info = session(env, tmp_path)
    request = {"agent": "claude", "session": info.id, "cwd": info.cwd, "to": "codex"}
    there = asked(env, tmp_path, "relay", **request)["session"]
    made = Builder("codex", "x")
    made.cwd = info.cwd
    made.user("nothing of it")
    seen = asked(env, tmp_path, "relay_given", **request, there=there, text="words that it never got")
    assert seen["kept"] < seen["whole"]
    with RelayMap(tmp_path / "data" / "sessions.db") as links:
        assert len(links.links()) == 1
    assert asked(env, tmp_path, "relay_given", **request, there=there, text="request 5 about bananas")["kept"] == 20


@pytest.mark.requires("R6.cwd-gone")
def test_a_relay_of_a_session_whose_directory_is_gone_makes_nothing(env: dict[str, str], tmp_path: Path) -> None:
    info = session(env, tmp_path)
    (tmp_path / "work").rmdir()
    with pytest.raises(NotFoundError, match="work"):
        asked(env, tmp_path, "relay", agent="claude", session=info.id, cwd=info.cwd, to="codex")
    assert not (tmp_path / "work").exists()
    assert catalog.list_sessions(env, agent="codex") == []


def test_a_session_without_a_conversation_is_not_carried(env: dict[str, str], tmp_path: Path) -> None:
    made = Builder("claude", "x")
    made.cwd = str(tmp_path / "work")
    made.user(" ")
    info = ClaudeWriter().write(made.done(), tmp_path / ".claude", session_id=str(uuid.uuid4()), env=env).info
    with pytest.raises((RefusedError, NotFoundError)):
        asked(env, tmp_path, "relay", agent="claude", session=info.id, cwd=info.cwd, to="codex")


@pytest.mark.requires("R3.search-chat")
def test_a_search_finds_two_chinese_characters_and_words_of_all_agents(env: dict[str, str], tmp_path: Path) -> None:
    info = session(env, tmp_path)
    for words in ("决定", "bananas"):
        hits = asked(env, tmp_path, "search", words=words, limit=5)["hits"]
        assert [hit["id"] for hit in hits] == [info.id]
        assert words in hits[0]["snippet"]
    assert asked(env, tmp_path, "search", words="kiwi")["hits"] == []
