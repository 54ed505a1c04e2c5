"""The demo agent's side of ACP v1: sessions, turns in threads, permissions, cancel. Standard library only, so that
it is ready in a tenth of a second."""

from __future__ import annotations

import itertools
import json
import os
import sys
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Event, Lock, Thread
from typing import Any, BinaryIO

from transports.acp.demo.mcp import McpFailed, call_tool, server_command
from transports.acp.demo.store import DemoSession, DemoStore
from transports.acp.demo.turn import TurnFailed, play

MODES = [
    {"id": "ask", "name": "Ask", "description": "Asks before every tool call"},
    {"id": "plan", "name": "Plan", "description": "Only says what it would do"},
]
COMMANDS = [
    {"name": "help", "description": "What the demo agent can do"},
    {"name": "recall", "description": "What you said so far"},
]
OPTIONS = [
    {"optionId": "yes", "name": "Yes, this once", "kind": "allow_once"},
    {"optionId": "always", "name": "Yes, until this session ends", "kind": "allow_always"},
    {"optionId": "no", "name": "No", "kind": "reject_once"},
]


class Refused(Exception):
    """A request that is answered with a JSON-RPC error."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code, self.data = code, data


class DemoServer:
    """Answers one client. Each turn runs in a thread of its own; one lock keeps lines whole."""

    def __init__(self, source: BinaryIO, sink: BinaryIO, store: DemoStore) -> None:
        self._source, self._sink, self._store = source, sink, store
        self._lock = Lock()
        self._ids = itertools.count(1)
        self._answers: dict[str, SimpleQueue[dict[str, Any]]] = {}
        self._sessions: dict[str, OpenSession] = {}

    def serve(self) -> int:
        """Read until the input ends."""
        for line in self._source:
            try:
                message = json.loads(line)
            except ValueError:
                continue
            if not isinstance(message, dict):
                continue
            if "method" not in message:
                waiting = self._answers.pop(str(message.get("id")), None)
                if waiting is not None:
                    waiting.put(message)
            elif "id" in message:
                self._answer(message)
            elif message["method"] == "session/cancel":
                open_session = self._sessions.get(str((message.get("params") or {}).get("sessionId")))
                if open_session is not None:
                    open_session.stop.set()
        return 0

    def send(self, message: dict[str, Any]) -> None:
        """Write one message; a client that is gone ends the process."""
        line = json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
        with self._lock:
            try:
                self._sink.write(line)
                self._sink.flush()
            except (OSError, ValueError):
                os._exit(0)  # nobody listens any more

    def update(self, session: str, update: dict[str, Any]) -> None:
        """One `session/update`."""
        self.send({"method": "session/update", "params": {"sessionId": session, "update": update}})

    def ask(self, method: str, params: dict[str, Any], stop: Event) -> dict[str, Any]:
        """A request to the client; its answer, or an empty one when the turn is stopped meanwhile."""
        number = f"d{next(self._ids)}"
        answers: SimpleQueue[dict[str, Any]] = SimpleQueue()
        self._answers[number] = answers
        self.send({"id": number, "method": method, "params": params})
        while True:
            try:
                message = answers.get(timeout=0.5)
                break
            except Empty:
                if stop.is_set():  # a client should answer "cancelled" then; one that does not must not hold us
                    self._answers.pop(number, None)
                    return {}
        result = message.get("result")
        return result if isinstance(result, dict) else {}

    def _answer(self, message: dict[str, Any]) -> None:
        params = message.get("params")
        params = params if isinstance(params, dict) else {}
        try:
            result = self._dispatch(message["id"], str(message["method"]), params)
        except Refused as refused:
            error = {"code": refused.code, "message": str(refused), "data": refused.data}
            self.send({"id": message["id"], "error": error})
            return
        if result is not None:
            self.send({"id": message["id"], "result": result})

    def _dispatch(self, rpc_id: Any, method: str, params: dict[str, Any]) -> dict[str, Any] | None:
        match method:
            case "initialize":
                return {
                    "protocolVersion": 1,
                    "agentInfo": {"name": "vibearound-demo", "title": "Demo agent", "version": "1"},
                    "agentCapabilities": {
                        "loadSession": True,
                        "sessionCapabilities": {"list": {}, "resume": {}, "fork": {}, "close": {}},
                        "promptCapabilities": {"image": False, "embeddedContext": True},
                    },
                    "authMethods": [],
                }
            case "session/new":
                return self._opened(self._store.new(self._cwd(params)), params)
            case "session/load" | "session/resume":
                session = self._stored(params)
                if method == "session/load":
                    self._replay(session)
                return self._opened(session, params)
            case "session/fork":
                return self._opened(self._store.fork(self._stored(params), self._cwd(params)), params)
            case "session/list":
                return {"sessions": [_listed(s, at) for s, at in self._store.list(params.get("cwd"))]}
            case "session/close":
                self._sessions.pop(str(params.get("sessionId")), None)
                return {}
            case "session/set_mode":
                open_session = self._open(params)
                if params.get("modeId") not in ("ask", "plan"):
                    raise Refused(-32602, f"unknown mode {params.get('modeId')!r}")
                open_session.mode = str(params["modeId"])
                self.update(open_session.id, {"sessionUpdate": "current_mode_update", "currentModeId": open_session.mode})
                return {}
            case "session/prompt":
                self._prompt(rpc_id, self._open(params), params)
                return None
        raise Refused(-32601, f"Method not found: {method}")

    def _cwd(self, params: dict[str, Any]) -> str:
        cwd = str(params.get("cwd") or "")
        if not Path(cwd).is_absolute():
            raise Refused(-32602, "`cwd` must be an absolute path")
        if not Path(cwd).is_dir():
            raise Refused(-32602, f"`cwd` does not exist: {cwd}")
        return cwd

    def _stored(self, params: dict[str, Any]) -> DemoSession:
        self._cwd(params)
        wanted = str(params.get("sessionId") or "")
        session = self._store.open(wanted)
        if session is None:
            raise Refused(-32002, f"Resource not found: session {wanted}")
        return session

    def _open(self, params: dict[str, Any]) -> OpenSession:
        wanted = str(params.get("sessionId"))
        if wanted not in self._sessions:
            raise Refused(-32002, f"Resource not found: session {wanted} is not open")
        return self._sessions[wanted]

    def _opened(self, session: DemoSession, params: dict[str, Any]) -> dict[str, Any]:
        servers = [s for s in params.get("mcpServers") or [] if isinstance(s, dict) and s.get("command")]
        self._sessions[session.id] = OpenSession(self, session, servers)
        self.update(session.id, {"sessionUpdate": "available_commands_update", "availableCommands": COMMANDS})
        return {"sessionId": session.id, "modes": {"currentModeId": "ask", "availableModes": MODES}}

    def _replay(self, session: DemoSession) -> None:
        kinds = {"user": "user_message_chunk", "assistant": "agent_message_chunk", "thinking": "agent_thought_chunk"}
        for number, (kind, text) in enumerate(session.records):
            if kind in kinds:
                content = {"type": "text", "text": text}
                self.update(session.id, {"sessionUpdate": kinds[kind], "content": content})
            else:
                self.update(
                    session.id,
                    {
                        "sessionUpdate": "tool_call",
                        "toolCallId": f"old-{number}",
                        "title": text.split(":", 1)[0],
                        "status": "completed",
                        "content": [{"type": "content", "content": {"type": "text", "text": text}}],
                    },
                )

    def _prompt(self, rpc_id: Any, session: OpenSession, params: dict[str, Any]) -> None:
        if session.busy:
            raise Refused(-32600, "a turn is running in this session")
        text = "".join(
            str(b.get("text") or "") for b in params.get("prompt") or [] if isinstance(b, dict) and b.get("type") == "text"
        )
        session.busy = True
        session.stop = Event()
        Thread(target=session.turn, args=(rpc_id, text), name="turn", daemon=True).start()


class OpenSession:
    """A session that the client has opened: the stage of its turns on the wire."""

    def __init__(self, server: DemoServer, session: DemoSession, mcp_servers: list[dict[str, Any]]) -> None:
        self._server, self._session, self._mcp = server, session, mcp_servers
        self.id = session.id
        self.mode = "ask"
        self.busy = False
        self.stop = Event()
        self._always = False
        self._tools = itertools.count(1)

    def turn(self, rpc_id: Any, text: str) -> None:
        """Run in a thread; answers the prompt request at its end."""
        try:
            reason = play(self._session, text, self, plan_mode=self.mode == "plan")
            answer: dict[str, Any] = {"result": {"stopReason": reason}}
        except TurnFailed as failed:
            answer = {"error": {"code": -32603, "message": str(failed)}}
        except Exception as error:  # noqa: BLE001 - whatever went wrong, the client must hear that the turn is over
            answer = {"error": {"code": -32603, "message": f"{type(error).__name__}: {error}"}}
        self.busy = False
        self._server.send({"id": rpc_id, **answer})

    def say(self, text: str) -> None:
        self._chunk("agent_message_chunk", text)

    def think(self, text: str) -> None:
        self._chunk("agent_thought_chunk", text)

    def _chunk(self, kind: str, text: str) -> None:
        self._server.update(self.id, {"sessionUpdate": kind, "content": {"type": "text", "text": text}})

    def plan(self, entries: tuple[tuple[str, str], ...]) -> None:
        listed = [{"content": c, "status": s, "priority": "medium"} for c, s in entries]
        self._server.update(self.id, {"sessionUpdate": "plan", "entries": listed})

    def ask(self, title: str, kind: str, text: str) -> str | None:
        tool = f"{self.id[:8]}-{os.getpid()}-{next(self._tools)}"
        call = {"toolCallId": tool, "title": title, "kind": kind, "status": "pending", "rawInput": {"text": text}}
        self._server.update(self.id, {"sessionUpdate": "tool_call", **call})
        if not self._always:
            answer = self._server.ask(
                "session/request_permission", {"sessionId": self.id, "toolCall": call, "options": OPTIONS}, self.stop
            )
            outcome = answer.get("outcome")
            chosen = outcome.get("optionId") if isinstance(outcome, dict) else None
            if chosen is None:
                self.stop.set()
            if chosen not in ("yes", "always"):
                self.tool_done(tool, "not allowed", False)
                return None
            self._always = chosen == "always"
        self._server.update(
            self.id, {"sessionUpdate": "tool_call_update", "toolCallId": tool, "status": "in_progress"}
        )
        return tool

    def tool_done(self, tool: str, output: str, ok: bool) -> None:
        self._server.update(
            self.id,
            {
                "sessionUpdate": "tool_call_update",
                "toolCallId": tool,
                "status": "completed" if ok else "failed",
                "content": [{"type": "content", "content": {"type": "text", "text": output}}],
            },
        )

    def cancelled(self) -> bool:
        return self.stop.is_set()

    def pause(self, seconds: float) -> None:
        self.stop.wait(seconds)

    def crash(self, code: int) -> None:
        sys.stderr.write("the demo agent was told to crash\n")
        sys.stderr.flush()
        os._exit(code)

    def hand_over(self, session: DemoSession) -> str:
        entry = next((s for s in self._mcp if "vibearound" in str(s.get("name", "")).lower()), None)
        if entry is None:
            return "I have no VibeAround server here, so I cannot hand over. "
        command, env = server_command(entry)
        arguments = {"cwd": session.cwd, "agent_kind": "demo", "session_id": session.id}
        try:
            return call_tool(
                command, {**env, "VIBEAROUND_DEMO_SESSION_ID": session.id}, session.cwd, "prepare_handover", arguments
            )
        except McpFailed as failed:
            return f"The handover failed: {failed} "


def _listed(session: DemoSession, at: float) -> dict[str, Any]:
    from datetime import UTC, datetime

    said = session.said()
    title = said[0][:80] if said else ""
    return {
        "sessionId": session.id,
        "cwd": session.cwd,
        "title": title,
        "updatedAt": datetime.fromtimestamp(at, UTC).isoformat(),
    }
