#!/usr/bin/env bash
# wheel_venv.sh PYTHON VENV WHEEL EXTRAS - a clean environment that holds the wheel as a user would have it, and the
# test tools of EXTRAS. An existing VENV is kept: its dependencies are brought up to date and the wheel is put in anew.
set -euo pipefail
python=$1 venv=$2 wheel=$3 extras=$4
[ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
pip=("$venv/bin/python" -m pip --disable-pip-version-check)
"${pip[@]}" install -qq "$wheel[$extras]"
"${pip[@]}" install -qq --force-reinstall --no-deps "$wheel"
