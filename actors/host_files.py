"""Large parts of events, as files: the bus carries a reference {path, size, sha256, head, tail} instead.

Files lie in `<data>/files` (0600) and are removed with the turn's rows in the journal, by the supervisor.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from pathlib import Path
from typing import Any

from transports.paths import atomic_write

EDGE = 2000
"""Characters of head and of tail that a reference shows."""
WHOLE = 900 << 10
"""Bytes that an event's body may have; below the bus's limit of 1 MiB with room for the header."""


class HostFiles:
    """Writes below one directory, under names that begin with `prefix` (thread and epoch)."""

    def __init__(self, directory: Path, prefix: str, *, limit: int = 256 << 10) -> None:
        self._directory = directory
        self._prefix = "".join(c if c.isalnum() or c in "-_" else "_" for c in prefix)
        self._limit = limit
        self._count = 0

    def fit(self, body: dict[str, Any]) -> dict[str, Any]:
        """The body with every part over the limit replaced by `{"ref": …}`, and small enough for the bus.

        A top-level `text` stays text (its head), with the reference beside it under `ref`.
        """
        fitted: dict[str, Any] = self._walk(body)
        text = fitted.get("text")
        if isinstance(text, dict):
            fitted["text"], fitted["ref"] = text["ref"]["head"], text["ref"]
        if _size(fitted) <= WHOLE:
            return fitted
        for key in sorted(fitted, key=lambda k: _size(fitted[k]), reverse=True):
            if isinstance(fitted[key], str | int | float | bool) or fitted[key] is None or key == "options":
                continue
            raw = json.dumps(fitted[key], ensure_ascii=False).encode("utf-8", "replace")
            fitted[key] = {"ref": self._store(raw, "application/json")}
            if _size(fitted) <= WHOLE:
                return fitted
        for key, value in fitted.items():
            if isinstance(value, str) and len(value) > EDGE:
                fitted[key] = {"ref": self._store(value.encode("utf-8", "replace"), "text/plain")}
        return fitted

    def _walk(self, value: Any) -> Any:
        if isinstance(value, str):
            value = clean(value)
            if len(value) * 4 <= self._limit:
                return value
            raw = value.encode("utf-8", "replace")
            return value if len(raw) <= self._limit else {"ref": self._store(raw, "text/plain")}
        if isinstance(value, dict):
            if value.get("type") in ("image", "audio") and isinstance(value.get("data"), str):
                return self._media(value)
            return {clean(str(k)): self._walk(v) for k, v in value.items()}
        if isinstance(value, list | tuple):
            return [self._walk(v) for v in value]
        return value

    def _media(self, block: dict[str, Any]) -> dict[str, Any]:
        """An image or sound always travels as a file of its own bytes."""
        try:
            raw = base64.b64decode(block["data"], validate=True)
        except (binascii.Error, ValueError):
            return {**block, "data": self._walk(block["data"][: self._limit // 4])}
        mime = str(block.get("mimeType") or "application/octet-stream")
        return {**block, "data": {"ref": self._store(raw, mime)}}

    def _store(self, raw: bytes, mime: str) -> dict[str, Any]:
        digest = hashlib.sha256(raw).hexdigest()
        self._count += 1
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self._directory / f"{self._prefix}-{self._count}-{digest[:12]}"
        atomic_write(path, raw)
        textual = mime.startswith("text/") or mime == "application/json"
        # Four bytes are the longest character of UTF-8: the slices hold at least EDGE characters where there are any.
        head = raw[: EDGE * 4].decode("utf-8", "replace")[:EDGE] if textual else ""
        tail = raw[-EDGE * 4 :].decode("utf-8", "replace")[-EDGE:] if textual and len(raw) > EDGE * 4 else ""
        return {"path": str(path), "size": len(raw), "sha256": digest, "head": head, "tail": tail, "mime": mime}


def clean(text: str) -> str:
    """The same text, always encodable: surrogate pairs that JSON had split are joined, lone ones become U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def _size(value: Any) -> int:
    """Bytes on the wire, nearly: JSON is never smaller than msgpack for the same text."""
    return len(json.dumps(value, ensure_ascii=False, default=str).encode("utf-8", "replace"))
