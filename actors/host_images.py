"""Pictures of a prompt: they travel as links to private files, and become image blocks for an agent that takes images.

ACP: `promptCapabilities.image` in the answer to initialize; block {type: image, mimeType, data (base64), uri}
(agentclientprotocol.com, "Content" and "Initialization").
"""

from __future__ import annotations

import base64
import os
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

MIMES = ("image/png", "image/jpeg", "image/webp", "image/gif")
LARGEST = 3_700_000
"""Bytes of a picture; as base64 just below the 5 MB that the strictest of the models takes. A larger one stays a link."""


def with_images(blocks: list[Any], capabilities: dict[str, Any], files: Path) -> list[Any]:
    """The blocks, with an image block before each link to a picture below `files`. The link stays: the agent may copy the
    file. What cannot be read, or lies elsewhere, stays a link alone."""
    prompt = capabilities.get("promptCapabilities")
    if not isinstance(prompt, dict) or prompt.get("image") is not True:
        return blocks
    done: list[Any] = []
    for block in blocks:
        raw = _picture(block, files)
        if raw is not None:
            done.append({"type": "image", "mimeType": block["mimeType"], "data": base64.b64encode(raw).decode(), "uri": block["uri"]})
        done.append(block)
    return done


def _picture(block: Any, files: Path) -> bytes | None:
    if not isinstance(block, dict) or block.get("type") != "resource_link" or block.get("mimeType") not in MIMES:
        return None
    parts = urlsplit(str(block.get("uri") or ""))
    if parts.scheme != "file":
        return None
    path = Path(os.path.realpath(unquote(parts.path)))
    if not path.is_relative_to(os.path.realpath(files)) or not path.is_file():
        return None
    try:
        with path.open("rb") as file:
            raw = file.read(LARGEST + 1)
    except OSError:
        return None
    return raw if 0 < len(raw) <= LARGEST else None
