"""A conversation moves to another agent: the real one resumes it, and its model is sent goal, decisions and last turns."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.agents.home import AgentHome
from tests.agents.kinds import CLAUDE_KIND, CODEX_KIND, Kind, code_in, daemon_for
from tests.agents.rig import FakeModel
from tests.daemon import needs_va
from tests.waiting import until

pytestmark = pytest.mark.agents
KINDS = {"claude": CLAUDE_KIND, "codex": CODEX_KIND}


def va(home: AgentHome, data: Path, cwd: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "transports.cli.main", "--data-dir", str(data), *words]
    return subprocess.run(command, cwd=cwd, env={**home.env(), "PWD": str(cwd)}, capture_output=True, text=True, timeout=100, stdin=subprocess.DEVNULL)


def relayed(home: AgentHome, data: Path, cwd: Path, *words: str) -> dict[str, Any]:
    done = va(home, data, cwd, "relay", *words, "--json")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def talk(kind: Kind, home: AgentHome, work: Path, *prompts: str) -> str:
    session = ""
    for prompt in prompts:
        run = kind.run(home, prompt, cwd=work, **({"resume": session} if session else {}))
        assert run.code == 0, run.errors
        session = run.session
    return session


@pytest.mark.requires("R5.native", "R6.back", "R6.no-supervisor")
@pytest.mark.parametrize(("source", "target"), [("claude", "codex"), ("codex", "claude")])
def test_the_receiving_agent_goes_on_with_goal_decisions_and_last_turns_and_back_comes_what_is_new(
    source: str, target: str, model: FakeModel, home: AgentHome, work: Path, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    goal = "The goal is a banana parser."
    first = talk(KINDS[source], home, work, goal, "SAY{We decided to use recursive descent.}", "You must not add kiwi.", "third thing", "fourth thing")
    moved = relayed(home, data, work, f"{source}:latest", "--to", target, "--recent", "2")
    assert (moved["way"], moved["cwd"], moved["notes"]) == ("native", str(work), [])
    session = moved["session"]
    assert KINDS[target].run(home, "and now go on", cwd=work, resume=session).code == 0
    asked = model.wait_text("and now go on")
    assert asked.holds(
        "Record of earlier work with another tool, not a new request.", goal, "We decided to use recursive descent.", "You must not add kiwi.",
        "third thing", "fourth thing", "ask before assuming",
    )  # fmt: skip

    back = relayed(home, data, work, f"{target}:{session}", "--to", source)
    assert (back["way"], back["session"]) == ("resume", first)
    assert "and now go on" in back["text"]
    assert goal not in back["text"], "the earlier session knows that"
    again = va(home, data, work, "relay", f"{target}:{session}", "--to", source)
    assert again.returncode == 5
    assert "Nothing is new" in again.stderr
    shown = json.loads(va(home, data, work, "relay", "map", "--json").stdout)
    assert [{row["a"]["id"], row["b"]["id"]} for row in shown] == [{first, session}]


@pytest.mark.requires("R4.full", "R5.sources-kept")
def test_a_source_is_left_as_it_is_and_full_carries_every_word_and_tool_call(
    model: FakeModel, home: AgentHome, work: Path, tmp_path: Path
) -> None:
    from agents_registry.sessions import catalog

    session = talk(CODEX_KIND, home, work, "remember mango", "RUN{echo one two} THEN SAY{finished}")
    path = catalog.resolve_one(home.env(), "codex", session).path
    before = path.read_bytes()
    refused = va(home, tmp_path / "data", work, "relay", f"codex:{session}", "--to", "claude", "--full")
    assert (refused.returncode, "only 2 requests" in refused.stderr) == (5, True)
    moved = relayed(home, tmp_path / "data", work, f"codex:{session}", "--to", "claude", "--full", "--force")
    assert path.read_bytes() == before
    assert CLAUDE_KIND.run(home, "what was it", cwd=work, resume=moved["session"]).code == 0
    assert model.wait_text("what was it").holds("remember mango", "ECHO#1: remember mango", "echo one two", "one two", "finished")


@pytest.mark.requires("R6.chat", "R6.map", "R6.back", "R3.search-chat")
@needs_va
def test_in_a_chat_a_conversation_moves_to_another_agent_and_back(model: FakeModel, home: AgentHome, work: Path, tmp_path: Path) -> None:
    home.trust(work)
    with daemon_for(tmp_path, home, CLAUDE_KIND) as daemon:
        for text in ("The goal is a banana parser.", "SAY{We decided to use recursive descent.}", "no kiwi please", "third thing", "fourth thing"):
            first = daemon.send(text, chat="a", workspace=work)
        moved = daemon.send("/relay codex", chat="a", seconds=120)
        assert "Codex has what was said and done" in moved.reply
        turn = daemon.send("and now go on", chat="a")
        assert (turn.session["agent"], turn.session["start"]) == ("codex", "resumed")
        asked = model.wait_text("and now go on")
        assert asked.holds("The goal is a banana parser.", "We decided to use recursive descent.", "no kiwi please", "fourth thing")
        heard = daemon.listen("a")
        back = daemon.send("/relay claude", chat="a", seconds=120)
        assert back.session["session"] == first.session["session"]
        again = daemon.send("what was that", chat="a")
        assert again.session["thread"] == first.session["thread"]
        said = model.wait_text("what was that")
        assert said.holds("Record of earlier work with another tool", "and now go on")
        found = daemon.send("/session search recursive descent", chat="a")
        assert "claude" in found.reply
        assert daemon.va("relay", "map", "--json").json()
        # What was said in the turn counts as given once Claude's own store was seen to hold it.
        until(
            lambda: "Nothing is new" in daemon.va("relay", f"codex:{turn.session['session']}", "--to", "claude", "--dry-run", check=False).err,
            "the way back in the map", seconds=30.0,
        )
        assert "recorded only" not in json.dumps(heard.events)


@needs_va
@pytest.mark.requires("R6.code-from")
def test_a_live_handover_code_names_the_conversation_to_carry_and_stays_good_for_a_pickup(
    model: FakeModel, home: AgentHome, work: Path, tmp_path: Path
) -> None:
    with daemon_for(tmp_path, home, CLAUDE_KIND) as daemon:
        session = daemon.send("remember banana", chat="a", workspace=work).session["session"]
        code = code_in(daemon.send("/handover", chat="a").reply)
        shown = daemon.va("relay", code, "--to", "codex", "--dry-run", "--json").json()
        assert session in shown["source"]
        assert "remember banana" in shown["text"]
        assert "Picked up" in daemon.send(f"/pickup {code}", chat="b").reply
        unknown = daemon.va("relay", code, "--to", "codex", "--dry-run", check=False)
        assert (unknown.code, code in unknown.err) == (6, True)


def rich(kind: Kind, home: AgentHome, work: Path) -> str:
    """A session with tool calls, a decision, a constraint and files; its id."""
    target = work / "parser.py"
    return talk(
        kind, home, work, "The goal is a banana parser.", "SAY{We decided to use recursive descent.}", "RUN{echo mango one}",
        f"WRITE{{{target}|lychee = 1}}", "You must not add kiwi.", "SAY{Next: write the lexer.}", "RUN{echo papaya two} THEN SAY{finished papaya}",
    )  # fmt: skip


def parts(home: AgentHome, agent: str, session: str) -> tuple[list[str], list[str], list[str], list[str]]:
    """Requests, answers, tool inputs and tool results of a stored session, each as its words."""
    from agents_registry.sessions import catalog
    from agents_registry.sessions.neutral import Text, ToolCall, ToolResult

    turns = catalog.need(agent).read(catalog.resolve_one(home.env(), agent, session)).turns
    blocks = [block for turn in turns for block in turn.blocks]
    calls = [str(block.input.get("command") or block.input.get("cmd") or block.name) for block in blocks if isinstance(block, ToolCall)]
    results = [block.text for block in blocks if isinstance(block, ToolResult)]
    users = [turn.text for turn in turns if turn.role == "user" and turn.text]
    answers = [block.text for turn in turns if turn.role != "user" for block in turn.blocks if isinstance(block, Text)]
    return users, answers, calls, results


ORDERED = [("claude", "codex"), ("codex", "claude")]


@pytest.mark.parametrize(("source", "target"), ORDERED)
@pytest.mark.requires("R4.full")
def test_full_puts_every_request_answer_call_and_result_into_the_first_request_of_the_target(
    source: str, target: str, model: FakeModel, home: AgentHome, work: Path, tmp_path: Path
) -> None:
    session = rich(KINDS[source], home, work)
    users, answers, calls, results = parts(home, source, session)
    assert (len(users), len(calls), len(results)) == (7, 3, 3)
    moved = relayed(home, tmp_path / "data", work, f"{source}:{session}", "--to", target, "--full")
    assert (moved["way"], moved["notes"], moved["dropped"]) == ("native", [], {})
    assert KINDS[target].run(home, "what now", cwd=work, resume=moved["session"]).code == 0
    asked = model.wait_text("what now")
    whole = "\n".join(text for _, text in asked.turns)
    missing = [word for text in (*users, *answers, *calls) for word in text.splitlines() if word.strip() and word not in whole]
    assert missing == []
    assert asked.holds("mango one", "papaya two", "lychee = 1")
    assert [line for text in results for line in text.splitlines() if line.strip() and line not in whole] == []


@pytest.mark.parametrize(("source", "target"), ORDERED)
@pytest.mark.requires("R4.brief")
def test_without_full_the_target_knows_goal_decisions_constraints_files_last_turns_and_boundary(
    source: str, target: str, model: FakeModel, home: AgentHome, work: Path, tmp_path: Path
) -> None:
    session = rich(KINDS[source], home, work)
    moved = relayed(home, tmp_path / "data", work, f"{source}:{session}", "--to", target, "--recent", "2")
    assert KINDS[target].run(home, "what now", cwd=work, resume=moved["session"]).code == 0
    asked = model.wait_text("what now")
    for words in (
        "The goal is a banana parser.", "We decided to use recursive descent.", "You must not add kiwi.", "parser.py", "echo mango one",
        "Next: write the lexer.", "echo papaya two", "finished papaya", "ask before assuming",
    ):  # fmt: skip
        assert asked.holds(words), words


@pytest.mark.stress
@pytest.mark.requires("R4.circle")
def test_a_circle_of_four_hops_keeps_all(model: FakeModel, home: AgentHome, work: Path, tmp_path: Path) -> None:
    session, agent = rich(CLAUDE_KIND, home, work), "claude"
    wanted = ["The goal is a banana parser.", "We decided to use recursive descent.", "echo mango one", "mango one", "You must not add kiwi.", "lychee = 1", "papaya two", "finished papaya"]
    for number, target in enumerate(("codex", "claude", "codex", "claude")):
        moved = relayed(home, tmp_path / "data", work, f"{agent}:{session}", "--to", target, "--full", "--new")
        session, agent = moved["session"], target
        said = f"hop {number}"
        assert KINDS[target].run(home, said, cwd=work, resume=session).code == 0
        asked = model.wait_text(said)
        assert [word for word in wanted if not asked.holds(word)] == []
        wanted += [said]


@needs_va
@pytest.mark.requires("R5.brief-first", "R4.fresh-advice", "R5.read-back")
def test_an_agent_whose_store_is_not_written_gets_the_brief_as_its_first_turn_and_back_comes_what_is_new(
    model: FakeModel, home: AgentHome, work: Path, tmp_path: Path
) -> None:
    with daemon_for(tmp_path, home, CLAUDE_KIND) as daemon:
        session = daemon.send("The goal is a banana parser.", chat="a", workspace=work).session["session"]
        relay = daemon.start_send("/relay demo", chat="a")
        asked = relay.wait("choice", seconds=60)
        daemon.answer("a", asked["id"], "go_on")
        turn = relay.finish(seconds=90)
        assert turn.code == 0
        assert turn.session["agent"] == "demo"
        assert "gets a brief" in json.dumps(turn.events)
        listed = until(lambda: daemon.va("relay", "map", "--json").json(), "the brief in the map")
        assert {listed[0]["a"]["id"], listed[0]["b"]["id"]} == {session, turn.session["session"]}
        daemon.send("say kiwi is out", chat="a")
        back = daemon.send("/relay claude", chat="a", seconds=120)
        assert back.session["session"] == session
        assert model.wait_text("kiwi is out").holds("Record of earlier work")
