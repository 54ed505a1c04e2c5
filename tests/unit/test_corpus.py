"""Every session of the shared corpus is counted as its ground truth says.

The corpus lies beside the repository (`../shared/corpus`, or $VIBEAROUND_CORPUS) and is not part of it.
"""

from __future__ import annotations

import csv
import os
from pathlib import Path

import pytest

from agents_registry.sessions import catalog

CORPUS = Path(os.environ.get("VIBEAROUND_CORPUS", Path(__file__).resolve().parents[3] / "shared" / "corpus"))
AGENT_OF = {"claude-code": "claude", "qwen": "qwen-code", "kiro-cli": "kiro"}

# (end of the path, column) -> why the row is held to be wrong.
DISAGREEMENTS: dict[tuple[str, str], str] = {}


def _rows() -> list[dict[str, str]]:
    truth = CORPUS / "TRUTH.tsv"
    if not truth.is_file():
        return []
    with open(truth, encoding="utf-8", newline="") as file:
        return [row for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE) if row["kind"] == "session"]


ROWS = _rows()
needs_corpus = pytest.mark.skipif(not ROWS, reason=f"the session corpus is not at {CORPUS}")


def _agent(row: dict[str, str]) -> str:
    return AGENT_OF.get(row["agent"], row["agent"])


@needs_corpus
@pytest.mark.parametrize("row", ROWS, ids=[row["path"] for row in ROWS])
def test_a_session_of_the_corpus_is_counted_as_its_ground_truth_says(row: dict[str, str]) -> None:
    stores = catalog.stores()
    agent = _agent(row)
    if agent not in stores:
        pytest.skip(f"{agent} is not read yet")
    found = stores[agent].inspect(CORPUS / row["path"])
    said = {
        "user_turns": str(found.user_turns),
        "asst_text": str(found.assistant_texts),
        "asst_msgs": str(found.assistant_messages),
        "tool_calls": str(found.tool_calls),
        "tool_results": str(found.tool_results),
        "malformed": str(found.malformed),
        "cwd": found.cwd,
        "session_id": found.id,
        "first_user_sha256": found.first_user_sha256,
    }
    wrong = {
        column: (value, row[column])
        for column, value in said.items()
        if value != row[column] and not any(column == name and row["path"].endswith(end) for end, name in DISAGREEMENTS)
    }
    assert not wrong, f"(found, expected) {wrong}"


@needs_corpus
@pytest.mark.parametrize("row", ROWS, ids=[row["path"] for row in ROWS])
def test_the_agent_of_a_corpus_session_is_recognised_from_its_content(row: dict[str, str]) -> None:
    if _agent(row) not in catalog.stores():
        pytest.skip(f"{_agent(row)} is not read yet")
    found = catalog.recognise(CORPUS / row["path"])
    assert found == _agent(row) or (not found and _holds_nothing(row)), found


def _holds_nothing(row: dict[str, str]) -> bool:
    return int(row["lines"]) - int(row["malformed"] or 0) - int(row["non_object"] or 0) <= 0
