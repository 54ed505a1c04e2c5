"""What an agent host and its thread say to each other."""

from __future__ import annotations

from dataclasses import field
from typing import Any

from transports.bus.codec import message

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
    - foreign {what: begin|said|end|left, text}   (a joined terminal runs a turn; outside of turns of ours)
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
