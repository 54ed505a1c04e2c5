"""Measuring against a floor: five interleaved runs of each, best against best, and a bound on the relation.

The floor is what the machine could do at best for the same work (a raw socket chain, a bare interpreter), measured in the
same run, so that a figure means the same on a slow machine and on a fast one. Best of five rather than a mean: whatever
else the machine did in between only ever makes a run worse.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Literal

Measure = Callable[[], float]
Pair = tuple[Measure, Measure]

RUNS = 5


@dataclass(frozen=True, slots=True)
class Bound:
    """The relation that ours must have to the floor: at most or at least so many times, or at most so much more."""

    kind: Literal["at_most_times", "at_least_times", "at_most_plus"]
    value: float

    def holds(self, ours: float, floor: float) -> bool:
        if self.kind == "at_most_plus":
            return ours <= floor + self.value
        return ours <= floor * self.value if self.kind == "at_most_times" else ours >= floor * self.value

    @property
    def best(self) -> Callable[[Iterable[float]], float]:
        """max where a higher figure is better (rates), else min (times, memory)."""
        return max if self.kind == "at_least_times" else min

    def text(self, unit: str) -> str:
        if self.kind == "at_most_plus":
            return f"≤ + {self.value:g} {unit}"
        return f"{'≤' if self.kind == 'at_most_times' else '≥'} {self.value:g} ×"


def at_most_times(value: float) -> Bound:
    """Ours may take at most `value` times what the floor takes."""
    return Bound("at_most_times", value)


def at_least_times(value: float) -> Bound:
    """Ours must reach at least `value` times what the floor reaches; both are rates."""
    return Bound("at_least_times", value)


def at_most_plus(value: float) -> Bound:
    """Ours may take at most `value` units more than the floor."""
    return Bound("at_most_plus", value)


@dataclass(frozen=True, slots=True)
class Case:
    """One row of the table.

    `prepare` opens everything that is not measured (processes, connections, warm-up) and gives the two measures, (floor,
    ours); each call of a measure is one run and returns a figure in `unit`. `limit`, when given, is a further condition
    on ours alone, as (text, check), for figures that have no floor.
    """

    name: str
    floor: str
    unit: str
    bound: Bound
    prepare: Callable[[], AbstractContextManager[Pair]]
    limit: tuple[str, Callable[[], bool]] | None = None


@dataclass(frozen=True, slots=True)
class Result:
    """What came out of one case; all runs are kept, in order."""

    case: Case
    floors: tuple[float, ...]
    ours: tuple[float, ...]
    limit_holds: bool = True

    @property
    def floor(self) -> float:
        return self.case.bound.best(self.floors)

    @property
    def best(self) -> float:
        return self.case.bound.best(self.ours)

    @property
    def holds(self) -> bool:
        return self.limit_holds and self.case.bound.holds(self.best, self.floor)

    @property
    def relation(self) -> str:
        if self.case.bound.kind == "at_most_plus":
            return f"{self.best - self.floor:+.3g} {self.case.unit}"
        return f"{self.best / self.floor:.2f} ×" if self.floor else "-"

    def document(self) -> dict[str, Any]:
        """As one object for `--json`."""
        return {
            "name": self.case.name,
            "floor": self.case.floor,
            "unit": self.case.unit,
            "bound": self.case.bound.text(self.case.unit),
            "floors": list(self.floors),
            "ours": list(self.ours),
            "relation": self.relation,
            "holds": self.holds,
        }


def run(case: Case, *, runs: int = RUNS) -> Result:
    """Measure one case: floor, ours, floor, ours, ... so that both meet the same weather."""
    floors: list[float] = []
    ours: list[float] = []
    with case.prepare() as (measure_floor, measure_ours):
        for _ in range(runs):
            floors.append(measure_floor())
            ours.append(measure_ours())
        limit_holds = case.limit is None or case.limit[1]()
    return Result(case, tuple(floors), tuple(ours), limit_holds)


def seconds(work: Callable[[], object]) -> float:
    """How long one call takes, in seconds of the monotonic clock."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def per_second(count: int, work: Callable[[], object]) -> float:
    """The rate at which `work` does `count` things."""
    return count / seconds(work)


def pss_mb(pid: int) -> float:
    """The proportional memory of a process in MB (10^6 bytes), from /proc/PID/smaps_rollup (Linux)."""
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
        for line in file:
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024 / 1e6
    raise ValueError(f"no Pss line for process {pid}")


def table(results: Sequence[Result]) -> str:
    """The results as a Markdown table, as it goes into the docs."""
    rows = [("what", "floor", "floor best", "ours best", "relation", "bound", "")]
    for result in results:
        case = result.case
        bound = case.bound.text(case.unit) + (f", {case.limit[0]}" if case.limit else "")
        figures = (f"{result.floor:.4g} {case.unit}", f"{result.best:.4g} {case.unit}")
        rows.append((case.name, case.floor, *figures, result.relation, bound, "ok" if result.holds else "OVER"))
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    lines.insert(1, "|" + "---|" * len(rows[0]))
    return "\n".join(lines)


def as_json(results: Sequence[Result]) -> str:
    """The results as one JSON document."""
    return json.dumps([result.document() for result in results], ensure_ascii=False, indent=1)
