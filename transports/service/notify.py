"""Readiness, stopping and the watchdog towards systemd: sd_notify(3) over a datagram socket, without a dependency."""

from __future__ import annotations

import os
import socket
from collections.abc import MutableMapping

_LIMIT_S = 1.0


class Notifier:
    """Tells the service manager how we are; does nothing where there is none.

    Built by `from_environ`, which takes the variables out of the environment: a child must not speak for us.
    """

    def __init__(self, address: str = "", watchdog_s: float | None = None) -> None:
        self._address = "\0" + address[1:] if address.startswith("@") else address
        self.watchdog_s = watchdog_s
        """How often `alive` is to be called, in seconds (half of what systemd allows); None: no watchdog."""

    @classmethod
    def from_environ(cls, environ: MutableMapping[str, str] | None = None) -> Notifier:
        env = os.environ if environ is None else environ
        address = env.pop("NOTIFY_SOCKET", "")
        limit, pid = env.pop("WATCHDOG_USEC", ""), env.pop("WATCHDOG_PID", "")
        meant = not pid or pid == str(os.getpid())
        watchdog = int(limit) / 2e6 if address and meant and limit.isdigit() and int(limit) > 0 else None
        return cls(address if address.startswith(("/", "@")) else "", watchdog)

    def ready(self, status: str = "") -> bool:
        """Serving from now on; `status` is the line that `systemctl status` shows."""
        return self._send("READY=1", f"MAINPID={os.getpid()}", *_status(status))

    def stopping(self, status: str = "") -> bool:
        return self._send("STOPPING=1", *_status(status))

    def alive(self) -> bool:
        """The watchdog's sign of life; call it from what would hang, not from a thread beside it."""
        return self._send("WATCHDOG=1")

    def status(self, text: str) -> bool:
        return self._send(*_status(text))

    def extend(self, seconds: float) -> bool:
        """Ask for more time to start or stop, counted from now."""
        return self._send(f"EXTEND_TIMEOUT_USEC={int(seconds * 1e6)}")

    def _send(self, *fields: str) -> bool:
        """False when nobody listens: a manager that cannot be told must not stop us."""
        if not self._address or not fields:
            return False
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.settimeout(_LIMIT_S)
            try:
                sender.connect(self._address)
                sender.sendall("\n".join(fields).encode())
            except OSError:
                return False
        return True


def _status(text: str) -> list[str]:
    return [f"STATUS={' '.join(text.split())}"] if text else []
