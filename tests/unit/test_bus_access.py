"""Roles by ancestors over a made-up process table, the access handler's answers, secrets."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agents_registry.errors import RefusedError
from transports.bus.access import Access, Role, make_secret, parse_peer_address, read_secret, zap_reply


def _process(proc: Path, pid: int, parent: int, start: int, *, name: str = "sh", environ: bytes = b"") -> None:
    directory = proc / str(pid)
    directory.mkdir(parents=True, exist_ok=True)
    zeros = " ".join(["0"] * 17)
    (directory / "stat").write_text(f"{pid} ({name}) S {parent} {zeros} {start} 0 0\n")
    (directory / "environ").write_bytes(environ)


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    (tmp_path / "stat").write_text("cpu 0\n")
    _process(tmp_path, 1, 0, 1, name="init")
    return tmp_path


def _access(proc: Path, hosts: dict[tuple[int, int], str], launches: frozenset[tuple[int, int]] = frozenset()) -> Access:
    return Access(policy=lambda *_: None, known_hosts=lambda: hosts, launches=lambda: launches, proc=proc)


def _family(proc: Path) -> None:
    """1 -> 100 (a host) -> 101 (its agent) -> 102; 1 -> 200 (a terminal) -> 201."""
    for pid, parent in ((100, 1), (101, 100), (102, 101), (200, 1), (201, 200)):
        _process(proc, pid, parent, pid * 10, name="odd ) name (x")


@pytest.mark.requires("H2.roles")
@pytest.mark.parametrize(
    ("pid", "role"),
    [
        (102, Role("agent", "wt_1", 1020)),
        (100, Role("agent", "wt_1", 1000)),
        (201, Role("owner", "", 2010)),
        (999, Role("agent", "", 0)),
        (0, Role("agent", "", 0)),
    ],
    ids=["below a host", "the host itself", "in a terminal", "gone", "not told by the kernel"],
)
def test_the_role_follows_from_the_ancestors_and_what_cannot_be_seen_is_an_agent(proc: Path, pid: int, role: Role) -> None:
    _family(proc)
    assert _access(proc, {(100, 1000): "wt_1"}).classify(pid) == role


def test_a_pid_that_was_a_host_once_and_is_another_process_now_makes_nobody_an_agent(proc: Path) -> None:
    _family(proc)
    assert _access(proc, {(100, 999): "wt_1"}).classify(102).role == "owner"


@pytest.mark.requires("H2.roles")
def test_what_a_launched_terminal_agent_starts_is_an_agent_too(proc: Path) -> None:
    _family(proc)
    assert _access(proc, {}, frozenset({(200, 2000)})).classify(201) == Role("agent", "", 2010)


def test_a_hosted_process_that_left_its_ancestors_is_known_by_its_environment(proc: Path) -> None:
    _process(proc, 300, 1, 3000, environ=b"A=1\0VIBEAROUND_HOST_ID=h\0B=2\0")
    _process(proc, 301, 1, 3010, environ=b"X_VIBEAROUND_HOST_ID=h\0")
    assert _access(proc, {}).classify(300).role == "agent"
    assert _access(proc, {}).classify(301).role == "owner"


def test_a_loop_in_the_table_ends(proc: Path) -> None:
    _process(proc, 400, 401, 4000)
    _process(proc, 401, 400, 4010)
    assert _access(proc, {}).classify(400).role == "agent"


def test_where_there_is_no_process_table_the_user_is_owner(tmp_path: Path) -> None:
    assert _access(tmp_path / "none", {}).classify(5) == Role("owner")


def _request(address: bytes, *, version: bytes = b"1.0", mechanism: bytes = b"NULL") -> list[bytes]:
    return [version, b"7", b"vibearound", address, b"", mechanism]


@pytest.mark.requires("H2.credentials")
@pytest.mark.parametrize(
    ("request_frames", "status"),
    [
        (_request(b"localhost:1000:1000:4242"), b"200"),
        (_request(b"localhost:1001:1000:4242"), b"400"),
        (_request(b"localhost:0:0:4242"), b"400"),
        (_request(b"127.0.0.1"), b"400"),
        (_request(b"localhost:x:0:1"), b"400"),
        (_request(b"localhost:1000:1000:4242", mechanism=b"PLAIN"), b"400"),
        (_request(b"localhost:1000:1000:4242", version=b"2.0"), b"400"),
        ([b"1.0", b"7"], b"400"),
        ([], b"400"),
    ],
)
def test_the_access_handler_lets_only_the_users_own_processes_in(request_frames: list[bytes], status: bytes) -> None:
    reply = zap_reply(request_frames, 1000)
    assert reply[2] == status
    assert len(reply) == 6
    assert reply[1] == (request_frames[1] if len(request_frames) > 1 else b"")


def test_the_kernels_words_are_read() -> None:
    assert parse_peer_address("localhost:501:20:77") == (501, 77)
    assert parse_peer_address("localhost:501:20:") == (501, 0)
    with pytest.raises(ValueError, match="no kernel credentials"):
        parse_peer_address("")


@pytest.mark.requires("H2.identities")
def test_a_secret_travels_by_descriptor_once_and_proves_only_its_own_name() -> None:
    fd, digest = make_secret()
    secret = read_secret(fd)
    with pytest.raises(OSError):
        os.fstat(fd)
    access = Access(policy=lambda *_: None, secret_hash=lambda kind, name: digest if (kind, name) == ("host", "a") else None)
    assert access.proves("host", "a", secret)
    assert not access.proves("host", "b", secret)
    assert not access.proves("bridge", "a", secret)
    assert not access.proves("host", "a", secret[:-1])
    assert not access.proves("host", "a", b"")
    assert not access.proves("host", "b", b"")


def test_a_descriptor_without_a_secret_is_refused() -> None:
    read_end, write_end = os.pipe()
    os.close(write_end)
    with pytest.raises(RefusedError):
        read_secret(read_end)
    with pytest.raises(RefusedError):
        read_secret(read_end)
