"""What a host is told at its start, read from an inherited descriptor (never argv or environment, which every process of
the user can read): what host_start needs, then one JSON object."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from actors.host_start import pack
from agents_registry.errors import UsageError


class HostLimits(NamedTuple):
    """Durations in seconds, sizes in bytes."""

    initialize_s: float = 60.0
    session_s: float = 90.0
    mode_s: float = 15.0
    cancel_s: float = 20.0
    """After a cancel the agent has so long to end the turn, then it is ended itself."""
    stop_s: float = 3.0
    """Each step of the shutdown ladder."""
    lease_s: float = 120.0
    orphan_turn_s: float = 3600.0
    unacked_bytes: int = 64 << 20
    ref_bytes: int = 256 << 10
    """A part of an event that is larger travels as a file."""


class HostSpec(NamedTuple):
    """`start` is new, resume or fork; `methods` are the ACP ways to resume, in the order to try (resume, load)."""

    thread: str
    instance: str
    epoch: int
    argv: list[str]
    cwd: str
    data_dir: str
    secret: str = ""
    """Hex; proves `agent/<thread>/<instance>` to the supervisor."""
    env: dict[str, str] = {}
    """The agent's whole environment."""
    agent: str = ""
    session: str = ""
    start: str = "new"
    methods: list[str] = ["resume", "load"]
    expect_history: bool = False
    """session/load must replay something: there are agents that answer an unknown id with an empty session."""
    authenticate: str = ""
    mode: str = ""
    """The mode that asks, set after each new, load, resume and fork; "" = the agent has none."""
    mcp_servers: list[Any] = []
    limits: HostLimits = HostLimits()
    end_commands_on_cancel: bool = False
    end_detached: bool = False
    guard: str = ""
    """"gemini": keep the session's file safe while it is loaded."""
    joined: bool = False
    """Another client drives the session as well; what comes without a prompt of ours is present, not history."""
    install_hint: str = ""
    python_path: list[str] = []
    """Where the supervisor's modules come from: a host starts without `site`, which would have to find them again."""

    @property
    def address(self) -> str:
        """The host's bus address."""
        return f"agent/{self.thread}/{self.instance}"

    def to_bytes(self) -> bytes:
        """For the descriptor. Raises ValueError for a command that no process can be given."""
        env = {**self.env, "VIBEAROUND_HOST_ID": f"{self.thread}/{self.instance}/{self.epoch}", "PWD": self.cwd}  # agents record the directory in the spelling of PWD where it is a link
        return pack(self.argv, env, self.cwd) + self.to_json()

    def to_json(self) -> bytes:
        """What stands after the start."""
        return json.dumps({**self._asdict(), "limits": self.limits._asdict()}, ensure_ascii=False).encode("utf-8", "surrogateescape")


def from_json(data: bytes) -> HostSpec:
    """Raises UsageError for what is no spec. Unknown fields are ignored: the supervisor may be newer."""
    try:
        raw = json.loads(data.decode("utf-8", "surrogateescape"))
        limits = raw.pop("limits", None) or {}
        spec = HostSpec(
            **{k: v for k, v in raw.items() if k in HostSpec._fields},
            limits=HostLimits(**{k: v for k, v in limits.items() if k in HostLimits._fields}),
        )
        if not spec.argv or not spec.thread or not spec.instance or not isinstance(spec.epoch, int):
            raise ValueError("argv, thread, instance or epoch is missing")
    except (ValueError, TypeError, AttributeError) as error:
        raise UsageError(f"the host was given no usable spec: {error}.", code="bad_spec") from error
    return spec
