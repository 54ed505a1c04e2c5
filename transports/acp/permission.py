"""An agent's question whether it may do something, and the choice of an answer by its meaning."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

KINDS = ("allow_once", "allow_always", "reject_once", "reject_always")


@dataclass(frozen=True, slots=True)
class PermissionOption:
    """One way to answer. `kind` is one of `KINDS` or what the agent said; ids mean something to the agent only."""

    id: str
    name: str
    kind: str


@dataclass(frozen=True, slots=True)
class Permission:
    """One `session/request_permission`. `rpc_id` is the agent's own number of the request, answered exactly once."""

    rpc_id: Any
    session: str
    tool: dict[str, Any] = field(default_factory=dict)
    options: tuple[PermissionOption, ...] = ()

    @property
    def title(self) -> str:
        """What the agent wants to do, in its words; "" when it says nothing."""
        title = self.tool.get("title")
        return title if isinstance(title, str) else ""


def parse(rpc_id: Any, params: dict[str, Any]) -> Permission:
    """The request that `params` holds; malformed options are left out (none left = it cannot be answered)."""
    options = []
    for raw in params.get("options") or []:
        if isinstance(raw, dict) and isinstance(raw.get("optionId"), str):
            name, kind = raw.get("name"), raw.get("kind")
            options.append(
                PermissionOption(
                    raw["optionId"],
                    name if isinstance(name, str) and name else raw["optionId"],
                    kind if isinstance(kind, str) else "",
                )
            )
    tool = params.get("toolCall")
    return Permission(rpc_id, str(params.get("sessionId", "")), tool if isinstance(tool, dict) else {}, tuple(options))


def choose(permission: Permission, wanted: str) -> PermissionOption | None:
    """The option with the id `wanted`, else the first of the kind `wanted`; None when there is neither.

    Ids differ between agents and versions ("allow", "allow-once", "proceed_once"), kinds do not.
    """
    for option in permission.options:
        if option.id == wanted:
            return option
    for option in permission.options:
        if option.kind == wanted:
            return option
    return None
