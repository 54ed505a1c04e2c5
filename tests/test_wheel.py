"""The built wheel: everything is in it, and it works in an environment that holds nothing else of ours."""

from __future__ import annotations

import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("actors", "transports", "agents_registry")
LEFT_OUT = {".pyc", ".pyo", ".so"}


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel built from a copy of the sources that git would ship, without network and without traces in the checkout."""
    source = tmp_path_factory.mktemp("source")
    for name in ("setup.cfg", "pyproject.toml", "README.md"):
        (source / name).write_bytes((ROOT / name).read_bytes())
    for path in _sources():
        target = source / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes((ROOT / path).read_bytes())
    place = tmp_path_factory.mktemp("wheel")
    options = ["--no-deps", "--no-build-isolation", "--no-index", "-q", "--disable-pip-version-check"]
    command = [sys.executable, "-m", "pip", "wheel", *options, "-w", str(place), "."]
    done = subprocess.run(command, cwd=source, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return next(place.glob("*.whl"))


def _sources() -> list[Path]:
    """Every file of the three packages, relative to the root, but for what Python makes itself."""
    return sorted(
        path.relative_to(ROOT)
        for package in PACKAGES
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and path.suffix not in LEFT_OUT
    )


@pytest.mark.requires("H1.wheel-complete")
def test_every_module_and_data_file_is_in_the_wheel(wheel: Path) -> None:
    inside = set(zipfile.ZipFile(wheel).namelist())
    assert [path.as_posix() for path in _sources() if path.as_posix() not in inside] == []


def test_every_folder_with_modules_is_a_package() -> None:
    folders = {path.parent for path in _sources() if path.suffix == ".py"}
    assert sorted(str(folder) for folder in folders if not (ROOT / folder / "__init__.py").exists()) == []


def test_nothing_but_the_three_packages_is_in_the_wheel(wheel: Path) -> None:
    tops = {name.split("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    assert {top for top in tops if not top.endswith(".dist-info")} == set(PACKAGES)


@pytest.mark.requires("H1.wheel-runs")
def test_va_answers_in_a_clean_environment(wheel: Path, tmp_path: Path) -> None:
    if not (ROOT / "transports/cli/main.py").exists():
        pytest.skip("the command line is not built yet")
    place = tmp_path / "venv"
    venv.create(place, with_pip=True, symlinks=True)
    # The dependencies come from the environment of the tests, by path: this test needs no network.
    python = place / "bin" / "python"
    pip = [str(python), "-m", "pip", "install", "-q", "--no-deps", "--no-index", "--disable-pip-version-check"]
    done = subprocess.run([*pip, str(wheel)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    own = next((place / "lib").glob("python3*")) / "site-packages"
    _lend(own)
    env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "LANG": "C.UTF-8"}
    where = [str(python), "-c", "import actors, transports, agents_registry; print(actors.__file__)"]
    found = subprocess.run(where, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60)
    assert found.stdout.startswith(str(own)), found.stdout + found.stderr
    done = subprocess.run(
        [str(place / "bin" / "va"), "--help"], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert "pickup" in done.stdout


def _lend(target: Path) -> None:
    """Make the third-party packages of this environment importable in another, less our own editable install."""
    import click

    site = Path(click.__file__).resolve().parents[1]
    for path in site.iterdir():
        if path.name.startswith(("__editable__", "__pycache__", "vibearound")) or path.suffix == ".pth":
            continue
        if not (target / path.name).exists():
            (target / path.name).symlink_to(path)
