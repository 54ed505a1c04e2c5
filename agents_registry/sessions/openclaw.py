"""OpenClaw's store: `~/.openclaw/agents/<agent>/sessions/*.jsonl`, in the form of Pi, on which it is built.

A result's parentId there names the tool call, not the entry that made it; entries below the header name its id.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from agents_registry.sessions.filestore import FileStore
from agents_registry.sessions.paths import home
from agents_registry.sessions.pi import PiStore, from_openclaw
from agents_registry.sessions.places import named


class OpenClawStore(PiStore):
    """See the module. `OPENCLAW_STATE_DIR` takes the place of ~/.openclaw."""

    agent: str = "openclaw"

    def roots(self, env: Mapping[str, str]) -> list[Path]:
        return [named(env, "OPENCLAW_STATE_DIR") or home(env) / ".openclaw"]

    def files(self, root: Path) -> Iterator[Path]:
        yield from (root / "agents").glob("*/sessions/*.jsonl")

    def recognises(self, path: Path) -> bool:
        return FileStore.recognises(self, path) and from_openclaw(path)


STORE = OpenClawStore()
