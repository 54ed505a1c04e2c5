"""While the supervisor stops no host is started, whoever asks for one."""

from __future__ import annotations

import queue
from pathlib import Path

from actors.clock import SystemClock
from actors.pooled import actor_receiver
from actors.spawner import Children, SpawnerActor
from agents_registry.loader import load_registry
from transports import settings
from transports.bus.api import Delivery
from transports.bus.switch import Switch
from transports.bus.vocabulary.children import ProbeProcess, SpawnHost


def test_a_host_that_is_asked_for_during_the_stop_is_not_started_and_nothing_is_answered(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path), "SHELL": "/bin/sh", "PATH": "/usr/bin:/bin"}
    children = Children(tmp_path, settings.load(tmp_path, {}), load_registry(None), environ, tmp_path)
    bus = Switch()
    heard: queue.SimpleQueue[Delivery] = queue.SimpleQueue()
    bus.register("thread/wt_1", heard.put)
    spawner = SpawnerActor.start(bus, SystemClock(), children, lambda report: None)
    bus.register("spawner", actor_receiver(spawner))
    try:
        children.stop_hosts(bus, 1.0)
        request = SpawnHost("wt_1", "host", 1, "demo", "direct", str(tmp_path), "ws_1", "", "new", {}, "")
        bus.send("spawner", request, sender="thread/wt_1", corr=1)
        bus.send("spawner", ProbeProcess(1, 0), sender="thread/wt_1", corr=2)
        answered = heard.get(timeout=10)
        assert answered.corr == -2, "what came after it is answered, it is not"
        assert children.known_hosts() == {}
    finally:
        spawner.stop(timeout=10)
