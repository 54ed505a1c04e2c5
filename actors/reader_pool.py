"""The reader's front desk in the supervisor: a few reader processes, one request each, deadlines, replacement.

A request that runs past its deadline is answered with busy and its process is ended, so that a hung store or mount
costs that request only. Processes are started when needed and stopped when idle.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from actors.mailbox import Clock, Mailbox
from actors.supervision import RestartPolicy
from agents_registry.errors import BusyError
from transports.bus.api import Bus, Delivery
from transports.bus.vocabulary.children import ChildExited, ChildUp, StartReader, StopChild
from transports.bus.vocabulary.conversation import Failed
from transports.bus.vocabulary.storage import Read

MAX_WAITING = 64


@dataclass(slots=True)
class _Worker:
    name: str
    up: bool = False
    job: Delivery | None = None
    ending: bool = False


class ReaderPool(Mailbox):
    def __init__(self, bus: Bus, clock: Clock, *, workers: int, idle_s: float) -> None:
        super().__init__("reader", bus, clock)
        self._max = workers
        self._idle_s = idle_s
        self._workers: dict[str, _Worker] = {}
        self._waiting: deque[Delivery] = deque()
        self._number = 0
        self._policy = RestartPolicy(base=0.1, burst=3)
        self._resting = False
        """A reader that did not come up is started again after a pause; meanwhile requests wait."""

    def handle(self, delivery: Delivery) -> None:
        message = delivery.message
        if isinstance(message, Read):
            if len(self._waiting) >= MAX_WAITING:
                raise BusyError("Too many questions to the agents' stores wait.", hint="Try again in a moment.")
            self._waiting.append(delivery)
            self._work()
        elif isinstance(message, ChildUp):
            worker = self._workers.get(message.name)
            if worker is not None:
                worker.up = True
                self._policy.reset()
                self._work()
        elif isinstance(message, ChildExited):
            self._ended(message)

    def alarm(self, name: str) -> None:
        if name == "rested":
            self._resting = False
            self._work()
        if name.startswith("idle:"):
            worker = self._workers.get(name.removeprefix("idle:"))
            if worker is not None and worker.job is None and not self._waiting:
                self._end(worker)

    def _work(self) -> None:
        while self._waiting:
            free = next((w for w in self._workers.values() if w.up and w.job is None and not w.ending), None)
            if free is None:
                starting = sum(1 for w in self._workers.values() if not w.up and not w.ending)
                if not self._resting and len(self._workers) < self._max and starting < len(self._waiting):
                    self._start()
                    continue
                return
            self._give(free, self._waiting.popleft())

    def _start(self) -> None:
        self._number += 1
        name = f"reader/{self._number}"
        self._workers[name] = _Worker(name)

        def started(answer: object) -> None:
            if isinstance(answer, Failed):
                self._workers.pop(name, None)
                for delivery in self._waiting if not self._workers else ():
                    self.reply(delivery, answer)
                if not self._workers:
                    self._waiting.clear()

        self.ask("spawner", StartReader(name), started)

    def _give(self, worker: _Worker, delivery: Delivery) -> None:
        worker.job = delivery
        self.cancel_timer(f"idle:{worker.name}")
        request: Read = delivery.message

        def answered(answer: object) -> None:
            if worker.job is not delivery:
                return
            worker.job = None
            late = isinstance(answer, Failed) and answer.error[1] == "busy"
            if late:
                error = BusyError(
                    f"The agents' store or directory did not answer within {request.deadline_s:g} seconds.",
                    hint="A network mount may hang. Nothing was changed; try again.", code="store_hangs",
                )
                self.reply(delivery, Failed(error.to_wire()))
                self._end(worker)
            else:
                self.reply(delivery, answer)
                self.set_timer(f"idle:{worker.name}", self._idle_s)
            self._work()

        self.ask(worker.name, request, answered, limit_s=request.deadline_s)

    def _end(self, worker: _Worker) -> None:
        worker.ending = True
        self._workers.pop(worker.name, None)
        self.cancel_timer(f"idle:{worker.name}")
        self.tell("spawner", StopChild(worker.name))

    def _ended(self, message: ChildExited) -> None:
        worker = self._workers.pop(message.name, None)
        if worker is None:
            return
        self.cancel_timer(f"idle:{worker.name}")
        if worker.job is not None:
            job, worker.job = worker.job, None
            error = BusyError(f"the reader process ended: {message.reason}.", hint="Try again.", code="reader_ended")
            self.reply(job, Failed(error.to_wire()))
        if worker.up:
            self._work()
            return
        now = self.clock.monotonic()
        delay = self._policy.next_delay(now, now)
        if delay is not None:
            self._resting = True
            self.set_timer("rested", delay)
            return
        self._policy.reset()
        waiting, self._waiting = self._waiting, deque()
        for delivery in waiting:
            failure = BusyError(f"the reader does not start: {message.reason}.", hint="See logs/reader.log in the data directory.")
            self.reply(delivery, Failed(failure.to_wire()))
