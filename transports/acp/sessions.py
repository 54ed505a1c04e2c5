"""What an agent tells when a session is opened: its id, modes, model and options, whichever dialect it speaks.

Older adapters answer with `modes` and `models`; newer ones (OpenCode, claude-agent-acp 0.49) with `configOptions`,
in which a mode or a model is an option of that category.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class AgentInfo:
    """The answer to `initialize`. `capabilities` is whole, unknown parts included."""

    name: str
    version: str
    capabilities: dict[str, Any]
    auth_methods: tuple[str, ...] = ()
    protocol: int = 1

    def can(self, what: str) -> bool:
        """Whether it claims `load`, `resume`, `fork`, `list`, `close` or `delete`. A claim is no proof."""
        if what == "load":
            return self.capabilities.get("loadSession") is True
        more = self.capabilities.get("sessionCapabilities")
        claimed = more.get(what) if isinstance(more, dict) else None
        return claimed is not None and claimed is not False


def agent_info(result: dict[str, Any]) -> AgentInfo:
    """From the result of `initialize`; what is missing is empty."""
    info, caps = result.get("agentInfo"), result.get("agentCapabilities")
    info = info if isinstance(info, dict) else {}
    methods = result.get("authMethods")
    protocol = result.get("protocolVersion")
    return AgentInfo(
        name=str(info.get("title") or info.get("name") or ""),
        version=str(info.get("version") or ""),
        capabilities=caps if isinstance(caps, dict) else {},
        auth_methods=tuple(str(m.get("id")) for m in methods if isinstance(m, dict)) if isinstance(methods, list) else (),
        protocol=protocol if isinstance(protocol, int) else 1,
    )


@dataclass(frozen=True, slots=True)
class Opened:
    """One opened session. `start` is new, loaded, resumed or forked; `replayed` counts the updates of its history."""

    session: str
    start: str
    modes: tuple[tuple[str, str], ...] = ()
    """(id, name) pairs."""
    mode: str = ""
    mode_option: str = ""
    """The id of the configuration option that holds the mode, where it is one; else ""."""
    model: str = ""
    replayed: int = 0
    raw: dict[str, Any] = field(default_factory=dict)


def opened(result: Any, *, asked: str, start: str, replayed: int) -> Opened:
    """From the result of session/new, load, resume or fork. `asked` is the id that was asked for ("" for new)."""
    raw = result if isinstance(result, dict) else {}
    given = raw.get("sessionId")
    session = given if isinstance(given, str) and given else asked
    modes, mode, option = _modes(raw)
    return Opened(session, start, modes, mode, option, _model(raw), replayed, raw)


def _modes(raw: dict[str, Any]) -> tuple[tuple[tuple[str, str], ...], str, str]:
    state = raw.get("modes")
    if isinstance(state, dict) and isinstance(state.get("availableModes"), list):
        pairs = tuple(
            (str(m["id"]), str(m.get("name") or m["id"]))
            for m in state["availableModes"]
            if isinstance(m, dict) and "id" in m
        )
        return pairs, str(state.get("currentModeId") or ""), ""
    found = option_of(raw.get("configOptions"), "mode")
    if found is None:
        return (), "", ""
    return _choices(found), str(found.get("currentValue") or ""), str(found.get("id"))


def _model(raw: dict[str, Any]) -> str:
    state = raw.get("models")
    if isinstance(state, dict) and state.get("currentModelId"):
        return str(state["currentModelId"])
    found = option_of(raw.get("configOptions"), "model")
    return str(found.get("currentValue") or "") if found else ""


def option_of(options: Any, category: str) -> dict[str, Any] | None:
    """The configuration option of a category (by its `category`, else by its id); None when there is none."""
    if not isinstance(options, list):
        return None
    known = [o for o in options if isinstance(o, dict) and isinstance(o.get("id"), str)]
    for key in ("category", "id"):
        for entry in known:
            if entry.get(key) == category:
                return entry
    return None


def _choices(option: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    pairs: list[tuple[str, str]] = []
    values = option.get("options")
    for entry in values if isinstance(values, list) else []:
        if not isinstance(entry, dict):
            continue
        group = entry.get("options")
        for value in group if isinstance(group, list) else [entry]:
            if isinstance(value, dict) and isinstance(value.get("value"), str):
                pairs.append((value["value"], str(value.get("name") or value["value"])))
    return tuple(pairs)
