"""An ACP agent as a real process, with knobs: `FAKE_AGENT` in the environment is a JSON object of them.

Handshake: `hang`: [methods never answered] · `refuse`: {method: [code, message]} · `no_caps`: [load, resume, fork] ·
`new_id`: id that load/resume answers with · `replay`: n updates before the load answer · `late`: n after it ·
`modes`: [ids] · `mode_option`: true = modes as a configuration option · `stderr`: text · `garbage`: true ·
`start`: "exit N" or "mute" (never reads).
Life: `ignore_term`, `ignore_eof`, `grandchild` ("group" or "session": a sleeping one; its pid goes to `pid_file`),
`log`: a file that gets every line received.
A prompt is a program, words separated by `;`: say TEXT · think TEXT · chunks N · big N (one chunk of N bytes) · line N
(one raw line of N bytes) · tool · codextool · ask (a permission) · askmany N · unknown · media · wait (for a cancel) ·
deaf (ignores cancels for ever) · exit N · fail · command (a sleeping one in a session of its own) · late TEXT (after
the answer) · withdraw (asks, and takes it back) · fs (asks for a file write) · surrogate · plan · title TEXT · mode ID · sh FILE (runs the script).
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from queue import Queue
from typing import Any

KNOBS: dict[str, Any] = json.loads(os.environ.get("FAKE_AGENT", "{}"))
OUT = sys.stdout.buffer
LOCK = threading.Lock()
CANCEL = threading.Event()
ANSWERS: Queue[dict[str, Any]] = Queue()
OPTIONS = [
    {"optionId": "o-yes", "name": "Yes", "kind": "allow_once"},
    {"optionId": "o-ever", "name": "Always", "kind": "allow_always"},
    {"optionId": "o-no", "name": "No", "kind": "reject_once"},
]


def raw(data: bytes) -> None:
    with LOCK:
        OUT.write(data)
        OUT.flush()


def send(message: dict[str, Any]) -> None:
    raw(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")


def update(session: str, what: str, /, **fields: Any) -> None:
    params = {"sessionId": session, "update": {"sessionUpdate": what, **fields}}
    send({"method": "session/update", "params": params})


def text(session: str, words: str, kind: str = "agent_message_chunk") -> None:
    update(session, kind, content={"type": "text", "text": words})


def sleeper(own_session: bool) -> None:
    child = subprocess.Popen(["sleep", "600"], start_new_session=own_session)
    with open(KNOBS["pid_file"], "a") as file:
        file.write(f"{child.pid}\n")


def ask(session: str, number: int) -> str:
    call = {"toolCallId": f"t{number}", "title": f"do thing {number}", "kind": "execute", "status": "pending"}
    params = {"sessionId": session, "toolCall": call, "options": OPTIONS}
    send({"id": f"perm-{number}", "method": "session/request_permission", "params": params})
    answer = ANSWERS.get()
    outcome = answer["result"]["outcome"]
    return str(outcome.get("optionId", outcome["outcome"]))


def run(session: str, program: str) -> str:
    for number, step in enumerate(part.strip() for part in program.split(";")):
        verb, _, rest = step.partition(" ")
        if verb == "say":
            text(session, rest)
        elif verb == "think":
            text(session, rest, "agent_thought_chunk")
        elif verb == "chunks":
            for n in range(int(rest)):
                text(session, f"{n} ")
        elif verb == "big":
            text(session, "x" * int(rest))
        elif verb == "line":
            raw(b'{"x":"' + b"y" * (int(rest) - 9) + b'"}\n')
        elif verb == "tool":
            update(session, "tool_call", toolCallId=f"t{number}", title="Look", kind="read", status="pending")
            content = [{"type": "content", "content": {"type": "text", "text": rest or "seen"}}]
            update(session, "tool_call_update", toolCallId=f"t{number}", status="completed", content=content)
        elif verb == "codextool":
            content = [{"type": "terminal", "terminalId": "x"}]
            update(session, "tool_call", toolCallId="c", title="ls", kind="execute", status="in_progress", content=content)
            for piece in ("one\n", "two\n"):
                update(session, "tool_call_update", toolCallId="c", _meta={"terminal_output_delta": {"data": piece}})
            end = {"terminal_exit": {"exit_code": 0}}
            update(session, "tool_call_update", toolCallId="c", status="completed", _meta=end)
        elif verb == "ask":
            text(session, f"answered {ask(session, number)}")
        elif verb == "askmany":
            for n in range(int(rest)):
                text(session, f"answered {ask(session, n)} ")
        elif verb == "withdraw":
            params = {"sessionId": session, "toolCall": {"toolCallId": "w", "title": "never mind"}, "options": OPTIONS}
            send({"id": "w", "method": "session/request_permission", "params": params})
            send({"method": "$/cancel_request", "params": {"requestId": "w"}})
            text(session, f"withdrawn {ANSWERS.get()['result']['outcome']['outcome']}")
        elif verb == "fs":
            send({"id": "f", "method": "fs/write_text_file", "params": {"sessionId": session, "path": "/x", "content": ""}})
            text(session, f"refused {ANSWERS.get()['error']['code']}")
        elif verb == "unknown":
            update(session, "brand_new_kind", novelty={"a": 1})
        elif verb == "media":
            update(session, "agent_message_chunk", content={"type": "image", "mimeType": "image/png", "data": "aGVsbG8="})
        elif verb == "surrogate":
            text(session, "a\ud83d")
            text(session, "\ude00b")
        elif verb == "plan":
            update(session, "plan", entries=[{"content": "x", "status": "pending", "priority": "low"}])
        elif verb == "title":
            update(session, "session_info_update", title=rest)
        elif verb == "mode":
            update(session, "current_mode_update", currentModeId=rest)
        elif verb == "command":
            sleeper(own_session=True)
        elif verb == "sh":
            ran = subprocess.run(["sh", rest], capture_output=True, text=True)
            text(session, f"sh ended with {ran.returncode}")
        elif verb == "wait":
            CANCEL.wait()
        elif verb == "deaf":
            threading.Event().wait()
        elif verb == "exit":
            sys.stderr.write("the last words\n")
            sys.stderr.flush()
            os._exit(int(rest))
        elif verb == "fail":
            raise RuntimeError(rest or "told to fail")
        if CANCEL.is_set():
            return "cancelled"
    return "end_turn"


def turn(rpc_id: Any, session: str, program: str) -> None:
    late = None
    if "; late " in program or program.startswith("late "):
        program, _, late = program.rpartition("late ")
    try:
        send({"id": rpc_id, "result": {"stopReason": run(session, program), "usage": {"totalTokens": 7}}})
    except RuntimeError as error:
        send({"id": rpc_id, "error": {"code": -32603, "message": str(error)}})
    if late is not None:
        text(session, late)


def opened(session: str) -> dict[str, Any]:
    modes = KNOBS.get("modes", ["ask", "yolo"])
    if KNOBS.get("mode_option"):
        options = [{"value": m, "name": m.title()} for m in modes]
        option = {"id": "m", "category": "mode", "type": "select", "currentValue": modes[-1], "options": options}
        return {"sessionId": session, "configOptions": [option]}
    state = {"currentModeId": modes[-1], "availableModes": [{"id": m, "name": m.title()} for m in modes]}
    return {"sessionId": session, "modes": state} if modes else {"sessionId": session}


def replay(session: str, count: int) -> None:
    for n in range(count):
        text(session, f"old {n}", "user_message_chunk" if n % 2 == 0 else "agent_message_chunk")


def answer(message: dict[str, Any]) -> None:
    method, params, rpc_id = message["method"], message.get("params") or {}, message["id"]
    if method in KNOBS.get("hang", []):
        return
    if method in KNOBS.get("refuse", {}):
        code, words = KNOBS["refuse"][method]
        send({"id": rpc_id, "error": {"code": code, "message": words}})
        return
    if method == "initialize":
        no = KNOBS.get("no_caps", [])
        more = {name: {} for name in ("resume", "fork", "list") if name not in no}
        caps = {"loadSession": "load" not in no, "sessionCapabilities": more, "novel": True}
        send({"id": rpc_id, "result": {"protocolVersion": 1, "agentInfo": {"name": "fake", "version": "9"}, "agentCapabilities": caps}})
    elif method == "session/new":
        commands = [{"name": "review", "description": "Look at it"}]
        update("s-new", "available_commands_update", availableCommands=commands)
        send({"id": rpc_id, "result": opened("s-new")})
    elif method in ("session/load", "session/resume", "session/fork"):
        session = params["sessionId"]
        if method == "session/load":
            replay(session, KNOBS.get("replay", 4))
        given = KNOBS.get("new_id", session if method != "session/fork" else f"{session}-fork")
        result = opened(given)
        if given == session:
            del result["sessionId"]  # most agents do not repeat it
        send({"id": rpc_id, "result": result})
        if method == "session/load":
            replay(session, KNOBS.get("late", 0))
    elif method in ("session/set_mode", "session/set_config_option"):
        send({"id": rpc_id, "result": {}})
    elif method == "session/list":
        send({"id": rpc_id, "result": {"sessions": [{"sessionId": "s-new", "cwd": params.get("cwd", "/")}]}})
    elif method == "session/prompt":
        CANCEL.clear()
        program = "".join(block.get("text", "") for block in params["prompt"])
        threading.Thread(target=turn, args=(rpc_id, params["sessionId"], program), daemon=True).start()
    else:
        send({"id": rpc_id, "error": {"code": -32601, "message": f"Method not found: {method}"}})


def main() -> None:
    if KNOBS.get("stderr"):
        sys.stderr.write(KNOBS["stderr"])
        sys.stderr.flush()
    start = KNOBS.get("start", "")
    if start.startswith("exit"):
        os._exit(int(start.split()[1]))
    if start == "mute":
        threading.Event().wait()
    if KNOBS.get("ignore_term"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if KNOBS.get("grandchild"):
        sleeper(own_session=KNOBS["grandchild"] == "session")
    if KNOBS.get("garbage"):
        raw(b"\xff\xfenot json\n\n[1,2]\nWelcome to the agent!\n")
    log = open(KNOBS["log"], "ab") if KNOBS.get("log") else None
    for line in sys.stdin.buffer:
        if log is not None:
            log.write(line)
            log.flush()
        message = json.loads(line)
        if "method" not in message:
            ANSWERS.put(message)
        elif "id" in message:
            answer(message)
        elif message["method"] == "session/cancel":
            CANCEL.set()
    if KNOBS.get("ignore_eof"):
        threading.Event().wait()
    os._exit(0)


if __name__ == "__main__":
    main()
