"""All stores at once: recognition, lists over agents, ids that mean several sessions, and the demo agent's own store."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from agents_registry.errors import NotFoundError, RefusedError
from agents_registry.sessions import catalog
from agents_registry.sessions.demo import DemoSessionFile, DemoStore, root_of
from agents_registry.sessions.neutral import ToolCall


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return {"HOME": str(tmp_path), "VIBEAROUND_DATA_DIR": str(tmp_path / "data")}


def demo(env: dict[str, str], session: str, cwd: str = "/w", at: float = 1000.0) -> DemoSessionFile:
    made = DemoSessionFile.create(root_of(env), session, cwd, at=at)
    made.append("user", f"hello from {session}", at=at)
    made.append("tool", "", at=at, id="t1", name="shell", input={"command": "ls"}, output="a b")
    made.append("assistant", "hi", at=at + 1)
    os.utime(made.path, (at, at))
    return made


def claude(env: dict[str, str], session: str, at: float) -> Path:
    path = Path(env["HOME"]) / ".claude" / "projects" / "-w" / f"{session}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    record = {"type": "user", "uuid": "u", "sessionId": session, "cwd": "/w", "message": {"role": "user", "content": "claude prompt"}}
    path.write_text(json.dumps(record) + "\n")
    os.utime(path, (at, at))
    return path


def test_the_demo_agents_sessions_are_listed_read_and_counted(env: dict[str, str]) -> None:
    made = demo(env, "demo-one")
    (info,) = DemoStore().list(root_of(env), cwd="/w")
    assert (info.id, info.cwd, info.title) == ("demo-one", "/w", "hello from demo-one")
    conversation = DemoStore().read(info)
    assert [turn.text for turn in conversation.turns] == ["hello from demo-one", "hi"]
    assert [block.name for block in conversation.turns[1].blocks if isinstance(block, ToolCall)] == ["shell"]
    found = catalog.inspect(made.path)
    assert (found.agent, found.user_turns, found.assistant_texts, found.tool_calls, found.tool_results) == ("demo", 1, 1, 1, 1)


def test_a_demo_session_survives_a_torn_last_line(env: dict[str, str]) -> None:
    made = demo(env, "demo-one")
    with open(made.path, "ab") as file:
        file.write(b'{"type":"user","te')
    again = DemoSessionFile.load(root_of(env), "demo-one")
    again.append("user", "after the crash", at=2000.0)
    assert [record["text"] for record in again.records()] == ["hello from demo-one", "", "hi", "after the crash"]
    with pytest.raises(RefusedError):
        DemoSessionFile.create(root_of(env), "demo-one", "/w", at=1.0)
    with pytest.raises(RefusedError):
        DemoSessionFile.create(root_of(env), "../escape", "/w", at=1.0)
    with pytest.raises(NotFoundError):
        DemoSessionFile.load(root_of(env), "nobody")


def test_a_list_over_all_agents_is_newest_first_and_bounded(env: dict[str, str]) -> None:
    demo(env, "demo-old", at=1000.0)
    claude(env, "claude-middle", 2000.0)
    demo(env, "demo-new", at=3000.0)
    assert [info.id for info in catalog.list_sessions(env)] == ["demo-new", "claude-middle", "demo-old"]
    assert [info.id for info in catalog.list_sessions(env, limit=2)] == ["demo-new", "claude-middle"]
    assert [info.id for info in catalog.list_sessions(env, agent="claude")] == ["claude-middle"]
    assert [info.id for info in catalog.list_sessions(env, cwd="/elsewhere")] == []


def test_latest_is_the_newest_of_the_directory(env: dict[str, str]) -> None:
    demo(env, "demo-here", "/here", at=1000.0)
    demo(env, "demo-there", "/there", at=2000.0)
    assert catalog.resolve_one(env, "demo", "latest", "/here").id == "demo-here"
    assert catalog.resolve_one(env, "demo", "latest").id == "demo-there"
    with pytest.raises(NotFoundError, match="/gone"):
        catalog.resolve_one(env, "demo", "latest", "/gone")


def test_several_meanings_are_named_and_none_is_chosen(env: dict[str, str]) -> None:
    demo(env, "demo-a1")
    demo(env, "demo-a2")
    with pytest.raises(NotFoundError, match=r"demo-a1.*|demo-a2.*") as caught:
        catalog.resolve_one(env, "demo", "demo-a")
    assert caught.value.code == "ambiguous"
    assert "demo-a1" in str(caught.value)
    assert "demo-a2" in str(caught.value)
    assert catalog.resolve_one(env, "demo", "demo-a1").id == "demo-a1"


def test_a_store_that_cannot_be_read_hides_no_other(env: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    demo(env, "demo-one")
    claude(env, "claude-one", 5.0)

    def broken(*args: object, **more: object) -> object:
        raise PermissionError("no")

    monkeypatch.setattr(type(catalog.need("claude")), "list", broken)
    assert [info.id for info in catalog.list_sessions(env)] == ["demo-one"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "an empty file"),
        (b"\n\n", "blank lines"),
        (b"just words", "a text file"),
        (b"\x89PNG\r\n", "PNG"),
        (b"\x00\x01\x02", "binary"),
        (b'{"name":"package","version":"1"}\n', "the keys name, version"),
        (b"SQLite format 3\x00", "SQLite"),
    ],
)
def test_a_file_that_is_no_session_is_refused_with_what_it_is(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "file.jsonl"
    path.write_bytes(content)
    with pytest.raises(NotFoundError, match=words):
        catalog.inspect(path)
    assert NotFoundError.exit_code == 4


def test_a_missing_file_a_directory_and_an_unknown_agent_are_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="does not exist"):
        catalog.inspect(tmp_path / "nothing")
    with pytest.raises(NotFoundError):
        catalog.inspect(tmp_path)
    with pytest.raises(NotFoundError, match="not listed yet"):
        catalog.need("no-such-agent")


def test_another_agents_file_is_refused_when_read_as_codex(env: dict[str, str]) -> None:
    path = claude(env, "claude-one", 5.0)
    with pytest.raises(NotFoundError, match="no session of codex"):
        catalog.inspect(path, "codex")
    assert catalog.recognise(path) == "claude"


def test_every_store_that_may_be_left_out_unloaded_lies_where_the_catalog_thinks(tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path)}
    for agent, (places, _) in catalog._PLACES.items():
        if agent in catalog._NEAR:
            continue  # they lie in projects
        for root in catalog.need(agent).roots(env):
            assert any(root.is_relative_to(tmp_path / place) or (tmp_path / place).is_relative_to(root) for place in places), (agent, root)


def test_an_agent_that_was_never_used_here_is_not_loaded_for_a_list(tmp_path: Path) -> None:
    (tmp_path / ".claude").mkdir()
    script = (
        "import sys; from agents_registry.sessions import catalog; catalog.list_sessions({'HOME': sys.argv[1]});"
        "print([m for m in ('gemini', 'claude', 'kimi') if f'agents_registry.sessions.{m}' in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, timeout=30, check=True)
    assert done.stdout.strip() == "['claude']"
