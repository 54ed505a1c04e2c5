"""What concerns processes: starting, probing and ending hosts, readers and other children."""

from __future__ import annotations

from dataclasses import field
from typing import Any

from transports.bus.codec import message


@message("spawn_host")
class SpawnHost:
    """Thread -> spawner. Answered with Ok {pid, start_time, secret_hash} or Failed (AgentError with install hint).

    `start`: new, resume, fork, or join (resume in the agent's own daemon, where a terminal has the session open).
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


@message("host_agent")
class HostAgent:
    """Thread -> spawner: the agent of a host, as its hello said; what is to be seen dead when the host has ended."""

    thread: str
    instance: str
    epoch: int
    agent_pid: int
    agent_pgid: int
    agent_start: int


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


@message("probe_process")
class ProbeProcess:
    """Address `spawner`. Answered with Ok {alive}: whether this very process runs."""

    pid: int
    start_time: int


@message("refresh_environment")
class RefreshEnvironment:
    """Address `spawner` (`va up` on a running supervisor): read the login shell's environment again and look for newly
    installed agents. Answered with Ok {source, agents[]}."""
