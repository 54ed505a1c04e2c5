"""What the fake model answers: pure rules, no sockets, no clock.

The last real user text of a request decides. Without a knob the answer is `ECHO#n: text`, where n counts the user texts
that the request holds, so an answer of `ECHO#3` proves that two earlier ones came along. Knobs stand anywhere in the text:

    SAY{text}               answer exactly this
    RECALL{}                answer with every user text of the request, as one JSON list
    THINK{text}             a thinking block first
    SLOW{n|delay}           stream n pieces "slow-0 slow-1 ...", delay seconds apart (default 20 pieces, 0.2 s)
    GATE{name}              stop in mid-text until the test releases `name` (see fake_model.py), then finish
    HANG{}                  say what is to be said, then never end the answer
    ERR{status}             answer with this HTTP status;  ERR{status|times}: only the first `times` requests of this text
    SHELL{cmd}              ask for the agent's own shell tool, so that the agent asks its user (Codex: escalated)
    RUN{cmd}                the same, without escalation
    WRITE{path|content}     ask for the agent's own write-file tool
    MCP{suffix|json}        call the first tool whose name ends with suffix
    TOOL{name|json}         call exactly this tool

Several tool knobs in one text are several calls in one answer. ` THEN ` parts a text into steps: the first step is
answered first, and each round of tool results brings the next step. When the steps are used up, a tool result is
answered with `TOOL-RESULT#n: text`, n counting the results of the last round.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.fakes.model_views import History, ToolName, Tools

_TOOL_KNOBS = ("SHELL", "RUN", "WRITE", "MCP", "TOOL")
_KNOB = re.compile(r"\b(SAY|RECALL|THINK|SLOW|GATE|HANG|ERR|SHELL|RUN|WRITE|MCP|TOOL)\{")
_STEP = " THEN "
_SHELLS = (
    "Bash",
    "exec_command",
    "run_shell_command",
    "shell_command",
    "bash",
    "shell",
    "local_shell",
    "Shell",
    "execute",
)
_WRITERS = ("Write", "write_file", "write", "WriteFile", "create_file")
_MCP_SEPARATORS = ("__", "_", "-", ".", "/", ":")


@dataclass(frozen=True, slots=True)
class Call:
    """One tool call of an answer. `arguments` is an object; `namespace` is Codex's group of an MCP tool."""

    name: str
    arguments: Mapping[str, Any]
    namespace: str = ""


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer. `pieces` joined give its text; `delay` seconds lie between two; `gate` stops after the first half."""

    pieces: tuple[str, ...] = ()
    thinking: str = ""
    calls: tuple[Call, ...] = ()
    delay: float = 0.0
    gate: str = ""
    hang: bool = False
    status: int = 200

    @property
    def text(self) -> str:
        return "".join(self.pieces)


@dataclass(slots=True)
class Rules:
    """The state that rules need across requests: how often each failing text was already refused."""

    refused: dict[str, int] = field(default_factory=dict)

    def reply(self, history: History, tools: Tools, *, schema: Mapping[str, Any] | None = None) -> Reply:
        """The answer to one request. A request for an object of `schema` is a helper's (titles): an object that fits."""
        if schema is not None:
            return said(json.dumps(fitting(schema)))
        if not tools:
            return said(f"Title of {history.last_user[:40]}")
        steps = history.last_user.split(_STEP)
        if history.rounds and history.rounds >= len(steps):
            results = history.last_results
            return said(f"TOOL-RESULT#{len(results)}: " + " | ".join(text[:1500] for text in results))
        return self._step(steps[min(history.rounds, len(steps) - 1)], history, tools)

    def _step(self, text: str, history: History, tools: Tools) -> Reply:
        knobs = knobs_of(text)
        named = dict(knobs)
        if "ERR" in named:
            status, _, times = named["ERR"].partition("|")
            done = self.refused.get(history.last_user, 0)
            if not times or done < int(times):
                self.refused[history.last_user] = done + 1
                return Reply(status=int(status))
        calls: list[Call] = []
        missing: list[str] = []
        for word, value in knobs:
            if word in _TOOL_KNOBS:
                call = _call(word, value, tools)
                if call is None:
                    missing.append(f"NO-TOOL for {word}{{{value}}} in {[name.full for name in tools]}")
                else:
                    calls.append(call)
        delay = 0.0
        if missing:
            pieces: tuple[str, ...] = _cut("\n".join(missing))
        elif "SLOW" in named:
            count, _, wait = named["SLOW"].partition("|")
            delay = float(wait or 0.2)
            pieces = tuple(f"slow-{number} " for number in range(int(count or 20)))
        elif "SAY" in named:
            pieces = _cut(named["SAY"])
        elif "RECALL" in named:
            pieces = _cut("RECALL " + json.dumps(list(history.users), ensure_ascii=False))
        elif calls:
            pieces = ("I will use a tool.",)
        else:
            pieces = _cut(f"ECHO#{len(history.users)}: {text[-2000:]}")
        return Reply(
            pieces=pieces,
            thinking=named.get("THINK", ""),
            calls=tuple(calls),
            delay=delay,
            gate=named.get("GATE", ""),
            hang="HANG" in named,
        )


def said(text: str) -> Reply:
    """An answer of text alone."""
    return Reply(pieces=_cut(text))


def knobs_of(text: str) -> list[tuple[str, str]]:
    """(word, value) of each knob, in order; braces inside a value are balanced. An unclosed knob is none."""
    found: list[tuple[str, str]] = []
    position = 0
    while match := _KNOB.search(text, position):
        depth, end = 1, match.end()
        while end < len(text) and depth:
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
        if depth:
            position = match.end()
            continue
        found.append((match.group(1), text[match.end() : end - 1]))
        position = end
    return found


def fitting(schema: Mapping[str, Any]) -> Any:
    """A small value that fits a JSON schema's types and required fields."""
    if schema.get("enum"):
        return schema["enum"][0]
    kind = schema.get("type", "object" if "properties" in schema else "string")
    if isinstance(kind, list):
        kind = kind[0]
    kind = str(kind).lower()
    if kind == "object":
        return {name: fitting(part) for name, part in (schema.get("properties") or {}).items()}
    return {"integer": 1, "number": 1, "boolean": False, "array": [], "null": None}.get(kind, "fake")


def _cut(text: str) -> tuple[str, ...]:
    """Three pieces, so that streaming is seen."""
    size = max(1, (len(text) + 2) // 3)
    return tuple(text[start : start + size] for start in range(0, len(text), size))


def _call(word: str, value: str, tools: Tools) -> Call | None:
    if word in ("SHELL", "RUN"):
        return _shell(value, tools, escalated=word == "SHELL")
    if word == "WRITE":
        path, _, content = value.partition("|")
        name = _first(tools, _WRITERS)
        if name is None:
            quoted = path.replace("'", "'\\''")
            return _shell(f"cat > '{quoted}' <<'FAKE_END'\n{content}\nFAKE_END", tools, escalated=True)
        return Call(name.name, _filled(tools[name], path=path, content=content))
    suffix, _, arguments = value.partition("|")
    for name in tools:
        if name.full == suffix or name.name == suffix or (word == "MCP" and _ends(name, suffix)):
            return Call(name.name, json.loads(arguments or "{}"), name.namespace)
    return None


def _ends(name: ToolName, suffix: str) -> bool:
    return any(name.full.endswith(separator + suffix) for separator in _MCP_SEPARATORS)


def _shell(command: str, tools: Tools, *, escalated: bool) -> Call | None:
    name = _first(tools, _SHELLS)
    if name is None:
        return None
    arguments = _filled(tools[name], command=command)
    if escalated and "sandbox_permissions" in (tools[name].get("properties") or {}):
        arguments |= {"sandbox_permissions": "require_escalated", "justification": "the fake model wants it"}
    return Call(name.name, arguments)


def _first(tools: Tools, wanted: Sequence[str]) -> ToolName | None:
    for one in wanted:
        for name in tools:
            if name.name == one and not name.namespace:
                return name
    return None


def _filled(
    schema: Mapping[str, Any], *, command: str | None = None, path: str | None = None, content: str | None = None
) -> dict[str, Any]:
    """Arguments for a tool by the names that its schema uses; other required fields get a value that fits."""
    properties: Mapping[str, Any] = schema.get("properties") or {}
    arguments: dict[str, Any] = {}
    for name, part in properties.items():
        plain = name.lower().replace("_", "")
        if command is not None and plain in ("command", "cmd", "script"):
            arguments[name] = ["bash", "-lc", command] if (part or {}).get("type") == "array" else command
        elif path is not None and plain in ("path", "filepath", "filename", "absolutepath"):
            arguments[name] = path
        elif content is not None and plain in ("content", "contents", "text", "filetext"):
            arguments[name] = content
    for name in schema.get("required") or ():
        if name not in arguments:
            arguments[name] = fitting(properties.get(name) or {})
    return arguments
