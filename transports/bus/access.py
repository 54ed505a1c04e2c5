"""Who is at the other end: kernel credentials, ancestors, inherited secrets.

A ZAP handler on the io thread (RFC 27) sees each connection before its first message, with the uid and pid the kernel
reports for the unix socket (libzmq writes them into the address: `localhost:uid:gid:pid`). Another uid is refused there.

A process of the user's uid is "owner", unless it descends from a host of ours or from an agent that `va` launched:
then it is "agent". Hosts, bridges and the reader prove their names by a secret that they inherited in a descriptor:
never in argv or the environment, which agents can read.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import os
import queue
import secrets
import threading
from collections.abc import Callable, Container, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from agents_registry.errors import RefusedError, VibeAroundError
from transports.bus.api import Peer

_log = logging.getLogger(__name__)

PROVEN_KINDS = ("host", "bridge", "reader")
"""Kinds whose role rests on a secret; any other kind is classified by its ancestors."""
MARKS = (b"VIBEAROUND_HOST_ID=", b"VIBEAROUND_LAUNCH_ID=")
"""In the environment of hosted and of launched agents only; they betray a process that left its ancestors by a double fork."""
MAX_DEPTH = 128
_IDLE_S = 1.0
"""The thread that reads the process table ends after so long without work."""

Policy = Callable[[Peer, str, Any], VibeAroundError | None]


class Role(NamedTuple):
    """What `Access.classify` found. `start_time` is in clock ticks since boot (0 where the system does not tell)."""

    role: str
    host_thread: str = ""
    start_time: int = 0


class Access:
    """`policy(peer, address, message)`: None = allowed, else the error to answer with.

    `known_hosts()`: thread id by (pid, start time) of our hosts. `launches()`: (pid, start time) of agents that we
    launched in terminals. `secret_hash(kind, name)`: SHA-256 hex of the secret that proves the name, None = no such
    name. `proc`: where the process table is read (Linux form).
    """

    def __init__(
        self,
        *,
        policy: Policy,
        known_hosts: Callable[[], Mapping[tuple[int, int], str]] = dict,
        launches: Callable[[], Container[tuple[int, int]]] = frozenset,
        secret_hash: Callable[[str, str], str | None] = lambda kind, name: None,
        proc: Path = Path("/proc"),
        uid: int | None = None,
    ) -> None:
        self._policy = policy
        self._known_hosts = known_hosts
        self._launches = launches
        self._secret_hash = secret_hash
        self._proc = proc
        self.uid = os.getuid() if uid is None else uid
        self._jobs: queue.SimpleQueue[tuple[int, Callable[[Role], None]] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def allow(self, peer: Peer, address: str, message: Any) -> VibeAroundError | None:
        """Ask the policy. An error in it refuses: what cannot be judged is not let through."""
        try:
            return self._policy(peer, address, message)
        except VibeAroundError as error:
            return error
        except Exception:  # noqa: BLE001 - whatever it is, what cannot be judged is refused
            _log.exception("the access policy failed for %s to %s", peer.address, address)
            return RefusedError("it could not be checked whether this is allowed.", hint="See the supervisor's log.")

    def proves(self, kind: str, name: str, secret: bytes) -> bool:
        """Whether `secret` is the one handed to this name. Constant time; never raises."""
        expected = self._secret_hash(kind, name)
        given = hashlib.sha256(secret).hexdigest()
        return bool(secret) and hmac.compare_digest(expected or "", given)

    def classify_soon(self, pid: int, then: Callable[[Role], None]) -> None:
        """Call `then` with the role, on this object's own thread: reading the process table may take its time."""
        with self._lock:
            self._jobs.put((pid, then))
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="access", daemon=True)
                self._thread.start()

    def close(self) -> None:
        with self._lock:
            thread = self._thread
            self._jobs.put(None)
        if thread is not None:
            thread.join(2.0)

    def classify(self, pid: int) -> Role:
        """The role of a process by its ancestors. What cannot be seen is "agent": the lesser of the two."""
        if not (self._proc / "self").exists() and not (self._proc / "stat").exists():
            return Role("owner")  # a system without /proc (macOS): stated limit, see the security notes
        for _ in range(4):  # an ancestor may end while we climb; then the tree is read anew
            found = self._climb(pid)
            if found is not None:
                return found
        return Role("agent", start_time=self._stat(pid)[1])

    def _climb(self, pid: int) -> Role | None:
        start = self._stat(pid)[1]
        if pid <= 0 or not start:
            return None
        hosts, launches = self._known_hosts(), self._launches()
        at = pid
        for _ in range(MAX_DEPTH):
            parent, started = self._stat(at)
            if not started:
                return None
            if (at, started) in hosts:
                return Role("agent", hosts[(at, started)], start)
            if (at, started) in launches:
                return Role("agent", "", start)
            if parent <= 1 or at == 1:
                break
            at = parent
        else:
            return None
        return Role("agent" if self._marked(pid) else "owner", "", start)

    def _stat(self, pid: int) -> tuple[int, int]:
        """(parent pid, start time in clock ticks since boot), (0, 0) when there is no such process."""
        try:
            data = (self._proc / str(pid) / "stat").read_bytes()
        except OSError:
            return 0, 0
        fields = data[data.rfind(b")") + 2 :].split()  # the name before it may hold spaces and parentheses
        if len(fields) < 20:
            return 0, 0
        return int(fields[1]), int(fields[19])

    def _marked(self, pid: int) -> bool:
        try:
            environment = (self._proc / str(pid) / "environ").read_bytes()
        except OSError:
            return False
        return any(entry.startswith(MARKS) for entry in environment.split(b"\0"))

    def _run(self) -> None:
        while True:
            try:
                job = self._jobs.get(timeout=_IDLE_S)
            except queue.Empty:
                with self._lock:
                    if self._jobs.empty():
                        self._thread = None
                        return
                continue
            if job is None:
                return
            pid, then = job
            try:
                role = self.classify(pid)
            except Exception:  # noqa: BLE001 - the thread judges everybody; this one gets the lesser role
                _log.exception("process %d could not be classified", pid)
                role = Role("agent")
            then(role)


def zap_reply(request: list[bytes], uid: int) -> list[bytes]:
    """The answer to a ZAP request: status 200 for our own uid, else 400.

    Never raises: libzmq waits for an answer, so a request that is not understood is refused too.
    """
    request_id = request[1] if len(request) > 1 else b""
    try:
        version, _, _, address, _, mechanism = request[:6]
        peer_uid, peer_pid = parse_peer_address(address.decode("ascii"))
        allowed = version == b"1.0" and mechanism == b"NULL" and peer_uid == uid
    except (ValueError, UnicodeDecodeError):
        allowed, peer_pid = False, 0
    if allowed:
        return [b"1.0", request_id, b"200", b"OK", b"%d" % peer_pid, b""]
    return [b"1.0", request_id, b"400", b"not this user's process", b"", b""]


def parse_peer_address(text: str) -> tuple[int, int]:
    """(uid, pid) of `localhost:uid:gid:pid` (libzmq on a unix socket; pid absent on macOS = 0). Raises ValueError."""
    parts = text.split(":")
    if len(parts) < 3:
        raise ValueError(f"no kernel credentials in {text!r}")
    return int(parts[1]), int(parts[3]) if len(parts) > 3 and parts[3] else 0


def make_secret() -> tuple[int, str]:
    """(descriptor for the child, SHA-256 hex to remember). The caller closes the descriptor once the child has it."""
    secret = secrets.token_bytes(32)
    read_end, write_end = os.pipe()
    try:
        os.write(write_end, secret)  # 32 bytes always fit into an empty pipe
    finally:
        os.close(write_end)
    return read_end, hashlib.sha256(secret).hexdigest()


def read_secret(fd: int) -> bytes:
    """The secret behind an inherited descriptor, which is closed. Raises RefusedError when there is none."""
    try:
        with os.fdopen(fd, "rb") as pipe:
            secret = pipe.read(64)
    except OSError as error:
        raise RefusedError(f"the secret could not be read from descriptor {fd}: {error}.") from error
    if not secret:
        raise RefusedError(f"descriptor {fd} holds no secret.", hint="This process is started by the supervisor only.")
    return secret
