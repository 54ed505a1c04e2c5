"""Lists and the status of the whole: what `va status`, `va threads` and `/agent` show."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from actors.mailbox import Clock, Mailbox
from agents_registry.errors import UsageError
from agents_registry.loader import Registry
from transports.bus.api import Bus, Delivery
from transports.bus.vocabulary.bridges import ListBridges
from transports.bus.vocabulary.children import ListHosts, MemoryOf
from transports.bus.vocabulary.conversation import Failed, Ok
from transports.bus.vocabulary.lists import GetStatus, ListThreads, ShowThread
from transports.bus.vocabulary.storage import Load
from transports.bus.vocabulary.threads import GetAgents


class Catalog(Mailbox):
    """`about()`: {version, pid, uptime_s, data_dir}. `installed()`: ids of the agents that were found at the start."""

    def __init__(
        self, bus: Bus, clock: Clock, registry: Registry, about: Callable[[], dict[str, Any]], installed: Callable[[], list[str]]
    ) -> None:
        super().__init__("catalog", bus, clock)
        self._registry = registry
        self._about = about
        self._installed = installed

    def handle(self, delivery: Delivery) -> None:
        message = delivery.message
        if isinstance(message, GetStatus):
            self._status(delivery)
        elif isinstance(message, ListThreads):
            self._history(delivery, Load("threads", [max(1, min(message.limit, 1000)), message.all]))
        elif isinstance(message, ShowThread):
            self._history(delivery, Load("thread_detail", [message.id]))
        elif isinstance(message, GetAgents):
            self.reply(delivery, Ok({"agents": self.agents()}))
        else:
            raise UsageError("the catalog does not know this message.", code="unknown_message")

    def _history(self, delivery: Delivery, load: Load) -> None:
        self.ask("history", load, lambda answer: self.reply(delivery, answer))

    def agents(self) -> list[dict[str, Any]]:
        there = set(self._installed())
        listed = []
        for spec in self._registry.here():
            if spec.acp is None:
                continue
            installed = spec.id in there
            why = "" if installed else (spec.install_hint or f"va agents install {spec.id}")
            listed.append({"id": spec.id, "aliases": list(spec.aliases), "name": spec.name, "installed": installed, "usable": installed, "why": why})
        return listed

    def _status(self, delivery: Delivery) -> None:
        def hosts_known(answer: Any, data: dict[str, Any]) -> None:
            live = {h["thread"]: h for h in answer.data["hosts"]} if isinstance(answer, Ok) else {}
            hosts = []
            for row in data["hosts"]:
                now = live.get(row["thread"], {})
                hosts.append({
                    "thread": row["thread"], "agent": row["agent"], "pid": row["host_pid"], "agent_pid": row["agent_pid"],
                    "session": row["session"] or "", "state": now.get("state", "reclaiming"), "rss_mb": 0.0,
                })
            result = {**self._about(), "threads": data["threads"], "routes": [r["route"] for r in data["routes"]], "hosts": hosts, "bridges": []}
            pids = [[h["pid"], h["agent_pid"]] for h in hosts]

            def measured(sizes: Any) -> None:
                if isinstance(sizes, Ok):
                    for host, mb in zip(hosts, sizes.data["mb"], strict=False):
                        host["rss_mb"] = mb
                self.ask("bridges", ListBridges(), bridges_known, limit_s=5.0)

            def bridges_known(answer: Any) -> None:
                if isinstance(answer, Ok):
                    result["bridges"] = answer.data["bridges"]
                self.reply(delivery, Ok(result))

            self.ask("spawner", MemoryOf(pids), measured, limit_s=5.0)

        def read(answer: Any) -> None:
            if isinstance(answer, Failed):
                self.reply(delivery, answer)
                return
            self.ask("hosts", ListHosts(), lambda hosts: hosts_known(hosts, answer.data))

        self.ask("history", Load("status", []), read)
