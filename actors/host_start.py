"""The agent's start, from a host that has loaded nothing yet.

A host's interpreter needs 10 ms, and `subprocess`, `ctypes`, `json` and what they load another 25 ms, all before the
agent runs. So what the start needs stands before the spec, in the form that execve takes, and this file loads `os`,
`select` and `_signal` alone. `_ctypes` is the door to prctl that costs 0.5 ms; where it is not as expected, `ctypes`.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # `signal` without its enums
import os
import select
import sys

MAGIC = b"VAHOST1"
CWD_LIMIT_S = 10.0
MAX_SPEC = 8 << 20
"""Bytes."""
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36


class Started:
    """A running agent: its pid, and our ends of its three pipes (descriptors)."""

    def __init__(self, pid: int, stdin: int, stdout: int, stderr: int) -> None:
        self.pid = pid
        self.stdin, self.stdout, self.stderr = stdin, stdout, stderr


class NotStarted(Exception):
    """Nothing runs. `step` is cwd (number 0: the directory did not answer) or exec; `number` is the errno."""

    def __init__(self, step: str, number: int) -> None:
        super().__init__(step, number)
        self.step, self.number = step, number


def read(descriptor: int) -> bytes:
    """Read to the end of `descriptor` and close it. Raises ValueError above `MAX_SPEC` bytes, OSError."""
    parts: list[bytes] = []
    size = 0
    try:
        while chunk := os.read(descriptor, 1 << 16):
            parts.append(chunk)
            size += len(chunk)
            if size > MAX_SPEC:
                raise ValueError(f"it is larger than {MAX_SPEC} bytes")
    finally:
        os.close(descriptor)
    return b"".join(parts)


def pack(argv: list[str], env: dict[str, str], cwd: str) -> bytes:
    """What stands before the spec. Raises ValueError for words that no process can be given (a NUL, an = in a name)."""
    if not argv or any("=" in name for name in env):
        raise ValueError("a command needs a program, and names of variables without =")
    words = [os.fsencode(word) for word in (cwd, *argv, *(f"{name}={value}" for name, value in env.items()))]
    if any(b"\0" in word for word in words):
        raise ValueError("a command, its directory and its environment cannot hold a NUL")
    body = b"\0".join(words)
    return b"%s %d %d\n" % (MAGIC, len(argv), len(body)) + body


def unpack(data: bytes) -> tuple[list[bytes], dict[bytes, bytes], bytes, bytes]:
    """(argv, env, cwd, the rest). Raises ValueError for anything that `pack` did not write."""
    head, _, rest = data.partition(b"\n")
    fields = head.split(b" ")
    if len(fields) != 3 or fields[0] != MAGIC:
        raise ValueError("it does not begin as a host's spec does")
    count, size = int(fields[1]), int(fields[2])
    words = rest[:size].split(b"\0")
    if count < 1 or len(rest) < size or len(words) < count + 1 or not all(b"=" in word for word in words[count + 1 :]):
        raise ValueError("it is cut off")
    env = dict(word.split(b"=", 1) for word in words[count + 1 :])
    return words[1 : count + 1], env, words[0], rest[size:]


def start(argv: list[bytes], env: dict[bytes, bytes], cwd: bytes) -> Started:
    """Start the agent in `cwd`, which is never created, in a session of its own; it dies with this process (Linux).

    Call on the main thread, before other threads exist. Raises NotStarted.
    """
    pipes = [os.pipe() for _ in range(4)]  # in, out, err, and what went wrong
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        _become(argv, env, cwd, parent, [pipes[0][0], pipes[1][1], pipes[2][1]], pipes[3][1])
    (theirs, stdin), (stdout, out), (stderr, err), (broken, told) = pipes
    for descriptor in (theirs, out, err, told):
        os.close(descriptor)
    try:
        answered = select.select([broken], [], [], CWD_LIMIT_S)[0]
        report = os.read(broken, 64) if answered else b"cwd 0"
    finally:
        os.close(broken)
    if not report:
        return Started(pid, stdin, stdout, stderr)
    for descriptor in (stdin, stdout, stderr):
        os.close(descriptor)
    os.kill(pid, _signal.SIGKILL)
    os.waitpid(pid, 0 if answered else os.WNOHANG)
    step, _, number = report.decode("ascii").partition(" ")
    raise NotStarted(step, int(number))


def _become(argv: list[bytes], env: dict[bytes, bytes], cwd: bytes, parent: int, ends: list[int], told: int) -> None:
    """In the child: turn into the agent, or say through `told` why not, and end."""
    step = b"cwd"
    number = 0
    try:
        os.setsid()
        prctl(_PR_SET_PDEATHSIG, _signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(127)
        for name in ("SIGPIPE", "SIGXFSZ"):  # Python ignores them, and a program inherits that
            if hasattr(_signal, name):
                _signal.signal(getattr(_signal, name), _signal.SIG_DFL)
        os.chdir(cwd)
        if not os.access(b".", os.R_OK):
            raise PermissionError(13, "not readable")
        step = b"exec"
        for descriptor, end in enumerate(ends):
            os.dup2(end, descriptor)
        number = _execute(argv, env)
    except OSError as error:
        number = error.errno or 5
    finally:
        os.write(told, step + b" %d" % (number or 5))
        os._exit(127)


def _execute(argv: list[bytes], env: dict[bytes, bytes]) -> int:
    """Only returns, an errno, when there is no such program on the agent's own PATH."""
    places = [b""] if b"/" in argv[0] else [place + b"/" for place in env.get(b"PATH", b"/usr/bin:/bin").split(b":")]
    worst = 2
    for place in places:
        try:
            os.execve(place + argv[0], argv, env)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            worst = error.errno or 5
    return worst


def prctl(option: int, value: int) -> None:
    """prctl(2) with two arguments; nothing where there is none (not Linux)."""
    if sys.platform != "linux":
        return
    try:
        import _ctypes

        _ctypes.call_function(_ctypes.dlsym(_ctypes.dlopen(None, 2), "prctl"), (option, value, 0, 0, 0))  # type: ignore[arg-type]
    except (ImportError, AttributeError):
        import ctypes

        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def become_subreaper() -> None:
    """Orphans below this process become its children instead of init's (Linux)."""
    prctl(_PR_SET_CHILD_SUBREAPER, 1)


def set_pdeathsig(number: int = _signal.SIGKILL) -> None:
    """This process gets `number` when the *thread* that started it ends (Linux)."""
    prctl(_PR_SET_PDEATHSIG, number)
