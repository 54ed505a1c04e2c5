"""What routes, threads and the doors to them say to each other inside the supervisor."""

from __future__ import annotations

from dataclasses import field
from typing import Any

from transports.bus.codec import message


@message("thread_prompt")
class ThreadPrompt:
    """Route -> thread. Answered at once with Ok {state: started|queued, position} or Failed; later TurnOver."""

    key: str
    route: str
    text: str
    sender: dict[str, Any] = field(default_factory=dict)
    attachments: list[Any] = field(default_factory=list)
    kind: str = "prompt"
    """prompt, or mode (text = mode id), plan, relay (a prompt that holds what another agent did)."""


@message("turn_over")
class TurnOver:
    """Thread -> the route that asked. `event`: a done or error event."""

    key: str
    event: dict[str, Any]


@message("thread_stop")
class ThreadStop:
    """Route -> thread: cancel the running turn if it is this route's (or `all`), drop its waiting prompts."""

    route: str
    all: bool = False
    sender: dict[str, Any] = field(default_factory=dict)


@message("thread_answer")
class ThreadAnswer:
    """Route -> thread: a permission decision. Answered with Ok {decided} or Failed (late, foreign, unknown)."""

    id: str
    option: str
    route: str
    sender: dict[str, Any] = field(default_factory=dict)


@message("thread_routes")
class ThreadRoutes:
    """Attacher -> thread: its attached routes are now these ([route, joined seq])."""

    routes: list[Any]
    joined: str = ""
    left: str = ""
    sender: dict[str, Any] = field(default_factory=dict)


@message("thread_status")
class ThreadStatus:
    """Anyone -> thread. Answered with Ok {id, state, agent, session, queue, turn, mode, modes, model, ...}."""


@message("thread_release")
class ThreadRelease:
    """Attacher -> thread: stop the host and see it gone. Answered with Ok {session} or BusyError while a turn runs
    (unless `stop_turn`). `away`: the terminal process that takes over."""

    reason: str
    stop_turn: bool = False
    away: dict[str, Any] = field(default_factory=dict)


@message("thread_close")
class ThreadClose:
    """Attacher -> thread: the thread was closed in the journal; stop the host when the turn is over, then leave."""

    reason: str


@message("thread_session")
class ThreadSession:
    """Attacher -> thread: the current session was set; the host (if any) must restart on it."""

    session: str
    store_root: str
    start: str
    """resume or fork."""


@message("route_attachment")
class RouteAttachment:
    """Attacher -> route: its attachment changed (thread "" = detached)."""

    thread: str
    workspace: str = ""
    cwd: str = ""
    joined_seq: int = 0


@message("route_notice")
class RouteNotice:
    """Anyone -> route: a line for the people there; durable."""

    text: str
    turn: str = ""
    thread: str = ""


@message("route_unask")
class RouteUnask:
    """Anyone -> route: the question `id` needs no answer any more; whoever asked it hears the option "withdrawn"."""

    id: str
    why: str


@message("route_ask")
class RouteAsk:
    """Anyone -> route: a question with options ([id, name]); answered with Ok {option, by} (harmless on expiry)."""

    id: str
    title: str
    options: list[Any]
    harmless: str
    expires_in_s: float = 60.0
    turn: str = ""
    owner_only: bool = False


@message("default_workspace")
class DefaultWorkspace:
    """Address `workspaces`: the workspace of a chat's first contact (`general` for terminals, `im/<channel>` else), made
    when it is missing. Answered with Ok {id, cwd, real}."""

    channel: str


@message("set_profile")
class SetProfile:
    """Address `attacher`: another profile for the route's thread. `direct` is the only one for now."""

    route: str
    profile: str


@message("get_agents")
class GetAgents:
    """Address `catalog`. Answered with Ok {agents[{id, name, installed, usable, why}]}."""


@message("mcp_line")
class McpLine:
    """Io thread -> `mcp`: bytes of one agent's MCP connection, or its begin (line empty, opened) and end (closed)."""

    connection: int
    data: bytes = b""
    opened: bool = False
    closed: bool = False
    pid: int = 0
    uid: int = 0
    role: str = ""
    host_thread: str = ""
    start_time: int = 0


@message("identify_session")
class IdentifySession:
    """Address `attacher`: whose session is it? Answered with Ok {id, cwd, store_root, title, note, source, ...} or Failed."""

    agent: str
    session: str
    cwd: str
    evidence: list[Any] = field(default_factory=list)
    env: dict[str, str] = field(default_factory=dict)
    issuer: dict[str, Any] = field(default_factory=dict)


@message("agent_tried")
class AgentTried:
    """Supervisor or route -> `attempts`: an agent's process asked for what only people may. `thread`: whose host is above
    it, "" for an agent of a terminal; `route`: the chat it was about, or ""; `what`: the refused message's tag."""

    what: str
    thread: str = ""
    route: str = ""
    pid: int = 0


@message("thread_notice")
class ThreadNotice:
    """Anyone -> thread: a line for all its chats; durable."""

    text: str
    what: str = ""
