"""The header's bytes, and what is refused of them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents_registry.errors import UsageError
from transports.bus import envelope, vocabulary
from transports.bus.codec import MAX_BODY, decode, encode
from transports.bus.vocabulary.conversation import Ok
from transports.bus.vocabulary.lists import GetStatus

ROOT = Path(__file__).resolve().parents[2]
_GOLDEN = {
    envelope.HELLO: "97010000 00a000a0",
    envelope.WELCOME: "97010100 00a6706565722f3100a0",
    envelope.SEND: "9801022a 00ab726f7574652f6162633a64 00a0a6706565722f31",
    envelope.REPLY: "97010300 2aa000a0",
    envelope.ERROR: "97010400 00a000a0",
    envelope.ACK: "97010500 00a0cd012ca46f757431",
    envelope.PING: "97010600 00a000a0",
    envelope.PONG: "97010700 05a000a0",
    envelope.BYE: "97010800 00a000a0",
}
_PACKED = {
    envelope.HELLO: envelope.pack(envelope.HELLO),
    envelope.WELCOME: envelope.pack(envelope.WELCOME, address="peer/1"),
    envelope.SEND: envelope.pack(envelope.SEND, id=42, address="route/abc:d", sender="peer/1"),
    envelope.REPLY: envelope.pack(envelope.REPLY, corr=42),
    envelope.ERROR: envelope.pack(envelope.ERROR),
    envelope.ACK: envelope.pack(envelope.ACK, seq=300, stream="out1"),
    envelope.PING: envelope.pack(envelope.PING),
    envelope.PONG: envelope.pack(envelope.PONG, corr=5),
    envelope.BYE: envelope.pack(envelope.BYE),
}


@pytest.mark.requires("H2.frames")
@pytest.mark.parametrize("kind", range(9), ids=envelope.KINDS)
def test_every_kind_has_its_documented_bytes(kind: int) -> None:
    golden = bytes.fromhex(_GOLDEN[kind])
    assert _PACKED[kind] == golden
    assert envelope.unpack(golden).kind == kind


@pytest.mark.requires("H2.frames")
def test_an_unknown_version_is_an_error_that_names_it() -> None:
    with pytest.raises(envelope.VersionError) as caught:
        envelope.unpack(msgpack.packb([7, "anything", {"of": "that version"}]))
    assert caught.value.version == 7
    assert caught.value.code == "bad_version"
    assert caught.value.hint


@pytest.mark.requires("H2.frames")
def test_fields_that_a_newer_peer_appends_are_ignored() -> None:
    newer = msgpack.packb([1, envelope.SEND, 3, 0, "a", 0, "", "b", "new", {"x": 1}])
    assert envelope.unpack(newer) == envelope.Header(1, envelope.SEND, 3, 0, "a", 0, "", "b")


@pytest.mark.requires("H2.frames")
def test_fields_that_an_older_peer_does_not_send_take_their_defaults() -> None:
    assert envelope.unpack(msgpack.packb([1, envelope.PING])) == envelope.Header(1, envelope.PING)


@pytest.mark.parametrize(
    "fields",
    [
        [], "text", [1], [1, 99], [1, -1], [1, "2"], [1, 2, -1], [1, 2, 1 << 32], [1, 2, 0, True], [1, 2, 0, 0, 5],
        [1, 2, 0, 0, "a" * 1025], [1, 2, 0, 0, "a", -1], [1, 2, 0, 0, "a", 0, b"bytes"], [1, 2, 0, 0, "a", 0, "", None],
        [True, 2],
    ],
)  # fmt: skip
def test_a_header_of_wrong_types_or_sizes_is_refused(fields: object) -> None:
    with pytest.raises(envelope.EnvelopeError):
        envelope.unpack(msgpack.packb(fields))


@given(st.binary(max_size=200))
def test_no_bytes_make_unpack_raise_anything_but_its_own_error(data: bytes) -> None:
    try:
        header = envelope.unpack(data)
    except envelope.EnvelopeError:
        return
    assert header.version == envelope.VERSION


@given(
    st.integers(0, 8), st.integers(0, envelope.MAX_ID), st.text(max_size=80), st.integers(0, 1 << 40), st.text(max_size=20)
)
def test_what_is_packed_is_unpacked_unchanged(kind: int, ident: int, address: str, seq: int, sender: str) -> None:
    data = envelope.pack(kind, id=ident, corr=ident, address=address, seq=seq, stream="s", sender=sender)
    assert envelope.unpack(data) == (1, kind, ident, ident, address, seq, "s", sender)


@pytest.mark.requires("H2.frame-limits")
def test_a_message_over_a_mebibyte_is_refused_with_a_word_and_one_below_it_travels() -> None:
    with pytest.raises(UsageError) as caught:
        encode(Ok({"text": "x" * MAX_BODY}))
    assert caught.value.code == "too_large"
    assert str(MAX_BODY) in caught.value.message
    fits = Ok({"text": "x" * (MAX_BODY - 100)})
    assert decode(encode(fits)) == fits
    with pytest.raises(envelope.EnvelopeError):
        envelope.check_body(b"x" * (MAX_BODY + 1))
    assert envelope.check_body(encode(GetStatus())) == encode(GetStatus())


def test_a_message_of_a_part_that_is_not_loaded_yet_is_known_all_the_same() -> None:
    """In a process of its own: here everything is loaded."""
    program = "from transports.bus import codec; print(type(codec.decode(codec._packed(['get_status']))).__name__)"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=30)
    assert done.stdout == "GetStatus\n", done.stderr
    assert sorted(vocabulary.PARTS) == sorted(
        path.stem for path in Path(str(vocabulary.__file__)).parent.glob("*.py") if path.stem != "__init__"
    )
