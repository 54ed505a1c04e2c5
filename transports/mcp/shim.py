"""The stdio MCP server that agents start: a pipe between their stdio and the supervisor's socket.

Run by path as `python -I -S shim.py [--data-dir DIR]`, so it imports no sibling and repeats the little it needs of
`transports.paths`. It is compiled at every start, hence short: while connected it parses nothing and only keeps the raw
lines that may still be unanswered. What it says by itself when there is no supervisor is in `shim_offline.py`, loaded
by path when needed. It connects again when the agent has something to say.
"""

# pathlib and a long list literal would cost start-up time
# ruff: noqa: PTH100, PTH109, PTH111, PTH118, PTH120, SIM905

import _signal  # type: ignore[import-not-found]  # `signal` and `socket` would add 10 ms of enum and selectors
import _socket
import os
import select
import sys
import time

TYPE_CHECKING = False  # what typing.TYPE_CHECKING is, without the import
if TYPE_CHECKING:
    from typing import Any

LINE_LIMIT = 1 << 20
KEPT_LINES = 64
GRACE_S = 4.0  # a restarting supervisor is waited for this long before calls are answered with "not running"
RETRY_MS = 100
EOF_S = 2.0  # after our stdin has ended, open calls may still be answered for this long
CHUNK = 65536
RESTARTED = "VibeAround's supervisor restarted before it answered. Ask again."
ABSENT = "VibeAround's supervisor is not running. Start it with `va up`, then ask again."
TOO_LONG = "The message is longer than 1 MiB and was not read."
HELLO_NAMES = frozenset(  # non-secret variables that tell which session this is, or where an agent's store lies
    "HOME CLAUDE_CODE_SESSION_ID CLAUDE_PROJECT_DIR CLAUDE_CONFIG_DIR CODEX_HOME GEMINI_CLI_HOME QWEN_HOME "
    "OPENCODE_DB PI_CODING_AGENT_DIR PI_CODING_AGENT_SESSION_DIR KIMI_SHARE_DIR KIMI_CODE_HOME KIRO_HOME "
    "CURSOR_CONFIG_DIR XDG_DATA_HOME XDG_CONFIG_HOME XDG_STATE_HOME".split()
)


def quote(text: str) -> str:
    """`text` as a JSON string, without the json module."""
    out = ""
    for character in text:
        code = ord(character)
        if 32 <= code < 127 and character not in '"\\':
            out += character
        elif code < 0x10000:
            out += f"\\u{code:04x}"
        else:
            code -= 0x10000
            out += f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"
    return f'"{out}"'


def hello() -> bytes:
    """The private first line to the supervisor: who runs this shim, as far as we can see. Evidence only."""
    pairs = [
        f"{quote(name)}:{quote(value[:4096])}"
        for name, value in os.environ.items()
        if name in HELLO_NAMES or name.startswith("VIBEAROUND_")
    ]
    try:
        cwd = os.getcwd()
    except OSError:
        cwd = ""
    env = ",".join(pairs[:64])
    line = f'{{"vibearound":1,"pid":{os.getpid()},"ppid":{os.getppid()},"cwd":{quote(cwd)},"env":{{{env}}}}}\n'
    return line.encode("ascii")


def socket_path(data_dir: str) -> str:
    """Where run.json says the socket is; empty when there is none."""
    try:
        fd = os.open(f"{data_dir}/run.json", os.O_RDONLY | os.O_CLOEXEC)
        try:
            text = os.read(fd, CHUNK)
        finally:
            os.close(fd)
    except OSError:
        return ""
    start = text.find(b'"socket_dir": "') + 15
    found = text[start : text.find(b'"', start)] if start > 14 else b""
    if not found or b"\\" in found:  # written otherwise than we write it, or with characters that JSON escapes
        import json

        try:
            return str(json.loads(text)["socket_dir"]) + "/mcp.sock"
        except (ValueError, KeyError, TypeError):
            return ""
    return f"{os.fsdecode(found)}/mcp.sock"


def connect(data_dir: str) -> "_socket.socket | None":
    """A connection to the supervisor, or None. The socket must be served by our own user."""
    path = socket_path(data_dir)
    if not path:
        return None
    peer = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        peer.settimeout(2.0)
        peer.connect(path)
        if hasattr(_socket, "SO_PEERCRED"):  # struct ucred: pid, uid, gid (unix(7))
            uid = int.from_bytes(peer.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12)[4:8], sys.byteorder)
            if uid != os.geteuid():
                raise OSError("served by another user")
        peer.setblocking(False)
    except (OSError, ValueError):
        peer.close()
        return None
    return peer


class Shim:
    """One agent's stdio, and the supervisor's socket where there is one."""

    def __init__(self, data_dir: str) -> None:
        self.data_dir = data_dir
        self.peer: _socket.socket | None = None
        self.outgoing = bytearray()  # to the supervisor
        self.partial = b""  # unfinished line of the agent
        self.answer_partial = b""  # unfinished line of the supervisor
        self.long_line = False  # inside a line above the limit; the supervisor gets it in pieces, and refuses it
        self.long_line_peer: _socket.socket | None = None
        self.kept: list[bytes] = []  # lines of the agent that may still be unanswered
        self.answers: list[bytes] = []  # first bytes of the lines that came back meanwhile: they hold the ids
        self.asked = self.answered = 0
        self.held: list[bytes] = []  # lines of the agent while there is no supervisor
        self.hold_until = 0.0
        self.end_at = 0.0  # set when stdin has ended: when to stop waiting for answers

    def run(self) -> int:
        """Until stdin ends or stdout has no reader. Returns the exit code."""
        self.try_connect()
        while True:
            poll = select.poll()
            reads = len(self.outgoing) < LINE_LIMIT and len(self.held) < KEPT_LINES
            if not self.end_at:
                poll.register(0, select.POLLIN if reads else 0)  # 0: only to hear that the agent is gone
            if self.peer is not None:
                poll.register(self.peer, select.POLLIN | (select.POLLOUT if self.outgoing else 0))
            for fd, _ in poll.poll(self.patience_ms()):
                if fd == 0:
                    self.from_agent(reads)
                elif self.peer is not None:
                    self.flush()
                    self.from_supervisor()
            if self.held:
                self.serve_held()
            if self.end_at and (not self.is_waiting() or time.monotonic() > self.end_at):
                return 0

    def patience_ms(self) -> "float | None":
        if self.held:
            return RETRY_MS
        return max(0.0, self.end_at - time.monotonic()) * 1000 + 1 if self.end_at else None

    def is_waiting(self) -> bool:
        return bool(self.held) or (self.peer is not None and (self.asked > self.answered or bool(self.outgoing)))

    def from_agent(self, reads: bool) -> None:
        try:
            data = os.read(0, CHUNK) if reads else b""
        except BlockingIOError:
            return
        if not data:
            self.end_at = time.monotonic() + EOF_S
            self.hold_until = min(self.hold_until, self.end_at)
            data = b"\n" if self.partial else b""  # a last line without its line feed
        *lines, rest = data.split(b"\n")
        for line in lines:
            line = self.partial + line + b"\n"
            self.partial = b""
            if self.long_line:
                self.pass_long(line)
                self.long_line = False
            elif line.strip():
                self.take(line, line)
        self.partial += rest
        if self.long_line or len(self.partial) > LINE_LIMIT:
            if self.long_line:
                self.pass_long(self.partial)
            else:
                self.long_line, self.long_line_peer = True, self.peer
                self.take(self.partial[:2048], self.partial)
            self.partial = b""
        self.flush()

    def take(self, line: bytes, raw: bytes) -> None:
        """Pass a line on (`raw` is what is sent) and remember it; hold it while there is no supervisor."""
        if self.peer is None:
            self.held.append(line)
            return
        self.outgoing += raw
        self.kept.append(line)
        self.asked += b'"id"' in line
        if len(self.kept) > KEPT_LINES:  # a flood, or notifications that hold an id: look which are really open
            self.kept = offline().still_open(self.kept, self.answers)
            self.asked, self.answered, self.answers = len(self.kept), 0, []

    def pass_long(self, piece: bytes) -> None:
        if self.peer is not None and self.peer is self.long_line_peer:
            self.outgoing += piece

    def flush(self) -> None:
        if self.peer is None or not self.outgoing:
            return
        try:
            del self.outgoing[: self.peer.send(self.outgoing)]
        except BlockingIOError:
            pass
        except OSError:
            self.lost()

    def from_supervisor(self) -> None:
        if self.peer is None:
            return
        try:
            data = self.peer.recv(CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.lost()
            return
        whole, newline, rest = data.rpartition(b"\n")
        if not newline:
            self.answer_partial += data
            return
        whole = self.answer_partial + whole + newline  # whole lines: a torn one must not precede words of our own
        self.answer_partial = rest
        self.answered += whole.count(b"\n")
        if self.answered >= self.asked and not self.long_line:
            self.kept, self.answers, self.asked, self.answered = [], [], 0, 0
        else:
            self.answers += [line[:256] for line in whole.splitlines()]
        write(whole)

    def lost(self) -> None:
        """The supervisor is gone: say so for what is open, then wait for the next one."""
        if self.peer is not None:
            self.peer.close()
        self.peer = None
        self.hold_until = time.monotonic() + GRACE_S
        kept, answers = self.kept, self.answers
        self.kept, self.answers, self.asked, self.answered = [], [], 0, 0
        self.outgoing, self.answer_partial = bytearray(), b""
        if kept:
            for line in offline().still_open(kept, answers):
                write(offline().reply(line, RESTARTED))

    def serve_held(self) -> None:
        """Connect and pass on what was held; once no supervisor can be expected any more, answer it here."""
        connected = self.try_connect()
        if not connected and time.monotonic() < self.hold_until:
            return
        held, self.held = self.held, []
        for line in held:
            if line[-1:] != b"\n":  # the head of a line above the limit
                write(offline().reply(line, TOO_LONG))
            elif connected:
                self.take(line, line)
            else:
                write(offline().reply(line, ABSENT))
        self.flush()

    def try_connect(self) -> bool:
        self.peer = connect(self.data_dir)
        if self.peer is None:
            return False
        self.outgoing = bytearray(hello())
        return True


_loaded: "list[Any]" = []


def offline() -> "Any":
    """What is needed without a supervisor: `shim_offline.py`, which lies beside this file."""
    if not _loaded:
        path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "shim_offline.py")
        module = type(sys)("shim_offline")
        module.__file__ = path
        with open(path, "rb") as file:
            exec(compile(file.read(), path, "exec"), module.__dict__)
        _loaded.append(module)
    return _loaded[0]


def write(data: bytes) -> None:
    """All of `data` to stdout; ends the process when nobody reads it any more."""
    view = memoryview(data)
    try:
        while view:
            try:
                view = view[os.write(1, view) :]
            except BlockingIOError:  # the agent made the pipe non-blocking
                poll = select.poll()
                poll.register(1, select.POLLOUT)
                poll.poll()
    except OSError:
        os._exit(0)


def main(argv: "list[str]") -> int:
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
    data_dir = os.environ.get("VIBEAROUND_DATA_DIR", "") or "~/.vibearound"
    if argv[:1] == ["--data-dir"] and len(argv) == 2:
        data_dir = argv[1]
    elif argv:
        os.write(2, b"usage: shim.py [--data-dir DIR]\n")
        return 2
    return Shim(os.path.abspath(os.path.expanduser(data_dir))).run()


if __name__ == "__main__":
    os._exit(main(sys.argv[1:]))  # nothing is buffered: skip the interpreter's tear-down
