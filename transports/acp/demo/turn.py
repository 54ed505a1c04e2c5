"""One turn of the demo agent: the steps of the brain, acted out on a stage (the ACP wire, or a terminal)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from transports.acp.demo import brain
from transports.acp.demo.store import DemoSession
from transports.acp.demo.tools import run_command, write_file


class Stage(Protocol):
    """Where a turn plays."""

    def say(self, text: str) -> None:
        """One piece of text."""

    def think(self, text: str) -> None:
        """One thought."""

    def plan(self, entries: tuple[tuple[str, str], ...]) -> None:
        """The plan, whole."""

    def ask(self, title: str, kind: str, text: str) -> str | None:
        """Announce a tool call and ask for permission: the call's id, or None when it is not allowed."""

    def tool_done(self, tool: str, output: str, ok: bool) -> None:
        """The end of a tool call."""

    def cancelled(self) -> bool:
        """Whether the person has stopped the turn."""

    def pause(self, seconds: float) -> None:
        """Wait; returns early when the turn is stopped."""

    def hand_over(self, session: DemoSession) -> str:
        """Ask for a handover code; the text of the answer."""

    def crash(self, code: int) -> None:
        """End the process."""


class TurnFailed(Exception):
    """The demo agent was told to fail."""


def play(session: DemoSession, prompt: str, stage: Stage, *, plan_mode: bool = False) -> str:
    """Run one turn and store it. Returns the stop reason: end_turn or cancelled. Raises TurnFailed."""
    earlier = session.said()
    session.add("user", prompt)
    spoken: list[str] = []

    def say(text: str) -> None:
        spoken.append(text)
        stage.say(text)

    def store() -> None:
        if spoken:
            session.add("assistant", "".join(spoken))
            spoken.clear()

    try:
        for step in brain.steps(prompt, earlier, plan_mode=plan_mode):
            if isinstance(step, brain.Run | brain.Write | brain.Think):
                store()  # the file keeps the order of what happened
            _act(step, session, stage, say)
            if stage.cancelled():
                return "cancelled"
    finally:
        store()
    return "end_turn"


def _act(step: brain.Step, session: DemoSession, stage: Stage, say: Callable[[str], None]) -> None:
    match step:
        case brain.Say(text, pause_s):
            for word in brain.words(text + ("\n" if pause_s else "")):
                if stage.cancelled():
                    return
                say(word)
                if pause_s:
                    stage.pause(pause_s)
        case brain.Think(text):
            stage.think(text)
            session.add("thinking", text)
        case brain.ShowPlan(entries):
            stage.plan(entries)
        case brain.Chunks(count):
            for number in range(count):
                if stage.cancelled():
                    return
                say(f"{number} ")
        case brain.Fail(text):
            raise TurnFailed(text)
        case brain.Hang():
            while not stage.cancelled():
                stage.pause(3600)
        case brain.Crash(code):
            stage.crash(code)
        case brain.HandOver():
            say(stage.hand_over(session))
        case brain.Run() | brain.Write():
            _tool(step, session, stage, say)


def _tool(step: brain.Run | brain.Write, session: DemoSession, stage: Stage, say: Callable[[str], None]) -> None:
    if isinstance(step, brain.Run):
        title, kind, text = f"`{step.command}`", "execute", step.command
        call: dict[str, object] = {"name": "run", "input": {"command": step.command}}
    else:
        title, kind, text = f"Write {step.path}", "edit", step.text
        call = {"name": "write", "input": {"path": step.path, "text": step.text}}
    call["id"] = f"tool-{len(session.records)}"
    tool = stage.ask(title, kind, text)
    if tool is None:
        if not stage.cancelled():
            session.add("tool", f"{title}: not allowed", **call, output="not allowed", error=True)
            say(f"I was not allowed to: {title}. ")
        return
    try:
        if isinstance(step, brain.Run):
            code, output = run_command(step.command, session.cwd, stage.cancelled)
        else:
            code, output = 0, write_file(session.cwd, step.path, step.text)
    except (OSError, ValueError) as error:
        code, output = 1, str(error)
    stage.tool_done(tool, output, code == 0)
    session.add("tool", f"{title}: {output}", **call, output=output, error=code != 0)
    if not stage.cancelled():
        say(f"The tool ended with {code}: {output.strip() or 'no output'} ")
