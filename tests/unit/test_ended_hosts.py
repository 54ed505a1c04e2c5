"""A turn that ends together with its host: what waits behind it goes to the next host, and nothing is lost on the way."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.world import World, kinds, words


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.close()


@pytest.mark.requires("M4.prompt-meets-stopping")
def test_a_message_behind_a_turn_that_ends_with_its_host_is_run_by_the_next_host(world: World) -> None:
    heard = world.listen("a")
    world.write("a", "first")
    first = world.host
    first.obeys_stop = False
    first.ready()
    world.write("a", "second")
    first.state = "stopping"
    first.event("turn_end", {"stop_reason": "cancelled", "host_ends": True}, first.prompts[-1].turn)
    assert [prompt.blocks[0]["text"] for prompt in first.prompts] == ["first"], "the ending host is given nothing more"
    first.die("exit 0")
    assert len(world.hosts) == 2
    world.host.ready()
    assert [prompt.blocks[0]["text"] for prompt in world.host.prompts] == ["second"]
    world.host.answer("done with it")
    assert "error" not in kinds(heard) and "choice" not in kinds(heard)
    assert "done with it" in words(heard)
