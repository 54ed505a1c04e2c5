"""A model server on loopback that answers by plain rules: `python -m tests.fakes.fake_model --port 0 --log FILE`.

Speaks Anthropic messages, OpenAI responses and chat completions, and Gemini's generateContent, with and without streaming.
What it answers stands in model_rules.py. The first line on stdout is `{"port": N}`; with `--notify` each further line is
`{"logged": N}`, one for each line of the log, written after it.

The log is JSONL. A request: {n, api, path, helper, users, turns, tools, headers, body, reply}; `helper` marks requests that
are not a turn (titles, summaries: no tools or an answer of a given shape). Later lines tell how it ended:
{n, ended: n of the request, how: done|aborted}. Keys in headers are cut to their first letters.

POST /_control/release {"gate": name} lets answers go on that wait at GATE{name}, now and later; all waits end after
`--patience` seconds (60), so that a forgotten one ends the answer instead of the test run.
"""

from __future__ import annotations

import argparse
import gzip
import json
import select
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

from tests.fakes import model_views as views
from tests.fakes import model_wire as wire
from tests.fakes.model_rules import Reply, Rules


class Api(NamedTuple):
    """One of the APIs: how a request is read, how an answer is written."""

    name: str
    view: Callable[[Mapping[str, Any]], tuple[views.History, views.Tools]]
    document: Callable[[Reply, str], dict[str, Any]]
    stream: Callable[[Reply, str], Iterator[wire.Step]]


_APIS = {
    "/messages": Api("anthropic", views.anthropic, wire.anthropic_document, wire.anthropic_stream),
    "/responses": Api("responses", views.responses, wire.responses_document, wire.responses_stream),
    "/chat/completions": Api("chat", views.chat, wire.chat_document, wire.chat_stream),
    "enerateContent": Api("gemini", views.gemini, wire.gemini_document, wire.gemini_stream),
}
_MODEL = {
    "id": "fake-model",
    "object": "model",
    "type": "model",
    "display_name": "Fake",
    "created": 1,
    "created_at": "2026-01-01T00:00:00Z",
    "owned_by": "fake",
    "name": "models/fake-model",
    "displayName": "Fake",
    "supportedGenerationMethods": ["generateContent"],
}
_SECRETS = ("authorization", "x-api-key", "x-goog-api-key")


class Server(ThreadingHTTPServer):
    """The server and what its requests share: the log, the rules, the gates."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, port: int, log: Path | None, *, notify: bool, patience: float) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.rules = Rules()
        self.patience = patience
        self._log = log.open("a", encoding="utf-8") if log else None
        self._notify = notify
        self._lock = threading.Lock()
        self._number = 0
        self._gates: dict[str, threading.Event] = {}

    def record(self, entry: Mapping[str, Any]) -> int:
        """Write one line of the log; returns its number, from 1."""
        with self._lock:
            self._number += 1
            if self._log is not None:
                self._log.write(json.dumps({"n": self._number, **entry}, ensure_ascii=False) + "\n")
                self._log.flush()
            if self._notify:
                print(json.dumps({"logged": self._number}), flush=True)
            return self._number

    def gate(self, name: str) -> threading.Event:
        with self._lock:
            return self._gates.setdefault(name, threading.Event())

    def answer(self, api: Api, body: Mapping[str, Any], path: str, headers: Mapping[str, str]) -> tuple[int, Reply]:
        """The number of the request in the log, and the answer to it."""
        history, tools = api.view(body)
        schema = views.wanted_schema(body)
        with self._lock:
            reply = self.rules.reply(history, tools, schema=schema)
        number = self.record(
            {
                "api": api.name,
                "path": path,
                "helper": schema is not None or not tools,
                "users": history.users,
                "turns": history.turns,
                "tools": [name.full for name in tools],
                "headers": headers,
                "body": body,
                "reply": {
                    "text": reply.text,
                    "calls": [[call.name, call.arguments] for call in reply.calls],
                    "status": reply.status,
                },
            }
        )
        return number, reply


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    server: Server

    def log_message(self, format: str, *arguments: Any) -> None:
        """The log of requests is our own; the one of the base class would go to stderr."""

    def do_HEAD(self) -> None:
        self._document(200, {})

    def do_GET(self) -> None:
        if self.path.split("?")[0].endswith("/models"):
            listing = {"data": [_MODEL], "models": [_MODEL], "object": "list"}
            self._document(200, {**listing, "has_more": False, "first_id": "fake-model", "last_id": "fake-model"})
        else:
            self._document(404, {"type": "error", "error": {"type": "not_found_error", "message": f"no {self.path}"}})

    def do_POST(self) -> None:
        raw = self._body()
        path = self.path.split("?")[0]
        try:
            body = json.loads(raw or b"{}")
        except ValueError:
            self._document(400, {"error": {"message": "the body is no JSON"}})
            return
        if path == "/_control/release":
            self.server.gate(body["gate"]).set()
            self._document(200, {})
        elif path.endswith(("count_tokens", ":countTokens")):
            self._document(200, {"input_tokens": len(raw) // 4, "totalTokens": len(raw) // 4})
        else:
            api = next((api for ending, api in _APIS.items() if path.endswith(ending)), None)
            if api is None:
                self._document(404, {"type": "error", "error": {"type": "not_found_error", "message": f"no {path}"}})
            else:
                self._answer(api, body, path)

    def _answer(self, api: Api, body: Mapping[str, Any], path: str) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        headers |= {name: headers[name][:12] for name in _SECRETS if name in headers}
        number, reply = self.server.answer(api, body, path, headers)
        how = "done"
        try:
            if reply.status != 200:
                told = f"fake error {reply.status}"
                error = {"type": "api_error", "message": told, "code": reply.status, "status": "FAKE"}
                self._document(reply.status, {"type": "error", "error": error})
            elif body.get("stream") or "stream" in path:
                self._stream(api.stream(reply, str(body.get("model", "fake-model"))), reply)
            else:
                self._wait(reply)
                self._document(200, api.document(reply, str(body.get("model", "fake-model"))))
        except (BrokenPipeError, ConnectionResetError):
            how = "aborted"
            self.close_connection = True
        self.server.record({"ended": number, "how": how})

    # --- bytes

    def _body(self) -> bytes:
        if self.headers.get("transfer-encoding", "").lower() == "chunked":
            raw = b""
            while size := int(self.rfile.readline().split(b";")[0], 16):
                raw += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        else:
            raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        return gzip.decompress(raw) if self.headers.get("content-encoding") == "gzip" else raw

    def _document(self, status: int, document: Mapping[str, Any]) -> None:
        data = json.dumps(document, ensure_ascii=False).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def _stream(self, steps: Iterator[wire.Step], reply: Reply) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream; charset=utf-8")
        self.send_header("cache-control", "no-cache")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for step in steps:
            if isinstance(step, wire.Event):
                text = step.data if isinstance(step.data, str) else json.dumps(step.data, ensure_ascii=False)
                self._chunk((f"event: {step.name}\n" if step.name else "") + f"data: {text}\n\n")
            elif step == wire.PAUSE:
                self._linger(threading.Event(), reply.delay)
            else:
                self._linger(
                    self.server.gate(reply.gate) if step == wire.GATE else threading.Event(), self.server.patience
                )
        self._chunk("")

    def _wait(self, reply: Reply) -> None:
        if reply.gate:
            self._linger(self.server.gate(reply.gate), self.server.patience)
        if reply.hang:
            self._linger(threading.Event(), self.server.patience)

    def _linger(self, event: threading.Event, seconds: float) -> None:
        """Wait for the event, at most `seconds`; a client that has gone meanwhile ends the wait as an abort."""
        left = seconds
        while left > 0 and not event.wait(min(left, 0.05)):
            left -= 0.05
            self._gone()

    def _gone(self) -> None:
        readable, _, _ = select.select([self.connection], [], [], 0)
        if readable and not self.connection.recv(1, socket.MSG_PEEK):
            raise ConnectionResetError("the client has gone")

    def _chunk(self, text: str) -> None:
        data = text.encode()
        self.wfile.write(b"%x\r\n" % len(data) + data + b"\r\n")
        self.wfile.flush()


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="A model server on loopback that answers by plain rules.")
    parser.add_argument("--port", type=int, default=0, help="0: any free one")
    parser.add_argument("--log", type=Path, help="JSONL file to append each request to")
    parser.add_argument("--notify", action="store_true", help="tell of each log line on stdout")
    parser.add_argument("--patience", type=float, default=60.0, help="seconds after which every wait ends")
    options = parser.parse_args(arguments)
    server = Server(options.port, options.log, notify=options.notify, patience=options.patience)
    print(json.dumps({"port": server.server_address[1]}), flush=True)
    # The rig holds our stdin: its end is the end of whoever started us, however that came about.
    if options.notify:
        threading.Thread(target=_end_with_parent, args=(server,), daemon=True).start()
    server.serve_forever(poll_interval=0.1)


def _end_with_parent(server: Server) -> None:
    sys.stdin.buffer.read()
    server.shutdown()


if __name__ == "__main__":
    main()
