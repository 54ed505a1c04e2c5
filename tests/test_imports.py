"""Imports run down (actors -> transports -> agents_registry), and what must start fast loads little."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FLOORS = {"agents_registry": 0, "transports": 1, "actors": 2}

# What may be loaded from outside the standard library, by the module that is started.
ALLOWED_PACKAGES = {
    "transports.cli.main": {"click", "transports", "agents_registry"},
    "actors.supervisor": {"actors", "transports", "agents_registry", "zmq", "msgpack", "pykka", "structlog"},
}
# Modules of the standard library that cost many milliseconds or megabytes. Click itself loads inspect.
HEAVY = {
    "asyncio",
    "concurrent.futures.process",
    "ctypes",
    "email",
    "http",
    "importlib.metadata",
    "importlib.resources",
    "multiprocessing",
    "sqlite3",
    "ssl",
    "subprocess",
    "unittest",
    "urllib.request",
    "xml",
}
ALLOWED_HEAVY: dict[str, set[str]] = {
    "transports.cli.main": set(),
    # the journal lives in the supervisor; its spawning thread starts processes, and prctl has no other door
    "actors.supervisor": {"sqlite3", "subprocess", "ctypes"},
}
SHIM_ALLOWED = {
    "_signal", "_socket", "_stat", "_abc", "abc", "io", "stat", "_collections_abc", "genericpath", "posixpath", "os", "select", "time",
}  # fmt: skip


def imports_of(tree: ast.AST, package: str) -> Iterator[tuple[int, str]]:
    """(line, absolute name) of each import in a module, in functions and for type checking too, and of each
    import_module or __import__ of a written-out name. `package` is the module's package, for relative imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            parent = package.split(".")
            base = parent[: len(parent) - node.level + 1] if node.level else []
            yield node.lineno, ".".join([*base, *([node.module] if node.module else [])])
        elif isinstance(node, ast.Call) and node.args:
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            first = node.args[0]
            if name in ("import_module", "__import__") and isinstance(first, ast.Constant):
                yield node.lineno, str(first.value)


def upward(tree: ast.AST, module: str, package: str) -> list[str]:
    """The imports of a module that do not run down, as "module:line imports name"."""
    floor = FLOORS[module.split(".")[0]]
    return [
        f"{module}:{line} imports {name}"
        for line, name in imports_of(tree, package)
        if FLOORS.get(name.split(".")[0], -1) > floor
    ]


def _modules() -> Iterator[tuple[str, str, Path]]:
    for package in FLOORS:
        for path in sorted((ROOT / package).rglob("*.py")):
            parts = list(path.relative_to(ROOT).with_suffix("").parts)
            if parts[-1] == "__init__":
                yield ".".join(parts[:-1]), ".".join(parts[:-1]), path
            else:
                yield ".".join(parts), ".".join(parts[:-1]), path


@pytest.mark.requires("H1.imports-run-down")
def test_imports_run_down_only() -> None:
    found = [
        line
        for module, package, path in _modules()
        for line in upward(ast.parse(path.read_text("utf-8"), str(path)), module, package)
    ]
    assert found == []


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("transports.bus.api", "from actors.clock import Clock"),
        ("transports.cli.main", "def run():\n    import actors.supervisor"),
        ("transports.cli.main", "import importlib\nimportlib.import_module('actors.host')"),
        ("agents_registry.model", "from transports import settings"),
        ("agents_registry.model", "if TYPE_CHECKING:\n    from actors import threads"),
        ("agents_registry.sessions.x", "from ...transports import paths"),
    ],
)
def test_an_import_that_runs_up_is_found(module: str, source: str) -> None:
    package = module.rpartition(".")[0]
    assert len(upward(ast.parse(source), module, package)) == 1


def test_imports_that_run_down_or_stay_are_fine() -> None:
    source = "import os\nfrom transports.bus import api\nfrom agents_registry import errors\nfrom . import turns"
    assert upward(ast.parse(source), "actors.threads", "actors") == []


def _loaded_by(module: str) -> set[str]:
    """The names of all modules that importing one loads, in a process of its own, less what the process has at its start."""
    program = (
        "import json, sys; before = set(sys.modules); import importlib; importlib.import_module(sys.argv[1]);"
        " print(json.dumps(sorted(set(sys.modules) - before)))"
    )
    done = subprocess.run([sys.executable, "-c", program, module], capture_output=True, text=True, timeout=60, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout))


@pytest.mark.parametrize(
    "module",
    [
        pytest.param("transports.cli.main", marks=pytest.mark.requires("H1.cli-loads-little")),
        pytest.param("actors.supervisor", marks=pytest.mark.requires("H1.supervisor-loads-little")),
    ],
)
def test_what_starts_often_loads_allow_listed_modules_only(module: str) -> None:
    if not (ROOT / (module.replace(".", "/") + ".py")).exists():
        pytest.skip(f"{module} is not built yet")
    loaded = _loaded_by(module)
    third = {name.split(".")[0] for name in loaded if name.split(".")[0] not in sys.stdlib_module_names}
    foreign = {name for name in third if not name.startswith(("_cython", "__editable__", "cython_runtime"))}
    assert foreign - ALLOWED_PACKAGES[module] == set()
    heavy = {name for name in loaded if any(name == one or name.startswith(one + ".") for one in HEAVY)}
    allowed = ALLOWED_HEAVY[module]
    assert {name for name in heavy if name.split(".")[0] not in allowed} == set()


@pytest.mark.requires("H1.shim-loads-little")
def test_the_shim_loads_allow_listed_modules_of_the_standard_library_only(tmp_path: Path) -> None:
    shim = ROOT / "transports" / "mcp" / "shim.py"
    if not shim.exists():
        pytest.skip("the shim is not built yet")
    bare = _import_times([sys.executable, "-I", "-S", "-X", "importtime", "-c", "pass"])
    shown = _import_times([sys.executable, "-I", "-S", "-X", "importtime", str(shim), "--data-dir", str(tmp_path)])
    assert "select" in shown  # it did run
    assert shown - bare - SHIM_ALLOWED == set()


def _import_times(command: list[str]) -> set[str]:
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30)
    assert done.returncode == 0, done.stderr
    lines = [line.split("|") for line in done.stderr.splitlines() if line.startswith("import time:")]
    return {fields[-1].strip() for fields in lines}


@pytest.mark.requires("H2.host-spawns-first")
def test_a_host_has_loaded_next_to_nothing_when_it_starts_its_agent(tmp_path: Path) -> None:
    """Each of these costs milliseconds before the agent runs."""
    program = (
        "import sys; sys.argv = ['host', '--spec-fd', '0'];"
        f"sys.path.insert(0, {str(ROOT)!r}); from actors import host_start;"
        "host_start.start = lambda *a: (print(sorted(sys.modules)), sys.stdout.flush(), __import__('os')._exit(0));"
        "import actors.host; actors.host.main()"
    )
    from actors.host_spec import HostSpec

    spec = HostSpec("wt_1", "host", 1, ["true"], str(tmp_path), str(tmp_path))
    done = subprocess.run([sys.executable, "-S", "-c", program], input=spec.to_bytes(), capture_output=True, timeout=60)
    loaded = set(ast.literal_eval(done.stdout.decode()))
    assert {"actors.host", "select"} <= loaded
    assert not loaded & {"typing", "enum", "re", "json", "pathlib", "subprocess", "ctypes", "threading", "collections", "agents_registry.errors"}
