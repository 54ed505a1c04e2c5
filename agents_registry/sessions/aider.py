"""Aider's store: `.aider.chat.history.md` in the project, one Markdown file for all sessions of a directory.

`# aider chat started at` opens a session, `#### ` lines are the human's (those beginning with a slash are commands),
`> ` lines are Aider's own, all else is the model's words, headings included (Aider-AI/aider, utils.py drops those).
There is no id, no time of a turn and no directory in it; a session is the file's last one.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import ClassVar

from agents_registry.sessions.filestore import FileStore, Meta, raw_head
from agents_registry.sessions.jsonl import LINE_LIMIT, Record
from agents_registry.sessions.neutral import Text
from agents_registry.sessions.paths import home
from agents_registry.sessions.places import named
from agents_registry.sessions.steps import Kind, Step

_START = re.compile(r"# aider chat started at (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)")
_NAME = ".aider.chat.history.md"


class AiderStore(FileStore):
    """See the module. A root is a project directory; `AIDER_CHAT_HISTORY_FILE` names another file."""

    agent: str = "aider"
    id_in_name: ClassVar[bool] = False
    leaf_keys: ClassVar[tuple[str, ...]] = ()

    def roots(self, env: Mapping[str, str]) -> list[Path]:
        if (own := named(env, "AIDER_CHAT_HISTORY_FILE")) is not None and own.is_absolute():
            return [own]
        return [Path(env["PWD"])] if env.get("PWD") else [home(env)]

    def files(self, root: Path) -> Iterator[Path]:
        path = root if root.is_file() else root / _NAME
        if path.is_file():
            yield path

    def is_document(self, path: Path) -> bool:
        return True

    def records(self, path: Path, meta: Meta) -> Iterator[tuple[int, Record]]:
        """One record per line of Markdown; lines end at LF only, as everywhere."""
        with open(path, "rb") as stream:
            number = 0
            while raw := stream.readline(LINE_LIMIT):
                number += 1
                meta.objects += 1
                yield number, {"text": raw.decode("utf-8", "replace").rstrip("\r\n")}

    def steps(self, records: Iterable[tuple[int, Record]], meta: Meta) -> Iterator[Step]:
        prompt: list[str] = []
        answer: list[str] = []
        at: float | None = None
        begin = 0
        for line, record in records:
            text = record["text"]
            start = _START.match(text)
            if text.startswith("#### "):
                yield from _ended(answer, begin, at)
                begin = begin if prompt else line
                prompt.append(text[5:].rstrip())
                continue
            yield from _asked(prompt, begin, at)
            if start is not None:
                yield from _ended(answer, begin, at)
                meta.ours += 1
                at = _time(start[1])
                meta.created_at = at
                yield Step(Kind.NOTE, [], line, at, id="start")
            elif text == ">" or text.startswith("> "):
                yield from _ended(answer, begin, at)
            else:
                if not answer:
                    begin = line
                answer.append(text)
        yield from _asked(prompt, begin, at)
        yield from _ended(answer, begin, at)

    def live(self, steps: Iterable[Step]) -> Iterable[Step]:
        """The last session that holds anything."""
        sessions: list[list[Step]] = [[]]
        for step in steps:
            if step.id == "start":
                sessions.append([])
            else:
                sessions[-1].append(step)
        return next((session for session in reversed(sessions) if session), [])

    def beside(self, path: Path, root: Path | None, meta: Meta) -> None:
        """The file names no session: its place and the session's start make an id that lasts."""
        meta.id = hashlib.sha256(f"{path.resolve()}\n{meta.created_at}".encode("utf-8", "surrogatepass")).hexdigest()[:16]
        if path.name == _NAME:
            meta.cwd = str(path.parent)  # Aider writes it into the directory that it works in

    def recognises(self, path: Path) -> bool:
        return any(_START.match(line) for line in raw_head(path).decode("utf-8", "replace").split("\n"))


def _asked(prompt: list[str], line: int, at: float | None) -> Iterator[Step]:
    if prompt:
        text = "\n".join(prompt)
        prompt.clear()
        yield Step(Kind.COMMAND if text.startswith("/") else Kind.USER, [Text(text, line, at)], line, at)


def _ended(answer: list[str], line: int, at: float | None) -> Iterator[Step]:
    text = "\n".join(answer).strip()
    answer.clear()
    if text:
        yield Step(Kind.AGENT, [Text(text, line, at)], line, at)


def _time(text: str) -> float | None:
    try:
        return datetime.strptime(text, "%Y-%m-%d %H:%M:%S").astimezone().timestamp()  # local time, as Aider writes it
    except (ValueError, OverflowError, OSError):
        return None


STORE = AiderStore()
