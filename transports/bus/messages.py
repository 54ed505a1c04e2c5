"""The vocabulary of the bus: every message that surfaces, hosts, the reader and actors exchange.

Addresses: `route/<route text>`, `thread/<id>`, `agent/<thread>/<instance>`, `handover`, `attacher`, `workspaces`,
`catalog` (lists and status), `journal`, `history`, `reader`, `spawner`, `supervisor`, `peer/<n>` (a connection).
Times are seconds since the epoch unless a name ends in `_s` (a duration in seconds).
"""

from __future__ import annotations

from dataclasses import field
from typing import Any

from transports.bus.codec import message

# --- every conversation ------------------------------------------------------------------------------------------


@message("hello")
class Hello:
    """First message of a connection. `kind`: client, bridge, host, reader. `secret` proves `name` (see access)."""

    kind: str
    name: str = ""
    secret: bytes = b""
    pid: int = 0
    version: str = ""
    protocol: list[int] = field(default_factory=lambda: [1, 1])
    """Lowest and highest protocol version spoken."""


@message("welcome")
class Welcome:
    """The answer: the peer's own address, and the role the supervisor gives it."""

    address: str
    role: str
    version: str


@message("failed")
class Failed:
    """The answer that is an error: `errors.VibeAroundError.to_wire()`."""

    error: list[Any]


@message("ok")
class Ok:
    """The answer that is data."""

    data: dict[str, Any] = field(default_factory=dict)


@message("gone")
class PeerGone:
    """A connection ended: sent to whoever watches it."""

    address: str
    name: str = ""
    reason: str = ""


# --- a surface speaks to its route (address `route/<route>`) -----------------------------------------------------


@message("submit")
class Submit:
    """A person's message. Answered with `Accepted`, `Ok` (a command that answers at once) or `Failed`.

    `key` makes a redelivery harmless. `sender`: {id, name, role}; the role counts only from a bridge's own claim of
    its users, a local process is its peer role. `workspace`: directory for a thread that this prompt would create.
    With `watch` the sender gets this turn's `RouteItem`s, ending with a done, reply or error event.
    """

    key: str
    text: str
    sender: dict[str, Any] = field(default_factory=dict)
    workspace: str = ""
    attachments: list[Any] = field(default_factory=list)
    watch: bool = False


@message("accepted")
class Accepted:
    """Durable: the prompt or command will be answered. `duplicate`: the key was known, nothing runs again."""

    key: str
    duplicate: bool = False
    position: int = 0


@message("listen")
class Listen:
    """Subscribe to all that reaches the route, from its stored position; items are to be acked with `ItemAck`.

    `credit`: at most so many unacked items under way. `exclusive`: a second exclusive listener is refused.
    """

    credit: int = 64
    exclusive: bool = True
    previews: bool = True


@message("unlisten")
class Unlisten:
    """End a subscription."""


@message("item")
class RouteItem:
    """What a surface shows. `seq` 0 = a preview, never acked or resent; else the position to ack.

    `event` is one object of the `va chat send --json` contract: {"event": accepted | queued | session | asked | text |
    thought | tool | plan | permission | permission_done | choice | choice_done | reply | notice | error | done, ...}.
    `turn` is the key of the turn it belongs to, "" for none; `thread` its thread.
    """

    route: str
    seq: int
    turn: str
    thread: str
    event: dict[str, Any]


@message("preview", preview=True)
class Preview:
    """Like `RouteItem`, for text in the making; dropped first when a peer is slow."""

    route: str
    turn: str
    thread: str
    event: dict[str, Any]


@message("item_ack")
class ItemAck:
    """All items up to and including `seq` were taken over by the surface; moves the route's stored position."""

    seq: int


@message("answer")
class Answer:
    """The choice of a person for a permission or a question. `option` "" = cancel. Answered with Ok or Failed."""

    id: str
    option: str
    sender: dict[str, Any] = field(default_factory=dict)


@message("stop_turn")
class StopTurn:
    """Cancel the running turn and the waiting prompts of this route. Answered with Ok {cancelled, dropped}."""

    sender: dict[str, Any] = field(default_factory=dict)


# --- a host and its thread ---------------------------------------------------------------------------------------
# Host -> `thread/<id>`: HostHello, HostEvent, HostDelta.  Thread -> `agent/<thread>/<instance>`: the others.


@message("host_hello")
class HostHello:
    """First word of a host after each connect (also after a supervisor restart), before the agent's first call.

    Answered with `HostWelcome`. `turns` are the keys of turns it has seen, newest last, at most 256; `turn` the
    running one or "". `session` "" while not ready. `state`: starting, idle, busy, stopping.
    """

    thread: str
    instance: str
    epoch: int
    host_pid: int
    host_start: int
    agent_pid: int
    agent_pgid: int
    agent_start: int
    state: str
    session: str = ""
    turn: str = ""
    turns: list[str] = field(default_factory=list)
    last_seq: int = 0
    info: dict[str, Any] = field(default_factory=dict)
    """What its ready event said, as it is now (modes, mode, model, commands, agent_name, agent_version); {} while not
    ready. A supervisor that adopts a living host has not heard that event."""


@message("host_welcome")
class HostWelcome:
    """`end` true: of an older epoch, stop the agent and exit. Else send all events after `acked`, and go on."""

    acked: int
    end: bool = False


@message("host_event")
class HostEvent:
    """One numbered durable event with its whole content (`seq` counts from 1 per epoch), kept until acked.

    kinds and bodies:
    - ready {session, start: new|resumed|forked, forked_from, agent_name, agent_version, modes[{id,name}], mode, model,
      capabilities{}, commands[{name, description}]}
    - failed {phase, code, message, hint, exit_code, keep_session: bool}  the agent could not start or resume; host exits
    - text {block, text}   thought {block, text}   (a finished block)
    - tool {id, title, kind, status, input, content, locations}   (when it ends, or its title/status changes)
    - plan {entries[]}
    - permission {id, title, tool{}, options[{id, name, kind}]}   permission_done {id, outcome, option, by}
    - turn_end {stop_reason, error{code,message,hint}|None, usage{}}
    - mode {mode}   title {title}   commands {commands[]}   notice {text}
    - session {session, alias_of}   (the agent changed its session id)
    - agent_gone {exit_code, signal, stderr_tail, detached[]}   (the last event of a host)
    Large parts travel as {"ref": {path, size, sha256, head, tail}}.
    """

    seq: int
    epoch: int
    turn: str
    kind: str
    body: dict[str, Any]


@message("host_delta", preview=True)
class HostDelta:
    """Text in the making: (turn, block, offset in characters) and the next piece. Never acked or resent."""

    epoch: int
    turn: str
    kind: str
    block: int
    offset: int
    text: str


@message("host_ack")
class HostAck:
    """Events up to and including `upto` are durable in the supervisor."""

    upto: int


@message("host_prompt")
class HostPrompt:
    """Run a turn. A turn key that the host has seen before is not run again. `blocks` are ACP content blocks."""

    turn: str
    blocks: list[Any]


@message("host_cancel")
class HostCancel:
    """Cancel this turn; its open permissions are cancelled first."""

    turn: str


@message("host_answer")
class HostAnswer:
    """The decision on a permission; option "" = cancelled. Applied once; a second one is ignored."""

    request: str
    option: str


@message("host_set_mode")
class HostSetMode:
    """Answered with Ok {mode} or Failed."""

    mode: str


@message("host_reload")
class HostReload:
    """Somebody else wrote to the session: load it again before the next turn. Answered with Ok or Failed."""

    session: str


@message("host_stop")
class HostStop:
    """Stop the agent by the shutdown ladder, send agent_gone, exit."""

    reason: str


# --- handover, attaching ------------------------------------------------------------------------------------------


@message("issue_code")
class IssueCode:
    """Address `handover`. Answered with `CodeIssued` or Failed. `issuer`: {pid, start_time} of the asking agent."""

    agent: str
    session: str
    cwd: str
    profile: str = "direct"
    store_root: str = ""
    title: str = ""
    env: dict[str, str] = field(default_factory=dict)
    issuer: dict[str, Any] = field(default_factory=dict)
    note: str = ""


@message("code_issued")
class CodeIssued:
    code: str
    expires_in_s: float
    note: str = ""


@message("claim_code")
class ClaimCode:
    """Address `handover`. `received_at` (monotonic seconds of the supervisor) decides against expiry.

    Answered with `Claimed` or Failed (CodeError, RefusedError when locked out, BusyError when claimed by another).
    """

    code: str
    route: str
    user: str
    received_at: float


@message("claimed")
class Claimed:
    """`payload`: the fields of IssueCode as a dict."""

    code: str
    payload: dict[str, Any]


@message("settle_claim")
class SettleClaim:
    """The pickup ended: `done` burns the code; else it is live again if its time is not over."""

    code: str
    route: str
    done: bool


@message("prepare_handover")
class PrepareHandover:
    """Address `attacher`: check a session against its store, then issue a code. Answered with CodeIssued or Failed.

    `evidence`: [[source, session id], ...] beyond `session` (the caller's word); see agents_registry.identify.
    """

    agent: str
    session: str
    cwd: str
    profile: str = "direct"
    evidence: list[Any] = field(default_factory=list)
    env: dict[str, str] = field(default_factory=dict)
    issuer: dict[str, Any] = field(default_factory=dict)


@message("attach_external")
class AttachExternal:
    """Address `attacher`, the one function where all doorways end. Answered with `Attached` or Failed.

    `payload` as in Claimed; `decision` "" or go_on | fork, for a session that is live elsewhere. Progress and
    questions reach the route as RouteNotice and RouteAsk.
    """

    route: str
    payload: dict[str, Any]
    sender: dict[str, Any] = field(default_factory=dict)
    decision: str = ""
    key: str = ""
    """Of the message that asked for it: what is asked and told on the way carries it, so that its sender sees it."""


@message("attached")
class Attached:
    route: str
    thread: str
    agent: str
    session: str
    cwd: str
    workspace: str
    title: str = ""
    joined: bool = False
    others: list[str] = field(default_factory=list)
    note: str = ""


@message("new_thread")
class NewThread:
    """Address `attacher`: a new thread for a route, replacing its attachment. Answered with Attached or Failed."""

    route: str
    cwd: str = ""
    workspace: str = ""
    agent: str = ""
    profile: str = "direct"
    sender: dict[str, Any] = field(default_factory=dict)


@message("attach_thread")
class AttachThread:
    """Address `attacher`: attach a route to an existing open thread. Answered with Attached or Failed."""

    route: str
    thread: str
    sender: dict[str, Any] = field(default_factory=dict)


@message("detach")
class Detach:
    """Address `attacher`. `close`: also close the thread when this was its last route. Answered with Ok or Failed."""

    route: str
    close: bool = False
    sender: dict[str, Any] = field(default_factory=dict)


@message("pickup_terminal")
class PickupTerminal:
    """Address `attacher`: the writer moves to a terminal. `keep_host`: for --print, nothing moves.

    Answered with Ok {agent, session, cwd, argv[], line, thread, note} once the host is gone, or Failed.
    """

    code: str
    pid: int = 0
    start_time: int = 0
    keep_host: bool = False


@message("handover_thread")
class HandoverThread:
    """Address `attacher`: a code for the route's current session (`/handover`). Answered with CodeIssued or Failed."""

    route: str


@message("list_sessions")
class ListSessions:
    """Address `attacher`: sessions of an agent in a directory, read by the reader. Answered with Ok {sessions[]}."""

    agent: str
    cwd: str
    limit: int = 10


# --- lists and control (addresses `catalog`, `workspaces`, `supervisor`) -------------------------------------------


@message("get_status")
class GetStatus:
    """Address `catalog`. Answered with Ok: the object of `va status --json`."""


@message("list_threads")
class ListThreads:
    """Address `catalog`. Answered with Ok {threads[]}: objects of `va threads list --json`."""

    limit: int = 100
    all: bool = False


@message("show_thread")
class ShowThread:
    """Address `catalog`; `id` may be a unique prefix. Answered with Ok: the object of `va threads show --json`."""

    id: str


@message("list_workspaces")
class ListWorkspaces:
    """Address `workspaces`. Answered with Ok {workspaces[{id, name, cwd, general, archived, threads}]}."""

    archived: bool = False


@message("add_workspace")
class AddWorkspace:
    """Address `workspaces`. The directory must exist. Answered with Ok {id, name, cwd, known}."""

    cwd: str
    name: str = ""
    create: bool = False
    """Only the supervisor's own default workspaces are ever created."""


@message("change_workspace")
class ChangeWorkspace:
    """Address `workspaces`. `action`: archive, restore or rename. Answered with Ok or Failed."""

    id: str
    action: str
    name: str = ""


@message("find_workspace")
class FindWorkspace:
    """Address `workspaces`. By id, name, unique prefix or path. Answered with Ok {id, name, cwd} or Failed."""

    wanted: str


@message("shutdown")
class Shutdown:
    """Address `supervisor` (`va down`): hosts stop, then everything. Answered with Ok before it begins."""

    reason: str = ""


@message("end_session_host")
class EndSessionHost:
    """Address `attacher`: end the host of this session, for `va launch --resume`. Answered with Ok {ended}."""

    agent: str
    session: str


# --- between actors ------------------------------------------------------------------------------------------------


@message("record")
class Record:
    """Address `journal`: named operations, applied in one transaction, then events posted and `Recorded` answered.

    `ops`: [[name, param, ...], ...] (see actors.journal.operations). `events`: [[thread, turn, kind, body, target,
    origin], ...]; each is posted, once durable, to `route/<r>` for each r in its `fanout` entry (same index).
    """

    ops: list[Any]
    events: list[Any] = field(default_factory=list)
    fanout: list[Any] = field(default_factory=list)
    token: str = ""


@message("recorded")
class Recorded:
    """`results`: one entry per operation (most are None). `seqs`: the global numbers of the events."""

    token: str
    results: list[Any]
    seqs: list[int] = field(default_factory=list)


@message("load")
class Load:
    """Address `history`: a named read. Answered with Ok {rows} or what the name says (actors.journal.queries)."""

    query: str
    params: list[Any] = field(default_factory=list)


@message("posted")
class Posted:
    """Journal -> route: a durable event that this route shows."""

    seq: int
    thread: str
    turn: str
    kind: str
    body: dict[str, Any]
    target: str = ""
    origin: str = ""
    at: float = 0.0


@message("thread_prompt")
class ThreadPrompt:
    """Route -> thread. Answered at once with Ok {state: started|queued, position} or Failed; later TurnOver."""

    key: str
    route: str
    text: str
    sender: dict[str, Any] = field(default_factory=dict)
    attachments: list[Any] = field(default_factory=list)
    kind: str = "prompt"
    """prompt, or mode (text = mode id), plan."""


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


@message("spawn_host")
class SpawnHost:
    """Thread -> spawner. Answered with Ok {pid, start_time, secret_hash} or Failed (AgentError with install hint).

    `start`: new, resume or fork.
    """

    thread: str
    instance: str
    epoch: int
    agent: str
    profile: str
    cwd: str
    workspace: str
    session: str
    start: str
    env: dict[str, str] = field(default_factory=dict)
    mode: str = ""


@message("host_exited")
class HostExited:
    """Spawner -> thread: the host process ended and its agent group was seen dead."""

    instance: str
    epoch: int
    reason: str


@message("end_host")
class EndHost:
    """Thread -> spawner: end a host that does not stop by itself. Answered with HostExited."""

    thread: str
    instance: str
    epoch: int
    host_pid: int
    host_start: int
    agent_pgid: int
    agent_pid: int
    agent_start: int


@message("read")
class Read:
    """Address `reader`. `op`: resolve, list, check_cwd, real_path, turn_running, tail, live_writer, identify, search.

    Answered with Ok (see actors.reader_ops) or Failed; a request that takes longer than `deadline_s` fails with busy.
    """

    op: str
    args: dict[str, Any] = field(default_factory=dict)
    deadline_s: float = 10.0


@message("host_slot")
class HostSlot:
    """Thread -> `hosts`: may a host be spawned? Answered with Ok when there is room under `hosts.max_live` (the least
    recently used idle host is stopped to make it), or BusyError."""

    thread: str


@message("host_state")
class HostState:
    """Thread -> `hosts`: its host is now starting, idle, busy, stopping, dead, away or reclaiming."""

    thread: str
    state: str
    agent: str = ""
    session: str = ""
    host_pid: int = 0
    agent_pid: int = 0


@message("probe_host")
class ProbeHost:
    """Thread -> spawner, after a supervisor start: Ok {alive, spooled[HostEvent fields]}; a dead host's agent group is
    ended before the answer."""

    thread: str
    instance: str
    epoch: int
    host_pid: int
    host_start: int
    agent_pid: int
    agent_pgid: int
    agent_start: int


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


@message("start_reader")
class StartReader:
    """Reader pool -> spawner: start a reader process that owns this address. Answered with Ok {pid} or Failed."""

    name: str


@message("stop_child")
class StopChild:
    """Anyone -> spawner: end a child by its name, by force where needed."""

    name: str


@message("child_up")
class ChildUp:
    """Supervisor -> the actor that asked for a child: its connection was admitted."""

    name: str


@message("child_exited")
class ChildExited:
    """Spawner -> the actor that asked for a child: the process has ended."""

    name: str
    reason: str


@message("list_hosts")
class ListHosts:
    """Address `hosts`. Answered with Ok {hosts[{thread, state, agent, session, pid, agent_pid}]}."""


@message("memory_of")
class MemoryOf:
    """Address `spawner`. Answered with Ok {mb[]}: resident memory of each group of pids, in MB."""

    pids: list[Any]


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


@message("probe_process")
class ProbeProcess:
    """Address `spawner`. Answered with Ok {alive}: whether this very process runs."""

    pid: int
    start_time: int


@message("refresh_environment")
class RefreshEnvironment:
    """Address `spawner` (`va up` on a running supervisor): read the login shell's environment again and look for newly
    installed agents. Answered with Ok {source, agents[]}."""


@message("remove_files")
class RemoveFiles:
    """Address `spawner`: files under `<data>/files` whose turns are no longer kept; other paths are left alone."""

    paths: list[Any]
