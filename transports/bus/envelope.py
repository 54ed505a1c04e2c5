"""The outer form of a bus message: two ZeroMQ frames, header and body.

The header is a positional msgpack array `[version, kind, id, corr, address, seq, stream]`, with the sender's address
as an eighth field where there is one. A router needs nothing else: the body stays opaque to it. Compatibility: the
version comes first and an unknown one is a typed error; what follows the known fields is ignored, so that a newer
peer may append fields; what is absent at the end takes its default.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import msgpack

from agents_registry.errors import UsageError
from transports.bus.codec import MAX_BODY

VERSION: Final = 1
HELLO: Final = 0
WELCOME: Final = 1
SEND: Final = 2
REPLY: Final = 3
ERROR: Final = 4
ACK: Final = 5
PING: Final = 6
PONG: Final = 7
BYE: Final = 8
KINDS: Final = ("HELLO", "WELCOME", "SEND", "REPLY", "ERROR", "ACK", "PING", "PONG", "BYE")

MAX_HEADER: Final = 16384
"""Bytes of a packed header."""
MAX_ADDRESS: Final = 1024
"""Characters of an address, a sender or a stream's name."""
MAX_ID: Final = (1 << 32) - 1
"""Message ids are unsigned 32-bit numbers, counted per connection and direction; 0 = no answer is awaited."""
_MAX_SEQ: Final = (1 << 63) - 1


class EnvelopeError(UsageError):
    """A frame that is not of the bus's form."""

    default_code = "bad_frame"


class VersionError(EnvelopeError):
    """A frame of an envelope version that is not spoken here; `version` says which."""

    default_code = "bad_version"

    def __init__(self, version: int) -> None:
        super().__init__(
            f"a bus message of envelope version {version} came, but version {VERSION} is spoken here.",
            hint="The two sides are of different releases: run `va down` and `va up`.",
        )
        self.version = version


class Header(NamedTuple):
    """See the module's text. `id`: of this message; `corr`: id of the message this one answers; `seq` and `stream`
    belong to reliable streams (0 and "" outside them)."""

    version: int
    kind: int
    id: int = 0
    corr: int = 0
    address: str = ""
    seq: int = 0
    stream: str = ""
    sender: str = ""


_ABSENT: Final = tuple(Header(VERSION, SEND))
_TYPES: Final = (int, int, int, int, str, int, str, str)
_packed = msgpack.Packer().pack
"""One packer for all: it needs no lock, packing is one step for other threads."""


def pack(
    kind: int, *, id: int = 0, corr: int = 0, address: str = "", seq: int = 0, stream: str = "", sender: str = ""
) -> bytes:
    """Bytes of a header of this version. Raises EnvelopeError when a part is too long."""
    if len(address) > MAX_ADDRESS or len(sender) > MAX_ADDRESS or len(stream) > MAX_ADDRESS:
        raise EnvelopeError(f"a bus address is longer than {MAX_ADDRESS} characters: {address[:60]!r}…")
    fields = (VERSION, kind, id, corr, address, seq, stream, sender)
    data: bytes = _packed(fields if sender else fields[:7])
    return data


def unpack(data: bytes) -> Header:
    """The header that `data` holds. Raises VersionError or EnvelopeError; never returns a half-checked header."""
    if len(data) > MAX_HEADER:
        raise EnvelopeError(f"a bus header of {len(data)} bytes is longer than {MAX_HEADER}.")
    try:
        parts: Any = msgpack.unpackb(data, use_list=False, strict_map_key=True)
    except (ValueError, TypeError, msgpack.exceptions.UnpackException) as error:
        raise EnvelopeError(f"a bus header could not be read: {error}.") from error
    if type(parts) is not tuple or not parts or type(parts[0]) is not int:
        raise EnvelopeError("a bus header is not an array that starts with its version.")
    if parts[0] != VERSION:
        raise VersionError(parts[0])
    if len(parts) < 2:
        raise EnvelopeError("a bus header lacks its kind.")
    if len(parts) != 8:
        parts = parts[:8] + _ABSENT[len(parts) :]
    _, kind, ident, corr, address, seq, stream, sender = parts
    if not (
        tuple(map(type, parts)) == _TYPES
        and 0 <= kind <= BYE
        and 0 <= ident <= MAX_ID
        and 0 <= corr <= MAX_ID
        and 0 <= seq <= _MAX_SEQ
        and len(address) <= MAX_ADDRESS
        and len(stream) <= MAX_ADDRESS
        and len(sender) <= MAX_ADDRESS
    ):
        raise EnvelopeError("a bus header has a field of the wrong type or size.")
    return tuple.__new__(Header, parts)


def check_body(body: bytes) -> bytes:
    """The body itself, when the bus carries as much. Raises EnvelopeError."""
    if len(body) > MAX_BODY:
        raise EnvelopeError(f"a bus body of {len(body)} bytes is larger than the bus carries ({MAX_BODY}).", code="too_large")
    return body
