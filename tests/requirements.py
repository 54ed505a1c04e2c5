"""Every requirement of the foundation, by id, in one line each. A test names those that it shows:

    @pytest.mark.requires("H4.pickup-needs-no-agent-start", "B6")

tests/test_requirements.py fails where an id has no test and is not listed in tests/requirements_open.py, where an open one has a test after
all, and where a test names an id that does not exist. `python -m tests.requirements` prints the whole table.

H1 house, H2 foundation, H3 agents, H4 handover, H5 terminal as a chat, H6 commands, H7 command line, H8 speed, H9 real
agents; B rows of the behaviour table; I invariants.
"""

from __future__ import annotations

import sys

from tests.markers import collected
from tests.requirements_many_hands import REQUIREMENTS as MANY_HANDS
from tests.requirements_open import OPEN
from tests.requirements_relay import REQUIREMENTS as RELAY
from tests.requirements_surfaces import REQUIREMENTS as SURFACES

__all__ = ["OPEN", "REQUIREMENTS"]

_HOUSE = {
    "H1.packages": "setup.cfg holds all metadata; three import packages with sub-packages; distribution vibearound, command va",
    "H1.make-help": "make names each verb with what it does, and each verb exists",
    "H1.wheel-complete": "every module and data file of the three packages is in the wheel",
    "H1.wheel-runs": "the wheel works in a clean environment: va answers there, and the tests run against it",
    "H1.imports-run-down": "actors import transports import agents_registry; never the other way, and no surface imports an actor",
    "H1.shim-loads-little": "the MCP shim loads allow-listed modules of the standard library only",
    "H1.cli-loads-little": "the command line loads only allow-listed modules before it knows the command",
    "H1.supervisor-loads-little": "the supervisor loads only allow-listed modules",
}

_FOUNDATION = {
    "H2.addresses": "actors are reached by bus address alone; the same code works in one process and in several",
    "H2.order": "messages of one sender to one address keep their order, in one process and over the wire",
    "H2.pooled": "thousands of actors share a small pool; one actor's messages never overlap",
    "H2.actor-failure": "a failure in a handler reaches the parent with its reason, and the restart policy decides",
    "H2.bounded-inbox": "a full inbox refuses visibly",
    "H2.one-io-thread": "one thread owns the sockets; handlers never run on it",
    "H2.frames": "header and body have the documented bytes; an unknown version is a typed error, unknown trailing fields are ignored",
    "H2.frame-limits": "bodies over 1 MiB and prompts over 256 KiB are refused with a word",
    "H2.by-reference": "what is larger than a frame travels as a private file with size, hash, head and tail, and goes with its turn",
    "H2.reliable": "a reliable stream loses and doubles nothing over reconnects and kills of either end",
    "H2.credits": "a source is held back by credits per stream; the shared socket is always read",
    "H2.mandatory": "a message for a peer that has gone is not lost in silence",
    "H2.slow-peer": "a slow peer costs only itself",
    "H2.credentials": "a peer of another uid is not let in; pid and start time of each peer are known",
    "H2.roles": "a peer below a host of ours is an agent and is refused prompts, permission answers, modes, pickups and settings",
    "H2.identities": "socket identities are random per connection; a name on the bus is bound by a secret from a descriptor",
    "H2.own-only": "a host speaks only for its thread, a bridge only for its own routes",
    "H2.lock-first": "the data directory is locked before a socket is bound",
    "H2.run-json": "run.json is written atomically and is all a client reads to find the supervisor",
    "H2.stale-run-json": "a run.json of a dead supervisor is recognised as such",
    "H2.socket-path": "a socket path that would be too long is refused or shortened, never cut",
    "H2.journal-durable": "an event is on disk before its effect is seen outside",
    "H2.group-commit": "waiting writers share a commit",
    "H2.host-spawns-first": "a host starts its agent before it loads anything that costs time",
    "H2.migrations": "a database of an older schema is brought up to date; one of a newer schema is left alone with a clear error",
    "H2.projections": "threads are an event log; the projections rebuilt from it equal those kept",
    "H2.positions": "a route holds a position in its thread's events, not copies of them",
    "H2.rehydrate": "after a restart a route comes back with its thread and its queue",
    "H2.passivate": "an idle route's actor ends and its row stays",
    "H2.keep-days": "texts older than journal.keep_days are gone, undelivered ones are not",
    "H2.private-files": "database, spool, files and run.json are readable by the owner alone",
    "H2.host-assembles": "each finished block, tool call and turn end is one numbered event with its whole content",
    "H2.epochs": "a host of an older epoch is told to end",
    "H2.adopted": "a host survives the supervisor's kill -9, finishes its turn and is adopted by the next supervisor",
    "H2.lost-turn": "a turn journaled as started that the living host never saw is sent again, once",
    "H2.interrupted": "a turn whose host died is called interrupted and is not run again by itself",
    "H2.spool": "a host without a supervisor writes what is unacked to the spool after its lease and ends; the next supervisor reads it first",
    "H2.orphan-permission": "without a supervisor an open permission is cancelled when the lease has run out",
    "H2.restart-policy": "a child that ends is started again with back-off, and given up after a burst",
    "H2.reasons": "the end of each child is known with its reason",
    "H2.group-end": "an agent's whole process group ends with its host, grandchildren included",
    "H2.subreaper": "children that an agent left behind are reaped by its host",
    "H2.ladder": "shutdown is end of input, TERM, KILL, each bounded",
    "H2.detached": "what a tool call detached is named, and ended on down only",
    "H2.idle-stop": "a host stops after threads.idle_shutdown_s without turn, queue, permission and update; the thread stays open",
    "H2.lazy-return": "the next message after an idle stop starts a host and resumes the same session",
    "H2.prompt-meets-stopping": "a prompt that meets a stopping host waits for its end and then starts a new one",
    "H2.max-live": "with hosts.max_live reached, the least recently used idle host stops first",
    "H2.readiness": "the supervisor reports readiness to the service manager once it serves",
    "H2.settings-validated": "an unknown setting is named with the nearest known one; a wrong value names key and line",
    "H2.settings-kept": "a settings file that does not parse is never overwritten; comments survive a set",
    "H2.settings-env": "each setting can be given by the environment, which wins over the file",
    "H2.no-waiting-calls": "no handler of the supervisor makes a system call that can wait, during a whole handover",
    "H2.reader-hangs": "a hung reader delays no other chat; its request ends at its deadline and the worker is replaced",
    "H2.reader-lifeline": "reader and bridges end with the supervisor",
    "H2.lanes": "the lane of a route is bounded; a waiting message is told its place, a full lane refuses",
}

_AGENTS = {
    "H3.registry": "the registry holds claude, codex, gemini, opencode, qwen-code, cursor, kiro, pi, kimi and two desktop targets, complete",
    "H3.user-file": "a user's agents.toml adds and overrides; an error in it names the line",
    "H3.list": "va agents list says installed, version, usable for ACP, terminal, handover, and else why and how to fix it",
    "H3.install": "va agents install puts the pinned packages into the data directory, with progress",
    "H3.check": "va agents check makes the handshake and reports capabilities and times",
    "H3.demo": "the demo agent says what it is, keeps sessions, streams, asks permission, can be slow and can fail",
    "H3.demo-terminal": "the demo agent has a terminal form with the same sessions",
    "H3.demo-not-chosen": "the demo agent is never chosen by itself when a real agent is there",
    "H3.acp-order": "updates reach the product in wire order, unknown kinds and fields included",
    "H3.acp-lines": "a line of 64 MiB is read, a longer one is an error of that agent",
    "H3.acp-limits": "every handshake call has a limit, after which the user is told",
    "H3.acp-advertises": "fs and terminal are not advertised, and a request for them is refused",
    "H3.acp-permission-once": "a permission is answered exactly once, by an option chosen by its kind",
    "H3.acp-cancel": "a cancel answers open permissions as cancelled",
    "H3.acp-oracle": "the official SDK's agent works with the client, permission and cancel included",
    "H3.replay-hidden": "what session/load replays goes to no route",
    "H3.resume-or-load": "session/resume is used where it is real, else session/load, as the registry says",
    "H3.checked-first": "an unknown session and a missing directory are found by us before the agent is asked",
    "H3.gemini-same-minute": "a Gemini session is not loaded in the minute of its start",
    "H3.gemini-junk": "the junk file of a Gemini load is removed, and the session outlives Gemini's clean-up",
    "H3.no-config-edit": "per-agent settings are given without editing the user's configuration",
    "H3.mode-that-asks": "a hosted session is set to the mode that asks after new, load and resume",
}

_HANDOVER = {
    "H4.mcp-tools": "va mcp offers get_session_id, prepare_handover, register_workspace; the answer holds a line /pickup CODE",
    "H4.mcp-official": "the official MCP client works with it in every protocol mode that it has",
    "H4.mcp-restart": "the shim survives a supervisor restart and answers what was open",
    "H4.mcp-no-supervisor": "without a supervisor the shim says what to do, and connects when one appears",
    "H4.integrate": "va integrate puts server and skill where each agent looks, and leaves all else as it was",
    "H4.integrate-remove": "va integrate --remove takes out exactly what was put in",
    "H4.integrate-refuses": "a configuration that cannot be parsed is refused and stays as it was",
    "H4.integrate-print": "va integrate --print shows and changes nothing; no token stands in any file",
    "H4.hosted-mcp": "a hosted agent gets the server over ACP, unless its own configuration has it",
    "H4.identity-claude": "Claude's session is known, also after /clear",
    "H4.identity-codex": "Codex's session is known from the call itself",
    "H4.two-terminals": "two terminals in one directory are told apart",
    "H4.identity-disagrees": "when evidence disagrees no code is issued and both sessions are named",
    "H4.identity-candidate": "the newest session of the directory is a candidate only, and the answer says so",
    "H4.env": "launched and hosted agents get the documented VIBEAROUND_ variables",
    "H4.code-form": "a code is 4 characters of the alphabet, from the system's random source",
    "H4.code-one-winner": "of any number of racing pickups of a code one wins; the others hear that it is being picked up",
    "H4.code-ttl": "a code is gone after handover.ttl_s; a claim made in time lives until its pickup ends",
    "H4.code-released": "a cancelled or failed pickup burns no code",
    "H4.code-restart": "the reply to an unknown code says that a restart may be why",
    "H4.lockout": "too many misses lock out that chat alone and say so; a failed pickup is no miss",
    "H4.forgiving": "a code is taken in lower case, with spaces, and with a pasted /pickup",
    "H4.one-function": "all doorways end in one function, with the same checks and the same refusals",
    "H4.pickup-needs-no-agent-start": "a pickup succeeds with its checks and the attachment; the agent starts with the next prompt",
    "H4.pickup-resumes": "the session that a pickup names is the one that the next prompt reaches",
    "H4.pickup-joins": "a pickup of a session that an open thread holds joins that thread",
    "H4.va-pickup": "va pickup stops the host first and runs the agent's own resume command in the recorded directory; --print prints it",
    "H4.away": "while a terminal holds the session, messages wait with choices; when it ends the thread is ours again",
    "H4.chat-handover": "/handover in a chat gives a code and the command for a terminal",
    "H4.session-switch": "/session --switch re-binds like a pickup",
    "H4.pickup-waits-for-issuing-turn": "a pickup waits for the issuing turn to end, shown, at most 15 s, and asks nothing",
    "H4.pickup-asks-when-busy": "if that turn still runs it asks go on, fork, cancel",
    "H4.codex-fork": "Codex's lock of an open window: the conversation goes on as a fork, both ids are named, va pickup resumes the fork",
    "H4.cwd-recorded": "the recorded directory decides; if the call named another, the reply says both",
    "H4.ambiguous": "an id prefix that fits several sessions lists them",
}

_CHAT = {
    "H5.route": "va chat --chat NAME is a full route: streaming, permissions, commands",
    "H5.fan-out": "several routes on one thread all get the output",
    "H5.who-asked": "each route sees who asked what",
    "H5.join-leave": "the others see who joined or left",
    "H5.repl": "va chat repl holds a conversation in the terminal",
}

_COMMANDS = {
    "H6.grammar": "a command is a first line /word of letters and space or end; all else is a prompt",
    "H6.prefixes": "/va and /vibearound prefixes, --list and --switch forms mean the same",
    "H6.unknown": "an unknown command gets the nearest match and reaches no agent",
    "H6.roles": "one table says who may do what, and is walked for every role and command",
    "H6.help-status": "/help lists what this person may do; /status shows workspace, thread, agent, profile, model, session, state, queue, routes",
    "H6.new-close": "/new and /close on a shared thread detach this route and tell the others, unless it is the last",
    "H6.stop": "/stop cancels the running turn and this route's waiting prompts and says how many; other routes' prompts stay",
    "H6.workspace": "/workspace lists and selects by id, unique prefix or path",
    "H6.session": "/session lists with short ids, titles, human times; a unique prefix selects",
    "H6.agent-switch": "an agent is switched by exact id or alias; another agent is a new thread, said so",
    "H6.agent-cmd": "/agent /CMD passes a command to the agent, in order",
    "H6.profile": "/profile lists; direct is the only one",
    "H6.mode-plan": "/mode lists and sets; /plan is the agent's plan mode, else the modes are listed",
    "H6.at-once": "help, status, stop, route, handover, lists and answers work during a turn and create nothing",
    "H6.choice-in-turn": "what changes thread or agent while the own turn runs answers with a choice: wait, stop and do it, drop",
    "H6.answer-follows": "the answer of a turn reaches the route that asked, also after it has moved on",
    "H6.route": "/route names the route in its text form, which is reversible",
}

_CLI = {
    "H7.serve": "va serve runs in the foreground and ends on TERM with nothing left",
    "H7.up-down": "va up starts and va down ends the daemon, its hosts and their agents",
    "H7.down-without-supervisor": "va down without a supervisor ends recorded hosts",
    "H7.service": "service units are rendered purely, for systemd and launchd, and va up and down use an installed one",
    "H7.status-wait": "va status --wait waits for the supervisor, bounded",
    "H7.doctor": "va doctor says what is wrong and how to fix it, with and without a supervisor",
    "H7.settings": "va settings get, set, list and path work",
    "H7.handover": "va handover issues a code for a named session",
    "H7.launch": "va launch starts an agent in a workspace, resumes by id, shows the command with --dry-run",
    "H7.launch-sessions": "va launch sessions lists this directory's sessions with the command that resumes each",
    "H7.workspace": "va workspace adds, lists, archives and renames records and touches no directory",
    "H7.threads": "va threads list and show print the documented fields",
    "H7.sessions-list": "va sessions list reads Claude, Codex and demo sessions; others say not listed yet",
    "H7.demo": "va demo plays the whole handover with the demo agent in a data directory of its own",
    "H7.json": "every listing takes --json: one document on stdout with the documented fields; logs go to stderr",
    "H7.exit-codes": "each exit code of the contract is given in its case",
    "H7.without-supervisor": "the named commands work without a supervisor; all others exit 3 and name va up",
    "H7.send-events": "va chat send --json prints the documented events and ends with the exit code that fits",
    "H7.send-key": "the same key again runs nothing and shows the first turn",
    "H7.listen": "va chat listen prints all that reaches the route and moves its position; a second one is refused",
    "H7.answer": "va chat answer answers permissions and choices, and send goes on after it",
    "H7.choice-expires": "a choice without an answer in 60 s counts as its harmless option, and says so",
    "H7.stop": "va chat stop stops the running turn",
    "H7.progress": "long work shows progress",
    "H7.newcomer": "va without arguments shows what a newcomer needs next",
    "H7.completion": "shell completion is there for bash, zsh and fish",
}

_SPEED = {
    "H8.bench": "make bench measures each row of the table against its floor on the wheel install and fails over its bound",
}

_REAL = {
    "H9.claude-round-trip": "Claude: terminal, code, pickup, the model is sent the earlier turns; back to the terminal the same",
    "H9.codex-round-trip": "Codex: the same",
    "H9.two-chats": "two chats on one thread of a real agent",
    "H9.permission-other-chat": "a permission of a real agent, asked in one chat, answered in another",
    "H9.stop-mid-stream": "stop in mid-stream of a real agent",
    "H9.stop-with-permission": "stop with an open permission of a real agent",
    "H9.idle-return": "idle stop of a real agent, and return to the same session",
    "H9.supervisor-killed": "supervisor kill -9 in mid-stream: the turn ends complete, nothing is spawned twice",
    "H9.unknown-session": "pickup of an unknown session changes nothing",
    "H9.deleted-cwd": "pickup of a deleted directory is refused and creates none",
    "H9.symlinked-cwd": "pickup of a symlinked directory works",
    "H9.unicode-cwd": "pickup of a directory with Chinese characters and spaces works",
    "H9.agent-killed": "the agent killed in mid-turn: an error, and the next prompt resumes",
    "H9.silent-adapter": "an adapter that never answers is given up with a word",
    "H9.missing-binary": "a missing binary is an error with the install hint",
    "H9.racing-pickups": "racing pickups have one winner",
    "H9.expired-code": "an expired code is refused with the way to a new one",
}

_BEHAVIOUR = {
    "B1": "handover of a terminal session, picked up in a chat; the reply names title and directory",
    "B2": "the same code twice: the second is refused",
    "B3": "a code after its time is refused, and the text says how to get a new one",
    "B4": "a code in lower case with spaces around is taken",
    "B5": "a code for a directory removed since: clear refusal, the code is kept until its time",
    "B6": "a code with a session that the agent does not know: error, nothing changed",
    "B7": "pickup in chat B of a thread on chat A: B joins, both get answers, A is told",
    "B8": "pickup when the thread holds two sessions: the handed-over one is resumed",
    "B9": "pickup while the host runs another session: switch, or refuse with the reason",
    "B10": "pickup, idle stop, message: the same session resumes",
    "B11": "daemon restart, message: the same thread and session",
    "B12": "daemon restart, /close: the old thread is closed",
    "B13": "two messages fast in one chat: the second waits with its place, order kept",
    "B14": "messages in two chats on one thread: one after the other, each chat sees who asked what",
    "B15": "messages in two chats on two threads: in parallel",
    "B16": "stop during a turn cancels within a second",
    "B17": "stop with an open permission: it is cancelled and the turn ends",
    "B18": "a permission open in chat A delays nothing in chat B",
    "B19": "a permission may be answered on any authorised surface, the others are updated",
    "B20": "the agent killed in mid-turn: error, the next prompt respawns and resumes",
    "B21": "agent binary missing: error with install hint",
    "B22": "a refused resume: explicit notice and choice",
    "B24": "agent switch: a new thread, said so",
    "B25": "workspace switch there and back offers the earlier open thread",
    "B26": "/new in a chat sharing a thread: the others are informed",
    "B27": "a torn last line costs that line only",
    "B28": "a second daemon on the same data directory refuses to start",
    "B29": "a settings file with a syntax error is never overwritten",
    "B30": "an unknown sender gets nothing but one line",
    "B31": "1000 wrong codes from a chat block only that chat",
}

_INVARIANTS = {
    "I1": "accepted = queued + answered + refused with a visible word; per route in order; no waiting across routes",
    "I2": "kill -9 of any one process: no accepted prompt lost, none run twice, no final text lost",
    "I3": "a code has one winner; a failed pickup burns nothing; after its time it is gone",
    "I4": "the session that a pickup names is the one reached; never two hosts on one session, never a silent fork",
    "I5": "no recorded directory is ever created",
    "I6": "no process of ours or of our agents is left after down, idle stop or a lease's end; nothing else is touched",
    "I7": "no message of one chat, open permission, hung store or directory delays another chat",
    "I8": "a file that we do not understand is never overwritten; settings and state are replaced atomically",
    "I9": "an unauthorised sender gets no agent, no list, no attachment, and one line",
    "I10": "a torn or foreign record costs that record only",
    "I11": "no agent can answer its own permission",
}

REQUIREMENTS: dict[str, str] = {
    **_HOUSE,
    **_FOUNDATION,
    **_AGENTS,
    **_HANDOVER,
    **_CHAT,
    **_COMMANDS,
    **_CLI,
    **_SPEED,
    **_REAL,
    **_BEHAVIOUR,
    **_INVARIANTS,
    **MANY_HANDS,
    **RELAY,
    **SURFACES,
}


def main() -> None:
    """Print each requirement with the tests that show it; with `--open` only the ids that no test shows."""
    shown: dict[str, list[str]] = {}
    for mark in collected():
        for name in mark.names:
            shown.setdefault(name, []).append(mark.place)
    if "--open" in sys.argv[1:]:
        print("\n".join(f'        "{name}",' for name in REQUIREMENTS if name not in shown))
        return
    for name, text in REQUIREMENTS.items():
        print(f"{name}: {text}")
        for place in shown.get(name) or [f"OPEN: {OPEN.get(name, 'no test, and not listed as open')}"]:
            print(f"    {place}")
    print(f"{len(set(shown) & set(REQUIREMENTS))} of {len(REQUIREMENTS)} have a test")


if __name__ == "__main__":
    main()
