"""The requirements of relay, by id (R and the section's number), in one line each. See tests/requirements.py."""

from __future__ import annotations

REQUIREMENTS: dict[str, str] = {
    "R3.search-chat": "a chat finds sessions of all agents by what was said in them",
    "R4.brief": "without --full goal, decisions, constraints, last turns and the boundary are carried, within a budget",
    "R4.circle": "four hops from agent to agent with --full lose nothing",
    "R4.fresh-advice": "a session that is not worth carrying is carried only when somebody says so: --force, or a button",
    "R4.full": "--full carries every request, answer, tool call and result word by word",
    "R4.settings": "the settings say how many rounds and tokens go, and which words mark a decision in each language",
    "R5.brief-first": "where the store cannot be written, the brief is the first turn of a new conversation",
    "R5.brief-waits": "messages that come later wait for the end of the brief's turn",
    "R5.native": "a session is written into the target's own store, and the real agent goes on in it",
    "R5.proven": "a written session that the target does not load is removed and the text given, with the reason",
    "R5.launch-file": "a terminal launch gets the text by a private file that is removed, never as one long argument",
    "R5.read-back": "what was said counts as given only when the target's own store holds all of it; a cut is told",
    "R5.sources-kept": "a source file is never written",
    "R6.again": "a relay that is run again, as after a crash, finds what it wrote and writes nothing twice",
    "R6.back": "going back resumes the earlier session and brings only what is new",
    "R6.chat": "/relay moves the chat to the other agent; the old thread stays open",
    "R6.code-from": "a live handover code names the conversation to carry",
    "R6.cwd-gone": "a directory that is gone is an error that names it, and --cwd gives another",
    "R6.drift": "files that changed since the relay are named to the receiver and to the user",
    "R6.failed-relay": "a relay that fails says why and moves nothing",
    "R6.library": "the example of the documentation runs",
    "R6.linked": "the old and the new thread each say where the conversation came from and went to",
    "R6.map": "one map of relays is shared by chats and command line",
    "R6.no-supervisor": "va relay works without a supervisor",
    "R6.reader-process": "reading sessions for a relay delays no other chat",
}
