"""From a stranger's first message to a peer with a role and addresses: what a HELLO must be, and who is behind it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

import zmq

from agents_registry.errors import BusyError, RefusedError, VibeAroundError
from transports.bus import envelope
from transports.bus.access import PROVEN_KINDS, Access, Role, parse_peer_address
from transports.bus.api import Peer
from transports.bus.codec import decode
from transports.bus.peers import Connection
from transports.bus.vocabulary.conversation import Hello

_log = logging.getLogger(__name__)

PROTOCOL = 1
MAX_PEERS = 4096


class Admission:
    """`bind_names(peer, hello)`: the logical addresses that this connection is to own; VibeAroundError refuses it."""

    def __init__(self, access: Access, bind_names: Callable[[Peer, Hello], Sequence[str]]) -> None:
        self._access = access
        self._bind_names = bind_names

    def read(self, identity: bytes, frames: Sequence[zmq.Frame], connections: int) -> tuple[Hello, int, int] | None:
        """(HELLO, uid, pid) of the first message of a connection; None for the late word of one that was given up.

        Raises VibeAroundError when it is no HELLO, or of another version, or when too many connections are open.
        """
        try:
            if len(frames) != 2:
                raise envelope.EnvelopeError(f"a bus message has {len(frames)} frames instead of 2.")
            if len(identity) != 5 or identity[0] != 0:
                # Those that libzmq makes: a zero byte and a counter that starts at a random number.
                raise RefusedError("a socket identity of one's own choice is not taken.", code="chosen_identity")
            header = envelope.unpack(frames[0].bytes)
            if header.kind in (envelope.BYE, envelope.PONG):
                return None  # of a connection that was given up; it needs no answer
            if header.kind != envelope.HELLO:
                raise envelope.EnvelopeError("the first message of a connection must be a HELLO.", code="hello_first")
            hello = decode(frames[1].bytes)
            if not isinstance(hello, Hello):
                raise envelope.EnvelopeError("a HELLO frame carries another message.")
            low, high = (*hello.protocol, 1, 1)[:2] if len(hello.protocol) >= 2 else (1, 1)
            if not low <= PROTOCOL <= high:
                raise envelope.VersionError(low)
            if connections >= MAX_PEERS:
                raise BusyError(f"{MAX_PEERS} connections are open already.", hint="Close some.")
            uid, pid = parse_peer_address(str(frames[0].get("Peer-Address")))
        except (VibeAroundError, ValueError, TypeError, zmq.ZMQError) as error:
            if isinstance(error, VibeAroundError):
                raise
            raise RefusedError(f"the kernel does not say who this is: {error}.") from error
        return hello, uid, pid
    def judge(
        self, connection: Connection, hello: Hello, role: Role, taken: Callable[[str], bool]
    ) -> tuple[Peer, tuple[str, ...]]:
        """Who the peer is and which addresses are its own. Raises VibeAroundError to refuse it.

        `taken(address)`: the supervisor itself answers there.
        """
        try:
            kind, name, thread = role.role, "", role.host_thread
            if hello.kind in PROVEN_KINDS:
                if not self._access.proves(hello.kind, hello.name, hello.secret):
                    raise RefusedError(
                        f"the secret does not prove the name {hello.name!r} of a {hello.kind}.",
                        hint="Only processes that the supervisor started may use it.",
                        code="not_proven",
                    )
                kind, name, thread = hello.kind, hello.name, ""
            peer = Peer(connection.address, connection.pid, connection.uid, kind, name, role.start_time, thread)
            names = tuple(dict.fromkeys(self._bind_names(peer, hello)))
            for wanted in names:
                if taken(wanted):
                    raise RefusedError(f"the address {wanted!r} belongs to the supervisor itself.")
        except VibeAroundError:
            raise
        except Exception as error:
            # The names come from the supervisor's own code; a defect there refuses the peer and leaves the io thread alive.
            _log.exception("a HELLO could not be judged")
            raise VibeAroundError("the HELLO could not be judged.", hint="See the supervisor's log.") from error
        return peer, names
