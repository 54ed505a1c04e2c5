"""Whatever a session file holds, reading it ends without a crash, and what is read can be encoded and exported."""

from __future__ import annotations

import contextlib
import json
import random
from pathlib import Path
from typing import Any

import pytest

from agents_registry.errors import NotFoundError
from agents_registry.sessions import catalog
from agents_registry.sessions.claude_write import ClaudeWriter
from agents_registry.sessions.codex_write import CodexWriter
from agents_registry.sessions.html import to_html
from agents_registry.sessions.markdown import to_markdown
from agents_registry.sessions.neutral import Builder
from agents_registry.sessions.port import SessionInfo
from agents_registry.sessions.schema import to_json
from agents_registry.sessions.turns import turn_running

ID = "1af7fc5e-8455-4414-9ccd-011d40f70b2a"
ODD: list[Any] = [None, True, -1, 1e300, "", [], {}, [None], [[]], {"a": None}, "\ud800", "\0", 10**18, {"type": "text", "text": 3}, [{"type": "tool_use"}]]


def good(agent: str, root: Path) -> bytes:
    made = Builder(agent, "x")
    made.cwd, made.model = "/w", "m"
    for number in range(4):
        made.user(f"question {number}")
        made.text("answer")
        made.call(f"c{number}", "Bash", {"command": "ls"})
        made.result(f"c{number}", "out")
    writer = ClaudeWriter() if agent == "claude" else CodexWriter()
    return writer.write(made.done(), root, session_id=ID, env={}).info.path.read_bytes()


def changed(value: Any, dice: random.Random, share: float) -> Any:
    if dice.random() < share:
        return dice.choice(ODD)
    if isinstance(value, dict):
        return {key: changed(item, dice, share) for key, item in value.items() if dice.random() > share / 4}
    return [changed(item, dice, share) for item in value] if isinstance(value, list) else value


def damaged(data: bytes, seed: int) -> bytes:
    dice = random.Random(seed)
    if seed % 3 == 0:
        raw = bytearray(data)
        for _ in range(20):
            raw[dice.randrange(len(raw))] = dice.randrange(256)
        return bytes(raw[: dice.randrange(len(raw))])
    lines = [json.dumps(changed(json.loads(line), dice, 0.03 * (seed % 4 + 1))).encode() for line in data.split(b"\n") if line]
    if seed % 5 == 0:
        dice.shuffle(lines)
    return b"\n".join(lines)


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("agent", ["claude", "codex"])
def test_damage_of_any_kind_costs_records_and_never_the_reader(agent: str, seed: int, tmp_path: Path) -> None:
    path = tmp_path / "projects" / "-w" / f"{ID}.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(damaged(good(agent, tmp_path / "source"), seed))
    store: Any = catalog.need(agent)
    store.recognises(path)
    with contextlib.suppress(NotFoundError):  # nothing of the agent may be left in the file
        assert store.inspect(path).agent == agent
    info = store.describe(path, tmp_path) or SessionInfo(agent, ID, "", "", 0.0, path, tmp_path)
    store.tail(info)
    turn_running(info)
    conversation = store.read(info)
    for form in (to_json, to_markdown, to_html):
        form(conversation).encode("utf-8")
