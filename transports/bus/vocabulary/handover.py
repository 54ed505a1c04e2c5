"""Codes, pickups, and what attaches a session to a thread."""

from __future__ import annotations

from dataclasses import field
from typing import Any

from transports.bus.codec import message


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


@message("read_code")
class ReadCode:
    """Address `attacher`: what a live code names, without using it up. Answered with Ok (the fields of IssueCode) or Failed."""

    code: str


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
