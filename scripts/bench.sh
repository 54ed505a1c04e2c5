#!/usr/bin/env bash
# bench.sh PYTHON [ARGS] - run the benchmarks with PYTHON, which has the wheel installed, away from the checkout's packages.
set -euo pipefail
python=$(cd "$(dirname "$1")" && pwd)/$(basename "$1"); shift
root=$(cd "$(dirname "$0")/.." && pwd)
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
cp -r "$root/benchmarks" "$root/tests" "$place/"
cd "$place"
"$python" -m benchmarks "$@"
