"""A bare ACP agent for measuring: notes when it was started, answers at once, and floods when it is told to.

`python _flood_agent.py [STAMP_FILE]`. A prompt "flood N" streams N chunks of SIZE characters; "clock N" is
answered by N and the time (monotonic, seconds) at which it came; any other is echoed.
"""

import json
import sys
import time

STARTED = time.time()
SIZE = 24


def send(message):
    sys.stdout.write(json.dumps(message, separators=(",", ":")) + "\n")


def update(session, text):
    content = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}
    send({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": session, "update": content}})


def main():
    if len(sys.argv) > 1:
        with open(sys.argv[1], "w") as file:
            file.write(repr(STARTED))
    for line in sys.stdin:
        request = json.loads(line)
        method, params = request.get("method"), request.get("params") or {}
        if "id" not in request:
            continue
        result = {}
        if method == "initialize":
            result = {"protocolVersion": 1, "agentCapabilities": {"loadSession": False}, "authMethods": []}
        elif method == "session/new":
            result = {"sessionId": "bench-1"}
        elif method == "session/prompt":
            text = params["prompt"][0]["text"]
            if text.startswith("flood "):
                for number in range(int(text.split()[1])):
                    update(params["sessionId"], f"{number:<{SIZE}d}")
            elif text.startswith("clock "):
                update(params["sessionId"], f"at {text.split()[1]} {time.monotonic():.6f}")
            else:
                update(params["sessionId"], f"echo {text}")
            result = {"stopReason": "end_turn"}
        send({"jsonrpc": "2.0", "id": request["id"], "result": result})
        sys.stdout.flush()


main()
