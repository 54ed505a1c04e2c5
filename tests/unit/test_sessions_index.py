"""The index of sessions: only changed files are read, words are found in any script, filters hold."""

from __future__ import annotations

import os
import sqlite3
import stat
import threading
from pathlib import Path

import pytest

from agents_registry.errors import UsageError
from agents_registry.sessions import catalog
from agents_registry.sessions.demo import DemoSessionFile, DemoStore, root_of
from agents_registry.sessions.index import CHUNK, SessionIndex
from agents_registry.sessions.search import Filters, day, find, snippet
from agents_registry.sessions.words import indexable, query


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return {"HOME": str(tmp_path), "VIBEAROUND_DATA_DIR": str(tmp_path / "data")}


def session(env: dict[str, str], name: str, *said: str, cwd: str = "/w", at: float = 1000.0) -> Path:
    made = DemoSessionFile.create(root_of(env), name, cwd, at=at)
    for text in said:
        made.append("user", text, at=at)
    os.utime(made.path, (at, at))
    return made.path


def hits(index: SessionIndex, words: str, filters: Filters | None = None) -> set[str]:
    return {hit.id for hit in find(index, words, filters)}


def test_words_are_found_and_shown_where_they_stand(env: dict[str, str], tmp_path: Path) -> None:
    session(env, "alpha", "please refactor the Scheduler and its tests")
    session(env, "beta", "nothing of interest")
    with SessionIndex(tmp_path / "s.db") as index:
        assert index.refresh(env).read == 2
        (hit,) = find(index, "scheduler")
        assert (hit.id, hit.agent, hit.cwd) == ("alpha", "demo", "/w")
        assert "refactor the Scheduler and" in hit.snippet
        assert hits(index, "REFACTOR sched") == {"alpha"}
        assert hits(index, "refactor nothing") == set()


@pytest.mark.parametrize("word", ["决定", "我们决定", "定", "数据库", "用sqlite", "カナ", "データ", "한국"])
def test_words_of_east_asian_scripts_are_found_whatever_their_length(env: dict[str, str], tmp_path: Path, word: str) -> None:
    session(env, "cjk", "今天我们决定了用SQLite做数据库，カナデータ한국어")
    session(env, "other", "今天没有什么, nothing")
    with SessionIndex(tmp_path / "s.db") as index:
        index.refresh(env)
        assert hits(index, word) == {"cjk"}


def test_characters_that_stand_apart_are_no_word(env: dict[str, str], tmp_path: Path) -> None:
    session(env, "apart", "决心已定")
    with SessionIndex(tmp_path / "s.db") as index:
        index.refresh(env)
        assert hits(index, "决定") == set()


def test_only_what_changed_is_read_again(env: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(5):
        session(env, f"s{number}", f"word{number}")
    looked: list[str] = []
    real = DemoStore._look

    def counted(self: DemoStore, path: Path, *rest: object) -> object:
        looked.append(path.stem)
        return real(self, path, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(DemoStore, "_look", counted)
    with SessionIndex(tmp_path / "s.db") as index:
        assert index.refresh(env).read == 5
        looked.clear()
        again = index.refresh(env)
        assert (again.kept, again.read, looked) == (5, 0, [])
        assert len(index.listing(env)) == 5
        assert looked == []
        DemoSessionFile.load(root_of(env), "s3").append("user", "later addition", at=2.0)
        assert index.refresh(env).read == 1
        assert set(looked) == {"s3"}
        assert hits(index, "addition") == {"s3"}
        assert hits(index, "word3") == {"s3"}


def test_a_file_that_is_no_session_is_opened_once(env: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session(env, "real", "words")
    (root_of(env) / "notes.jsonl").write_text('{"some":"thing"}\n')
    looked: list[str] = []
    real = DemoStore._look

    def counted(self: DemoStore, path: Path, *rest: object) -> object:
        looked.append(path.stem)
        return real(self, path, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(DemoStore, "_look", counted)
    with SessionIndex(tmp_path / "s.db") as index:
        for _ in range(2):
            assert [info.id for info in index.listing(env)] == ["real"]
            index.refresh(env)
        assert sorted(looked) == ["notes", "real"]


def test_what_is_gone_is_forgotten(env: dict[str, str], tmp_path: Path) -> None:
    path = session(env, "gone", "unforgettable")
    session(env, "kept", "unforgettable too")
    with SessionIndex(tmp_path / "s.db") as index:
        index.refresh(env)
        path.unlink()
        assert index.refresh(env).gone == 1
        assert hits(index, "unforgettable") == {"kept"}
        assert [info.id for info in index.listing(env)] == ["kept"]


def test_listing_from_the_index_equals_listing_from_the_stores(env: dict[str, str], tmp_path: Path) -> None:
    for number in range(6):
        session(env, f"s{number}", f"prompt {number}", cwd=f"/w{number % 2}", at=1000.0 + number)
    with SessionIndex(tmp_path / "s.db") as index:
        for _ in range(2):
            for cwd, limit in ((None, 20), (None, 3), ("/w1", 20)):
                assert index.listing(env, cwd=cwd, limit=limit) == catalog.list_sessions(env, cwd=cwd, limit=limit)


def test_a_session_whose_words_were_never_read_is_listed_and_not_yet_searched(env: dict[str, str], tmp_path: Path) -> None:
    session(env, "alpha", "first words")
    with SessionIndex(tmp_path / "s.db") as index:
        index.listing(env)
        assert hits(index, "words") == set()
        assert index.refresh(env).read == 1
        assert hits(index, "words") == {"alpha"}


def test_filters_by_agent_directory_and_day(env: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    session(env, "early", "common", cwd=str(tmp_path / "link"), at=1_700_000_000.0)
    session(env, "late", "common", cwd="/w", at=1_800_000_000.0)
    with SessionIndex(tmp_path / "s.db") as index:
        index.refresh(env)
        assert hits(index, "common") == {"early", "late"}
        assert hits(index, "common", Filters(agent="claude")) == set()
        assert hits(index, "common", Filters(cwd=str(tmp_path / "real"))) == {"early"}
        assert hits(index, "common", Filters(since=1_750_000_000.0)) == {"late"}
        assert hits(index, "common", Filters(until=1_750_000_000.0)) == {"early"}
    first, last = day("2026-05-31"), day("2026-05-31", end=True)
    assert first is not None
    assert last is not None
    assert last - first == 86400
    with pytest.raises(UsageError, match="no date"):
        day("yesterday")


@pytest.mark.parametrize("words", ['"', "' OR 1=1", "a AND", "(", "*", "near(x", "col:umn", "^x", "-x"])
def test_signs_of_the_query_language_do_no_harm(env: dict[str, str], tmp_path: Path, words: str) -> None:
    session(env, "alpha", "text")
    with SessionIndex(tmp_path / "s.db") as index:
        index.refresh(env)
        if query(words):
            assert hits(index, words) == set()
        else:
            with pytest.raises(UsageError):
                find(index, words)


def test_words_at_the_end_of_a_very_long_session_are_found(env: dict[str, str], tmp_path: Path) -> None:
    session(env, "long", *["filler " * 2000] * (3 * CHUNK // 14000), "needle here")
    with SessionIndex(tmp_path / "s.db") as index:
        index.refresh(env)
        assert hits(index, "needle") == {"long"}
        assert len(find(index, "filler")) == 1


def test_the_index_is_private_and_a_foreign_file_is_left_as_it_is(tmp_path: Path) -> None:
    with SessionIndex(tmp_path / "s.db"):
        assert stat.S_IMODE((tmp_path / "s.db").stat().st_mode) == 0o600
    foreign = tmp_path / "notes.db"
    foreign.write_bytes(b"these are my notes, not a database" * 100)
    before = foreign.read_bytes()
    with pytest.raises(UsageError, match="no session index"):
        SessionIndex(foreign)
    assert foreign.read_bytes() == before


def test_two_processes_may_read_and_refresh_at_once(env: dict[str, str], tmp_path: Path) -> None:
    for number in range(20):
        session(env, f"s{number}", f"shared word{number}")
    failures: list[BaseException] = []

    def work() -> None:
        try:
            with SessionIndex(tmp_path / "s.db") as index:
                index.refresh(env)
                assert len(hits(index, "shared")) == 20
        except BaseException as error:
            failures.append(error)

    workers = [threading.Thread(target=work) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(30)
    assert failures == []
    with sqlite3.connect(tmp_path / "s.db") as db:
        assert db.execute("select count(*) from indexed").fetchone() == (20,)
        assert db.execute("select count(*) from documents").fetchone() == (20,)


def test_runs_become_pairs_and_a_snippet_surrounds_the_word() -> None:
    assert indexable("用SQLite做数据库").split() == ["用", "SQLite", "做数", "数据", "据库", "库"]
    assert indexable("plain text") == "plain text"
    assert snippet("x" * 500 + " the needle stands " + "y" * 500, "needle").count("needle") == 1
    assert len(snippet("x" * 5000 + "needle" + "y" * 5000, "needle")) < 200
