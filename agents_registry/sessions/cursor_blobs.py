"""Cursor's store.db: blobs named by their hash, of which a root node (protobuf) lists the messages in order."""

from __future__ import annotations

import binascii
import sqlite3
from collections.abc import Iterator
from typing import Any

from agents_registry.sessions.filestore import Meta, text_of
from agents_registry.sessions.jsonl import NotJson, Record, decode
from agents_registry.sessions.sqlite_ro import columns

_ID_BYTES = 32


def store_meta(connection: sqlite3.Connection) -> Record:
    """What the meta table says of the session (agentId, name, latestRootBlobId, ...), empty when it says nothing."""
    if not columns(connection, "meta") or "data" not in columns(connection, "blobs"):
        return {}
    row = connection.execute("SELECT value FROM meta WHERE key = '0'").fetchone()
    value = row["value"] if row is not None else b""
    raw = value if isinstance(value, bytes) else str(value).encode()
    if not raw.lstrip().startswith(b"{"):
        try:
            raw = binascii.unhexlify(raw.strip())
        except binascii.Error:
            return {}
    found = _json(raw)
    return found if isinstance(found, dict) else {}


def blobs_in_order(connection: sqlite3.Connection, head: Record, meta: Meta) -> Iterator[Record]:
    """Messages in the order of the root node; without a root that can be read, in the order in which they came."""
    root = _blob(connection, text_of(head, "latestRootBlobId"))
    names = list(_names(root)) if root else []
    if names:
        blobs: Iterator[bytes] = (_blob(connection, name) for name in names)
    else:
        blobs = (_bytes(row["data"]) for row in connection.execute("SELECT data FROM blobs ORDER BY rowid"))
    for blob in blobs:
        if not blob.lstrip().startswith(b"{"):
            continue  # a node of the graph
        message = _json(blob)
        if isinstance(message, dict) and text_of(message, "role"):
            yield message
        elif message is None:
            meta.reject(0, "a message that is not JSON")


def _blob(connection: sqlite3.Connection, name: str) -> bytes:
    row = connection.execute("SELECT data FROM blobs WHERE id = ?", (name,)).fetchone() if name else None
    return _bytes(row["data"]) if row is not None else b""


def _bytes(value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogatepass")


def _json(raw: bytes) -> Any:
    try:
        return decode(raw)
    except NotJson:
        return None


def _names(node: bytes) -> Iterator[str]:
    """Field 1 of a protobuf message, repeated: the hashes of the messages. Stops at what is no protobuf."""
    position = 0
    while position < len(node):
        key, position = _varint(node, position)
        wire = key & 7
        if wire == 2:
            size, position = _varint(node, position)
            if key >> 3 == 1 and size == _ID_BYTES:
                yield node[position : position + size].hex()
            position += size
        elif wire == 0:
            _, position = _varint(node, position)
        elif wire in (1, 5):
            position += 8 if wire == 1 else 4
        else:
            return


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while position < len(data) and shift < 64:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
    return 0, len(data)
