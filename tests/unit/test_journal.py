"""The journal: durable first, positions over one log, nothing twice, damage contained."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from actors.journal.schema import open_database
from agents_registry.errors import VibeAroundError
from tests.unit.support import Loop
from transports.bus.api import Delivery
from transports.bus.vocabulary.conversation import Failed
from transports.bus.vocabulary.storage import Posted, Record, Recorded

R, S = "cli:local:r", "cli:local:s"


@pytest.fixture
def loop(tmp_path: Path) -> Iterator[Loop]:
    made = Loop(tmp_path)
    yield made
    made.close()


def thread(loop: Loop, tid: str, *routes: str) -> None:
    loop.record(["workspace_add", "ws_1", "/w", "/w", "w", False, 1.0])
    loop.record(["thread_create", tid, "ws_1", "/w", "demo", "direct", "", "new", {}, 1.0])
    for route in routes:
        loop.record(["attach", route, tid, 0, 1.0])


def say(loop: Loop, tid: str, text: str, *, origin: str = "", target: str = "") -> int:
    answer = loop.ask("journal", Record([], [[tid, "", "text", {"text": text}, target, origin]], [[]]))
    assert isinstance(answer, Recorded)
    return answer.seqs[0]


def feed(loop: Loop, route: str, after: int = 0) -> list[str]:
    return [e["body"]["text"] for e in loop.query("feed", route, after)["events"]]


def test_a_known_key_is_added_once(loop: Loop) -> None:
    add = ["inbox_add", R, "k", "hi", {}, [], "", 1.0]
    assert loop.record(add).results[0][0] is True
    assert loop.record(add).results[0] == [False, "waiting", ""]


def test_a_route_reads_its_threads_events_from_the_moment_it_joined(loop: Loop) -> None:
    thread(loop, "wt_1", R)
    say(loop, "wt_1", "before")
    loop.record(["attach", S, "wt_1", 0, 2.0])
    say(loop, "wt_1", "after")
    assert feed(loop, R) == ["before", "after"]
    assert feed(loop, S) == ["after"]


@pytest.mark.requires("H2.positions")
def test_what_was_not_read_before_a_move_is_still_read_after_it(loop: Loop) -> None:
    thread(loop, "wt_1", R)
    thread(loop, "wt_2")
    say(loop, "wt_1", "old")
    loop.record(["attach", R, "wt_2", 0, 2.0])
    say(loop, "wt_1", "not for it any more")
    say(loop, "wt_1", "its own question's answer", origin=R)
    say(loop, "wt_2", "new")
    say(loop, "wt_2", "only for it", target=R)
    assert feed(loop, R) == ["old", "its own question's answer", "new", "only for it"]
    assert feed(loop, S) == []


def test_a_host_event_that_comes_again_is_neither_stored_nor_posted_again(loop: Loop) -> None:
    thread(loop, "wt_1", R)
    posted: list[Delivery] = []
    loop.switch.register(f"route/{R}", posted.append)
    loop.record(["host_spawn", "wt_1", "host", 1.0])
    record = Record([["host_acked", "wt_1", "host", 1, 1]], [["wt_1", "", "text", {"text": "x"}, "", ""]], [[R]])
    loop.ask("journal", record)
    loop.ask("journal", record)
    assert [d.message.body for d in posted if isinstance(d.message, Posted)] == [{"text": "x"}]
    assert feed(loop, R) == ["x"]


def test_a_refused_record_undoes_itself_and_spares_the_others_of_its_group(loop: Loop) -> None:
    thread(loop, "wt_1", R)
    thread(loop, "wt_2")
    loop.record(["session_current", "wt_1", "demo", "/s", "s1", "", 1.0])
    taken = Record([["thread_title", "wt_2", "changed"], ["session_current", "wt_2", "demo", "/s", "s1", "", 1.0]])
    good = Record([["thread_title", "wt_1", "fine"]])
    answers: list[Delivery] = []
    loop.switch.register("peer/9", answers.append)
    for corr, record in ((1, taken), (2, good)):
        loop.journal.take(Delivery("journal", record, "peer/9", corr))
    loop.journal.flush()
    assert isinstance(answers[0].message, Failed)
    assert answers[0].message.error[1] == "session_taken"
    assert isinstance(answers[1].message, Recorded)
    titles = {t["id"]: t["title"] for t in loop.query("threads", 10, False)["threads"]}
    assert titles == {"wt_1": "fine", "wt_2": ""}


def test_a_session_is_current_in_one_open_thread_only(loop: Loop) -> None:
    thread(loop, "wt_1", R)
    thread(loop, "wt_2")
    loop.record(["session_current", "wt_1", "demo", "/s", "s1", "", 1.0])
    assert loop.query("thread_of_session", "demo", ["s1"])["thread"] == "wt_1"
    loop.record(["thread_close", "wt_1", 2.0])
    assert isinstance(loop.record(["session_current", "wt_2", "demo", "/s", "s1", "", 3.0]), Recorded)
    assert loop.query("thread_of_session", "demo", ["s1"])["thread"] == "wt_2"


def test_no_second_host_is_spawned_while_the_first_is_not_seen_gone(loop: Loop) -> None:
    thread(loop, "wt_1", R)
    assert loop.record(["host_spawn", "wt_1", "host", 1.0]).results == [1]
    loop.record(["host_pids", "wt_1", "host", 1, "h", [5, 6], [7, 8, 9]])
    assert isinstance(loop.record(["host_spawn", "wt_1", "host", 2.0]), Failed)
    loop.record(["host_gone", "wt_1", "host", 1, "killed"])
    assert loop.record(["host_spawn", "wt_1", "host", 3.0]).results == [2]


def test_the_last_route_closes_the_thread_and_an_earlier_one_only_leaves(loop: Loop) -> None:
    thread(loop, "wt_1", R, S)
    assert loop.record(["detach_or_close", R, 2.0]).results == [["wt_1", False, []]]
    assert loop.record(["detach_or_close", S, 3.0]).results == [["wt_1", True, []]]
    assert loop.record(["detach_or_close", S, 4.0]).results == [["", False, []]]


def test_more_than_is_kept_becomes_a_number_and_a_place_to_go_on(loop: Loop) -> None:
    thread(loop, "wt_1", R)
    seqs = [say(loop, "wt_1", str(n)) for n in range(10)]
    skip = loop.query("feed_skip", R, 0, 3, 0.0)
    assert skip == {"skipped": 7, "position": seqs[6]}
    assert feed(loop, R, skip["position"]) == ["7", "8", "9"]
    assert loop.query("feed_skip", R, seqs[8], 3, 0.0)["skipped"] == 0


def test_a_newer_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "j.db"
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 999")
    before = path.read_bytes()
    with pytest.raises(VibeAroundError, match="newer version"):
        open_database(path)
    assert path.read_bytes() == before


@pytest.mark.requires("B27")
def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "j.db"
    path.write_bytes(b"not a database, but somebody's notes" * 100)
    with pytest.raises(VibeAroundError, match="cannot be opened"):
        open_database(path)
    assert path.read_bytes().startswith(b"not a database")


def test_a_pipe_or_a_directory_in_place_of_the_database_is_refused_instead_of_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.db")
    (tmp_path / "directory.db").mkdir()
    for name in ("pipe.db", "directory.db"):
        with pytest.raises(VibeAroundError, match="not a regular file") as raised:
            open_database(tmp_path / name)
        assert "Move the file away" in raised.value.hint


def test_a_database_that_is_only_out_of_reach_is_not_told_to_be_moved_away() -> None:
    if not Path("/proc/self").is_dir():
        pytest.skip("no /proc: a directory that nobody may write, root included")
    with pytest.raises(VibeAroundError, match="cannot be opened") as raised:
        open_database(Path("/proc/self/journal.db"))
    assert "Move" not in raised.value.hint and "disk" in raised.value.hint


def test_the_database_is_for_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "j.db"
    open_database(path).close()
    assert path.stat().st_mode & 0o077 == 0


@pytest.mark.requires("H2.journal-durable")
def test_an_event_is_on_disk_before_anybody_hears_of_it(loop: Loop, tmp_path: Path) -> None:
    thread(loop, "wt_1", R)
    seen: list[int] = []

    def hear(delivery: Delivery) -> None:
        with sqlite3.connect(f"file:{tmp_path / 'journal.db'}?mode=ro", uri=True) as other:
            seen.append(other.execute("SELECT COUNT(*) FROM events WHERE seq = ?", (delivery.message.seq,)).fetchone()[0])

    loop.switch.register(f"route/{R}", hear)
    loop.ask("journal", Record([], [["wt_1", "", "text", {"text": "x"}, "", ""]], [[R]]))
    assert seen == [1]


@pytest.mark.requires("H2.group-commit")
def test_records_that_wait_together_share_one_commit(loop: Loop) -> None:
    thread(loop, "wt_1", R)
    statements: list[str] = []
    loop.journal._connection.set_trace_callback(statements.append)
    for corr in range(1, 51):
        loop.journal.take(Delivery("journal", Record([["thread_title", "wt_1", f"t{corr}"]]), "peer/1", corr))
    loop.journal.flush()
    assert [s for s in statements if s.startswith(("BEGIN", "COMMIT"))] == ["BEGIN IMMEDIATE", "COMMIT"]


@pytest.mark.requires("H2.keep-days")
def test_old_texts_are_forgotten_once_every_route_is_past_them_and_not_before(loop: Loop) -> None:
    thread(loop, "wt_1", R)
    seq = say(loop, "wt_1", "old")
    loop.record(["forget_old", loop.clock.now() + 1.0])
    assert feed(loop, R) == ["old"]
    loop.record(["route_position", R, seq, 1.0])
    loop.record(["forget_old", loop.clock.now() + 1.0])
    assert feed(loop, R) == []


@pytest.mark.requires("H2.migrations")
def test_a_database_of_an_older_schema_is_brought_up_to_date(tmp_path: Path) -> None:
    path = tmp_path / "j.db"
    sqlite3.connect(path).close()
    connection = open_database(path)
    assert connection.execute("PRAGMA user_version").fetchone()[0] >= 1
    assert connection.execute("SELECT COUNT(*) FROM threads").fetchone()[0] == 0
    connection.close()


@pytest.mark.requires("H2.by-reference")
def test_what_is_forgotten_takes_its_files_along_and_housekeeping_does_it_by_itself(loop: Loop) -> None:
    from actors.housekeeping import Housekeeping
    from transports.bus.vocabulary.children import HostState
    from transports.bus.vocabulary.storage import RemoveFiles

    thread(loop, "wt_1", R)
    body = {"text": "head", "ref": {"path": "/data/files/a"}, "content": [{"data": {"ref": {"path": "/data/files/b"}}}]}
    answer = loop.ask("journal", Record([], [["wt_1", "", "text", body, "", ""]], [[]]))
    loop.record(["route_position", R, answer.seqs[0], 1.0])
    told: list[Delivery] = []
    loop.switch.register("spawner", told.append)
    loop.add("housekeeping", Housekeeping(loop.switch, loop.clock, keep_days=1.0).receive)
    loop.switch.send("housekeeping", HostState("", "begin"))
    loop.run()
    assert told == []
    for _ in range(5):
        loop.pass_time(6 * 3600.0)
    assert [d.message for d in told] == [RemoveFiles(["/data/files/a", "/data/files/b"])]
