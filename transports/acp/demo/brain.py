"""What the demo agent does with a prompt: words in, steps out. Pure; the server and the terminal act on the steps."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

HELP = (
    "I am VibeAround's demo agent, a small program and not a language model. I remember what you say. Try: "
    "recall · run: COMMAND · write: FILE TEXT · slow N · think TEXT · plan · ask three · fail · hang · crash · hand over"
)


@dataclass(frozen=True, slots=True)
class Say:
    """Words, sent one by one with `pause_s` seconds between."""

    text: str
    pause_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Think:
    """A thought, shown as such."""

    text: str


@dataclass(frozen=True, slots=True)
class ShowPlan:
    """A plan of (content, status) entries."""

    entries: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Run:
    """A shell command in the session's directory, after permission."""

    command: str


@dataclass(frozen=True, slots=True)
class Write:
    """A file relative to the session's directory, after permission."""

    path: str
    text: str


@dataclass(frozen=True, slots=True)
class Chunks:
    """`count` numbered pieces as fast as they go."""

    count: int


@dataclass(frozen=True, slots=True)
class Fail:
    """The turn ends with an error of the agent."""

    text: str


@dataclass(frozen=True, slots=True)
class Hang:
    """Nothing more until the turn is cancelled."""


@dataclass(frozen=True, slots=True)
class Crash:
    """The process ends with this code in the middle of the turn."""

    code: int


@dataclass(frozen=True, slots=True)
class HandOver:
    """Call `prepare_handover` of the VibeAround MCP server and say its answer."""


Step = Say | Think | ShowPlan | Run | Write | Chunks | Fail | Hang | Crash | HandOver


def steps(prompt: str, earlier: list[str], *, plan_mode: bool = False) -> Iterator[Step]:
    """What to do for `prompt`, given the user's `earlier` texts. In plan mode tools are named, not run."""
    text = prompt.strip()
    low = text.lower()
    tool = _tool(text)
    if tool is not None:
        if plan_mode:
            yield Say(f"I am in plan mode, so I only say what I would do: {_describe(tool)}.")
        else:
            yield tool
        return
    if re.search(r"\b(hand ?over|handoff)\b|/vibearound handover", low) and len(low) < 120:
        yield HandOver()
    elif re.search(r"\brecall\b|what did i say|我说过什么", low):
        yield Say(_recall(earlier))
    elif found := re.match(r"slow (\d+)", low):
        for second in range(1, min(int(found[1]), 3600) + 1):
            yield Say(f"second {second} of {found[1]}", pause_s=0.25)
        yield Say("done.")
    elif found := re.match(r"chunks (\d+)", low):
        yield Chunks(min(int(found[1]), 1_000_000))
    elif low.startswith("think"):
        yield Think(text[5:].strip(" :") or "I only pretend to think.")
        yield Say("I have thought about it.")
    elif low == "plan" or low.startswith("plan:"):
        yield ShowPlan((("read the request", "completed"), ("say something", "in_progress"), ("stop", "pending")))
        yield Say("That was my plan.")
    elif low == "ask three":
        for number in (1, 2, 3):
            yield Run(f"echo {number}")
        yield Say("I asked three times.")
    elif low.startswith("fail"):
        yield Fail(text[4:].strip(" :") or "the demo agent was told to fail")
    elif low == "hang":
        yield Hang()
    elif found := re.match(r"crash ?(\d*)", low):
        yield Say("I am going to crash now.")
        yield Crash(int(found[1] or 3))
    elif low in ("help", "/help", "?"):
        yield Say(HELP)
    else:
        before = f" I remember {len(earlier)} earlier message{'' if len(earlier) == 1 else 's'} of this conversation."
        yield Say(f'I am the demo agent, not a language model. You said: "{text}".{before if earlier else ""} Say "help" for what I can do.')


def _tool(text: str) -> Run | Write | None:
    if found := re.match(r"run:\s*(.+)", text, re.DOTALL | re.IGNORECASE):
        return Run(found[1].strip())
    if found := re.match(r"write:\s*(\S+)\s*(.*)", text, re.DOTALL | re.IGNORECASE):
        return Write(found[1], found[2] or "written by the demo agent\n")
    return None


def _describe(tool: Run | Write) -> str:
    return f"run `{tool.command}`" if isinstance(tool, Run) else f"write the file {tool.path}"


def _recall(earlier: list[str]) -> str:
    if not earlier:
        return "You have said nothing before this. (I am the demo agent.)"
    return "So far you said:\n" + "\n".join(f"{n}. {text}" for n, text in enumerate(earlier, 1))


def words(text: str) -> list[str]:
    """Pieces that join to `text`, one word each with the white space before it."""
    return re.findall(r"\s*\S+|\s+$", text)
