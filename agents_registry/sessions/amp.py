"""Amp's store: `~/.local/share/amp/threads/T-*.json`, one document a thread.

Since early 2026 the CLI keeps threads on its server; files are what older versions left.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import ClassVar

from agents_registry.sessions.anthropic_blocks import blocks
from agents_registry.sessions.filestore import FileStore, Meta, object_of, objects_in, raw_head, text_of
from agents_registry.sessions.jsonl import Record
from agents_registry.sessions.places import data_home, from_uri, named
from agents_registry.sessions.steps import Kind, Step
from agents_registry.sessions.times import seconds


class AmpStore(FileStore):
    """See the module. `AMP_DATA_HOME` takes the place of the XDG directory's `amp`."""

    agent: str = "amp"
    leaf_keys: ClassVar[tuple[str, ...]] = ()

    def roots(self, env: Mapping[str, str]) -> list[Path]:
        return [named(env, "AMP_DATA_HOME") or data_home(env) / "amp"]

    def files(self, root: Path) -> Iterator[Path]:
        yield from (root / "threads").glob("*.json")

    def is_document(self, path: Path) -> bool:
        return True

    def steps(self, records: Iterable[tuple[int, Record]], meta: Meta) -> Iterator[Step]:
        for line, record in records:
            messages = objects_in(record, "messages")
            if not isinstance(record.get("created"), (int, float)) or not any("messageId" in item for item in messages):
                meta.strange("no thread")
                continue
            meta.ours += 1
            meta.id, meta.title = text_of(record, "id"), text_of(record, "title")
            meta.created_at = seconds(record.get("created"))
            trees = objects_in(object_of(object_of(record, "env"), "initial"), "trees")
            if trees:
                meta.cwd = from_uri(text_of(trees[0], "uri"))
                meta.branch = text_of(object_of(trees[0], "repository"), "ref").removeprefix("refs/heads/")
            for message in messages:
                if (step := _step(message, line)) is not None:
                    yield step

    def torn(self, path: Path) -> bool:
        start = raw_head(path)
        return b'"messages"' in start and b'"messageId"' in start and b'"created"' in start


def _step(message: Record, line: int) -> Step | None:
    at = seconds(object_of(message, "meta").get("sentAt"))
    parts = blocks(message.get("content"), line, at)
    if text_of(message, "role") == "user":
        step = Step(Kind.USER, parts, line, at)
        if step.only_results:
            step.kind = Kind.AGENT
        return step if parts else None
    if text_of(message, "role") == "assistant":
        model = text_of(object_of(message, "usage"), "model")
        return Step(Kind.AGENT, parts, line, at, message_id=str(message.get("messageId", "")), model=model)
    return None


STORE = AmpStore()
