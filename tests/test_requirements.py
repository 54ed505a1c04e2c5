"""The table of requirements and the tests agree."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.markers import collected
from tests.requirements import OPEN, REQUIREMENTS


def _tested() -> dict[str, str]:
    return {name: mark.place for mark in collected() for name in mark.names}


def test_every_requirement_has_a_test_or_is_listed_as_open() -> None:
    assert sorted(REQUIREMENTS.keys() - _tested().keys() - OPEN.keys()) == []


def test_no_requirement_listed_as_open_has_a_test() -> None:
    assert {name: place for name, place in _tested().items() if name in OPEN} == {}


def test_every_id_that_a_test_names_exists() -> None:
    assert {name: place for name, place in _tested().items() if name not in REQUIREMENTS} == {}


def test_every_open_id_exists_and_has_its_reason() -> None:
    assert sorted(OPEN.keys() - REQUIREMENTS.keys()) == []
    assert [name for name, reason in OPEN.items() if not reason] == []


def test_marks_are_found_on_functions_on_classes_and_on_parameters(tmp_path: Path) -> None:
    (tmp_path / "test_one.py").write_text(
        "import pytest\n"
        "pytestmark = pytest.mark.requires('a')\n"
        "@pytest.mark.requires('b', 'c')\n"
        "def test_x(): ...\n"
        "@pytest.mark.parametrize('n', [pytest.param(1, marks=pytest.mark.requires('d'))])\n"
        "def test_y(n): ...\n"
    )
    (tmp_path / "helper.py").write_text("import pytest\nm = pytest.mark.requires('not a test')\n")
    assert sorted(name for mark in collected(tmp_path) for name in mark.names) == ["a", "b", "c", "d"]


def test_an_id_that_is_no_literal_is_refused(tmp_path: Path) -> None:
    (tmp_path / "test_one.py").write_text("import pytest\nx = 'a'\n@pytest.mark.requires(x)\ndef test_x(): ...\n")
    with pytest.raises(ValueError, match=r"test_one\.py:3"):
        collected(tmp_path)
