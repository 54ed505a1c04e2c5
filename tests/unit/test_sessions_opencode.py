"""OpenCode's two stores: the database beside a live writer, the older JSON tree, and one session that is in both."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agents_registry.errors import NotFoundError
from agents_registry.sessions.opencode import STORE
from tests.unit.session_files import document, info, results, said

SCHEMA = """
CREATE TABLE session(id TEXT PRIMARY KEY, project_id TEXT, parent_id TEXT, directory TEXT NOT NULL, title TEXT NOT NULL,
  version TEXT, revert TEXT, time_created INTEGER, time_updated INTEGER, time_archived INTEGER);
CREATE TABLE message(id TEXT PRIMARY KEY, session_id TEXT, time_created INTEGER, time_updated INTEGER, data TEXT NOT NULL);
CREATE TABLE part(id TEXT PRIMARY KEY, message_id TEXT, session_id TEXT, time_created INTEGER, time_updated INTEGER, data TEXT);
"""


class Writer:
    """The agent's side: a connection in WAL mode that stays open."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.connection = sqlite3.connect(path)
        self.connection.execute("PRAGMA journal_mode=wal")
        self.connection.executescript(SCHEMA)
        self.clock = 1_767_225_600_000

    def session(self, name: str, directory: str = "/w/app", parent: str | None = None, **more: Any) -> None:
        self.clock += 1000
        values = (name, "p", parent, directory, more.get("title", name), "1.18", more.get("revert"), self.clock, self.clock, more.get("archived"))
        self.connection.execute("INSERT INTO session VALUES(?,?,?,?,?,?,?,?,?,?)", values)
        self.connection.commit()

    def message(self, session: str, name: str, role: str, *parts: dict[str, Any], **more: Any) -> None:
        self.clock += 1000
        data = more.pop("raw", None) or json.dumps({"role": role, "time": {"created": self.clock}, **more})
        self.connection.execute("INSERT INTO message VALUES(?,?,?,?,?)", (name, session, self.clock, self.clock, data))
        for number, part in enumerate(parts):
            text = part if isinstance(part, str) else json.dumps(part)
            row = (f"{name}-p{number}", name, session, self.clock, self.clock, text)
            self.connection.execute("INSERT INTO part VALUES(?,?,?,?,?,?)", row)
        self.connection.execute("UPDATE session SET time_updated = ? WHERE id = ?", (self.clock, session))
        self.connection.commit()


def text(words: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": words, **more}


def tool(name: str, status: str, **state: Any) -> dict[str, Any]:
    return {"type": "tool", "tool": "bash", "callID": name, "state": {"status": status, "input": {"command": "ls"}, **state}}


@pytest.fixture
def writer(tmp_path: Path) -> Writer:
    return Writer(tmp_path / "opencode" / "opencode.db")


def root_of(tmp_path: Path) -> Path:
    return tmp_path / "opencode" / "opencode.db"


def read(tmp_path: Path, name: str) -> list[str]:
    (found,) = STORE.resolve(root_of(tmp_path), name)
    return said(STORE.read(found))


def test_what_a_live_writer_has_committed_is_seen_and_what_it_has_not_is_not(tmp_path: Path, writer: Writer) -> None:
    writer.session("ses_main")
    writer.message("ses_main", "m1", "user", text("hello"))
    writer.connection.execute("BEGIN IMMEDIATE")
    writer.connection.execute("INSERT INTO part VALUES('x','m1','ses_main',1,1,'{\"type\":\"text\",\"text\":\"unsaid\"}')")
    assert read(tmp_path, "ses_main") == ["user: hello"]
    writer.connection.commit()
    assert read(tmp_path, "ses_main") == ["user: hello\nunsaid"]


def test_reading_leaves_nothing_beside_a_database_that_nobody_has_open(tmp_path: Path, writer: Writer) -> None:
    writer.session("ses_main")
    writer.message("ses_main", "m1", "user", text("hello"))
    writer.connection.close()
    before = sorted(path.name for path in root_of(tmp_path).parent.iterdir())
    assert read(tmp_path, "ses_main") == ["user: hello"]
    assert sorted(path.name for path in root_of(tmp_path).parent.iterdir()) == before == ["opencode.db"]


def test_harness_text_is_nobodys_and_a_bad_exit_code_is_an_error(tmp_path: Path, writer: Writer) -> None:
    writer.session("ses_main")
    writer.message("ses_main", "m1", "user", text("fix it"), text("Called the Read tool", synthetic=True))
    writer.message(
        "ses_main",
        "m2",
        "assistant",
        tool("c1", "completed", output="a.ts", metadata={"exit": 1}),
        tool("c2", "error", error="no match"),
        tool("c3", "running"),
        text("done"),
        modelID="m",
    )
    (found,) = STORE.resolve(root_of(tmp_path), "ses_main")
    conversation = STORE.read(found)
    assert said(conversation) == ["user: fix it", "agent: done"]
    assert {name: block.is_error for name, block in conversation.results().items()} == {"c1": True, "c2": True}
    counts = STORE.inspect(root_of(tmp_path))
    assert (counts.user_turns, counts.tool_calls, counts.tool_results) == (1, 3, 2)


def test_a_damaged_message_or_part_costs_only_itself(tmp_path: Path, writer: Writer) -> None:
    writer.session("ses_main")
    writer.message("ses_main", "m1", "user", text("one"), "{torn")  # type: ignore[arg-type]
    writer.message("ses_main", "m2", "assistant", raw="{not json")
    writer.message("ses_main", "m3", "assistant", text("three"))
    assert read(tmp_path, "ses_main") == ["user: one", "agent: three"]
    counts = STORE.inspect(root_of(tmp_path))
    assert counts.malformed == 1 and len(counts.skipped) == 2


def test_messages_after_a_revert_are_not_carried(tmp_path: Path, writer: Writer) -> None:
    writer.session("ses_main", revert='{"messageID": "m3"}')
    for number, role in enumerate(("user", "assistant", "user", "assistant"), 1):
        writer.message("ses_main", f"m{number}", role, text(f"{number}"))
    assert read(tmp_path, "ses_main") == ["user: 1", "agent: 2"]


def test_a_summary_stands_for_all_before_it_except_the_tail_it_kept(tmp_path: Path, writer: Writer) -> None:
    writer.session("ses_main")
    for number, role in enumerate(("user", "assistant", "user", "assistant"), 1):
        writer.message("ses_main", f"m{number}", role, text(f"{number}"))
    writer.message("ses_main", "m5", "user", {"type": "compaction", "auto": True, "tail_start_id": "m3"})
    writer.message("ses_main", "m6", "assistant", text("the summary"), summary=True)
    writer.message("ses_main", "m7", "user", text("next"))
    (found,) = STORE.resolve(root_of(tmp_path), "ses_main")
    conversation = STORE.read(found)
    assert conversation.compaction is not None and conversation.compaction.summary == "the summary"
    assert said(conversation) == ["user: 3", "agent: 4", "user: next"]


def test_archived_sessions_are_left_out_and_children_are_hidden(tmp_path: Path, writer: Writer) -> None:
    writer.session("ses_main")
    writer.session("ses_kid1", parent="ses_main")
    writer.session("ses_gone", archived=5)
    assert [found.id for found in STORE.list(root_of(tmp_path))] == ["ses_main"]
    assert [found.id for found in STORE.list(root_of(tmp_path), subagents=True)] == ["ses_kid1", "ses_main"]
    assert STORE.resolve(root_of(tmp_path), "ses_kid") == []
    assert [found.id for found in STORE.resolve(root_of(tmp_path), "ses_kid1")] == ["ses_kid1"]


def test_one_windows_directory_is_one_place_in_either_spelling(tmp_path: Path, writer: Writer) -> None:
    writer.session("ses_one1", "D:/LD/x")
    writer.session("ses_two1", "d:\\LD\\X\\")
    writer.session("ses_three", "D:/LD/y")
    assert [found.id for found in STORE.list(root_of(tmp_path), cwd="D:\\ld\\x")] == ["ses_two1", "ses_one1"]


def tree(tmp_path: Path, name: str, words: str, updated: int) -> Path:
    storage = tmp_path / "opencode" / "storage"
    session = {"id": name, "directory": "/w/app", "title": f"tree {name}", "version": "1.1", "time": {"created": 1, "updated": updated}}
    document(storage / "message" / name / f"msg_{name}.json", {"id": f"msg_{name}", "role": "user", "time": {"created": 2}})
    document(storage / "part" / f"msg_{name}" / "prt_1.json", text(words))
    return document(storage / "session" / "global" / f"{name}.json", session)


def test_a_session_in_both_stores_comes_once_from_the_database(tmp_path: Path, writer: Writer) -> None:
    writer.session("ses_both")
    writer.message("ses_both", "m1", "user", text("in the database"))
    tree(tmp_path, "ses_both", "in the tree", 1_767_225_000_000)
    tree(tmp_path, "ses_tree", "only in the tree", 1_800_000_000_000)
    found = list(STORE.list(root_of(tmp_path)))
    assert [one.id for one in found] == ["ses_tree", "ses_both"]
    assert [said(STORE.read(one)) for one in found] == [["user: only in the tree"], ["user: in the database"]]


def test_the_json_tree_alone_is_a_store(tmp_path: Path) -> None:
    path = tree(tmp_path, "ses_tree", "hello", 5)
    (root,) = STORE.roots({"XDG_DATA_HOME": str(tmp_path), "HOME": "/h"})
    assert root.exists()
    (found,) = STORE.list(root)
    assert (found.id, found.cwd, said(STORE.read(found))) == ("ses_tree", "/w/app", ["user: hello"])
    counts = STORE.inspect(path)
    assert (counts.id, counts.user_turns) == ("ses_tree", 1)


def test_the_oldest_prompts_stand_in_the_summary_and_parts_in_one_folder(tmp_path: Path) -> None:
    storage = tmp_path / "opencode" / "storage"
    session = {"id": "ses_old", "directory": "/w", "title": "t", "time": {"created": 1, "updated": 2}}
    path = document(storage / "session" / "p" / "ses_old.json", session)
    document(storage / "message" / "ses_old" / "a.json", {"id": "u", "role": "user", "time": {"created": 1}, "summary": {"title": "Open README"}})
    document(storage / "message" / "ses_old" / "b.json", {"id": "v", "role": "assistant", "time": {"created": 2}})
    document(storage / "part" / "x.json", {"messageID": "v", **tool("c", "success", output="# Title")})
    document(storage / "part" / "y.json", {"messageID": "v", **text("read it")})
    conversation = STORE.read(info("opencode", path, tmp_path, "ses_old"))
    assert said(conversation) == ["user: Open README", "agent: read it"]
    assert results(conversation) == {"c": "# Title"}


def test_the_tail_follows_this_session_alone(tmp_path: Path, writer: Writer) -> None:
    writer.session("ses_main")
    writer.session("ses_other")
    writer.message("ses_main", "m1", "user", text("one"))
    (found,) = STORE.resolve(root_of(tmp_path), "ses_main")
    before = STORE.tail(found)
    writer.message("ses_other", "o1", "user", text("elsewhere"))
    assert STORE.tail(found) == before
    writer.message("ses_main", "m2", "assistant", text("two"))
    assert STORE.tail(found) != before


def test_a_database_that_is_none_lists_nothing_and_says_so_when_read(tmp_path: Path) -> None:
    path = tmp_path / "opencode.db"
    path.write_bytes(b"SQLite format 3\0" + b"\xff" * 4096)
    assert list(STORE.list(path)) == []
    assert not STORE.recognises(path)
    with pytest.raises(NotFoundError):
        STORE.inspect(path)
    with pytest.raises(NotFoundError, match="cannot be read"):
        STORE.read(info("opencode", path, path))


def test_the_database_and_the_data_directory_can_be_moved(tmp_path: Path) -> None:
    assert STORE.roots({"HOME": "/h"}) == [Path("/h/.local/share/opencode/opencode.db")]
    assert STORE.roots({"HOME": "/h", "XDG_DATA_HOME": "/d"}) == [Path("/d/opencode/opencode.db")]
    assert STORE.roots({"HOME": "/h", "OPENCODE_DB": "~/my.db"}) == [Path("/h/my.db")]
    Writer(tmp_path / "opencode" / "opencode-dev.db").connection.close()
    assert [path.name for path in STORE.roots({"XDG_DATA_HOME": str(tmp_path)})] == ["opencode.db", "opencode-dev.db"]


BUSY_WRITER = """
import json, sqlite3, sys
connection = sqlite3.connect(sys.argv[1], timeout=0)
connection.execute("PRAGMA wal_autocheckpoint = 5")
connection.execute("SELECT count(*) FROM session").fetchone()
print("ready", flush=True)
sys.stdin.readline()
for number in range(300):
    data = json.dumps({"role": "user", "time": {"created": number}})
    connection.execute("INSERT INTO message VALUES(?,?,?,?,?)", (f"m{number:04}", "ses_main", number, number, data))
    part = json.dumps({"type": "text", "text": str(number)})
    connection.execute("INSERT INTO part VALUES(?,?,?,?,?,?)", (f"p{number:04}", f"m{number:04}", "ses_main", number, number, part))
    connection.commit()  # raises "database is locked" if a reader stands in the way: nobody waits here
print("done")
"""


def test_a_writer_that_never_waits_is_not_disturbed_by_reading(tmp_path: Path, writer: Writer) -> None:
    writer.session("ses_main")
    writer.connection.close()
    command = [sys.executable, "-c", BUSY_WRITER, str(root_of(tmp_path))]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as busy:
        assert busy.stdin is not None and busy.stdout is not None
        assert busy.stdout.readline() == "ready\n"
        busy.stdin.write("go\n")
        busy.stdin.flush()
        seen = 0
        while busy.poll() is None:
            texts = read(tmp_path, "ses_main")
            assert texts == [f"user: {number}" for number in range(len(texts))] and len(texts) >= seen
            seen = len(texts)
        out, err = busy.communicate(timeout=10)
    assert (out, err) == ("done\n", "")
    assert len(read(tmp_path, "ses_main")) == 300
