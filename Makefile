# Everything that a person or CI does with this repository, by one word each. `make help` lists them.
# Each step is idempotent: a stamp file stands for what was installed, and is older than what it was made from when that changes.

PYTHON ?= python3
VENV   := .venv
PY     := $(VENV)/bin/python
DEV    := $(VENV)/.stamp-dev
AGENTS := .agents/.stamp
EXTRAS := dev,oracle,web,telegram,codex-zst,codex-join
WHEELS := .cache/wheel
SOURCES := $(shell find actors transports agents_registry -type f -not -path '*/__pycache__/*' 2>/dev/null)
PYTEST_ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help run dev check test test-wheel stress bench wheel clean

help:  ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: dev  ## start the daemon in the background and say what to do next
	@$(VENV)/bin/va up >/dev/null
	@$(VENV)/bin/va

dev: $(DEV)  ## make .venv with the project (editable), its tools and its test oracles

check: dev  ## lint, types, import rules
	$(VENV)/bin/ruff check .
	$(VENV)/bin/mypy
	$(PY) -m pytest -q tests/test_imports.py

test: dev $(AGENTS) test-wheel  ## all tests but the long ones; real agents against a fake model; ARGS by PYTEST_ARGS
	$(PY) -m pytest $(PYTEST_ARGS)

test-wheel: $(WHEELS)/.stamp-venv  ## the unit tests once more, against the built wheel in an environment of its own
	bash scripts/test_wheel.sh $(WHEELS)/venv/bin/python

stress: dev $(AGENTS)  ## the tests that take long
	$(PY) -m pytest -m stress --timeout=1800 $(PYTEST_ARGS)

bench: .cache/bench-venv/.stamp  ## measure against the floors, on the built wheel
	bash scripts/bench.sh .cache/bench-venv/bin/python $(BENCH_ARGS)

wheel: $(WHEELS)/.stamp  ## build the wheel into dist/
	mkdir -p dist
	cp $(WHEELS)/*.whl dist/
	@ls dist/*.whl

clean:  ## remove what was built and measured; keeps .venv and .agents
	rm -rf build dist .cache .pytest_cache .mypy_cache .ruff_cache .hypothesis *.egg-info
	find actors transports agents_registry tests benchmarks scripts -name __pycache__ -type d -prune -exec rm -rf {} +

# --- what the verbs stand on -------------------------------------------------------------------------------------

$(DEV): setup.cfg pyproject.toml
	test -x $(PY) || $(PYTHON) -m venv $(VENV)
	$(PY) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed; name one: make dev PYTHON=python3.12")'
	@echo 'Installing into $(VENV) (a minute or two) ...'
	$(PY) -m pip install -q --disable-pip-version-check --upgrade pip 'setuptools>=77'
	$(PY) -m pip install -qq --disable-pip-version-check -e '.[$(EXTRAS)]'
	touch $@

$(AGENTS): tests/agents/package.json tests/agents/package-lock.json
	@command -v npm >/dev/null || { echo 'npm (with node 20 or newer) is needed for the tests with real agents'; exit 1; }
	mkdir -p .agents
	cp tests/agents/package.json tests/agents/package-lock.json .agents/
	npm ci --prefix .agents --no-audit --no-fund --loglevel=error
	touch $@

$(WHEELS)/.stamp: $(DEV) $(SOURCES) README.md
	rm -rf build $(WHEELS)/*.whl
	mkdir -p $(WHEELS)
	$(PY) -m pip wheel -q --disable-pip-version-check --no-deps --no-build-isolation -w $(WHEELS) .
	rm -rf build
	touch $@

$(WHEELS)/.stamp-venv: $(WHEELS)/.stamp
	bash scripts/wheel_venv.sh $(PY) $(WHEELS)/venv $(WHEELS)/*.whl '$(EXTRAS)'
	touch $@

.cache/bench-venv/.stamp: $(WHEELS)/.stamp
	bash scripts/wheel_venv.sh $(PY) .cache/bench-venv $(WHEELS)/*.whl '$(EXTRAS)'
	touch $@
