"""What a hosted agent's shell may not do, with every process real: refused, told to the people, and nothing has happened; also
from a process that left the shell by a double fork and without any of our marks in its environment."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest

from tests.daemon import VA, Daemon, Event, needs_va
from tests.process.fake_hosted import fake_daemon
from tests.waiting import until

pytestmark = needs_va

# setsid and two forks: its parents have ended before it begins.
_DETACH = """
import os, subprocess, sys, time
if os.fork(): os._exit(0)
os.setsid()
parent = os.getpid()
if os.fork(): os._exit(0)
while os.getppid() == parent: time.sleep(0.01)
out, *words = sys.argv[1:]
env = {n: v for n, v in os.environ.items() if not n.startswith("VIBEAROUND_") or n == "VIBEAROUND_DATA_DIR"}
ran = subprocess.run(words, env=env, capture_output=True, text=True)
with open(out + ".tmp", "w") as f: f.write(f"{ran.returncode}\\n{ran.stdout}{ran.stderr}")
os.rename(out + ".tmp", out)
"""
COMMANDS = {
    "chat answer": ["chat", "answer", "--chat", "a", "{id}", "o-yes"],
    "chat send": ["chat", "send", "--chat", "b", "an agent's own words"],
    "chat stop": ["chat", "stop", "--chat", "b"],
    "pickup": ["pickup", "ABCD"],
    "settings set": ["settings", "set", "hosts.max_live", "99"],
    "settings unset": ["settings", "unset", "hosts.max_live"],
    "down": ["down"],
}


@pytest.fixture
def work(tmp_path: Path) -> Path:
    place = tmp_path.resolve() / "work"
    place.mkdir()
    return place


def script(path: Path, out: Path, words: list[str], how: str) -> str:
    """A shell script that runs `va WORDS` and writes exit code and output to `out`; the prompt that makes the agent run it."""
    line = shlex.join([str(VA), *words])
    if how == "shell":
        path.write_text(f"{line} > said 2>&1\n(echo $?; cat said) > {out}.tmp\nmv {out}.tmp {out}\n")
    else:
        path.write_text(f"{shlex.join([sys.executable, '-c', _DETACH, str(out), str(VA), *words])}\n")
    return f"sh {path}"


def refused(out: Path) -> str:
    until(out.exists, "the command's end", seconds=20)
    code, _, said = out.read_text().partition("\n")
    assert code == "5", (code, said)
    return said


@pytest.mark.requires("M3.agents-refused", "M3.double-fork", "M3.settings-from-an-agent")
@pytest.mark.parametrize("how", ["shell", "double-fork"])
def test_each_command_for_people_alone_is_refused_to_a_hosted_agents_shell_and_told_to_the_people(
    tmp_path: Path, work: Path, how: str
) -> None:
    with fake_daemon(tmp_path) as daemon:
        daemon.send("say hello", chat="a", workspace=work)
        heard = daemon.listen("a")
        asking = daemon.start_send("ask", chat="b", workspace=work)
        permission: Event = asking.wait("permission")
        for number, (name, words) in enumerate(COMMANDS.items()):
            out = tmp_path / f"out-{number}"
            filled = [permission["id"] if word == "{id}" else word for word in words]
            daemon.send(script(tmp_path / f"do-{number}.sh", out, filled, how), chat="a")
            assert "agent" in refused(out), name
        for what in ("answer a permission", "write to a chat", "stop a turn", "pick up", "change the settings", "stop VibeAround"):
            heard.wait("notice", lambda e, what=what: f"An agent tried to {what}" in e["text"])
        assert "an agent was refused" in daemon.errors()
        assert not [e for e in asking.events if e["event"] in ("permission_done", "done")]
        assert "99" not in daemon.va("settings", "get", "hosts.max_live").out
        daemon.answer("b", permission["id"], "o-no")
        assert asking.finish().text == "answered o-no"
        assert [t["prompt"] for t in turns(daemon, "b")] == ["ask"]


def turns(daemon: Daemon, chat: str) -> list[dict[str, str]]:
    threads = daemon.va("threads", "list", "--json").json()
    (thread,) = [t["id"] for t in threads if f"cli:local:{chat}" in t["routes"]]
    return list(daemon.va("threads", "show", thread, "--json").json()["turns"])


@pytest.mark.requires("M3.settings-from-an-agent")
@pytest.mark.parametrize("how", ["shell", "double-fork"])
def test_without_a_supervisor_the_command_line_itself_refuses_settings_below_a_host(tmp_path: Path, work: Path, how: str) -> None:
    with fake_daemon(tmp_path) as daemon:
        gate, out = tmp_path / "gate", tmp_path / "out"
        prompt = script(tmp_path / "do.sh", out, COMMANDS["settings set"], how)
        text = (tmp_path / "do.sh").read_text()
        (tmp_path / "do.sh").write_text(f"touch {gate}.open\nwhile [ ! -f {gate} ]; do sleep 0.05; done\n{text}")
        daemon.start_send(prompt, chat="a", workspace=work)
        until(gate.with_suffix(".open").exists, "the script's start")
        daemon.kill()
        gate.write_text("go\n")
        assert "may not change the settings" in refused(out)
        # A person may, with and without a supervisor.
        daemon.va("settings", "set", "hosts.max_live", "7")
        daemon.start()
        daemon.va("settings", "set", "hosts.max_live", "6")
        assert "6" in daemon.va("settings", "get", "hosts.max_live").out
