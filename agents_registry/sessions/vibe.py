"""Mistral Vibe's store: `~/.vibe/logs/session/session_<time>_<id>/{meta.json,messages.jsonl}`, and version 3's layout.

Version 3 keeps `unified/<id>/` with CURRENT naming a generation whose projection lists content-addressed chunks; that
is read, never written. Before version 2 a session was one document, session_*.json (mistralai/mistral-vibe).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

from agents_registry.sessions.filestore import (
    FileStore,
    Meta,
    file_tail,
    object_of,
    objects_in,
    read_document,
    sidecar,
    text_of,
)
from agents_registry.sessions.jsonl import Record
from agents_registry.sessions.openai_messages import chat_step
from agents_registry.sessions.paths import home, newest
from agents_registry.sessions.places import named
from agents_registry.sessions.port import SessionInfo, Tail
from agents_registry.sessions.steps import Step
from agents_registry.sessions.times import seconds

_ROLES = frozenset({"user", "assistant", "tool", "system"})
_CHUNKS = 10_000
"""Chunks of one projection that are read at most."""


class VibeStore(FileStore):
    """See the module. `VIBE_HOME` takes the place of ~/.vibe."""

    agent: str = "vibe"
    leaf_keys: ClassVar[tuple[str, ...]] = ()

    def roots(self, env: Mapping[str, str]) -> list[Path]:
        return [named(env, "VIBE_HOME") or home(env) / ".vibe"]

    def files(self, root: Path) -> Iterator[Path]:
        logs = root / "logs" / "session"
        yield from logs.glob("session_*/messages.jsonl")
        yield from logs.glob("session_*.json")
        yield from logs.glob("unified/*/CURRENT")

    def is_document(self, path: Path) -> bool:
        return path.suffix == ".json" or path.name == "CURRENT"

    def records(self, path: Path, meta: Meta) -> Iterator[tuple[int, Record]]:
        if path.name == "CURRENT":
            for record in _unified(path, meta):
                meta.objects += 1
                yield 0, record
        else:
            yield from super().records(path, meta)

    def steps(self, records: Iterable[tuple[int, Record]], meta: Meta) -> Iterator[Step]:
        for line, record in records:
            if isinstance(record.get("messages"), list) and isinstance(record.get("metadata", {}), dict):
                self._about(object_of(record, "metadata"), meta)
                messages = objects_in(record, "messages")
            else:
                messages = [record]
            for message in messages:
                if text_of(message, "role") not in _ROLES or "content" not in message or ("type" in message and line):
                    meta.strange(text_of(message, "type")[:40])
                    continue
                meta.ours += 1
                at = seconds(message.get("createdAt"))
                if (step := chat_step(message, line, at)) is not None:
                    yield step

    def _about(self, record: Record, meta: Meta) -> None:
        meta.id = text_of(record, "session_id") or meta.id
        meta.cwd = text_of(object_of(record, "environment"), "working_directory") or meta.cwd
        meta.title = text_of(record, "title") or meta.title
        meta.branch = text_of(record, "git_branch") or meta.branch
        meta.created_at = seconds(record.get("start_time"))
        meta.updated_at = seconds(record.get("end_time"))

    def beside(self, path: Path, root: Path | None, meta: Meta) -> None:
        if path.suffix != ".json":
            self._about(sidecar(path.with_name("meta.json")), meta)
            meta.id = meta.id or path.parent.name

    def name_part(self, wanted: str) -> str:
        return wanted[:8]

    def tail(self, info: SessionInfo) -> Tail:
        if info.path.name != "CURRENT":
            return super().tail(info)
        found = newest([info.path, *info.path.parent.glob("journal/*.jsonl")])
        return file_tail(found[0][0]) if found else Tail("", 0, 0)

    def recognises(self, path: Path) -> bool:
        """Messages in OpenAI's shape are no agent's own; the files of Vibe are known by what lies with them."""
        if path.name == "CURRENT":
            return (path.parent / "generations").is_dir()
        if path.name == "messages.jsonl":
            about = sidecar(path.with_name("meta.json"))
            return "session_id" in about and "environment" in about and super().recognises(path)
        return path.name.startswith("session_") and "metadata" in sidecar(path) and super().recognises(path)


def _unified(path: Path, meta: Meta) -> Iterator[Record]:
    """Messages of the current generation: its projection names the chunks, chunks hold entries or more names."""
    try:
        generation = path.read_text("utf-8", "replace").strip()
    except OSError:
        return
    if not generation or len(Path(generation).parts) > 2 or ".." in generation:
        meta.reject(0, "CURRENT names no generation")
        return
    folder = next(
        (found for found in (path.parent / "generations" / Path(generation).name, path.parent / generation) if found.is_dir()),
        None,
    )
    if folder is None:
        meta.reject(0, f"the generation {generation[:40]} is not there")
        return
    budget = [_CHUNKS]
    yield from _entries(_read(folder / "projection-state.json", meta), path.parent, meta, budget, 0)


def _entries(value: Any, session: Path, meta: Meta, budget: list[int], depth: int) -> Iterator[Record]:
    if depth > 40:
        return
    if isinstance(value, list):
        for item in value:
            yield from _entries(item, session, meta, budget, depth + 1)
    elif isinstance(value, dict):
        if isinstance(value.get("role"), str) and "content" in value:
            yield value
            return
        for item in value.values():
            yield from _entries(item, session, meta, budget, depth + 1)
    elif isinstance(value, str) and len(value.removeprefix("sha256:")) == 64 and budget[0] > 0:
        chunk = session / "chunks" / f"{value.removeprefix('sha256:')}.json"
        if chunk.is_file():
            budget[0] -= 1
            yield from _entries(_read(chunk, meta), session, meta, budget, depth + 1)


def _read(path: Path, meta: Meta) -> Any:
    try:
        return read_document(path, meta)
    except OSError:
        meta.reject(0, f"{path.name} is not there")
        return None


STORE = VibeStore()
