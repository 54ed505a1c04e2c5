"""A real unix socket served by McpConnection, and the real shim as a process: what MCP tests are made of."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import select
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from transports import paths
from transports.mcp import server, shim

SHIM = [sys.executable, "-I", "-S", str(Path(shim.__file__))]
WAIT_S = 10.0
Tool = Callable[["Peer", server.PendingCall], None]


class Peer:
    """The supervisor's end of one shim's connection."""

    def __init__(self, sock: socket.socket) -> None:
        self.socket = sock
        self.mcp = server.McpConnection("1.2.3")

    def complete(self, call: server.PendingCall, text: str) -> None:
        self.socket.sendall(self.mcp.complete(call.call_id, text))


def echo(peer: Peer, call: server.PendingCall) -> None:
    """Answers with the tool's name and arguments."""
    peer.complete(call, f"{call.tool.name} {json.dumps(call.tool.arguments)}\n/pickup ABCD")


class Supervisor:
    """Stands in for the supervisor's listener: one thread, one poll. `run_tool` decides on each call."""

    def __init__(self, data_dir: Path, socket_dir: Path, run_tool: Tool = echo) -> None:
        self.path = socket_dir / "mcp.sock"
        self.data_dir = data_dir
        self.run_tool = run_tool
        self.hellos: queue.Queue[server.Hello | None] = queue.Queue()
        self.calls: queue.Queue[tuple[Peer, server.PendingCall]] = queue.Queue()
        self.cancelled: queue.Queue[int] = queue.Queue()
        self._listener = socket.socket(socket.AF_UNIX)
        self.path.unlink(missing_ok=True)
        self._listener.bind(str(self.path))
        self._listener.listen(8)
        paths.write_run(data_dir, socket_dir, "1.2.3", 0.0)
        self._stop_read, self._stop_write = os.pipe()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def die(self) -> None:
        """Close everything at once, as a killed process would; run.json stays behind."""
        os.write(self._stop_write, b"x")
        self._thread.join(WAIT_S)
        assert not self._thread.is_alive()
        os.close(self._stop_read)
        os.close(self._stop_write)

    def _serve(self) -> None:
        peers: dict[int, Peer] = {}
        poll = select.poll()
        poll.register(self._listener, select.POLLIN)
        poll.register(self._stop_read, select.POLLIN)
        while True:
            for fd, _ in poll.poll():
                if fd == self._stop_read:
                    self._listener.close()
                    for peer in peers.values():
                        peer.socket.close()
                    return
                if fd == self._listener.fileno():
                    peer = Peer(self._listener.accept()[0])
                    peers[peer.socket.fileno()] = peer
                    poll.register(peer.socket, select.POLLIN)
                else:
                    self._read(peers[fd], poll, peers)

    def _read(self, peer: Peer, poll: select.poll, peers: dict[int, Peer]) -> None:
        try:
            data = peer.socket.recv(65536)
        except ConnectionResetError:
            data = b""
        if not data:
            poll.unregister(peer.socket)
            del peers[peer.socket.fileno()]
            peer.socket.close()
            return
        had_hello = peer.mcp.hello
        fed = peer.mcp.feed(data)
        if peer.mcp.hello is not had_hello:
            self.hellos.put(peer.mcp.hello)
        if fed.out:
            with contextlib.suppress(BrokenPipeError):  # a shim that has just ended
                peer.socket.sendall(fed.out)
        for call_id in fed.cancelled:
            self.cancelled.put(call_id)
        for call in fed.calls:
            self.calls.put((peer, call))
            self.run_tool(peer, call)


class Agent:
    """The shim as an agent starts it: lines in, lines out, each wait bounded."""

    def __init__(self, data_dir: Path, env: dict[str, str] | None = None, cwd: Path | None = None) -> None:
        self.process = subprocess.Popen(
            [*SHIM, "--data-dir", str(data_dir)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={"HOME": str(data_dir), **(env or {})},
            cwd=cwd,
        )
        self._buffer = b""

    def send(self, *messages: dict[str, Any] | bytes) -> None:
        assert self.process.stdin is not None
        for message in messages:
            line = message if isinstance(message, bytes) else json.dumps(message).encode() + b"\n"
            self.process.stdin.write(line)
        self.process.stdin.flush()

    def receive(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        fd = self.process.stdout.fileno()
        while b"\n" not in self._buffer:
            ready, _, _ = select.select([fd], [], [], WAIT_S)
            assert ready, "no answer from the shim"
            data = os.read(fd, 65536)
            assert data, f"the shim ended: {self.process.stderr.read() if self.process.stderr else b''!r}"
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\n")
        message: dict[str, Any] = json.loads(line)
        return message

    def end(self) -> int:
        """Close stdin, as an agent does; the exit code, within the limit."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        code = self.process.wait(WAIT_S)
        self.process.stdout.close()
        if self.process.stderr is not None:
            assert self.process.stderr.read() == b""
            self.process.stderr.close()
        return code

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(WAIT_S)


def call(request_id: int | str, name: str = "register_workspace", **arguments: Any) -> dict[str, Any]:
    """A tool call as an agent of the older era sends it."""
    params = {"name": name, "arguments": arguments or {"cwd": "/tmp"}}
    return {"jsonrpc": "2.0", "id": request_id, "method": "tools/call", "params": params}


def text_of(message: dict[str, Any]) -> str:
    text: str = message["result"]["content"][0]["text"]
    return text
