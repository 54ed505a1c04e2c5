"""The reader process: `python -m actors.reader --run SOCKET --name reader/N --secret-fd FD --data-dir DIR`.

One request at a time; the supervisor starts more of them when requests wait, and replaces one that hangs. It ends
with its connection, since the supervisor that comes back starts its own.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import sys
from pathlib import Path

from actors.reader_ops import run
from agents_registry.errors import UsageError, VibeAroundError
from agents_registry.loader import load_registry
from transports.bus.access import read_secret
from transports.bus.api import Delivery
from transports.bus.client import BusClient
from transports.bus.vocabulary.conversation import Failed, Ok
from transports.bus.vocabulary.storage import Read

HANG_VARIABLE = "VIBEAROUND_TEST_READER_HANG"
"""A path: while it exists, requests whose arguments name it hang. A knob for tests of hung stores."""


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m actors.reader")
    for name in ("--run", "--name", "--data-dir"):
        parser.add_argument(name, required=True)
    parser.add_argument("--secret-fd", type=int, required=True)
    options = parser.parse_args(argv)
    secret = read_secret(options.secret_fd)
    environ = json.loads(os.environ.pop("VIBEAROUND_READER_ENV", "{}")) or dict(os.environ)
    registry = load_registry(Path(options.data_dir))
    inbox: queue.Queue[Delivery | None] = queue.Queue(maxsize=64)

    def on_message(delivery: Delivery) -> None:
        try:
            inbox.put_nowait(delivery)
        except queue.Full:
            from agents_registry.errors import BusyError

            client.reply(delivery, Failed(BusyError("the reader has too much to do.").to_wire()))

    def on_state(state: str) -> None:
        if state in ("down", "replaced", "refused"):
            inbox.put(None)

    client = BusClient(
        Path(options.run), kind="reader", name=options.name, secret=secret, on_message=on_message, on_state=on_state, stay=False
    )
    try:
        while (delivery := inbox.get()) is not None:
            client.reply(delivery, _answer(registry, environ, delivery, options.data_dir))
    finally:
        client.close()
    return 0


def _answer(registry: object, environ: dict[str, str], delivery: Delivery, data_dir: str) -> Ok | Failed:
    request = delivery.message
    try:
        if not isinstance(request, Read):
            raise UsageError("the reader takes only read requests.", code="unknown_message")
        _hang_if_told(request)
        return Ok(run(registry, environ, request.op, {**request.args, "data_dir": data_dir}))  # type: ignore[arg-type]
    except VibeAroundError as error:
        return Failed(error.to_wire())
    except Exception as error:  # noqa: BLE001 - a defect in one store's reader is that request's answer, not the process's end
        print(f"reader: {request!r}: {error!r}", file=sys.stderr)  # noqa: T201 - stderr is the log
        failure = VibeAroundError(f"the store could not be read: {error}.", hint="See logs/reader.log in the data directory.")
        return Failed(failure.to_wire())


def _hang_if_told(request: Read) -> None:
    knob = os.environ.get(HANG_VARIABLE)
    if knob and Path(knob).exists() and Path(knob).read_text().strip() in json.dumps(request.args):
        # Opening a fifo that nobody writes hangs like a dead network mount.
        fifo = Path(f"{knob}.fifo")
        if not fifo.exists():
            os.mkfifo(fifo)
        fifo.open("rb").read()


if __name__ == "__main__":
    sys.exit(main())
