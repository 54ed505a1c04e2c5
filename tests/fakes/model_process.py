"""The fake model as a process, from the side of a test: start, stop, read what it was asked, wait for what it will be."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

_Found = TypeVar("_Found")
_ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One request that the model was asked, as its log tells it."""

    number: int
    api: str
    helper: bool
    users: tuple[str, ...]
    turns: tuple[tuple[str, str], ...]
    tools: tuple[str, ...]
    headers: dict[str, str]
    body: dict[str, Any]
    reply: dict[str, Any]

    def holds(self, *texts: str) -> bool:
        """Whether each text stands somewhere in the conversation that was sent: users', assistant's, calls, results."""
        whole = "\n".join(text for _, text in self.turns)
        return all(text in whole for text in texts)

    @property
    def last_user(self) -> str:
        return self.users[-1] if self.users else ""


class FakeModel:
    """A fake model server of its own process; a context manager. `url` is its base, without a path."""

    def __init__(self, folder: Path, *, patience: float = 60.0) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.log = folder / "model.jsonl"
        self._patience = patience
        self._changed = threading.Condition()
        self._logged = 0
        self._process: subprocess.Popen[str] | None = None
        self.port = 0

    def __enter__(self) -> FakeModel:
        command = [sys.executable, "-m", "tests.fakes.fake_model", "--notify", "--log", str(self.log)]
        self._process = subprocess.Popen(
            [*command, "--patience", str(self._patience)],
            cwd=_ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        first = self._process.stdout.readline()
        if not first:
            raise RuntimeError(f"the fake model ended before it told its port (exit {self._process.wait(10)})")
        self.port = json.loads(first)["port"]
        threading.Thread(target=self._follow, name="fake-model-notices", daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process is not None and self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(5)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def requests(self, *, helpers: bool = False) -> list[ModelRequest]:
        """All requests so far, in order; helpers (titles, summaries) only if asked for."""
        return [
            ModelRequest(
                number=entry["n"],
                api=entry["api"],
                helper=entry["helper"],
                users=tuple(entry["users"]),
                turns=tuple((role, text) for role, text in entry["turns"]),
                tools=tuple(entry["tools"]),
                headers=entry["headers"],
                body=entry["body"],
                reply=entry["reply"],
            )
            for entry in self._entries()
            if "api" in entry and (helpers or not entry["helper"])
        ]

    def ended(self, request: ModelRequest) -> str:
        """How the answer to a request ended: done, aborted, or "" while it is under way."""
        return next((str(entry["how"]) for entry in self._entries() if entry.get("ended") == request.number), "")

    def wait_for(self, wanted: Callable[[ModelRequest], bool], *, seconds: float = 30.0) -> ModelRequest:
        """The first request for which `wanted` is true, once it is there; AssertionError with the log when it never comes."""

        def found() -> ModelRequest | None:
            return next((request for request in self.requests() if wanted(request)), None)

        return self._wait(found, seconds, "such a request")

    def wait_text(self, text: str, *, seconds: float = 30.0) -> ModelRequest:
        """The first request whose last user text holds `text`, once it is there."""
        return self.wait_for(lambda request: text in request.last_user, seconds=seconds)

    def wait_ended(self, request: ModelRequest, *, seconds: float = 30.0) -> str:
        """How the answer to a request ended, once it has."""
        return self._wait(lambda: self.ended(request) or None, seconds, f"the end of request {request.number}")

    def release(self, gate: str) -> None:
        """Let every answer go on that waits at GATE{gate}, now and later."""
        data = json.dumps({"gate": gate}).encode()
        headers = {"content-type": "application/json"}
        request = urllib.request.Request(f"{self.url}/_control/release", data, headers)
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=10) as answer:
            answer.read()

    # --- inside

    def _entries(self) -> list[dict[str, Any]]:
        if not self.log.exists():
            return []
        lines = self.log.read_text("utf-8").split("\n")
        # The last element is "" or a line that is being written right now.
        return [json.loads(line) for line in lines[:-1]]

    def _follow(self) -> None:
        assert self._process is not None and self._process.stdout is not None
        for line in self._process.stdout:
            with self._changed:
                self._logged = json.loads(line)["logged"]
                self._changed.notify_all()

    def _wait(self, found: Callable[[], _Found | None], seconds: float, what: str) -> _Found:
        until = time.monotonic() + seconds
        while True:
            with self._changed:
                seen = self._logged
            result = found()
            if result is not None:
                return result
            with self._changed:
                left = until - time.monotonic()
                if left <= 0:
                    asked = "\n".join(f"  {one.number} {one.last_user[:120]!r}" for one in self.requests(helpers=True))
                    raise AssertionError(
                        f"the model never saw {what} in {seconds} s; it was asked:\n{asked or '  nothing'}"
                    )
                if self._logged == seen:
                    self._changed.wait(timeout=left)
