"""JSON-RPC 2.0 as lines over pipes: one JSON object a line, split at `\\n` bytes only.

(U+2028 and its kin are legal inside JSON strings and must not split a line, so nothing here uses `splitlines`.)
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterator
from threading import Condition, Thread
from typing import Any, BinaryIO

MAX_LINE = 64 << 20
"""Bytes of one line that are still read; a longer one is skipped and told."""

MAX_WAITING = 256 << 20
"""Bytes that may wait for a peer that does not read its input."""


def encode(message: dict[str, Any]) -> bytes:
    """One line, newline included. Lone surrogates (JSON allows them, UTF-8 does not) become U+FFFD."""
    try:
        return json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
    except UnicodeEncodeError:
        text = json.dumps(message, ensure_ascii=False, separators=(",", ":"))
        return text.encode("utf-8", "replace").replace(b"\n", b" ") + b"\n"


def lines(stream: BinaryIO, *, max_line: int = MAX_LINE, on_skipped: Callable[[int], None]) -> Iterator[bytes]:
    """Lines of `stream` in order, an unterminated last one included, until its end.

    A line longer than `max_line` bytes is left out, without being held in memory; `on_skipped` hears its length.
    """
    while True:
        line = stream.readline(max_line + 1)
        if not line:
            return
        if len(line) <= max_line or line.endswith(b"\n"):
            yield line
            continue
        length = len(line)
        del line
        while True:
            piece = stream.readline(1 << 20)
            length += len(piece)
            if not piece or piece.endswith(b"\n"):
                break
        on_skipped(length)


class LineWriter:
    """Writes lines on a thread of its own, so that a peer that does not read holds up nobody.

    The order of `write` calls is the order on the wire. After the pipe broke, writes are dropped: the reader of the
    other direction is the one who learns that the peer is gone.
    """

    def __init__(self, stream: BinaryIO, *, name: str, max_waiting: int = MAX_WAITING) -> None:
        self._stream = stream
        self._waiting: deque[bytes] = deque()
        self._bytes = 0
        self._max = max_waiting
        self._state = Condition()
        self._closed = False
        self._broken = False
        self._thread = Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def write(self, line: bytes) -> bool:
        """Queue one line; False when more than the bound waits already (the line is not taken)."""
        with self._state:
            if self._closed or self._broken:
                return True
            if self._waiting and self._bytes + len(line) > self._max:
                return False
            self._waiting.append(line)
            self._bytes += len(line)
            self._state.notify()
        return True

    def close(self) -> None:
        """Write what waits, then close the stream. Returns at once."""
        with self._state:
            self._closed = True
            self._state.notify()

    def join(self, limit_s: float) -> None:
        """Wait until the stream is closed, at most `limit_s` seconds."""
        self._thread.join(limit_s)

    def _run(self) -> None:
        while True:
            with self._state:
                while not self._waiting and not self._closed:
                    self._state.wait()
                if not self._waiting:
                    break
                batch = list(self._waiting)
                self._waiting.clear()
            try:
                self._stream.write(b"".join(batch) if len(batch) > 1 else batch[0])
                self._stream.flush()
            except (OSError, ValueError):
                with self._state:
                    self._broken = True
                    self._waiting.clear()
                    self._bytes = 0
                break
            with self._state:
                self._bytes -= sum(map(len, batch))
        try:
            self._stream.close()
        except OSError:
            pass  # a broken pipe says so once more on close; the reader reports the end
