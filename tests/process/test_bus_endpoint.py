"""The endpoint with real peers: who is let in, what becomes of questions, slow and dead peers."""

from __future__ import annotations

import os
import queue
import signal
import stat
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgpack
import pytest
import zmq

from agents_registry.errors import (
    BusyError,
    NotRunningError,
    RefusedError,
    UsageError,
    VibeAroundError,
    from_wire,
)
from tests.process.bus_rig import LIMIT, SECRET, Rig, echo, peer, rig
from tests.waiting import until
from transports.bus import envelope
from transports.bus.access import Access, Role
from transports.bus.api import Delivery
from transports.bus.client import BusClient, SyncClient
from transports.bus.codec import decode, encode
from transports.bus.socketpath import SocketLock, check_socket_path
from transports.bus.vocabulary.conversation import Failed, Hello, Ok, Welcome
from transports.bus.vocabulary.hosting import HostDelta
from transports.bus.vocabulary.lists import GetStatus


@pytest.fixture
def sockets(tmp_path: Path) -> Path:
    directory = tmp_path / "s"
    directory.mkdir(mode=0o700)
    return directory


class Raw:
    """A DEALER that says what it is told to."""

    def __init__(self, path: Path, identity: bytes = b"") -> None:
        self._context = zmq.Context()
        self.socket = self._context.socket(zmq.DEALER)
        self.socket.linger = 0
        if identity:
            self.socket.setsockopt(zmq.IDENTITY, identity)
        self.socket.connect(f"ipc://{path}")

    def say(self, kind: int, message: Any = None, **fields: Any) -> None:
        self.socket.send_multipart((envelope.pack(kind, **fields), encode(message) if message is not None else b""))

    def hear(self, limit_ms: int = 10_000) -> tuple[envelope.Header, Any] | None:
        if not self.socket.poll(limit_ms):
            return None
        header, body = self.socket.recv_multipart()
        return envelope.unpack(header), decode(body) if body else None

    def close(self) -> None:
        self._context.destroy(linger=0)


@pytest.fixture
def raw() -> Iterator[Callable[..., Raw]]:
    made: list[Raw] = []

    def make(path: Path, identity: bytes = b"") -> Raw:
        made.append(Raw(path, identity))
        return made[-1]

    yield make
    for one in made:
        one.close()


# --- who is let in ----------------------------------------------------------------------------------------------------


@pytest.mark.requires("H2.credentials")
def test_a_client_is_known_by_the_kernels_pid_and_uid_and_its_start_time(sockets: Path) -> None:
    with rig(sockets) as made, SyncClient(made.path) as client:
        (known,) = made.endpoint.peers()
        assert (known.pid, known.uid, known.role) == (os.getpid(), os.getuid(), "owner")
        assert known.start_time > 0
        assert client.welcome == Welcome("peer/1", "owner", "")


@pytest.mark.requires("H2.credentials")
@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
def test_a_process_of_another_user_is_not_let_in(sockets: Path) -> None:
    with rig(sockets) as made:
        # As open as can be, so that nothing but the endpoint's own check is in the way.
        for at in (made.path.parent, *made.path.parent.parents):
            if at != Path("/") and not at.stat().st_mode & stat.S_IXOTH:
                at.chmod(at.stat().st_mode | stat.S_IXOTH)
        made.path.chmod(0o777)
        with peer("uid", "65534", str(made.path)) as stranger:
            assert stranger.line()["exit_code"] == RefusedError.exit_code
        assert made.endpoint.peers() == []
        assert made.endpoint.counters()["refused_connections"] >= 1


@pytest.mark.requires("H2.identities")
def test_a_socket_identity_of_ones_own_choice_is_refused(sockets: Path, raw: Callable[..., Raw]) -> None:
    with rig(sockets) as made:
        chosen = raw(made.path, b"agent/wt_1/host")
        chosen.say(envelope.HELLO, Hello("client"))
        heard = chosen.hear()
        assert heard is not None
        assert from_wire(heard[1].error).code == "chosen_identity"
        assert made.endpoint.peers() == []


@pytest.mark.requires("H2.identities")
@pytest.mark.parametrize(("name", "secret"), [("reader/1", b"x" * 32), ("reader/1", b""), ("nobody", b""), ("nobody", SECRET)])
def test_a_name_is_not_given_without_its_secret(sockets: Path, raw: Callable[..., Raw], name: str, secret: bytes) -> None:
    with rig(sockets) as made:
        thief = raw(made.path)
        thief.say(envelope.HELLO, Hello("reader", name, secret))
        heard = thief.hear()
        assert heard is not None
        assert heard[0].kind == envelope.ERROR
        assert from_wire(heard[1].error).code == "not_proven"
        assert not made.switch.known(name)


@pytest.mark.requires("H2.identities")
def test_the_newer_connection_with_the_secret_takes_the_name_over_and_the_older_stays_away(sockets: Path) -> None:
    states: queue.SimpleQueue[str] = queue.SimpleQueue()
    with rig(sockets) as made:
        older = BusClient(made.path, kind="reader", name="reader/1", secret=SECRET, on_state=states.put)
        assert older.wait_up(LIMIT)
        with echo(made.path, "reader/1") as newer:
            made.ask("reader/1", GetStatus())
            assert made.answer().message == Ok({"pid": newer.process.pid})
            assert [states.get(timeout=LIMIT) for _ in range(2)] == ["up", "replaced"]
            assert "replaced" in made.gone.get(timeout=LIMIT)[1]
            assert not older.up
        older.close()


@pytest.mark.requires("H2.identities")
def test_a_peer_cannot_take_the_name_of_an_actor(sockets: Path) -> None:
    with rig(sockets) as made:
        client = BusClient(made.path, kind="reader", name="me", secret=SECRET)
        until(lambda: client.error, "the client is refused")
        assert isinstance(client.error, RefusedError)
        client.close()


@pytest.mark.requires("H2.roles")
def test_a_process_below_a_host_is_an_agent_even_after_a_double_fork(sockets: Path) -> None:
    with rig(sockets) as made, peer("host", str(made.path)) as host, peer("role", str(made.path)) as bystander:
        born = host.line()
        made.hosts[(born["pid"], born["start"])] = "wt_1"
        host.go()
        assert host.line() == {"role": "agent"}
        assert bystander.line() == {"role": "owner"}


@pytest.mark.requires("H2.roles")
def test_what_the_policy_refuses_is_answered_with_its_reason_and_reaches_nobody(sockets: Path) -> None:
    def policy(peer: Any, address: str, message: Any) -> VibeAroundError | None:
        return RefusedError(f"a {peer.role} may not.", code="role") if isinstance(message, GetStatus) else None

    with rig(sockets, policy=policy) as made, SyncClient(made.path) as client:
        with pytest.raises(RefusedError, match="may not"):
            client.request("me", GetStatus(), LIMIT)
        client.send("me", Ok({"n": 1}))
        assert made.answer().message == Ok({"n": 1})
        assert made.inbox.empty()


def test_a_policy_that_fails_lets_nothing_through(sockets: Path) -> None:
    def policy(peer: Any, address: str, message: Any) -> VibeAroundError | None:
        raise ZeroDivisionError

    with rig(sockets, policy=policy) as made, SyncClient(made.path) as client:
        with pytest.raises(RefusedError):
            client.request("me", GetStatus(), LIMIT)
        assert made.inbox.empty()


# --- the first words --------------------------------------------------------------------------------------------------


def test_whoever_does_not_begin_with_a_hello_is_told_so(sockets: Path, raw: Callable[..., Raw]) -> None:
    with rig(sockets) as made:
        one = raw(made.path)
        one.say(envelope.SEND, GetStatus(), id=1, address="me")
        heard = one.hear()
        assert heard is not None
        assert (heard[0].kind, from_wire(heard[1].error).code) == (envelope.ERROR, "hello_first")
        assert made.inbox.empty()


@pytest.mark.requires("H2.frames")
def test_a_peer_of_an_unknown_version_is_told_so_and_the_others_go_on(sockets: Path, raw: Callable[..., Raw]) -> None:
    with rig(sockets) as made, SyncClient(made.path) as client:
        one = raw(made.path)
        one.socket.send_multipart((msgpack.packb([9, 0]), b""))
        heard = one.hear()
        assert heard is not None
        assert from_wire(heard[1].error).code == "bad_version"
        for torn in ((b"\xc1", b""), (b"",), (b"", b"", b"", b"")):
            one.socket.send_multipart(torn)
            assert one.hear() is not None
        client.send("me", Ok({"n": 5}))
        assert made.answer().message == Ok({"n": 5})


def test_what_comes_before_the_role_is_known_waits_and_keeps_its_order(sockets: Path, raw: Callable[..., Raw]) -> None:
    known = threading.Event()

    class Slow(Access):
        def classify(self, pid: int) -> Role:
            known.wait(LIMIT)
            return super().classify(pid)

    with rig(sockets, access=Slow(policy=lambda peer, address, message: None)) as made:
        one = raw(made.path)
        one.say(envelope.HELLO, Hello("client"))
        for n in range(50):
            one.say(envelope.SEND, Ok({"n": n}), address="me")
        one.say(envelope.PING)
        heard = one.hear()
        assert heard is not None
        assert heard[0].kind == envelope.PONG  # so all before it was read, and nothing was delivered
        assert made.inbox.empty()
        known.set()
        assert [made.answer().message.data["n"] for _ in range(50)] == list(range(50))


# --- questions and answers --------------------------------------------------------------------------------------------


@pytest.mark.requires("H2.order", "H2.one-io-thread")
def test_messages_of_a_peer_keep_their_order_over_the_wire_both_ways(sockets: Path) -> None:
    with rig(sockets) as made, SyncClient(made.path) as client:
        for n in range(2000):
            client.send("me", Ok({"n": n}))
        assert [made.answer().message.data["n"] for _ in range(2000)] == list(range(2000))
        for n in range(2000):
            made.switch.send(client.welcome.address, Ok({"n": n}), sender="me")
        got = [client.receive(LIMIT) for _ in range(2000)]
        assert [d.message.data["n"] for d in got if d is not None] == list(range(2000))


def test_equal_correlation_numbers_of_different_askers_are_told_apart(sockets: Path) -> None:
    with rig(sockets) as made:
        others: queue.SimpleQueue[Delivery] = queue.SimpleQueue()
        made.switch.register("other", others.put)
        with echo(made.path, "reader/1") as one:
            made.switch.send("reader/1", GetStatus(), sender="other", corr=7)
            made.ask("reader/1", GetStatus(), corr=7)
            for answer in (made.answer(), others.get(timeout=LIMIT)):
                assert (answer.corr, answer.sender, answer.message.data["pid"]) == (-7, "reader/1", one.process.pid)


def test_an_answer_that_nobody_asked_for_reaches_nobody(sockets: Path, raw: Callable[..., Raw]) -> None:
    with rig(sockets) as made:
        one = raw(made.path)
        one.say(envelope.HELLO, Hello("client"))
        for corr in range(3):
            one.say(envelope.REPLY, Ok(), corr=corr, address="me")
        until(lambda: made.endpoint.counters().get("late_replies") == 3, "the replies are counted")
        assert made.inbox.empty()


def test_a_peer_may_speak_under_its_own_names_only(sockets: Path, raw: Callable[..., Raw]) -> None:
    with rig(sockets) as made:
        one = raw(made.path)
        one.say(envelope.HELLO, Hello("reader", "reader/1", SECRET))
        for sender in ("supervisor", "reader/1", ""):
            one.say(envelope.SEND, Ok(), address="me", sender=sender)
            assert made.answer().sender == "reader/1"


# --- death, hanging, slowness -----------------------------------------------------------------------------------------


@pytest.mark.requires("H2.mandatory")
def test_a_killed_peers_open_questions_fail_and_its_end_is_told_without_any_heartbeat(sockets: Path) -> None:
    with rig(sockets) as made, echo(made.path, "reader/1") as one:
        one.signal(signal.SIGSTOP)
        made.ask("reader/1", GetStatus(), corr=5)
        one.signal(signal.SIGKILL)
        failed = made.answer()
        assert failed.corr == -5
        assert from_wire(failed.message.error).code == "peer_gone"
        assert made.gone.get(timeout=LIMIT)[0].name == "reader/1"
        made.ask("reader/1", GetStatus(), corr=6)
        assert from_wire(made.answer().message.error).code == "no_receiver"


def test_a_peer_that_hangs_is_gone_after_three_missed_heartbeats_and_one_that_answers_is_not(sockets: Path) -> None:
    with rig(sockets, heartbeat_s=5.0) as made, echo(made.path, "reader/1") as one, echo(made.path, "reader/2") as other:
        one.signal(signal.SIGSTOP)
        for n in range(1, 6):
            made.clock.advance(5.0)
            made.ask("reader/2", GetStatus(), corr=n)
            assert made.answer().message == Ok({"pid": other.process.pid})
            until(lambda: made.clock.pending(), "the next heartbeat is armed")
        assert made.gone.get(timeout=LIMIT)[0].name == "reader/1"
        assert [known.name for known in made.endpoint.peers()] == ["reader/2"]
        one.signal(signal.SIGCONT)
        assert one.line() == {"state": "down"}
        assert one.line() == {"state": "up"}  # it comes back by itself


@pytest.mark.requires("H2.slow-peer")
def test_a_stalled_peer_costs_only_itself_loses_previews_and_gets_the_rest_in_order(sockets: Path) -> None:
    count, filler = 3000, "x" * 8000
    with rig(sockets, hwm=10) as made, echo(made.path, "reader/1") as slow, echo(made.path, "reader/2") as quick:
        slow.signal(signal.SIGSTOP)
        for n in range(count):
            made.switch.send("reader/1", Ok({"n": n, "filler": filler}), sender="me")
            if n % 10 == 0:
                made.ask("reader/2", GetStatus(), corr=n + 1)
                assert made.answer().message == Ok({"pid": quick.process.pid})
        for n in range(500):
            made.switch.send("reader/1", HostDelta(1, "t", "text", 0, n, filler), sender="me")
        made.ask("reader/2", GetStatus())
        assert made.answer().corr == -1
        slow.signal(signal.SIGCONT)
        got = [slow.line()["got"] for _ in range(count)]
        assert got == list(range(count))
        made.switch.send("reader/1", Ok({"n": "last"}), sender="me")
        # Nothing of the previews, which the full queue did not take.
        assert slow.line()["got"] == "last"


@pytest.mark.requires("H2.slow-peer")
def test_a_peer_that_never_reads_is_given_up_at_the_bound_with_the_reason(sockets: Path) -> None:
    with rig(sockets, hwm=5, queue_limit=1 << 20) as made, echo(made.path, "reader/1") as one:
        one.signal(signal.SIGSTOP)
        for n in range(2000):
            made.switch.send("reader/1", Ok({"n": n, "filler": "x" * 8000}), sender="me")
            if not made.gone.empty():
                break
        known, reason = made.gone.get(timeout=LIMIT)
        assert known.name == "reader/1"
        assert "1 MiB" in reason


# --- the client's side ------------------------------------------------------------------------------------------------


def test_a_client_that_lost_its_supervisor_fails_what_is_open_and_finds_the_next_one(sockets: Path) -> None:
    states: queue.SimpleQueue[str] = queue.SimpleQueue()
    path = sockets / "bus.sock"
    failed: queue.SimpleQueue[BaseException] = queue.SimpleQueue()
    with peer("serve", str(path)) as first:
        assert first.line()
        client = BusClient(lambda: path, kind="client", on_state=states.put)
        assert states.get(timeout=LIMIT) == "up"
        pid = client.request("echo", GetStatus(), LIMIT).data["pid"]

        def ask() -> None:
            try:
                client.request("silent", GetStatus(), LIMIT)
            except VibeAroundError as error:
                failed.put(error)

        asker = threading.Thread(target=ask)
        asker.start()
        assert "asked" in first.line()
        first.signal(signal.SIGKILL)
        assert isinstance(failed.get(timeout=LIMIT), NotRunningError)
        asker.join(LIMIT)
        assert states.get(timeout=LIMIT) == "down"
        first.process.wait(LIMIT)
    assert client.send("echo", GetStatus()) is False or client.up
    with peer("serve", str(path)) as second:
        assert states.get(timeout=LIMIT) == "up"
        assert client.request("echo", GetStatus(), LIMIT).data["pid"] == second.process.pid != pid
        client.close()


def test_a_blocking_client_hears_of_its_supervisors_death_and_of_a_missing_one(sockets: Path) -> None:
    path = sockets / "bus.sock"
    with pytest.raises(NotRunningError):
        SyncClient(path)
    with peer("serve", str(path)) as server:
        server.line()
        client = SyncClient(path)
        client.send("silent", GetStatus(), question=True)
        server.line()
        server.signal(signal.SIGKILL)
        with pytest.raises(NotRunningError):
            client.receive(LIMIT)
        client.close()
        server.process.wait(LIMIT)
    assert path.exists()  # left behind by the killed one
    with pytest.raises(NotRunningError):
        SyncClient(path, timeout=LIMIT)


def test_what_arrives_during_a_request_stays_for_receive_in_order(sockets: Path) -> None:
    with rig(sockets) as made, SyncClient(made.path) as client:

        def answer(delivery: Delivery) -> None:
            for n in range(3):
                made.switch.send(delivery.sender, Ok({"n": n}))
            made.switch.send(delivery.sender, Ok({"n": "answer"}), sender="talker", corr=-delivery.corr)
            made.switch.send(delivery.sender, Ok({"n": 3}))

        made.switch.register("talker", answer)
        assert client.request("talker", GetStatus(), LIMIT) == Ok({"n": "answer"})
        got = [client.receive(LIMIT) for _ in range(4)]
        assert [d.message.data["n"] for d in got if d is not None] == [0, 1, 2, 3]


def test_a_failed_answer_is_raised_as_the_kind_it_was(sockets: Path) -> None:
    with rig(sockets) as made, SyncClient(made.path) as client:
        told = Failed(BusyError("later.", hint="Wait.").to_wire())
        made.switch.register("busy", lambda d: made.switch.send(d.sender, told, sender="busy", corr=-d.corr))
        with pytest.raises(BusyError, match="later"):
            client.request("busy", GetStatus(), LIMIT)


# --- where the socket stands ------------------------------------------------------------------------------------------


@pytest.mark.requires("H2.socket-path")
def test_a_socket_path_that_is_too_long_or_in_an_open_directory_is_refused(tmp_path: Path, sockets: Path) -> None:
    with pytest.raises(UsageError, match="bytes"):
        check_socket_path(sockets / ("n" * 104))
    sockets.chmod(0o755)
    with pytest.raises(RefusedError, match="open to other users"):
        check_socket_path(sockets / "bus.sock")
    with pytest.raises(UsageError):
        check_socket_path(tmp_path / "missing" / "bus.sock")


def test_a_second_endpoint_does_not_steal_the_first_ones_path(sockets: Path) -> None:
    with rig(sockets) as made:
        with pytest.raises(BusyError):
            Rig(sockets)
        with SyncClient(made.path) as client:
            client.send("me", Ok({"n": 1}))
            assert made.answer().message == Ok({"n": 1})
    lock = SocketLock(sockets / "bus.sock")
    lock.take()
    lock.release()


@pytest.mark.requires("H2.one-io-thread")
def test_one_thread_owns_the_sockets_and_no_actor_runs_on_it(sockets: Path) -> None:
    from actors.pooled import Pool, actor_receiver, start_logic

    where: queue.SimpleQueue[str] = queue.SimpleQueue()
    pool = Pool(2, name="pool")
    with rig(sockets) as made, SyncClient(made.path) as client:
        made.switch.register(
            "actor", actor_receiver(start_logic(pool, "actor", lambda d: where.put(threading.current_thread().name)))
        )
        for _ in range(100):
            client.send("actor", Ok())
        assert {where.get(timeout=LIMIT).rstrip("01") for _ in range(100)} == {"pool-"}
        assert [t.name for t in threading.enumerate() if t.name.startswith("bus")] == ["bus-io"]
    assert pool.stop(LIMIT)
