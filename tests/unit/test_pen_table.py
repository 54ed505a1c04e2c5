"""The table of who holds the pen: each row names requirements that exist and that tests show."""

from __future__ import annotations

from pathlib import Path

from tests.requirements import OPEN, REQUIREMENTS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "handover.md"


def rows() -> list[list[str]]:
    """The cells of the table's rows."""
    section = PAGE.read_text("utf-8").split("## Who holds the pen")[1].split("\n## ")[0]
    lines = [line for line in section.split("\n") if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def test_each_row_names_a_requirement_that_a_test_shows() -> None:
    found = rows()
    assert len(found) > 20
    for row in found:
        assert len(row) == 5, row
        for name in row[-1].split(","):
            assert name.strip() in REQUIREMENTS, row
            assert name.strip() not in OPEN, row


def test_each_requirement_of_writers_stands_in_the_table() -> None:
    named = {name.strip() for row in rows() for name in row[-1].split(",")}
    assert {name for name in REQUIREMENTS if name.startswith("M1.")} <= named
