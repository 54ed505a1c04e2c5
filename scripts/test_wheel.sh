#!/usr/bin/env bash
# test_wheel.sh PYTHON - run tests/unit with PYTHON, which has the wheel installed. The tests are copied away from the
# checkout first, so that `import actors` can only mean the installed one.
set -euo pipefail
python=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
root=$(cd "$(dirname "$0")/.." && pwd)
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
cp -r "$root/tests" "$root/docs" "$root/setup.cfg" "$place/"
cd "$place"
"$python" - "$root" <<'CHECK'
import sys
from pathlib import Path
import actors, agents_registry, transports
for package in (actors, agents_registry, transports):
    place = Path(package.__file__).resolve()
    sys.exit(f"{place} is the checkout, not the wheel") if Path(sys.argv[1]) / package.__name__ in place.parents else None
CHECK
code=0
"$python" -m pytest -q -p no:cacheprovider tests/unit || code=$?
# 5 = no test collected: true only while there are no unit tests
[ "$code" -eq 0 ] || [ "$code" -eq 5 ] || exit "$code"
