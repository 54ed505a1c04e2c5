"""A client of one ACP v1 agent over pipes: one reader thread, callbacks in wire order, no event loop.

The callbacks run on the reader thread. While one of them blocks, the agent's output is not read: back-pressure is
the pipe itself. `fs` and `terminal` are not advertised; requests for them are refused (OpenCode sends
`fs/write_text_file` all the same and then writes by itself).
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from concurrent.futures import TimeoutError as FutureTimeout
from threading import Event, Lock, Thread
from typing import Any, BinaryIO, Protocol

from transports.acp import updates
from transports.acp.errors import METHOD_NOT_FOUND, AgentGone, AgentMute, AgentRefused, AgentSilent
from transports.acp.jsonrpc import MAX_LINE, LineWriter, encode, lines
from transports.acp.permission import Permission, parse
from transports.acp.sessions import AgentInfo, Opened, agent_info, opened

CLIENT = {"name": "vibearound", "title": "VibeAround", "version": "0.1.0"}


class Listener(Protocol):
    """Who hears what the agent says. All of it on the reader thread, in wire order."""

    def on_update(self, session: str, event: updates.Event) -> None:
        """One update of a session."""

    def on_permission(self, permission: Permission) -> None:
        """The agent asks; answer with `AcpClient.answer`."""

    def on_withdrawn(self, permission: Permission) -> None:
        """The agent asks no longer; it has been answered "cancelled"."""

    def on_noise(self, what: str) -> None:
        """Something that is no message of the protocol, in words for a log."""

    def on_gone(self, gone: AgentGone) -> None:
        """The last call: the agent's output has ended. Every open request has failed with `gone` before."""


class AcpClient:
    """Speaks to one agent process whose pipes are given.

    `exit_code(limit_s)` waits for the process and returns its code, or None when it still lives; `stderr_tail()` is
    the end of its error output. Both are asked once the output has ended. Thread-safe.
    """

    def __init__(
        self,
        stdin: BinaryIO,
        stdout: BinaryIO,
        listener: Listener,
        *,
        exit_code: Callable[[float], int | None],
        stderr_tail: Callable[[], str] = lambda: "",
        max_line: int = MAX_LINE,
    ) -> None:
        self._listener = listener
        self._exit_code = exit_code
        self._stderr_tail = stderr_tail
        self._max_line = max_line
        self._stdout = stdout
        self._lock = Lock()
        self._ids = itertools.count(1)
        self._pending: dict[int, tuple[str, Future[Any]]] = {}
        self._gone: AgentGone | None = None
        self._permissions: dict[str, Permission] = {}
        self._cancelling: set[str] = set()
        self._loading = 0
        self._quiet: set[str] = set()
        self._history: Callable[[updates.Event], None] | None = None
        self._stirred = Event()
        self.replayed = 0
        """Updates of history that were kept from the listener, over the client's life."""
        self.skipped_lines = 0
        """Lines over the limit, and lines that are no JSON object."""
        self._writer = LineWriter(stdin, name="acp-writer")
        self._reader = Thread(target=self._read, name="acp-reader", daemon=True)

    def start(self) -> None:
        """Begin to read."""
        self._reader.start()

    # --- the handshake: each call waits at most `limit` seconds ------------------------------------------------

    def initialize(self, limit: float) -> AgentInfo:
        """Version 1, without file system and terminal. Raises AgentGone, AgentRefused, AgentSilent."""
        result = self.call(
            "initialize",
            {
                "protocolVersion": 1,
                "clientInfo": CLIENT,
                "clientCapabilities": {"fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False},
            },
            limit,
        )
        return agent_info(result if isinstance(result, dict) else {})

    def authenticate(self, method: str, limit: float) -> None:
        """Log in by one of the agent's own methods (Cursor wants it before a session)."""
        self.call("authenticate", {"methodId": method}, limit)

    def new(self, cwd: str, mcp_servers: list[Any], limit: float) -> Opened:
        """A fresh session in `cwd` (an absolute path)."""
        result = self.call("session/new", {"cwd": cwd, "mcpServers": mcp_servers}, limit)
        fresh = opened(result, asked="", start="new", replayed=0)
        if not fresh.session:
            raise AgentRefused("session/new", 0, "the answer holds no session id")
        return fresh

    def load(
        self,
        session: str,
        cwd: str,
        mcp_servers: list[Any],
        limit: float,
        *,
        history: Callable[[updates.Event], None] | None = None,
    ) -> Opened:
        """Open a stored session; the agent replays its history, which only `history` hears."""
        return self._reopen("session/load", "loaded", session, cwd, mcp_servers, limit, history)

    def resume(self, session: str, cwd: str, mcp_servers: list[Any], limit: float) -> Opened:
        """Open a stored session without replay. Some agents claim it and refuse it (-32601): see `AgentRefused`."""
        return self._reopen("session/resume", "resumed", session, cwd, mcp_servers, limit, None)

    def fork(self, session: str, cwd: str, mcp_servers: list[Any], limit: float) -> Opened:
        """A new session with the context of `session`; some agents replay it (OpenCode), which nobody hears."""
        return self._reopen("session/fork", "forked", session, cwd, mcp_servers, limit, None)

    def settle(self, quiet_s: float, limit_s: float, clock: Callable[[], float]) -> None:
        """Wait until the agent has sent no history for `quiet_s`, at most `limit_s`.

        Agents exist that answer session/load first and send the end of the history afterwards.
        """
        end = clock() + limit_s
        while self._stirred.wait(min(quiet_s, max(0.0, end - clock()))) and clock() < end:
            self._stirred.clear()

    def hear(self, session: str) -> None:
        """Count what comes as present from now on, though no prompt of ours was sent (a session that another
        client drives as well)."""
        with self._lock:
            self._quiet.discard(session)

    def set_mode(self, session: str, mode: str, limit: float, *, option: str = "") -> None:
        """`option` as `Opened.mode_option` says."""
        method, params = mode_request(session, mode, option)
        self.call(method, params, limit)

    def set_config_option(self, session: str, option: str, value: str, limit: float) -> Any:
        """Set one configuration option; the result is the agent's answer."""
        return self.call("session/set_config_option", {"sessionId": session, "configId": option, "value": value}, limit)

    def list_sessions(self, limit: float, *, cwd: str | None = None, cursor: str | None = None) -> dict[str, Any]:
        """One page: `{sessions: [{sessionId, cwd, title, updatedAt}], nextCursor}`."""
        params = {k: v for k, v in (("cwd", cwd), ("cursor", cursor)) if v is not None}
        result = self.call("session/list", params, limit)
        return result if isinstance(result, dict) else {}

    def close_session(self, session: str, limit: float) -> None:
        """Ask the agent to let go of a session (`session/close`)."""
        self.call("session/close", {"sessionId": session}, limit)

    def call(self, method: str, params: dict[str, Any], limit: float) -> Any:
        """One request and its result. Raises AgentGone, AgentRefused, AgentSilent (after `limit` s), AgentMute."""
        future = self.request(method, params)
        try:
            return future.result(limit)
        except FutureTimeout:
            if future.cancel():
                raise AgentSilent(method, limit) from None
            return future.result(0)
        except CancelledError:
            raise AgentSilent(method, limit) from None

    # --- turns -------------------------------------------------------------------------------------------------

    def prompt(self, session: str, blocks: list[Any]) -> Future[Any]:
        """Run a turn; the future holds the raw result (`stopReason`, ...) and is done on the reader thread, in wire
        order with the updates. From here on nothing counts as history any more."""
        with self._lock:
            self._quiet.discard(session)
            self._history = None
            self._cancelling.discard(session)
        return self.request("session/prompt", {"sessionId": session, "prompt": blocks})

    def cancel(self, session: str) -> list[Permission]:
        """Answer the session's open permissions with "cancelled", then ask the agent to stop; returns those.

        Permissions that come until the turn has ended are answered the same way and reach nobody.
        """
        with self._lock:
            self._cancelling.add(session)
            asked = [p for p in self._permissions.values() if p.session == session]
        dropped = [p for p in asked if self.answer(p, None)]
        self._notify("session/cancel", {"sessionId": session})
        return dropped

    def answer(self, permission: Permission, option: str | None) -> bool:
        """Answer once: with an option id, or None for "cancelled". False when it has been answered already."""
        with self._lock:
            if self._permissions.pop(_key(permission.rpc_id), None) is None:
                return False
        outcome = {"outcome": "cancelled"} if option is None else {"outcome": "selected", "optionId": option}
        self._send({"jsonrpc": "2.0", "id": permission.rpc_id, "result": {"outcome": outcome}})
        return True

    def request(self, method: str, params: dict[str, Any]) -> Future[Any]:
        """One request; the future fails with AgentRefused, AgentGone or AgentMute."""
        future: Future[Any] = Future()
        with self._lock:
            number = next(self._ids)
            if self._gone is None:
                self._pending[number] = (method, future)
        if self._gone is not None:
            with self._lock:
                self._pending.pop(number, None)
            if not future.done():
                future.set_exception(self._gone)
            return future
        if not self._send({"jsonrpc": "2.0", "id": number, "method": method, "params": params}):
            with self._lock:
                self._pending.pop(number, None)
            future.set_exception(
                AgentMute(f"The agent does not read its input; {method} was not sent.", hint="Stop it and ask again.")
            )
        return future

    def close(self) -> None:
        """Close the agent's input, the polite request to end. What waits is still written."""
        self._writer.close()

    def join(self, limit_s: float) -> None:
        """Wait for the reader's end, at most `limit_s` seconds."""
        self._reader.join(limit_s)

    # --- inside ------------------------------------------------------------------------------------------------

    def _reopen(
        self,
        method: str,
        start: str,
        session: str,
        cwd: str,
        mcp_servers: list[Any],
        limit: float,
        history: Callable[[updates.Event], None] | None,
    ) -> Opened:
        with self._lock:
            self._quiet.add(session)
            self._loading += 1
            self._history = history
            self._stirred.clear()
        before = self.replayed
        try:
            result = self.call(method, {"sessionId": session, "cwd": cwd, "mcpServers": mcp_servers}, limit)
            if start == "forked" and not (isinstance(result, dict) and isinstance(result.get("sessionId"), str)):
                raise AgentRefused(method, 0, "the answer holds no id of the new session")
            back = opened(result, asked=session, start=start, replayed=self.replayed - before)
            with self._lock:
                self._quiet.add(back.session)
            return back
        finally:
            with self._lock:
                self._loading -= 1

    def _send(self, message: dict[str, Any]) -> bool:
        return self._writer.write(encode(message))

    def _notify(self, method: str, params: dict[str, Any]) -> None:
        self._send({"jsonrpc": "2.0", "method": method, "params": params})

    def _read(self) -> None:
        try:
            for line in lines(self._stdout, max_line=self._max_line, on_skipped=self._skipped):
                self._line(line)
        except (OSError, ValueError):
            pass  # the pipe was closed under us by the shutdown; what follows reports the end
        self._end()

    def _skipped(self, length: int) -> None:
        self.skipped_lines += 1
        self._listener.on_noise(f"a line of {length} bytes, longer than {self._max_line}, was skipped")

    def _line(self, line: bytes) -> None:
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            message = None
        if not isinstance(message, dict):
            if line.strip():
                self.skipped_lines += 1
                self._listener.on_noise(f"a line that is no message: {line[:200].decode('utf-8', 'replace').strip()}")
            return
        method = message.get("method")
        if not isinstance(method, str):
            self._response(message)
            return
        params = message.get("params")
        params = params if isinstance(params, dict) else {}
        if "id" in message:
            self._request(message["id"], method, params)
        elif method == "session/update":
            self._update(params)
        elif method == "$/cancel_request":
            self._withdraw(params.get("requestId", params.get("id")))
        else:
            self._listener.on_update(str(params.get("sessionId", "")), updates.Other(method, params))

    def _response(self, message: dict[str, Any]) -> None:
        number = message.get("id")
        with self._lock:
            entry = self._pending.pop(number, None) if isinstance(number, int) else None
        if entry is None or not entry[1].set_running_or_notify_cancel():
            return  # an answer after its limit; whoever waited has been told
        method, future = entry
        error = message.get("error")
        if error is None:
            future.set_result(message.get("result"))
            return
        error = error if isinstance(error, dict) else {"message": str(error)}
        code = error.get("code")
        future.set_exception(
            AgentRefused(method, code if isinstance(code, int) else 0, str(error.get("message", "")), error.get("data"))
        )

    def _request(self, rpc_id: Any, method: str, params: dict[str, Any]) -> None:
        if method != "session/request_permission":
            error = {"code": METHOD_NOT_FOUND, "message": f"Method not found: {method}"}
            self._send({"jsonrpc": "2.0", "id": rpc_id, "error": error})
            self._listener.on_noise(f"the agent asked for {method}, which is not offered")
            return
        permission = parse(rpc_id, params)
        with self._lock:
            self._permissions[_key(rpc_id)] = permission
            moot = permission.session in self._cancelling
        if moot or not permission.options:
            self.answer(permission, None)
            if not permission.options:
                self._listener.on_noise("a permission request without options was answered with cancelled")
            return
        self._listener.on_permission(permission)

    def _withdraw(self, rpc_id: Any) -> None:
        with self._lock:
            permission = self._permissions.get(_key(rpc_id))
        if permission is not None and self.answer(permission, None):
            self._listener.on_withdrawn(permission)

    def _update(self, params: dict[str, Any]) -> None:
        raw = params.get("update")
        if not isinstance(raw, dict):
            self._listener.on_noise("an update without content was skipped")
            return
        session = str(params.get("sessionId", ""))
        event = updates.neutral(raw)
        if isinstance(event, updates.CONVERSATION):
            with self._lock:
                old = session in self._quiet or self._loading > 0
                history = self._history
            if old:
                self.replayed += 1
                self._stirred.set()
                if history is not None:
                    history(event)
                return
        self._listener.on_update(session, event)

    def _end(self) -> None:
        gone = AgentGone(self._exit_code(2.0), self._stderr_tail())
        with self._lock:
            self._gone = gone
            pending, self._pending = list(self._pending.values()), {}
            self._permissions.clear()
        for _, future in pending:
            if future.set_running_or_notify_cancel():
                future.set_exception(gone)
        self._listener.on_gone(gone)


def mode_request(session: str, mode: str, option: str = "") -> tuple[str, dict[str, Any]]:
    """Method and parameters that set a mode, in the dialect that `option` (`Opened.mode_option`) tells."""
    if option:
        return "session/set_config_option", {"sessionId": session, "configId": option, "value": mode}
    return "session/set_mode", {"sessionId": session, "modeId": mode}


def _key(rpc_id: Any) -> str:
    return json.dumps(rpc_id)
