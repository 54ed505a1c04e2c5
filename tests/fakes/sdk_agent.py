"""An agent on the official ACP Python SDK (agent-client-protocol 0.12), as an oracle for our client's wire."""

from __future__ import annotations

import asyncio
from typing import Any

import acp
from acp.schema import (
    AgentCapabilities,
    ForkSessionResponse,
    Implementation,
    InitializeResponse,
    ListSessionsResponse,
    LoadSessionResponse,
    NewSessionResponse,
    PermissionOption,
    PromptResponse,
    ResumeSessionResponse,
    SessionCapabilities,
    SessionForkCapabilities,
    SessionInfo,
    SessionListCapabilities,
    SessionMode,
    SessionModeState,
    SessionResumeCapabilities,
    SetSessionModeResponse,
    ToolCallUpdate,
)


class OracleAgent(acp.Agent):  # type: ignore[misc]
    """Echoes; "ask" asks for a permission; "wait" waits for a cancel."""

    def __init__(self) -> None:
        self.client: Any = None
        self.stop = asyncio.Event()

    def on_connect(self, conn: Any) -> None:
        self.client = conn

    async def initialize(self, protocol_version: int, **_: Any) -> InitializeResponse:
        return InitializeResponse(
            protocol_version=protocol_version,
            agent_info=Implementation(name="oracle", version="1"),
            agent_capabilities=AgentCapabilities(
                load_session=True,
                session_capabilities=SessionCapabilities(
                    list=SessionListCapabilities(), resume=SessionResumeCapabilities(), fork=SessionForkCapabilities()
                ),
            ),
        )

    async def new_session(self, cwd: str, **_: Any) -> NewSessionResponse:
        modes = SessionModeState(current_mode_id="b", available_modes=[SessionMode(id=i, name=i) for i in "ab"])
        return NewSessionResponse(session_id="s-sdk", modes=modes)

    async def load_session(self, cwd: str, session_id: str, **_: Any) -> LoadSessionResponse:
        await self.client.session_update(session_id=session_id, update=acp.update_user_message_text("old question"))
        await self.client.session_update(session_id=session_id, update=acp.update_agent_message_text("old answer"))
        return LoadSessionResponse()

    async def resume_session(self, cwd: str, session_id: str, **_: Any) -> ResumeSessionResponse:
        return ResumeSessionResponse()

    async def fork_session(self, cwd: str, session_id: str, **_: Any) -> ForkSessionResponse:
        return ForkSessionResponse(session_id=f"{session_id}-fork")

    async def list_sessions(self, **_: Any) -> ListSessionsResponse:
        return ListSessionsResponse(sessions=[SessionInfo(session_id="s-sdk", cwd="/")])

    async def set_session_mode(self, mode_id: str, session_id: str, **_: Any) -> SetSessionModeResponse:
        return SetSessionModeResponse()

    async def prompt(self, prompt: list[Any], session_id: str, **_: Any) -> PromptResponse:
        self.stop.clear()
        words = "".join(getattr(block, "text", "") for block in prompt)
        await self.client.session_update(session_id=session_id, update=acp.update_agent_thought_text("hm"))
        if words == "ask":
            call = ToolCallUpdate(tool_call_id="t", title="rm -rf /", kind="execute", status="pending")
            options = [
                PermissionOption(option_id="y", name="Yes", kind="allow_once"),
                PermissionOption(option_id="n", name="No", kind="reject_once"),
            ]
            answer = await self.client.request_permission(session_id=session_id, tool_call=call, options=options)
            words = f"{answer.outcome.outcome} {getattr(answer.outcome, 'option_id', '')}"
        elif words == "wait":
            await self.client.session_update(session_id=session_id, update=acp.update_agent_message_text("waiting"))
            await self.stop.wait()
            return PromptResponse(stop_reason="cancelled")
        await self.client.session_update(session_id=session_id, update=acp.update_agent_message_text(words))
        return PromptResponse(stop_reason="end_turn")

    async def cancel(self, session_id: str, **_: Any) -> None:
        self.stop.set()


if __name__ == "__main__":
    asyncio.run(acp.run_agent(OracleAgent(), use_unstable_protocol=True))
