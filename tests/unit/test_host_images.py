"""A picture that a person sent reaches an agent that takes images as an image, any other agent as a link."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from actors.host_images import LARGEST, with_images

TAKES = {"promptCapabilities": {"image": True}}
TEXT = {"type": "text", "text": "what is it?"}


def _link(path: Path, mime: str = "image/png") -> dict[str, Any]:
    return {"type": "resource_link", "uri": path.as_uri(), "name": path.name, "mimeType": mime, "size": 4}


@pytest.fixture
def files(tmp_path: Path) -> Path:
    place = tmp_path / "files"
    place.mkdir()
    (place / "in-1 ü.png").write_bytes(b"\x89PNG")
    return place


@pytest.mark.requires("S2.images-to-agent")
def test_an_agent_that_takes_images_gets_the_picture_and_the_link(files: Path) -> None:
    link = _link(files / "in-1 ü.png")
    image = {"type": "image", "mimeType": "image/png", "data": base64.b64encode(b"\x89PNG").decode(), "uri": link["uri"]}
    assert with_images([TEXT, link], TAKES, files) == [TEXT, image, link]


@pytest.mark.parametrize("capabilities", [{}, {"promptCapabilities": {}}, {"promptCapabilities": {"image": False}}, {"promptCapabilities": 1}])
def test_an_agent_that_takes_none_gets_the_link(files: Path, capabilities: dict[str, Any]) -> None:
    blocks = [TEXT, _link(files / "in-1 ü.png")]
    assert with_images(blocks, capabilities, files) == blocks


def test_what_is_no_picture_of_ours_stays_a_link(files: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.png").write_bytes(b"secret")
    (files / "link.png").symlink_to(tmp_path / "secret.png")
    (files / "empty.png").touch()
    with (files / "large.png").open("wb") as large:
        large.truncate(LARGEST + 1)
    names = [tmp_path / "secret.png", files / "link.png", files / "empty.png", files / "large.png", files / "missing.png"]
    blocks = [*(_link(name) for name in names), _link(files / "in-1 ü.png", "application/pdf"), {"type": "resource_link", "uri": "http://x/y.png"}]
    assert with_images(blocks, TAKES, files) == blocks
