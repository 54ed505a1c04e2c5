"""Lists and control, at the addresses `catalog`, `workspaces` and `supervisor`."""

from __future__ import annotations

from transports.bus.codec import message


@message("get_status")
class GetStatus:
    """Address `catalog`. Answered with Ok: the object of `va status --json`."""


@message("list_threads")
class ListThreads:
    """Address `catalog`. Answered with Ok {threads[]}: objects of `va threads list --json`."""

    limit: int = 100
    all: bool = False


@message("show_thread")
class ShowThread:
    """Address `catalog`; `id` may be a unique prefix. Answered with Ok: the object of `va threads show --json`."""

    id: str


@message("list_workspaces")
class ListWorkspaces:
    """Address `workspaces`. Answered with Ok {workspaces[{id, name, cwd, general, archived, threads}]}."""

    archived: bool = False


@message("add_workspace")
class AddWorkspace:
    """Address `workspaces`. The directory must exist. Answered with Ok {id, name, cwd, known}."""

    cwd: str
    name: str = ""
    create: bool = False
    """Only the supervisor's own default workspaces are ever created."""


@message("change_workspace")
class ChangeWorkspace:
    """Address `workspaces`. `action`: archive, restore or rename. Answered with Ok or Failed."""

    id: str
    action: str
    name: str = ""


@message("find_workspace")
class FindWorkspace:
    """Address `workspaces`. By id, name, unique prefix or path. Answered with Ok {id, name, cwd} or Failed."""

    wanted: str


@message("shutdown")
class Shutdown:
    """Address `supervisor` (`va down`): hosts stop, then everything. Answered with Ok before it begins."""

    reason: str = ""


@message("end_session_host")
class EndSessionHost:
    """Address `attacher`: the session goes on in this process, for `va launch --resume`: its host ends and its thread is
    away until the process ends. Answered with Ok {ended}, or Failed (a turn runs and does not end)."""

    agent: str
    session: str
    pid: int = 0
    start_time: int = 0


@message("may_change")
class MayChange:
    """Address `supervisor`: may this process change `what` (settings), which lies in a file and not with an actor? Answered
    with Ok, or refused and reported like anything that an agent may not."""

    what: str
