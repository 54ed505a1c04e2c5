"""One agent's connection to the MCP server: bytes in, bytes and tool calls out. No socket, no thread, no clock.

The supervisor's io thread owns the listener. It feeds what it reads, sends what it gets back, runs the calls as it
likes, in any order, and hands their results to `complete` or `fail`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from transports.mcp import core

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agents_registry.errors import VibeAroundError
    from transports.mcp.tools import ToolCall

MAX_OPEN_CALLS = 32
"""Calls of one connection that may run at once; more are refused with a word."""
_KEPT_OF_LONG_LINE = 2048
_HELLO_PREFIX = b'{"vibearound":'


class Hello(NamedTuple):
    """What the shim says about itself in a first, private line. Evidence only: whoever connects can write anything here;
    the kernel's word on the peer is the listener's to ask."""

    pid: int
    parent_pid: int
    cwd: str
    environ: dict[str, str]


class PendingCall(NamedTuple):
    """A tool to run. `call_id` counts up from 1 within its connection."""

    call_id: int
    tool: ToolCall


class Fed(NamedTuple):
    """What came of some bytes: `out` to send now, `calls` to run, `cancelled` call ids whose results nobody wants."""

    out: bytes
    calls: list[PendingCall]
    cancelled: list[int]


class McpConnection:
    """The state of one connection: an unfinished line, the open calls, and what is known of the other side."""

    def __init__(self, server_version: str) -> None:
        self.hello: Hello | None = None
        self.client: core.Client | None = None
        """The name the agent gave in its handshake; None after a supervisor restart, until it says it again."""
        self._version = server_version
        self._buffer = b""
        self._discarding = False
        self._head = b""
        self._tail = b""
        self._first = True
        self._next_call = 1
        self._open: dict[int, tuple[core.RequestId, bool]] = {}

    def feed(self, data: bytes) -> Fed:
        """Take in bytes as they came from the socket, whole lines or not. Never raises; memory stays bounded."""
        out: list[bytes] = []
        calls: list[PendingCall] = []
        cancelled: list[int] = []
        for line in self._lines(data, out):
            if self._first:
                self._first = False
                if line.startswith(_HELLO_PREFIX):
                    self.hello = _parse_hello(line)
                    continue
            received = core.receive(line, self._version)
            if isinstance(received, core.Answer):
                self.client = received.client or self.client
                out.append(core.encode(received.message))
            elif isinstance(received, core.Cancel):
                dropped = self._call_of(received.id)
                if dropped is not None:
                    del self._open[dropped]
                    known = len(calls)
                    calls = [call for call in calls if call.call_id != dropped]
                    if len(calls) == known:  # handed out by an earlier feed
                        cancelled.append(dropped)
            elif isinstance(received, core.Call):
                self.client = received.client or self.client
                refusal = self._refusal(received)
                if refusal:
                    out.append(refusal)
                    continue
                calls.append(PendingCall(self._next_call, received.tool))
                self._open[self._next_call] = (received.id, received.modern)
                self._next_call += 1
        return Fed(b"".join(out), calls, cancelled)

    def complete(self, call_id: int, text: str) -> bytes:
        """The line that answers a call; empty when it was cancelled or answered before."""
        return self._answer(call_id, text, is_error=False)

    def fail(self, call_id: int, error: VibeAroundError) -> bytes:
        """The line that tells the agent why a call failed and what to do; empty like `complete`."""
        return self._answer(call_id, str(error), is_error=True)

    def open_calls(self) -> list[int]:
        """Calls that still want an answer; what a listener gives up when the connection ends."""
        return list(self._open)

    def _answer(self, call_id: int, text: str, *, is_error: bool) -> bytes:
        request = self._open.pop(call_id, None)
        if request is None:
            return b""
        request_id, modern = request
        return core.encode(core.tool_message(request_id, text, modern, is_error=is_error))

    def _refusal(self, call: core.Call) -> bytes:
        if self._call_of(call.id) is not None:
            text = "A request with this id is still being answered."
            return core.encode(core.error_message(call.id, core.INVALID_REQUEST, text))
        if len(self._open) >= MAX_OPEN_CALLS:
            text = f"{MAX_OPEN_CALLS} calls are running already; wait for one to end, then call again."
            return core.encode(core.tool_message(call.id, text, call.modern, is_error=True))
        return b""

    def _call_of(self, request_id: core.RequestId) -> int | None:
        for call_id, (known, _) in self._open.items():
            if known == request_id and type(known) is type(request_id):
                return call_id
        return None

    def _lines(self, data: bytes, out: list[bytes]) -> Iterator[bytes]:
        """Whole lines, without their line feed; a line above the limit is refused when it ends, and not kept."""
        *ended, rest = (self._buffer + data).split(b"\n")
        self._buffer = b""
        for line in ended:
            if self._discarding or len(line) > core.LINE_LIMIT:
                self._discard(line)
                out.append(core.encode(core.refuse_long_line(self._head, self._tail)))
                self._discarding = False
            else:
                yield line
        if self._discarding or len(rest) > core.LINE_LIMIT:
            self._discard(rest)
        else:
            self._buffer = rest

    def _discard(self, part: bytes) -> None:
        if not self._discarding:
            self._discarding, self._head, self._tail = True, part[:_KEPT_OF_LONG_LINE], b""
        self._tail = (self._tail + part[-_KEPT_OF_LONG_LINE:])[-_KEPT_OF_LONG_LINE:]


def _parse_hello(line: bytes) -> Hello | None:
    try:
        fields = json.loads(line)
        environ = {str(name): str(value) for name, value in fields["env"].items()}
        return Hello(int(fields["pid"]), int(fields["ppid"]), str(fields["cwd"]), environ)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None  # evidence that cannot be read is no evidence
