"""The measuring itself: interleaving, best of, bounds, the table, the exit code."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from benchmarks.harness import Bound, Case, Pair, at_least_times, at_most_plus, at_most_times, pss_mb, run, table

ROOT = Path(__file__).resolve().parents[1]


def case(floors: Sequence[float], ours: Sequence[float], bound: Bound, order: list[str] | None = None) -> Case:
    @contextmanager
    def prepare() -> Iterator[Pair]:
        left, right = iter(floors), iter(ours)
        seen = order if order is not None else []

        def floor() -> float:
            seen.append("floor")
            return next(left)

        def own() -> float:
            seen.append("ours")
            return next(right)

        yield floor, own

    return Case("a thing", "a floor", "ms", bound, prepare)


def test_floor_and_ours_are_measured_in_turns() -> None:
    order: list[str] = []
    run(case([1, 1], [1, 1], at_most_times(2), order), runs=2)
    assert order == ["floor", "ours", "floor", "ours"]


@pytest.mark.parametrize(
    ("bound", "floors", "ours", "holds"),
    [
        (at_most_times(1.5), [10, 4], [6, 50], True),
        (at_most_times(1.5), [10, 4], [6.1, 50], False),
        (at_least_times(2.5), [1, 4], [10, 2], True),
        (at_least_times(2.5), [1, 4], [9, 2], False),
        (at_most_plus(5), [1, 2], [6, 90], True),
        (at_most_plus(5), [1, 2], [6.1, 90], False),
    ],
)
def test_the_best_run_of_each_is_held_against_the_bound(
    bound: Bound, floors: list[float], ours: list[float], holds: bool
) -> None:
    assert run(case(floors, ours, bound), runs=2).holds is holds


def test_a_further_limit_can_fail_a_case_by_itself() -> None:
    plain = case([1], [1], at_most_times(2))
    limited = Case(plain.name, plain.floor, plain.unit, plain.bound, plain.prepare, ("≤ 12 threads", lambda: False))
    assert not run(limited, runs=1).holds


def test_the_table_names_what_is_over_its_bound() -> None:
    shown = table([run(case([1], [3], at_most_times(2)), runs=1), run(case([1], [3], at_most_plus(2)), runs=1)])
    lines = shown.split("\n")
    assert lines[2] == "| a thing | a floor | 1 ms | 3 ms | 3.00 × | ≤ 2 × | OVER |"
    assert lines[3] == "| a thing | a floor | 1 ms | 3 ms | +2 ms | ≤ + 2 ms | ok |"


@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="needs /proc/PID/smaps_rollup of Linux")
def test_memory_of_a_process_is_read() -> None:
    assert 1 < pss_mb(os.getpid()) < 2000


def test_the_command_names_a_word_that_no_case_has_with_an_empty_table() -> None:
    command = [sys.executable, "-m", "benchmarks", "--only", "no such case"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout.count("\n")) == (0, 2)


@pytest.mark.requires("S5.telegram-bench")
def test_the_bridges_rows_have_their_bounds_and_stand_in_the_docs() -> None:
    from benchmarks.bench_surfaces import CASES

    bounds = [(one.bound.kind, one.bound.value) for one in CASES]
    assert bounds[:3] == [("at_most_plus", 10.0), ("at_most_plus", 10.0), ("at_most_plus", 12.0)]
    assert bounds[3] == ("at_least_times", 0.95) and CASES[3].limit is not None
    rows = (ROOT / "docs" / "benchmarks.md").read_text("utf-8")
    assert [one.name for one in CASES if f"| {one.name} | {one.floor} |" not in rows] == []


@pytest.mark.requires("H8.bench")
def test_every_row_of_the_foundation_is_measured_against_its_bound_and_stands_in_the_docs() -> None:
    from benchmarks.__main__ import cases

    bounds = {one.name: (one.bound.kind, one.bound.value, one.limit is not None) for one in cases()}
    wanted = {
        "routed round trip, transient kind": ("at_most_times", 1.6, False),
        "durable accept, one client": ("at_most_times", 1.6, False),
        "durable accepts, 64 in flight": ("at_least_times", 2.5, False),
        "MCP shim, first answer": ("at_most_times", 1.5, False),
        "code issued, picked up, attached": ("at_most_times", 3.0, False),
        "prompt to a warm agent, first byte": ("at_most_plus", 5.0, False),
        "20,000 chunks to two listeners": ("at_least_times", 1.0, False),
        "10,000 routes known, 1,000 active": ("at_most_plus", 40.0, True),
        "supervisor at rest": ("at_most_plus", 20.0, False),
        "va chat send, cold, until the agent is spawned": ("at_most_plus", 80.0, False),
    }
    assert {name: bounds.get(name) for name in wanted} == wanted
    rows = (ROOT / "docs" / "benchmarks.md").read_text("utf-8").replace("`", "")
    assert [name for name in wanted if f"| {name} |" not in rows] == []


@pytest.mark.requires("H8.bench")
def test_a_row_over_its_bound_fails_the_command_by_its_name(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from benchmarks import __main__ as command

    monkeypatch.setattr(command, "cases", lambda: [case([1], [3], at_most_times(2))])
    monkeypatch.setattr(sys, "argv", ["benchmarks", "--runs", "1"])
    assert command.main() == 1
    assert "over their bound: a thing" in capsys.readouterr().err
