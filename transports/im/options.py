"""The options that every chat platform has besides its own, and how given options become whole ones. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import TYPE_CHECKING

from agents_registry.errors import UsageError

if TYPE_CHECKING:
    from transports.im.platform import Option, Platform

_CHOICES = {"show": ("quiet", "normal", "full"), "language": ("auto", "en", "zh"), "groups": ("mention", "all")}


def common() -> tuple[Option, ...]:
    """`groups`: mention (default) or all; `show`: how much of tools and thoughts; `language` of the kit's own words."""
    from transports.im.platform import Option

    return (
        Option("groups", "in groups, answer only to a mention, reply or command (mention), or to everything (all)", default="mention"),
        Option("show", "quiet: the answer alone; normal: tools folded; full: thoughts too", default="normal"),
        Option("language", "of our own words: auto, en or zh", default="auto"),
    )


def all_options(platform: Platform) -> tuple[Option, ...]:
    """The platform's own options, then the common ones that it does not name itself."""
    own = platform.options
    names = {option.name for option in own}
    return (*own, *(option for option in common() if option.name not in names)) if platform.surface is not None else own


def whole(platform: Platform, given: Mapping[str, str]) -> dict[str, str]:
    """All options with their values, defaults filled in. Raises UsageError for an unknown, missing or wrong one."""
    known = {option.name: option for option in all_options(platform)}
    for name in given:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            meant = f"Did you mean {near[0]}? " if near else ""
            raise UsageError(f"{platform.title} has no option {name[:40]!r}.", hint=f"{meant}Options: {', '.join(known) or 'none'}.")
    missing = [option.name for option in known.values() if option.required and not given.get(option.name)]
    if missing:
        raise UsageError(f"{platform.title} needs the option {missing[0]}.", hint=f"Give it: --set {missing[0]}=… ({known[missing[0]].help}).")
    values = {name: str(given.get(name) or option.default) for name, option in known.items()}
    for name, allowed in _CHOICES.items():
        if platform.surface is not None and name in values and values[name] not in allowed:
            raise UsageError(f"The option {name} cannot be {values[name][:40]!r}.", hint=f"One of: {', '.join(allowed)}.")
    return values
