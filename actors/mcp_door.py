"""The door for agents: MCP connections from the unix socket become requests to the actors that answer them.

The peer is who the kernel says (pid at connect, classified by its ancestors); the shim's own word is evidence only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from actors.mailbox import Clock, Mailbox
from agents_registry.errors import NotFoundError, UsageError, VibeAroundError, from_wire
from agents_registry.loader import Registry
from transports.bus.api import Bus, Delivery, Peer
from transports.bus.vocabulary.conversation import Failed, Ok
from transports.bus.vocabulary.handover import CodeIssued, PrepareHandover
from transports.bus.vocabulary.lists import AddWorkspace
from transports.bus.vocabulary.storage import Load
from transports.bus.vocabulary.threads import IdentifySession, McpLine
from transports.mcp.server import McpConnection, PendingCall
from transports.mcp.tools import ToolCall, handover_text


@dataclass(slots=True)
class _Line:
    connection: McpConnection
    peer: Peer


class McpDoor(Mailbox):
    """`write(connection, bytes)` puts bytes on the socket; safe from any thread."""

    def __init__(self, bus: Bus, clock: Clock, registry: Registry, write: Callable[[int, bytes], None], version: str) -> None:
        super().__init__("mcp", bus, clock)
        self._registry = registry
        self._write = write
        self._version = version
        self._lines: dict[int, _Line] = {}

    def handle(self, delivery: Delivery) -> None:
        message = delivery.message
        if not isinstance(message, McpLine):
            return
        if message.closed:
            self._lines.pop(message.connection, None)
            return
        if message.opened:
            peer = Peer(
                f"mcp/{message.connection}", message.pid, message.uid, message.role, "", message.start_time, message.host_thread
            )
            self._lines[message.connection] = _Line(McpConnection(self._version), peer)
            return
        line = self._lines.get(message.connection)
        if line is None:
            return
        fed = line.connection.feed(message.data)
        if fed.out:
            self._write(message.connection, fed.out)
        for call in fed.calls:
            self._run(message.connection, line, call)

    def _run(self, number: int, line: _Line, call: PendingCall) -> None:
        def done(text: str) -> None:
            self._send(number, line.connection.complete(call.call_id, text))

        def failed(error: VibeAroundError) -> None:
            self._send(number, line.connection.fail(call.call_id, error))

        try:
            if call.tool.name == "prepare_handover":
                self._handover(line, call.tool, done, failed)
            elif call.tool.name == "get_session_id":
                self._session_id(line, call.tool, done, failed)
            elif call.tool.name == "register_workspace":
                self._workspace(call.tool, done, failed)
            else:
                raise UsageError(f"There is no tool {call.tool.name}.")
        except VibeAroundError as error:
            failed(error)

    def _send(self, number: int, data: bytes) -> None:
        if data and number in self._lines:
            self._write(number, data)

    def _evidence(self, line: _Line, tool: ToolCall) -> tuple[list[Any], dict[str, str], dict[str, Any]]:
        hello = line.connection.hello
        evidence: list[Any] = [["meta", tool.meta]] if tool.meta else []
        env = dict(hello.environ) if hello is not None else {}
        return evidence, env, {"pid": line.peer.pid, "start_time": line.peer.start_time}

    def _handover(self, line: _Line, tool: ToolCall, done: Callable[[str], None], failed: Callable[[VibeAroundError], None]) -> None:
        evidence, env, issuer = self._evidence(line, tool)
        arguments = tool.arguments
        request = PrepareHandover(
            arguments["agent_kind"], arguments.get("session_id", ""), arguments["cwd"], arguments.get("profile_id", "direct"),
            evidence, env, issuer,
        )

        def issued(answer: Any) -> None:
            if isinstance(answer, CodeIssued):
                notes = [answer.note] if answer.note else []
                done(handover_text(answer.code, answer.expires_in_s, *notes))
            else:
                failed(from_wire(answer.error))

        self._ask_as(line.peer, "attacher", request, issued)

    def _session_id(self, line: _Line, tool: ToolCall, done: Callable[[str], None], failed: Callable[[VibeAroundError], None]) -> None:
        evidence, env, issuer = self._evidence(line, tool)
        arguments = tool.arguments
        if arguments.get("channel_kind") and arguments.get("chat_id"):
            self._chat_session(arguments["channel_kind"], arguments["chat_id"], done, failed)
            return
        agent = arguments.get("agent_kind", "") or env.get("VIBEAROUND_AGENT_KIND", "")
        if not agent:
            raise UsageError("get_session_id needs agent_kind.", hint=f"One of: {', '.join(self._registry.ids())}.")
        hello = line.connection.hello
        cwd = arguments.get("cwd") or (hello.cwd if hello is not None else "")
        request = IdentifySession(agent, arguments.get("session_id", ""), cwd, evidence, env, issuer)

        def found(answer: Any) -> None:
            if isinstance(answer, Failed):
                failed(from_wire(answer.error))
                return
            note = answer.data.get("note", "")
            done(answer.data["id"] + (f"\n{note}" if note else ""))

        self._ask_as(line.peer, "attacher", request, found)

    def _chat_session(
        self, channel: str, chat: str, done: Callable[[str], None], failed: Callable[[VibeAroundError], None]
    ) -> None:
        def found(answer: Any) -> None:
            session = answer.data["session"] if isinstance(answer, Ok) else ""
            if session:
                done(session)
            else:
                failed(NotFoundError(f"The chat {channel}:{chat} has no session.", hint="Write something there first, or pick one up."))

        self.ask("history", Load("chat_session", [channel, chat]), found)

    def _workspace(self, tool: ToolCall, done: Callable[[str], None], failed: Callable[[VibeAroundError], None]) -> None:
        def added(answer: Any) -> None:
            if isinstance(answer, Ok):
                word = "known already" if answer.data.get("known") else "registered"
                done(f"Workspace {word}: {answer.data['cwd']} ({answer.data['id']})")
            else:
                failed(from_wire(answer.error))

        self.ask("workspaces", AddWorkspace(tool.arguments["cwd"], tool.arguments.get("name", "")), added, limit_s=30.0)

    def _ask_as(self, peer: Peer, address: str, message: Any, then: Callable[[Any], None]) -> None:
        """Ask in the peer's name, so that the answerer knows from which agent the call comes."""
        self.ask(address, message, then, limit_s=40.0, peer=peer)
