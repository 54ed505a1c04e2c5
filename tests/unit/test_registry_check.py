"""`va agents check`: the handshake with real processes, good and bad ones."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from agents_registry.errors import AgentError
from tests.processes import marked
from transports.cli.agents import agents


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("VIBEAROUND_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("CHECK_MARK", f"mark-{tmp_path}")
    monkeypatch.delenv("SHELL", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    return tmp_path / "data"


def fake(data: Path, body: str) -> None:
    program = data / "fake.py"
    program.write_text(body)
    (data / "agents.toml").write_text(
        f'[fake]\nname = "Fake"\ninstall_hint = "Mend it"\n[fake.acp]\ncommand = ["{{python}}", {json.dumps(str(program))}]\n'
    )


def check(*words: str) -> Result:
    return CliRunner().invoke(agents, ["check", *words])


@pytest.mark.requires("H3.check")
def test_the_demo_agent_reports_what_it_can_its_modes_and_its_times(tmp_path: Path) -> None:
    result = check("demo", "--session", "--json")
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert told["command"][0] == sys.executable
    assert told["can"]["load"] is True
    assert told["protocol"] == 1
    assert 0 < told["initialize_s"] <= told["session"]["ready_s"]
    assert told["session"]["modes"] == ["ask", "plan"]
    assert told["session"]["problems"] == []
    assert "handshake" in check("demo").stdout
    assert marked(f"mark-{tmp_path}") == {}


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("import sys; print('no licence', file=sys.stderr); sys.exit(3)", "no licence"),
        ("import sys; sys.stdin.read()", "did not answer initialize"),
        (
            "import sys, json\nfor line in sys.stdin:\n m = json.loads(line)\n"
            " print(json.dumps({'jsonrpc': '2.0', 'id': m['id'], 'error': {'code': -32000, 'message': 'log in first'}}), flush=True)",
            "log in first",
        ),
        ("import sys\nfor line in sys.stdin: print('garbage', flush=True)", "did not answer initialize"),
    ],
)
def test_an_agent_that_ends_hangs_refuses_or_babbles_is_told_and_ended(body: str, words: str, data: Path, tmp_path: Path) -> None:
    fake(data, body)
    error = check("fake", "--limit", "1").exception
    assert isinstance(error, AgentError)
    assert words in str(error)
    assert marked(f"mark-{tmp_path}") == {}


def test_an_agent_that_is_missing_says_how_to_get_it(data: Path) -> None:
    (data / "agents.toml").write_text('[fake]\nname = "Fake"\ninstall_hint = "Mend it"\n[fake.acp]\ncommand = ["no-such-program"]\n')
    error = check("fake").exception
    assert isinstance(error, AgentError)
    assert error.hint == "Mend it."
