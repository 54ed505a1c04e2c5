"""The workspace registry: directories that agents work in. Records only; their content is never touched.

Compared by real path, shown in the spelling they came with. The only directories that are ever created are the
default workspace and its `im/<channel>`, by the reader process.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from actors.mailbox import Clock, Continue, Mailbox
from agents_registry.errors import NotFoundError, UsageError, from_wire
from transports.bus.api import Bus, Delivery
from transports.bus.vocabulary.conversation import Failed, Ok
from transports.bus.vocabulary.lists import AddWorkspace, ChangeWorkspace, FindWorkspace, ListWorkspaces
from transports.bus.vocabulary.storage import Load, Read, Record
from transports.bus.vocabulary.threads import DefaultWorkspace

GENERAL = "general"


class Workspaces(Mailbox):
    """`default`: the default workspace's directory, absolute."""

    def __init__(self, bus: Bus, clock: Clock, default: Path, new_id: Callable[[str], str]) -> None:
        super().__init__("workspaces", bus, clock)
        self._default = default
        self._new_id = new_id
        self._defaults: dict[str, dict[str, Any]] = {}

    def handle(self, delivery: Delivery) -> None:
        message = delivery.message
        if isinstance(message, ListWorkspaces):
            self.ask("history", Load("workspaces", [message.archived]), lambda a: self.reply(delivery, _listed(a)))
        elif isinstance(message, AddWorkspace):
            self._add(delivery, message)
        elif isinstance(message, ChangeWorkspace):
            self._change(delivery, message)
        elif isinstance(message, FindWorkspace):
            self._find(delivery, message.wanted)
        elif isinstance(message, DefaultWorkspace):
            self._default_of(delivery, message.channel)
        else:
            raise UsageError("the workspaces do not know this message.", code="unknown_message")

    def _add(self, delivery: Delivery, request: AddWorkspace) -> None:
        def seen(answer: Any) -> None:
            if isinstance(answer, Failed):
                self.reply(delivery, answer)
                return
            if not answer.data["exists"]:
                gone = NotFoundError(
                    f"The directory {request.cwd} does not exist.", hint="Create it first; vibearound makes no directories.",
                    code="no_directory",
                )
                self.fail(delivery, gone)
                return
            self._register(request.cwd, answer.data["real"], request.name, lambda a: self.reply(delivery, a))

        self.ask("reader", Read("check_cwd", {"cwd": request.cwd}), seen, limit_s=20.0)

    def _register(self, cwd: str, real: str, name: str, then: Continue, *, general: bool = False) -> None:
        shown = name or Path(real).name or "Workspace"
        wid = GENERAL if general else self._new_id("ws")

        def added(answer: Any) -> None:
            if isinstance(answer, Failed):
                then(answer)
                return
            known_id, known = answer.results[0]
            then(Ok({"id": known_id, "name": shown, "cwd": cwd, "real": real, "known": bool(known)}))

        self.ask("journal", Record([["workspace_add", wid, cwd, real, shown, general, self.clock.now()]]), added)

    def _change(self, delivery: Delivery, request: ChangeWorkspace) -> None:
        def found(answer: Any) -> None:
            if isinstance(answer, Failed):
                self.reply(delivery, answer)
                return
            wid = answer.data["id"]
            change = ["workspace_change", wid, request.action, request.name, self.clock.now()]
            done = Ok({**answer.data, "action": request.action})
            self._defaults.clear()
            self.ask("journal", Record([change]), lambda a: self.reply(delivery, a if isinstance(a, Failed) else done))

        self._lookup(request.id, found, archived=request.action == "restore")

    def _find(self, delivery: Delivery, wanted: str) -> None:
        self._lookup(wanted, lambda answer: self._found(delivery, wanted, answer))

    def _found(self, delivery: Delivery, wanted: str, answer: Any) -> None:
        if isinstance(answer, Failed) and ("/" in wanted or wanted.startswith("~")):
            self._add(delivery, AddWorkspace(str(Path(wanted).expanduser())))
            return
        self.reply(delivery, answer)

    def _lookup(self, wanted: str, then: Continue, *, archived: bool = False) -> None:
        def listed(answer: Any) -> None:
            if isinstance(answer, Failed):
                then(answer)
                return
            rows = answer.data["workspaces"]
            try:
                row = select_workspace(rows, wanted)
            except (NotFoundError, UsageError) as error:
                then(Failed(error.to_wire()))
                return
            then(Ok({"id": row["id"], "name": row["name"], "cwd": row["cwd"], "real": row["real"]}))

        self.ask("history", Load("workspaces", [archived]), listed)

    def _default_of(self, delivery: Delivery, channel: str) -> None:
        known = self._defaults.get(channel)
        if known is not None:
            self.reply(delivery, Ok(known))
            return
        local = channel in ("cli", "web")
        directory = self._default if local else self._default / "im" / channel.replace("/", "_").replace("\\", "_")

        def made(answer: Any) -> None:
            if isinstance(answer, Failed):
                self.reply(delivery, answer)
                return
            name = "General" if local else channel
            self._register(str(directory), answer.data["real"], name, registered, general=local)

        def registered(answer: Any) -> None:
            if isinstance(answer, Ok):
                self._defaults[channel] = dict(answer.data)
            self.reply(delivery, answer)

        self.ask("reader", Read("make_default", {"cwd": str(directory)}), made, limit_s=20.0)


def select_workspace(rows: list[dict[str, Any]], wanted: str) -> dict[str, Any]:
    """By id, path, name, or unique prefix of id or name. Raises NotFoundError or UsageError (ambiguous)."""
    wanted = wanted.strip()
    for name in ("id", "cwd", "real", "name"):
        exact = [r for r in rows if r[name] == wanted]
        if len(exact) == 1:
            return exact[0]
    low = wanted.casefold()
    near = [
        r for r in rows
        if r["id"].startswith(wanted) or r["id"].removeprefix("ws_").startswith(wanted) or r["name"].casefold().startswith(low)
    ]
    if len(near) == 1:
        return near[0]
    if near:
        names = ", ".join(f"{r['id'][:11]} ({r['name']})" for r in near[:6])
        raise UsageError(f"{wanted!r} may mean several workspaces: {names}.", hint="Give more of the id.")
    raise NotFoundError(f"There is no workspace {wanted!r}.", hint="See /workspace, or give a directory's path.")


def _listed(answer: Any) -> Any:
    if isinstance(answer, Failed):
        return Failed(from_wire(answer.error).to_wire())
    rows = [
        {"id": r["id"], "name": r["name"], "cwd": r["cwd"], "general": bool(r["general"]), "archived": bool(r["archived"]),
         "threads": r["open"]}
        for r in answer.data["workspaces"]
    ]
    return Ok({"workspaces": rows})
