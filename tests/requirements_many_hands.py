"""The requirements of many hands, by id (M and the section's number), in one line each. See tests/requirements.py."""

from __future__ import annotations

REQUIREMENTS: dict[str, str] = {
    "M1.live-elsewhere": "a session that is open in a process that did not hand it over is a question: go on (or wait, or join), fork, cancel",
    "M1.busy-writer": "somebody else runs a turn in the session when a message comes: it waits, told so, or goes on with a fork",
    "M1.fork-named": "a fork that happened during a turn is named with both ends, and either can be taken up",
    "M1.launch-away": "`va launch --resume` of a chat's session waits for its turn, ends its host, and has it until its process ends",
    "M1.code-moves-nothing": "issuing a code stops no host and moves no writer",
    "M1.lock": "a lock that a closed window left is waited for, with progress; one of an open window is asked about, never tried",
    "M1.join": "a live thread of Codex is joined where its daemon is tested and the extra is there",
    "M1.join-approvals": "in a joined thread only questions of the chat's own turns reach the chat",
    "M1.join-busy": "a turn that the terminal runs in a joined thread makes it busy until it ends; what waits is told so",
    "M1.join-leaves": "when the terminal leaves a joined thread, the host moves to a server of its own, in the same session",
    "M3.agents-refused": "an agent's attempt at what only people may do is refused, shown to the people and logged, a loop of it once",
    "M3.double-fork": "that holds also for a process that left the agent by a double fork, without marks in its environment",
    "M2.answer-follows": "answer and questions of a turn reach the chat that asked, also after it moved on",
    "M2.stop-counts": "a stop says how many turns it cancelled and how many waiting messages it dropped, and reaches a host that comes back",
    "M4.state-machine": "over any order of messages, stops, moves, deaths and restarts nothing runs twice, is lost, or has two hosts",
    "M3.pi-yes": "an agent that never asks needs the owner's yes, once per workspace, kept and shown in /status",
    "M4.watchdog": "a hung io thread or pool ends the sign of life to the service manager",
    "M3.survives-restart": "an open permission outlives its supervisor with the host alive, and is applied once by whoever comes next",
    "M3.expires": "a permission expires at its time, whatever restarts meanwhile",
    "M3.late-foreign": "a late press, a foreign one and one with an unknown id are each answered and change nothing",
    "M3.three-in-one-turn": "several permissions of one turn are separate questions, each answered once",
    "M3.cancelled-with-turn": "a permission ends with its turn, and says so to a later press",
    "M3.follows-who-asked": "the permissions of a turn reach the chat that asked, also after it moved on",
    "M3.settings-from-an-agent": "settings are refused to an agent's command by the command line itself, with and without a supervisor",
}
