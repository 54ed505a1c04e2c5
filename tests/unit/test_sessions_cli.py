"""`va sessions` as scripts and people use it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from agents_registry.errors import NotFoundError, RefusedError, UsageError
from agents_registry.sessions.demo import DemoSessionFile, root_of
from agents_registry.sessions.schema import from_json
from transports.cli.sessions import sessions


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("VIBEAROUND_DATA_DIR", str(tmp_path / "data"))
    return tmp_path / "data"


def session(name: str, *said: str, cwd: str = "/w", at: float = 1000.0) -> Path:
    made = DemoSessionFile.create(root_of(os.environ), name, cwd, at=at)
    for text in said:
        made.append("user", text, at=at)
    made.append("assistant", "fine", at=at)
    os.utime(made.path, (at, at))
    return made.path


def run(*words: str) -> Result:
    return CliRunner().invoke(sessions, list(words), catch_exceptions=True)


def test_the_list_has_the_fields_of_its_contract_newest_first(data: Path) -> None:
    session("demo-old", "first", at=1000.0)
    session("demo-new", "second", cwd="/x", at=2000.0)
    expected = [
        {"agent": "demo", "id": "demo-new", "cwd": "/x", "title": "second", "updated_at": 2000.0, "live": False},
        {"agent": "demo", "id": "demo-old", "cwd": "/w", "title": "first", "updated_at": 1000.0, "live": False},
    ]
    for _ in range(2):  # from the stores, then from the index
        assert json.loads(run("list", "--json").stdout) == expected
    assert [row["id"] for row in json.loads(run("list", "--json", "--limit", "1").stdout)] == ["demo-new"]
    assert [row["id"] for row in json.loads(run("list", "--json", "--cwd", "/w").stdout)] == ["demo-old"]
    assert json.loads(run("list", "--json", "--agent", "claude").stdout) == []
    assert "demo-new" in run("list").stdout


def test_a_list_without_a_data_directory_makes_none(data: Path) -> None:
    assert json.loads(run("list", "--json").stdout) == []
    assert not data.exists()


def test_a_damaged_index_does_not_hide_the_list(data: Path) -> None:
    session("demo-one", "first")
    (data / "sessions.db").write_bytes(b"no database at all" * 100)
    assert [row["id"] for row in json.loads(run("list", "--json").stdout)] == ["demo-one"]
    assert isinstance(run("search", "first").exception, UsageError)


def test_inspect_has_the_fields_of_its_contract(data: Path) -> None:
    path = session("demo-one", "first", "second")
    with open(path, "ab") as file:
        file.write(b"{broken\n")
    found = json.loads(run("inspect", str(path), "--json").stdout)
    assert list(found) == [
        "agent", "id", "cwd", "user_turns", "assistant_texts", "assistant_messages", "tool_calls", "tool_results", "malformed",
        "first_user_sha256", "skipped",
    ]  # fmt: skip
    assert (found["agent"], found["user_turns"], found["malformed"]) == ("demo", 2, 1)
    assert [one["line"] for one in found["skipped"]] == [5]
    assert found["skipped"][0]["why"]


def test_inspect_refuses_what_is_no_session_and_says_what_it_is(data: Path, tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("hello")
    error = run("inspect", str(path), "--json").exception
    assert isinstance(error, NotFoundError)
    assert error.exit_code == 4
    assert "a text file" in str(error)


def test_an_export_as_json_reads_back_and_the_other_forms_hold_the_words(data: Path, tmp_path: Path) -> None:
    session("demo-one", "please <b>")
    conversation = from_json(run("export", "demo-one", "--format", "json").stdout)
    assert [turn.text for turn in conversation.turns] == ["please <b>", "fine"]
    assert "please <b>" in run("export", "demo:demo-one").stdout
    assert "please &lt;b&gt;" in run("export", "latest", "--format", "html").stdout
    out = tmp_path / "out.md"
    assert run("export", "demo-o", "--out", str(out)).exit_code == 0
    assert "fine" in out.read_text()
    assert isinstance(run("export", "demo-o", "--out", str(out)).exception, RefusedError)
    assert isinstance(run("export", "nothing").exception, NotFoundError)


def test_search_finds_words_of_two_characters(data: Path) -> None:
    session("demo-one", "我们决定了用它")
    session("demo-two", "nothing")
    (hit,) = json.loads(run("search", "决定", "--json").stdout)
    assert (hit["agent"], hit["id"]) == ("demo", "demo-one")
    assert "决定" in hit["snippet"]
    assert json.loads(run("search", "决定", "--json", "--agent", "claude").stdout) == []
    assert json.loads(run("search", "决定", "--json", "--since", "2020-01-01").stdout) == []
    assert "demo-one" in run("search", "决定").stdout
    assert isinstance(run("search", "x", "--since", "soon").exception, UsageError)
