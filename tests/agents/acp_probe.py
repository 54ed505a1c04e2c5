"""A bare ACP client: one adapter as a child process, JSON-RPC lines, updates kept in wire order. For proving that the rig
drives the real adapters, independent of the product's own client."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any


class AcpRefusal(Exception):
    """The agent answered a request with an error; `error` is the JSON-RPC error object."""

    def __init__(self, error: Mapping[str, Any]) -> None:
        super().__init__(json.dumps(error, ensure_ascii=False)[:600])
        self.error = error


class AcpProbe:
    """An adapter under test; a context manager that ends its whole process group.

    `choose` names the kind of permission option that is picked at once (allow_once, reject_once, ...); "" leaves each request
    open, for the test to take from `asked` and to answer with `answer`.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        choose: str = "allow_once",
        errors: Path | None = None,
    ) -> None:
        self._command = list(command)
        self._cwd, self._env, self._choose = cwd, dict(env), choose
        self._errors = errors
        self._number = 0
        self._waiting: dict[int, queue.Queue[dict[str, Any]]] = {}
        self._lock = threading.Lock()
        self.updates: list[dict[str, Any]] = []
        self.permissions: list[dict[str, Any]] = []
        self.asked: queue.Queue[dict[str, Any]] = queue.Queue()
        self.capabilities: dict[str, Any] = {}

    def __enter__(self) -> AcpProbe:
        with open(self._errors or os.devnull, "ab") as errors:
            self._process = subprocess.Popen(
                self._command,
                cwd=self._cwd,
                env=self._env,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,
            )
        threading.Thread(target=self._read, name="acp-probe", daemon=True).start()
        client = {"name": "vibearound-tests", "title": "tests", "version": "0"}
        asked = {"fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False}
        params = {"protocolVersion": 1, "clientInfo": client, "clientCapabilities": asked}
        try:
            self.capabilities = self.call("initialize", params)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the adapter: end of input first, then the whole group."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            pass
        self.kill()

    def kill(self) -> None:
        """SIGKILL to the whole group, as a crash."""
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self._process.wait(10)

    def send(self, method: str, params: Mapping[str, Any]) -> queue.Queue[dict[str, Any]]:
        """Send a request; the queue gets its one answer."""
        with self._lock:
            self._number += 1
            number = self._number
            answer = self._waiting[number] = queue.Queue()
        self._write({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        return answer

    def call(self, method: str, params: Mapping[str, Any], *, seconds: float = 60.0) -> dict[str, Any]:
        """Send a request and wait for its result; AcpRefusal when it is an error."""
        return result_of(self.send(method, params), seconds=seconds)

    def notify(self, method: str, params: Mapping[str, Any]) -> None:
        self._write({"jsonrpc": "2.0", "method": method, "params": params})

    def new_session(self, cwd: Path, servers: Sequence[Mapping[str, Any]] = ()) -> str:
        """session/new; returns the session's id."""
        return str(self.call("session/new", {"cwd": str(cwd), "mcpServers": list(servers)})["sessionId"])

    def load_session(self, session: str, cwd: Path) -> None:
        """session/load; its replay is in `updates` afterwards."""
        self.call("session/load", {"sessionId": session, "cwd": str(cwd), "mcpServers": []})

    def start_prompt(self, session: str, text: str) -> queue.Queue[dict[str, Any]]:
        """session/prompt without waiting for the turn's end."""
        return self.send("session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": text}]})

    def prompt(self, session: str, text: str, *, seconds: float = 60.0) -> str:
        """One whole turn; returns its stop reason."""
        return str(result_of(self.start_prompt(session, text), seconds=seconds)["stopReason"])

    def answer(self, request: Mapping[str, Any], kind: str) -> None:
        """Answer an open permission request by the kind of option; "cancelled" for that outcome."""
        outcome: dict[str, Any] = {"outcome": "cancelled"}
        if kind != "cancelled":
            option = next(one for one in request["params"]["options"] if one["kind"] == kind)
            outcome = {"outcome": "selected", "optionId": option["optionId"]}
        self._write({"jsonrpc": "2.0", "id": request["id"], "result": {"outcome": outcome}})

    def text(self, kind: str = "agent_message_chunk") -> str:
        """All text of one kind of update so far, joined."""
        found = []
        for update in list(self.updates):
            if update.get("sessionUpdate") == kind and isinstance(update.get("content"), dict):
                found.append(str(update["content"].get("text", "")))
        return "".join(found)

    # --- inside

    def _write(self, message: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None
        data = json.dumps(message, ensure_ascii=False).encode() + b"\n"
        with self._lock:
            self._process.stdin.write(data)
            self._process.stdin.flush()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for raw in self._process.stdout:
            try:
                message = json.loads(raw)
            except ValueError:
                continue  # chatter of an adapter on stdout is no message
            method = message.get("method")
            if method is None:
                waiting = self._waiting.pop(message.get("id"), None)
                if waiting is not None:
                    waiting.put(message)
            elif method == "session/update":
                self.updates.append(message["params"]["update"])
            elif method == "session/request_permission":
                self.permissions.append(message["params"])
                self.asked.put(message)
                if self._choose:
                    self.answer(message, self._choose)
            elif "id" in message:
                error = {"code": -32601, "message": f"Method not found: {method}"}
                self._write({"jsonrpc": "2.0", "id": message["id"], "error": error})
        gone = {"error": {"code": -1, "message": "the agent closed its output"}}
        for waiting in list(self._waiting.values()):
            waiting.put(gone)


def result_of(answer: queue.Queue[dict[str, Any]], *, seconds: float = 60.0) -> dict[str, Any]:
    """The result that a queue of `AcpProbe.send` gets; AcpRefusal when it is an error, AssertionError when none comes."""
    try:
        message = answer.get(timeout=seconds)
    except queue.Empty:
        raise AssertionError(f"no answer from the agent within {seconds} s") from None
    if "error" in message:
        raise AcpRefusal(message["error"])
    return message.get("result") or {}
