"""The house itself: metadata in one place, verbs that say what they do."""

from __future__ import annotations

import configparser
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
VERBS = ("help", "run", "dev", "check", "test", "stress", "bench", "wheel", "clean")


@pytest.mark.requires("H1.packages")
def test_setup_cfg_holds_the_metadata_and_pyproject_only_the_build_system() -> None:
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg", encoding="utf-8")
    assert config["metadata"]["name"] == "vibearound"
    assert config["options.entry_points"]["console_scripts"].strip() == "va = transports.cli.main:main"
    assert tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8")).keys() == {"build-system"}
    assert not (ROOT / "setup.py").exists()


@pytest.mark.requires("H1.make-help")
def test_make_help_says_what_each_verb_does_and_each_exists() -> None:
    shown = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, timeout=30, check=True).stdout
    described = dict(re.findall(r"(?m)^  make (\S+) +(\S.*)$", shown))
    assert described.keys() >= set(VERBS)
    for verb in described:
        dry = subprocess.run(["make", "-n", verb], cwd=ROOT, capture_output=True, text=True, timeout=30)
        assert dry.returncode == 0, dry.stderr
