"""A process on the bus with a behaviour chosen by its first argument; it reports to stdout, one JSON object a line.

    echo SOCKET KIND NAME SECRET_HEX   answers every question with Ok {"pid"}, prints each statement's data
    role SOCKET                        prints its role and ends
    host SOCKET                        prints its pid, becomes subreaper, starts `role` by a double fork, waits for its end
    uid UID SOCKET                     becomes that user, tries to connect, prints the outcome
    store SOCKET NAME SECRET_HEX       runs the handover store behind the address NAME
    serve SOCKET                       a supervisor's end with one echo address, until killed
"""

from __future__ import annotations

import json
import os
import sys
import threading
from pathlib import Path
from typing import Any

from agents_registry.errors import VibeAroundError
from transports.bus.api import Delivery
from transports.bus.client import BusClient, SyncClient
from transports.bus.vocabulary.conversation import Ok


def say(**fields: Any) -> None:
    sys.stdout.write(json.dumps(fields) + "\n")
    sys.stdout.flush()


def wait_for_stdin() -> None:
    """A parent that ends closes it; so no fake outlives its test."""
    while sys.stdin.buffer.read(4096):
        pass


def echo(path: str, kind: str, name: str, secret: str) -> None:
    def on_message(delivery: Delivery) -> None:
        if delivery.corr > 0:
            client.reply(delivery, Ok({"pid": os.getpid()}))
        else:
            data = getattr(delivery.message, "data", None)
            say(got=data["n"] if data else type(delivery.message).__name__)

    client = BusClient(
        Path(path), kind=kind, name=name, secret=bytes.fromhex(secret), on_message=on_message, on_state=lambda s: say(state=s)
    )
    wait_for_stdin()


def role(path: str) -> None:
    with SyncClient(Path(path)) as client:
        say(role=client.welcome.role)


def host(path: str) -> None:
    from actors.children import process_start_time
    from actors.host_start import become_subreaper

    become_subreaper()
    say(pid=os.getpid(), start=process_start_time(os.getpid()))
    sys.stdin.readline()
    middle = os.fork()
    if middle == 0:
        os.setsid()
        if os.fork() == 0:
            os.execv(sys.executable, [sys.executable, "-m", "tests.fakes.bus_peer", "role", path])
        os._exit(0)
    os.waitpid(middle, 0)
    os.waitpid(-1, 0)  # the grandchild, which is ours now


def uid(number: str, path: str) -> None:
    os.setgid(int(number))
    os.setuid(int(number))
    try:
        SyncClient(Path(path), timeout=5.0).close()
    except VibeAroundError as error:
        say(exit_code=error.exit_code)
    else:
        say(exit_code=0)


def store(path: str, name: str, secret: str) -> None:
    from actors.clock import SystemClock
    from actors.handover import HandoverStore
    from actors.pooled import Pool, actor_receiver, start_logic
    from transports.bus.switch import Switch

    switch: Switch = Switch(forward=lambda delivery: client.forward(delivery))
    letters = iter("ABCD" * 100)
    logic = HandoverStore(
        switch, SystemClock(), random_letter=lambda: next(letters), ttl_s=120.0, max_misses=5, lockout_s=600.0
    )
    switch.register(name, actor_receiver(start_logic(Pool(2), name, logic.receive, bus=switch)))

    def on_message(delivery: Delivery) -> None:
        switch.send(delivery.address, delivery.message, sender=delivery.sender, corr=delivery.corr)

    client = BusClient(
        Path(path), kind="reader", name=name, secret=bytes.fromhex(secret), on_message=on_message,
        on_state=lambda state: say(state=state),
    )  # fmt: skip
    wait_for_stdin()


def serve(path: str) -> None:
    from actors.clock import SystemClock
    from transports.bus.access import Access
    from transports.bus.endpoint import Endpoint
    from transports.bus.switch import Switch

    switch = Switch()
    switch.register("silent", lambda delivery: say(asked=delivery.corr))
    switch.register(
        "echo", lambda d: switch.send(d.sender, Ok({"pid": os.getpid()}), sender="echo", corr=-d.corr)
    )
    endpoint = Endpoint(
        Path(path), switch, access=Access(policy=lambda peer, address, message: None), bind_names=lambda peer, hello: [],
        on_gone=lambda peer, reason: None, clock=SystemClock(),
    )  # fmt: skip
    endpoint.start()
    say(serving=path)
    wait_for_stdin()
    endpoint.close()


if __name__ == "__main__":
    threading.current_thread().name = "bus-peer"
    {"echo": echo, "role": role, "host": host, "uid": uid, "store": store, "serve": serve}[sys.argv[1]](*sys.argv[2:])
