"""The processes behind the bus's rows, each `python -m benchmarks._bus_processes WHAT PATH`; they end with their stdin.

    raw-router, raw-worker      the floor: sockets, a poll and a drain, nothing else
    raw-actors, raw-worker      the same with a thread beside the router that each message goes through, by inproc sockets
    supervisor, worker          ours: endpoint, switch, a pooled actor that asks a worker and passes its answer on
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import sys
import threading
from pathlib import Path
from typing import Any

import zmq

SECRET = b"b" * 32
WORKER = "reader/1"


def _ended() -> Any:
    """A descriptor that is readable when our parent has ended or wants us to."""
    return sys.stdin.buffer.fileno()


def _ready() -> None:
    sys.stdout.write("ready\n")
    sys.stdout.flush()


def raw_router(path: str, journal: str = "") -> None:
    """Passes what clients send to the worker and back; with `journal`, after one committed row each."""
    database = None
    if journal:
        database = sqlite3.connect(journal, isolation_level=None)
        database.executescript("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; CREATE TABLE IF NOT EXISTS t(body BLOB)")
    context = zmq.Context()
    router = context.socket(zmq.ROUTER)
    router.bind(f"ipc://{path}")
    _ready()
    poller = zmq.Poller()
    poller.register(router, zmq.POLLIN)
    poller.register(_ended(), zmq.POLLIN)
    worker = b""
    while True:
        ready = dict(poller.poll())
        if _ended() in ready:
            break
        while True:
            try:
                frames = router.recv_multipart(zmq.DONTWAIT)
            except zmq.Again:
                break
            if frames[1] == b"worker":
                worker = frames[0]
            elif frames[0] == worker:
                router.send_multipart(frames[1:])
            else:
                if database is not None:
                    database.execute("INSERT INTO t VALUES (?)", (frames[-1],))
                router.send_multipart([worker, *frames])
    context.destroy(linger=0)


def raw_actors(path: str) -> None:
    """client -> router -> thread -> router -> worker -> router -> client: the hops of a message that an actor handles."""
    context = zmq.Context()
    router, inside, outside = context.socket(zmq.ROUTER), context.socket(zmq.DEALER), context.socket(zmq.DEALER)
    router.bind(f"ipc://{path}")
    inside.bind("inproc://actors")
    outside.connect("inproc://actors")

    def actor() -> None:
        while True:
            outside.send_multipart(outside.recv_multipart())

    threading.Thread(target=actor, daemon=True).start()
    _ready()
    poller = zmq.Poller()
    for readable in (router, inside, _ended()):
        poller.register(readable, zmq.POLLIN)
    worker = b""
    while True:
        ready = dict(poller.poll())
        if _ended() in ready:
            break
        if inside in ready:
            router.send_multipart([worker, *inside.recv_multipart()])
        if router in ready:
            frames = router.recv_multipart()
            if frames[1] == b"worker":
                worker = frames[0]
            elif frames[0] == worker:
                router.send_multipart(frames[1:])
            else:
                inside.send_multipart(frames)
    sys.stdout.flush()
    os._exit(0)  # the thread waits in its socket


def raw_worker(path: str) -> None:
    context = zmq.Context()
    dealer = context.socket(zmq.DEALER)
    dealer.connect(f"ipc://{path}")
    dealer.send_multipart([b"worker", b""])
    _ready()
    poller = zmq.Poller()
    poller.register(dealer, zmq.POLLIN)
    poller.register(_ended(), zmq.POLLIN)
    while _ended() not in dict(poller.poll()):
        while True:
            try:
                frames = dealer.recv_multipart(zmq.DONTWAIT)
            except zmq.Again:
                break
            dealer.send_multipart(frames)
    context.destroy(linger=0)


def supervisor(path: str, journal: str = "") -> None:
    """Routes are pooled actors. A submitted message is answered once its inbox row is committed; anything else is
    passed on to the worker, which answers the asker."""
    from actors.clock import SystemClock
    from actors.journal.actor import JournalActor
    from actors.mailbox import Mailbox
    from actors.pooled import Pool, actor_receiver, start_logic
    from transports.bus.access import Access
    from transports.bus.api import Delivery
    from transports.bus.endpoint import Endpoint
    from transports.bus.switch import Switch
    from transports.bus.vocabulary.storage import Record
    from transports.bus.vocabulary.surface import Accepted, Submit  # and the Preview that it passes on

    switch, clock, pool = Switch(), SystemClock(), Pool(4)

    class Route(Mailbox):
        def handle(self, delivery: Delivery) -> None:
            request = delivery.message
            if isinstance(request, Submit):
                row = ["inbox_add", self.address, request.key, request.text, {}, [], "", clock.now()]
                self.ask("journal", Record([row]), lambda answer: self.reply(delivery, Accepted(request.key)))
            else:
                self.bus.send(WORKER, request, sender=delivery.sender, corr=delivery.corr)

    def wake(address: str) -> Any:
        return actor_receiver(start_logic(pool, address, Route(address, switch, clock).receive, bus=switch))

    if journal:
        switch.register("journal", actor_receiver(JournalActor.start(Path(journal), switch, clock.now, None)))
    switch.register_prefix("route/", wake)
    endpoint = Endpoint(
        Path(path), switch, clock=clock,
        access=Access(policy=lambda *_: None, secret_hash=lambda *_: hashlib.sha256(SECRET).hexdigest()),
        bind_names=lambda peer, hello: [peer.name] if peer.name else [], on_gone=lambda *_: None,
    )  # fmt: skip
    endpoint.start()
    _ready()
    while sys.stdin.buffer.read(1):
        pass
    endpoint.close()


def worker(path: str) -> None:
    import transports.bus.vocabulary.surface  # noqa: F401 - what it is sent
    from transports.bus.client import BusClient

    up = threading.Event()
    client = BusClient(
        Path(path), kind="reader", name=WORKER, secret=SECRET,
        on_message=lambda delivery: client.reply(delivery, delivery.message),
        on_state=lambda state: up.set(),
    )  # fmt: skip
    up.wait(10)
    _ready()
    while sys.stdin.buffer.read(1):
        pass
    client.close()


if __name__ == "__main__":
    {"raw-router": raw_router, "raw-actors": raw_actors, "raw-worker": raw_worker, "supervisor": supervisor, "worker": worker}[sys.argv[1]](*sys.argv[2:])
