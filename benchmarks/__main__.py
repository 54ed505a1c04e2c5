"""`python -m benchmarks [--only WORD] [--runs N] [--json]`: run the cases, print the table, exit 1 when one is over its bound."""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import sys

import benchmarks
from benchmarks.harness import RUNS, Case, as_json, run, table


def cases() -> list[Case]:
    """The cases of all modules of this package, in the order of the modules' names."""
    found: list[Case] = []
    for module in sorted(pkgutil.iter_modules(benchmarks.__path__), key=lambda one: one.name):
        if not module.name.startswith("_"):
            found += getattr(importlib.import_module(f"benchmarks.{module.name}"), "CASES", [])
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="benchmarks", description="Measure against the floors.")
    parser.add_argument("--only", default="", help="only cases whose name holds this word")
    parser.add_argument("--runs", type=int, default=RUNS, help="interleaved runs of each (best is taken)")
    parser.add_argument("--json", action="store_true", help="one JSON document instead of the table")
    options = parser.parse_args()
    results = []
    for case in cases():
        if options.only in case.name:
            print(f"{case.name} ...", file=sys.stderr, flush=True)
            results.append(run(case, runs=options.runs))
    print(as_json(results) if options.json else table(results))
    over = [result.case.name for result in results if not result.holds]
    if over:
        print(f"over their bound: {', '.join(over)}", file=sys.stderr)
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
