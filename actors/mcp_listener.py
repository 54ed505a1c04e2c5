"""The unix socket that agents' MCP shims connect to; polled by the bus's io thread beside its own sockets."""

from __future__ import annotations

import selectors
import socket
import struct
from collections.abc import Callable, Sequence
from pathlib import Path

from transports.bus.access import Access, Role
from transports.bus.api import Bus
from transports.bus.vocabulary.threads import McpLine

MAX_CONNECTIONS = 256
MAX_UNSENT = 8 << 20
_CHUNK = 1 << 16


class _Connection:
    def __init__(self, number: int, sock: socket.socket) -> None:
        self.number = number
        self.sock = sock
        self.unsent = bytearray()
        self.known = False
        self.early: list[bytes] = []


class McpListener:
    """One descriptor (an epoll of its own) for the endpoint; what it reads becomes `McpLine` messages to `mcp`."""

    def __init__(self, path: Path, bus: Bus, access: Access) -> None:
        self._bus = bus
        self._access = access
        self._selector = selectors.DefaultSelector()
        self._connections: dict[int, _Connection] = {}
        self._number = 0
        self.wake: Callable[[Callable[[], None]], None] = lambda call: call()
        """Runs a callable on the io thread; set once the endpoint exists."""
        path.unlink(missing_ok=True)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.setblocking(False)
        self._socket.bind(str(path))
        path.chmod(0o600)
        self._socket.listen(64)
        self._selector.register(self._socket, selectors.EVENT_READ, None)

    @property
    def extras(self) -> Sequence[McpListener]:
        return [self]

    def fileno(self) -> int:
        return self._selector.fileno()

    def ready(self) -> None:
        for key, mask in self._selector.select(0):
            if key.data is None:
                self._accept()
            elif mask & selectors.EVENT_WRITE:
                self._flush(key.data)
            else:
                self._read(key.data)

    def write(self, number: int, data: bytes) -> None:
        """From any thread."""

        def put() -> None:
            connection = self._connections.get(number)
            if connection is not None:
                connection.unsent += data
                self._flush(connection)

        self.wake(put)

    def _accept(self) -> None:
        try:
            sock, _ = self._socket.accept()
        except OSError:
            return
        if len(self._connections) >= MAX_CONNECTIONS:
            sock.close()
            return
        sock.setblocking(False)
        pid, uid = _peer(sock)
        if uid != self._access.uid:
            sock.close()
            return
        self._number += 1
        connection = _Connection(self._number, sock)
        self._connections[connection.number] = connection
        self._selector.register(sock, selectors.EVENT_READ, connection)

        def classified(role: Role) -> None:
            self.wake(lambda: self._opened(connection, pid, uid, role))

        self._access.classify_soon(pid, classified)

    def _opened(self, connection: _Connection, pid: int, uid: int, role: Role) -> None:
        opened = McpLine(connection.number, b"", True, False, pid, uid, role.role, role.host_thread, role.start_time)
        self._bus.send("mcp", opened)
        connection.known = True
        for data in connection.early:
            self._bus.send("mcp", McpLine(connection.number, data))
        connection.early.clear()

    def _read(self, connection: _Connection) -> None:
        try:
            data = connection.sock.recv(_CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._close(connection)
        elif connection.known:
            self._bus.send("mcp", McpLine(connection.number, data))
        elif sum(map(len, connection.early)) < MAX_UNSENT:
            connection.early.append(data)
        else:
            self._close(connection)

    def _flush(self, connection: _Connection) -> None:
        try:
            while connection.unsent:
                sent = connection.sock.send(connection.unsent[:_CHUNK])
                del connection.unsent[:sent]
        except BlockingIOError:
            pass
        except OSError:
            self._close(connection)
            return
        if len(connection.unsent) > MAX_UNSENT:
            self._close(connection)
            return
        wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if connection.unsent else 0)
        self._selector.modify(connection.sock, wanted, connection)

    def _close(self, connection: _Connection) -> None:
        if self._connections.pop(connection.number, None) is None:
            return
        self._selector.unregister(connection.sock)
        connection.sock.close()
        self._bus.send("mcp", McpLine(connection.number, b"", False, True))


def _peer(sock: socket.socket) -> tuple[int, int]:
    """(pid, uid) of the other end, from the kernel; macOS gives the uid only."""
    if hasattr(socket, "SO_PEERCRED"):
        pid, uid, _ = struct.unpack("3i", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        return pid, uid
    # struct xucred: version, uid, ... (macOS); LOCAL_PEERPID is 2 on SOL_LOCAL 0.
    credentials = sock.getsockopt(0, 1, 76)
    pid = struct.unpack("i", sock.getsockopt(0, 2, 4))[0]
    return pid, struct.unpack("I", credentials[4:8])[0]
