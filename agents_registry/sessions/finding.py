"""Which of a store's sessions a word of the user may mean: one order of preference for every store."""

from __future__ import annotations

from collections.abc import Iterable

from agents_registry.sessions.places import same_place
from agents_registry.sessions.port import SessionInfo

MIN_PREFIX = 4
"""Characters that an abbreviated id needs at least."""


def find(infos: Iterable[SessionInfo], wanted: str, *, cwd: str | None = None) -> list[SessionInfo]:
    """Sessions meant by `wanted`: an exact id alone, else an alias, else a prefix of the id, else the native title.

    Sub-agents' transcripts are found by their whole id only. Where several match, those of `cwd` come alone if there
    are any: a directory helps to choose among equals and never hides the only match.
    """
    wanted = wanted.strip()
    if not wanted:
        return []
    aliases: list[SessionInfo] = []
    prefixes: list[SessionInfo] = []
    titles: list[SessionInfo] = []
    lowered = wanted.casefold()
    exact: list[SessionInfo] = []
    for info in infos:
        name = info.id.casefold()
        if name == lowered:
            exact.append(info)
        elif info.parent_id:
            continue
        elif wanted in info.aliases:
            aliases.append(info)
        elif len(wanted) >= MIN_PREFIX and name.startswith(lowered):
            prefixes.append(info)
        elif info.title and info.title.casefold() == lowered:
            titles.append(info)
    for found in (exact, aliases, prefixes, titles):
        if found:
            here = [info for info in found if cwd and same_place(info.cwd, cwd)]
            return here or found
    return []
