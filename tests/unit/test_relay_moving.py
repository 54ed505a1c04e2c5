"""A relay from the source's store to the target's: written, remembered, and back only with what is new."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import uuid
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from agents_registry.errors import AgentError, NotFoundError, RefusedError
from agents_registry.relay import FileState, Options, RelayMap, compare, look, wording
from agents_registry.relay.moving import Prepared, deliver, given, prepare
from agents_registry.sessions import catalog
from agents_registry.sessions.claude_write import ClaudeWriter
from agents_registry.sessions.codex_write import CodexWriter, new_thread_id
from agents_registry.sessions.demo import DemoSessionFile, root_of
from agents_registry.sessions.neutral import Builder
from agents_registry.sessions.port import SessionInfo
from transports.carrying import carry_options
from transports.cli.relay import relay

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def env(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("VIBEAROUND_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("PATH", str(tmp_path / "no-programs"))
    (tmp_path / "data").mkdir(mode=0o700)
    (tmp_path / "work").mkdir()
    return {"HOME": str(tmp_path)}


@pytest.fixture
def source(env: dict[str, str], tmp_path: Path) -> SessionInfo:
    made = Builder("claude", "x")
    made.cwd = str(tmp_path / "work")
    made.user("Build a banana parser.")
    made.call("w", "Write", {"file_path": str(tmp_path / "work" / "a.py"), "content": "one\n"})
    made.result("w", "ok")
    for number in range(6):
        made.user(f"request {number}")
        made.text(f"answer {number}")
    (tmp_path / "work" / "a.py").write_text("one\n")
    return ClaudeWriter().write(made.done(), tmp_path / ".claude", session_id=str(uuid.uuid4()), env=env).info


def links(tmp_path: Path) -> RelayMap:
    return RelayMap(tmp_path / "data" / "sessions.db")


def codex_says(info: SessionInfo, *texts: str) -> None:
    """Append a round as Codex does."""
    with info.path.open("a") as file:
        for role, kind, text in zip(("user", "assistant"), ("input_text", "output_text"), texts, strict=True):
            message = {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}
            event = {"type": "user_message" if role == "user" else "agent_message", "message": text}
            for what, payload in (("response_item", message), ("event_msg", event)):
                file.write(json.dumps({"timestamp": "2027-01-01T00:00:00.000Z", "type": what, "payload": payload}) + "\n")


@pytest.mark.requires("R6.drift", "R6.back", "R5.sources-kept")
def test_a_relay_writes_a_session_and_the_way_back_brings_only_what_is_new_and_names_changed_files(
    env: dict[str, str], source: SessionInfo, tmp_path: Path
) -> None:
    before = source.path.read_bytes()
    with links(tmp_path) as known:
        there = deliver(prepare(source, "codex", Options(), env, known), "", env, known)
        assert there.way == "native"
        assert there.session is not None
        with pytest.raises(RefusedError) as caught:
            prepare(there.session, "claude", Options(), env, known)
        assert caught.value.code == "nothing_new"
        codex_says(there.session, "a new request for cherries", "cherries are done")
        (tmp_path / "work" / "a.py").write_text("two\n")
        back = prepare(there.session, "claude", Options(), env, known)
        assert back.way() == "resume"
        text = deliver(back, "", env, known).text
        assert "a new request for cherries" in text
        assert "cherries are done" in text
        assert "banana" not in text
        assert f"- `{tmp_path}/work/a.py`: changed" in text
        assert prepare(there.session, "claude", Options(), env, known, new=True).way() == "native"
    assert source.path.read_bytes() == before


@pytest.mark.requires("R5.proven")
def test_a_session_that_the_target_does_not_load_is_removed_and_the_text_given_with_the_reason(
    env: dict[str, str], source: SessionInfo, tmp_path: Path
) -> None:
    with links(tmp_path) as known:
        prepared = prepare(source, "codex", Options(), env, known)
        moved = deliver(prepared, "", env, known, prove=lambda agent, session, cwd: "it was refused")
        assert (moved.way, moved.session) == ("brief", None)
        assert "it was refused" in moved.notes[0]
        assert "Build a banana parser." in moved.text
        assert list((tmp_path / ".codex").rglob("*.jsonl")) == []
        assert known.links() == []


def test_a_session_whose_loading_cannot_be_tried_stays_and_the_user_is_told(env: dict[str, str], source: SessionInfo) -> None:
    def prove(agent: str, session: str, cwd: str) -> str:
        raise AgentError("codex-acp was not found.")

    moved = deliver(prepare(source, "codex", Options(), env), "", env, prove=prove)
    assert moved.session is not None
    assert moved.session.path.exists()
    assert "was not tried: codex-acp was not found." in moved.notes[0]


def test_an_old_codex_gets_the_form_that_it_reads(env: dict[str, str], source: SessionInfo) -> None:
    for version, paginated in (("0.137.0", False), ("0.171.2", True)):
        moved = deliver(prepare(source, "codex", Options(), env), "", env, version=version)
        assert moved.session is not None
        assert ("paginated" in moved.session.path.read_text().splitlines()[0]) is paginated


@pytest.mark.requires("R6.cwd-gone")
def test_a_directory_that_is_gone_is_named_and_another_can_be_given(env: dict[str, str], source: SessionInfo, tmp_path: Path) -> None:
    (tmp_path / "work" / "a.py").unlink()
    (tmp_path / "work").rmdir()
    with pytest.raises(NotFoundError) as caught:
        prepare(source, "codex", Options(), env)
    assert (caught.value.code, str(tmp_path / "work") in caught.value.message) == ("cwd_gone", True)
    assert not (tmp_path / "work").exists()
    prepared: Prepared = prepare(source, "codex", Options(cwd=str(tmp_path)), env)
    assert prepared.cwd == str(tmp_path)


def test_an_agent_whose_store_is_not_written_gets_the_text_and_native_is_refused(env: dict[str, str], source: SessionInfo) -> None:
    prepared = prepare(source, "gemini", Options(), env)
    assert prepared.way() == "brief"
    with pytest.raises(RefusedError) as caught:
        prepared.way("native")
    assert caught.value.code == "not_writable"


def test_a_link_to_a_session_that_is_gone_is_forgotten(env: dict[str, str], source: SessionInfo, tmp_path: Path) -> None:
    with links(tmp_path) as known:
        there = deliver(prepare(source, "codex", Options(), env, known), "", env, known)
        assert there.session is not None
        there.session.path.unlink()
        assert prepare(source, "codex", Options(), env, known).way() == "native"
        assert known.links() == []


def test_looking_at_files_never_hangs_and_tells_what_became_of_each(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "a").write_text("a")
    states = {one.path: one.mark for one in look([str(tmp_path / name) for name in ("a", "pipe", "none", ".")])}
    assert states[str(tmp_path / "a")] == hashlib.sha256(b"a").hexdigest()
    assert states[str(tmp_path / "none")] == "missing"
    assert not FileState("p", states[str(tmp_path / "pipe")]).hashed
    (tmp_path / "a").unlink()
    (tmp_path / "none").write_text("now")
    assert {(Path(one.path).name, one.what) for one in compare(states)} == {("a", "missing"), ("none", "new since")}


def run(*words: str) -> Result:
    return CliRunner().invoke(relay, list(words), catch_exceptions=True)


def test_a_dry_run_shows_what_would_go_and_changes_nothing(env: dict[str, str], source: SessionInfo, tmp_path: Path) -> None:
    before = sorted(tmp_path.rglob("*"))
    told = json.loads(run(f"claude:{source.id}", "--to", "codex", "--dry-run", "--json").stdout)
    assert (told["way"], told["user_turns"], told["recent"], told["cwd"]) == ("native", 7, 6, str(tmp_path / "work"))
    assert 0 < told["tokens"] <= told["budget"] == 16_000
    assert "Build a banana parser." in run(str(source.path), "--to", "codex", "--dry-run").stdout
    assert sorted(tmp_path.rglob("*")) == before


def test_a_brief_goes_to_a_file_that_is_never_overwritten(env: dict[str, str], source: SessionInfo, tmp_path: Path) -> None:
    out = tmp_path / "brief.md"
    done = run(f"claude:{source.id}", "--to", "kimi", "--out", str(out))
    assert (done.exit_code, done.stdout) == (0, "")
    assert "Build a banana parser." in out.read_text()
    assert out.stat().st_mode & 0o777 == 0o600
    assert isinstance(run(f"claude:{source.id}", "--to", "kimi", "--out", str(out)).exception, RefusedError)


@pytest.mark.requires("R4.fresh-advice")
def test_secrets_left_in_are_asked_about_and_short_sessions_need_force(env: dict[str, str], source: SessionInfo, tmp_path: Path) -> None:
    asked = run(f"claude:{source.id}", "--to", "codex", "--no-redact")
    assert isinstance(asked.exception, RefusedError)
    assert asked.exception.code == "unasked"
    made = DemoSessionFile.create(root_of(os.environ), "demo-one", str(tmp_path / "work"), at=1000.0)
    made.append("user", "only one", at=1000.0)
    short = run("demo:demo-one", "--to", "codex")
    assert isinstance(short.exception, RefusedError)
    assert short.exception.code == "not_worth"
    assert run("demo:demo-one", "--to", "codex", "--brief", "--force").exit_code == 0
    assert run("demo:demo-one", "--to", "codex", "--force", "--print-cwd").stdout == f"{tmp_path}/work\n"


@pytest.mark.requires("R6.library")
def test_the_example_of_the_library_runs_as_documented(env: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = DemoSessionFile.create(root_of(os.environ), "demo-one", str(tmp_path), at=1000.0)
    made.append("user", "Build a kiwi press.", at=1000.0)
    example = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "relay.md").read_text("utf-8"), re.DOTALL)
    exec(example[0], {})
    assert "Build a kiwi press." in capsys.readouterr().out
    assert catalog.writer("codex") is not None


@pytest.mark.requires("R4.settings")
def test_the_settings_say_how_much_is_carried_and_which_words_mark_a_decision(tmp_path: Path) -> None:
    usual = carry_options("codex", tmp_path, {})
    assert usual.decision_words == wording.DECISIONS
    assert (usual.recent, usual.budget) == (6, 16_000)
    (tmp_path / "settings.toml").write_text('[relay]\nrecent_turns = 2\nwindow_share = 0.01\ndecision_words_en = ["settled"]\n')
    set_so = carry_options("codex", tmp_path, {})
    assert (set_so.recent, set_so.budget) == (2, 2584)
    assert set_so.decision_words is not None
    assert set_so.decision_words["en"] == ("settled",)
    named = carry_options("codex", tmp_path, {}, recent=0, budget=900, full=True)
    assert (named.recent, named.budget, named.full) == (0, 900, True)


@pytest.mark.requires("R6.reader-process")
def test_the_supervisor_itself_loads_nothing_that_reads_sessions_or_makes_a_brief() -> None:
    loads = "import sys, actors.supervisor, actors.routes, actors.attach; print([m for m in sys.modules if m.startswith(('agents_registry.relay', 'agents_registry.sessions'))])"
    done = subprocess.run([sys.executable, "-c", loads], cwd=ROOT, capture_output=True, text=True, check=True, timeout=30)
    assert done.stdout.strip() == "[]"


@pytest.mark.requires("R5.read-back")
def test_a_text_counts_as_given_only_when_the_targets_own_store_holds_all_of_it(env: dict[str, str], source: SessionInfo, tmp_path: Path) -> None:
    prepared = prepare(source, "codex", Options(), env)
    text = prepared.carried.as_text()

    def said(words: str) -> SessionInfo:
        made = Builder("codex", "x")
        made.cwd = str(tmp_path / "work")
        made.user(words)
        made.text("understood")
        return CodexWriter().write(made.done(), tmp_path / ".codex", session_id=new_thread_id(1.0), env=env).info

    whole = len("".join(text.split()))
    with links(tmp_path) as known:
        kept = given(prepared, text, said(text[: len(text) // 2]), known)
        assert 0 < kept < whole
        assert known.links() == []
        there = said(text)
        assert given(prepared, text, there, known) == whole
        assert known.links()[0].cwd == str(tmp_path / "work")
        with pytest.raises(RefusedError, match="Nothing is new"):
            prepare(source, "codex", Options(), env, known)


@pytest.mark.requires("R5.launch-file")
def test_a_terminal_gets_the_text_as_a_private_file_that_is_gone_afterwards(env: dict[str, str], source: SessionInfo, tmp_path: Path) -> None:
    programs, seen = tmp_path / "programs", tmp_path / "seen.json"
    programs.mkdir()
    script = programs / "gemini"
    script.write_text(
        f"#!{sys.executable}\nimport json, os, re, sys\npath = re.search(r'/\\S+relay-\\S+[.]md', sys.argv[-1]).group()\n"
        f"json.dump([sys.argv[1:], oct(os.stat(path).st_mode), open(path).read(), path], open({str(seen)!r}, 'w'))\nsys.exit(7)\n"
    )
    script.chmod(0o755)
    command = [sys.executable, "-m", "transports.cli.main", "relay", f"claude:{source.id}", "--to", "gemini", "--launch"]
    path = f"{programs}{os.pathsep}/usr/bin{os.pathsep}/bin"
    done = subprocess.run(
        command, cwd=ROOT, env={**env, "PATH": path, "VIBEAROUND_DATA_DIR": str(tmp_path / "data")}, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 7, done.stderr
    argv, mode, text, path = json.loads(seen.read_text())
    assert argv[0] == "-i"
    assert len(argv[1]) < 400
    assert mode.endswith("600")
    assert "Build a banana parser." in text
    assert not Path(path).exists()
