"""Tolerant, streaming reading of files that hold one JSON record a line.

Lines end at LF bytes only (never `str.splitlines`: U+2028 and friends live inside strings), a UTF-8 BOM is removed, a
file that opens with a UTF-16LE BOM is decoded, CR, space and tab round a line are no content. A line that is no JSON,
or nested or long beyond reason, costs that line only: it is counted and remembered as `Skipped`. Memory is bounded by
the longest line that is accepted (`LINE_LIMIT`), whatever the size of the file.

`orjson` is used where it is installed; the standard library decides about everything orjson refuses, so both give the
same records.
"""

from __future__ import annotations

import codecs
import io
import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO, Any, cast

from agents_registry.errors import UsageError
from agents_registry.sessions.port import Skipped

Record = dict[str, Any]

LINE_LIMIT = 32 * 1024 * 1024
"""Bytes of one line; longer ones are passed over without being held in memory."""
EDGE = 64 * 1024
"""Bytes that a look at the head or the tail of a file reads."""
SKIPPED_KEPT = 1000
"""How many skipped records are remembered one by one; all are counted."""
_CHUNK = 1024 * 1024
_TRIM = b" \t\r\n"

_fast: Callable[[bytes], Any] | None
try:
    from orjson import loads as _fast
except ImportError:  # an accelerator, not a need
    _fast = None


class NotJson(ValueError):
    """A line that holds no JSON value; the message says why."""


def decode(line: bytes) -> Any:
    """The value of one line (already free of its LF).

    Raises `NotJson` for bytes that are no UTF-8, no JSON, nested too deeply, or hold an integer too long to convert.
    NaN and infinities are accepted, as the agents' own writers produce them. Never raises anything else.
    """
    if _fast is not None:
        try:
            return _fast(line)
        except ValueError:
            pass  # the standard library has the last word: it takes NaN and lone surrogates
    try:
        return json.loads(line.decode("utf-8"))
    except UnicodeDecodeError:
        raise NotJson("not valid UTF-8") from None
    except RecursionError:
        raise NotJson("nested too deeply") from None
    except json.JSONDecodeError as error:
        raise NotJson("empty or NUL bytes" if not line.strip(b"\0") else f"not JSON: {error.msg}") from None
    except ValueError:
        raise NotJson("an integer too long to read") from None


class JsonLines:
    """Records of a file or of an open binary stream, in file order.

    Iterating yields (1-based physical line number, object). After it, `malformed` counts lines that are no JSON,
    `non_object` values that are no objects, `skipped` names the first `SKIPPED_KEPT` of both, and `ended_in_newline`
    tells whether the file's last line was complete. `keep` (optional) sees the raw line before it is parsed; lines
    for which it answers False are passed over unparsed and counted in `passed`.
    """

    def __init__(
        self,
        source: Path | IO[bytes],
        *,
        limit: int = LINE_LIMIT,
        keep: Callable[[bytes], bool] | None = None,
    ) -> None:
        self._source = source
        self._limit = limit
        self._keep = keep
        self.lines = 0
        """Lines that are not blank."""
        self.malformed = 0
        self.non_object = 0
        self.passed = 0
        self.skipped: list[Skipped] = []
        self.ended_in_newline = True

    def note(self, line: int, why: str) -> None:
        """Remember a record that could not be used (also for callers that reject a record's content)."""
        if len(self.skipped) < SKIPPED_KEPT:
            self.skipped.append(Skipped(line, why))

    def __iter__(self) -> Iterator[tuple[int, Record]]:
        fast, keep = _fast, self._keep
        for number, raw in self._numbered():
            line = raw.strip(_TRIM)
            if not line:
                continue
            self.lines += 1
            if keep is not None and not keep(line):
                self.passed += 1
                continue
            try:
                value = fast(line) if fast is not None else decode(line)
            except ValueError:
                try:
                    value = decode(line)
                except NotJson as error:
                    self.malformed += 1
                    self.note(number, str(error))
                    continue
            if value.__class__ is dict:
                yield number, value
            else:
                self.non_object += 1
                self.note(number, f"a {type(value).__name__}, not an object")

    def _numbered(self) -> Iterator[tuple[int, bytes]]:
        if isinstance(self._source, Path):
            with open_bytes(self._source) as stream:
                yield from self._split(stream)
        else:
            yield from self._split(self._source)

    def _split(self, stream: IO[bytes]) -> Iterator[tuple[int, bytes]]:
        number = 1
        held: list[bytes] = []  # pieces of a line that spans chunks
        size = 0
        for chunk in _utf8_chunks(stream):
            pieces = chunk.split(b"\n")
            last = pieces.pop()
            for piece in pieces:
                if held or size:
                    size += len(piece)
                    if size > self._limit:
                        self._too_long(number, size)
                    else:
                        held.append(piece)
                        yield number, b"".join(held)
                    held, size = [], 0
                else:
                    yield number, piece
                number += 1
            size += len(last)
            if size > self._limit:
                held = []  # its size is still counted, its bytes are not kept
            elif last:
                held.append(last)
        self.ended_in_newline = size == 0
        if size > self._limit:
            self._too_long(number, size)
        elif held:
            yield number, b"".join(held)

    def _too_long(self, number: int, size: int) -> None:
        self.lines += 1
        self.malformed += 1
        self.note(number, f"a line of {size} bytes, longer than the limit of {self._limit}")


def _utf8_chunks(stream: IO[bytes]) -> Iterator[bytes]:
    chunk = stream.read(_CHUNK)
    if chunk.startswith(codecs.BOM_UTF16_LE):
        wide = codecs.getincrementaldecoder("utf-16-le")(errors="replace")
        chunk = chunk[2:]
        while chunk:
            yield wide.decode(chunk).encode("utf-8", "surrogatepass")
            chunk = stream.read(_CHUNK)
        yield wide.decode(b"", final=True).encode("utf-8", "surrogatepass")
        return
    if chunk.startswith(codecs.BOM_UTF8):
        chunk = chunk[3:]
    while chunk:
        yield chunk
        chunk = stream.read(_CHUNK)


def open_bytes(path: Path) -> AbstractContextManager[IO[bytes]]:
    """The file as a stream of bytes; `.zst` is decompressed on the way.

    Raises `UsageError` when the file is compressed and the optional package `zstandard` is missing, OSError as open().
    """
    if path.suffix != ".zst":
        return open(path, "rb", buffering=0)
    try:
        import zstandard
    except ImportError:
        raise UsageError(
            f"{path} is compressed with Zstandard and cannot be read here.",
            hint="Install the extra: pip install 'vibearound[codex-zst]'.",
        ) from None
    raw = open(path, "rb")
    reader = zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True, closefd=True)
    return cast("AbstractContextManager[IO[bytes]]", io.BufferedReader(reader, _CHUNK))


def head(path: Path, size: int = EDGE) -> list[tuple[int, Record]]:
    """Objects of the complete lines within the first `size` bytes (the whole file when it is no longer)."""
    with open_bytes(path) as stream:
        data = _read(stream, size + 1)
    if len(data) > size:
        data = data[: data.rfind(b"\n", 0, size) + 1]
    return list(JsonLines(io.BytesIO(data)))


def tail(path: Path, size: int = EDGE) -> list[Record]:
    """Objects of the lines that begin within the last `size` bytes, in file order; a torn last line is passed over."""
    return [value for _, value in JsonLines(io.BytesIO(tail_bytes(path, size)))]


def tail_bytes(path: Path, size: int = EDGE) -> bytes:
    """The last bytes of a file, beginning at a line's start. Compressed files are read through to their end."""
    if path.suffix == ".zst":
        data = b""
        with open_bytes(path) as stream:
            while chunk := stream.read(_CHUNK):
                data = (data + chunk)[-size - 1 :]
        cut = len(data) > size
    else:
        with open(path, "rb", buffering=0) as stream:
            end = stream.seek(0, io.SEEK_END)
            cut = end > size
            stream.seek(max(0, end - size - 1))
            data = _read(stream, size + 1)
    return data[data.find(b"\n") + 1 :] if cut else data


def backwards(path: Path, *, limit: int = LINE_LIMIT, block: int = EDGE) -> Iterator[Record]:
    """Objects from the last line to the first; lines that are no object, or longer than `limit`, are passed over.

    Reads blocks from the end, so that a caller who wants the last record of some kind reads no more than it takes.
    """
    if path.suffix == ".zst":
        yield from reversed(tail(path, 4 * 1024 * 1024))
        return
    with open(path, "rb", buffering=0) as stream:
        position = stream.seek(0, io.SEEK_END)
        pieces: list[bytes] = []  # of the line that reaches into the block before, last piece first
        held = 0
        while position > 0:
            size = min(block, position)
            position -= size
            stream.seek(position)
            lines = _read(stream, size).split(b"\n")
            if len(lines) > 1:
                yield from _value(b"".join([lines[-1], *reversed(pieces)]) if held <= limit else b"")
                for line in reversed(lines[1:-1]):
                    yield from _value(line)
                pieces, held = [], 0
            held += len(lines[0])
            if held <= limit:
                pieces.append(lines[0])
            else:
                pieces = []
        if held <= limit:
            yield from _value(b"".join(reversed(pieces)))


def _value(raw: bytes) -> Iterator[Record]:
    line = raw.strip(_TRIM).removeprefix(codecs.BOM_UTF8)
    if not line:
        return
    try:
        value = decode(line)
    except NotJson:
        return
    if isinstance(value, dict):
        yield value


def _read(stream: IO[bytes], size: int) -> bytes:
    parts = []
    while size > 0 and (part := stream.read(size)):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
