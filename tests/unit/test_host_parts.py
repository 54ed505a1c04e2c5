"""The smaller parts of a host: its loop, its spec, its spool."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest

from actors.host_loop import MAX_AGENT, HostLoop
from actors.host_spec import HostLimits, HostSpec, from_json
from actors.host_spool import read_spool, spool_files, write_spool
from actors.host_start import pack, read, unpack
from agents_registry.errors import UsageError
from transports.bus.vocabulary.hosting import HostEvent


class Core:
    def __init__(self) -> None:
        self.done = False
        self.wants_agent = True
        self.heard: list[str] = []

    def deadline(self) -> float:
        return time.monotonic() + 5.0

    def tick(self) -> None:
        """Nothing is due."""

    def hear(self, what: str) -> None:
        self.heard.append(what)

    def end(self) -> None:
        self.done = True


def test_the_agents_words_wait_while_they_are_not_wanted_and_the_rest_does_not() -> None:
    core, loop = Core(), HostLoop(time.monotonic)
    core.wants_agent = False
    loop.post_agent(core.hear, "agent 1")
    loop.post_agent(core.hear, "agent 2")
    runner = threading.Thread(target=loop.run, args=(core,), daemon=True)
    runner.start()
    seen = threading.Event()
    loop.post(core.hear, "bus")
    loop.post(seen.set)
    assert seen.wait(10) and core.heard == ["bus"]

    def want() -> None:
        core.wants_agent = True

    loop.post(want)
    loop.post_agent(core.end)
    runner.join(10)
    assert core.heard == ["bus", "agent 1", "agent 2"]


def test_a_full_queue_holds_the_reader_of_the_agent_until_there_is_room() -> None:
    core, loop = Core(), HostLoop(time.monotonic)
    total = MAX_AGENT + 500
    at_the_end = threading.Event()

    def talk() -> None:
        for n in range(total):
            loop.post_agent(core.hear, str(n))
        at_the_end.set()

    threading.Thread(target=talk, daemon=True).start()
    assert not at_the_end.wait(0.2)
    runner = threading.Thread(target=loop.run, args=(core,), daemon=True)
    runner.start()
    assert at_the_end.wait(10)
    loop.post_agent(core.end)
    runner.join(10)
    assert core.heard == [str(n) for n in range(total)]


def test_a_spec_comes_back_as_it_was_through_a_pipe_and_unknown_fields_are_ignored() -> None:
    spec = HostSpec(
        thread="wt_1", instance="host", epoch=2, argv=["a", "中文"], cwd="/w/新聞", data_dir="/d", env={"A": "b"}, limits=HostLimits(lease_s=7)
    )
    read_end, write_end = os.pipe()
    os.write(write_end, spec.to_bytes().replace(b'"thread"', b'"brand_new": [1], "thread"', 1))
    os.close(write_end)
    argv, env, cwd, rest = unpack(read(read_end))
    assert from_json(rest) == spec
    assert [os.fsdecode(word) for word in (*argv, cwd)] == ["a", "中文", "/w/新聞"]
    assert env == {b"A": b"b", b"PWD": os.fsencode("/w/新聞"), b"VIBEAROUND_HOST_ID": b"wt_1/host/2"}


@pytest.mark.parametrize(
    ("argv", "env", "cwd"), [(["a\0b"], {}, "/"), (["a"], {"A": "\0"}, "/"), (["a"], {"A=B": "c"}, "/"), (["a"], {}, "/\0"), ([], {}, "/")]
)
def test_a_command_that_no_process_can_be_given_is_refused_before_a_host_starts(argv: list[str], env: dict[str, str], cwd: str) -> None:
    with pytest.raises(ValueError, match=r"NUL|without =|a program"):
        pack(argv, env, cwd)


@pytest.mark.parametrize("data", [b"", b"{}", b"VAHOST1 1 9\n", b"VAHOST1 x 1\na", b"VAHOST1 2 3\na\0b", b"VAHOST1 1 5\n/\0a\0b"])
def test_a_start_that_is_cut_off_or_foreign_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"cut off|does not begin|invalid literal"):
        unpack(data)


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"argv": [], "thread": "t"}', b"\xff", b'{"argv": ["x"]}'])
def test_what_is_no_spec_is_refused(data: bytes) -> None:
    with pytest.raises(UsageError):
        from_json(data)


def test_a_spool_comes_back_in_order_and_a_damaged_one_is_refused_and_kept(tmp_path: Path) -> None:
    events = [HostEvent(n, 4, "t", "text", {"block": n, "text": "héllo"}) for n in (5, 6)]
    path = write_spool(tmp_path, "wt_1", "host", 4, "s", ["t"], events)
    back = read_spool(path)
    assert (back.events, back.turns, back.session, back.epoch) == (events, ["t"], "s", 4)
    assert spool_files(tmp_path) == [path] and path.stat().st_mode & 0o777 == 0o600
    path.write_bytes(path.read_bytes()[:-7])
    with pytest.raises(UsageError):
        read_spool(path)
    assert path.exists()
