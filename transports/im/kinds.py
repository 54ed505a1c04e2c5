"""Which platforms there are. Standard library only and without importing them: the command line lists them.

Besides those that ship, any importable module `vibearound_<kind>` that exports PLATFORM is a platform, so that somebody
else's bridge is a package of its own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

from agents_registry.errors import NotFoundError, UsageError

if TYPE_CHECKING:
    from transports.im.platform import Platform

KIND = re.compile(r"[a-z][a-z0-9_]{0,31}")
"""A kind is a module's name and a route's channel."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A platform that ships: its module, its title for people, and the extra that brings its libraries."""

    kind: str
    title: str
    module: str
    extra: str


KINDS: dict[str, Kind] = {
    kind.kind: kind
    for kind in (
        Kind("telegram", "Telegram", "transports.im.telegram", "telegram"),
    )
}


def known(kind: str) -> bool:
    """Whether `load(kind)` would find a module; does not import it."""
    return kind in KINDS or (KIND.fullmatch(kind) is not None and find_spec(f"vibearound_{kind}") is not None)


def load(kind: str) -> Platform:
    """The platform. Raises NotFoundError for an unknown kind, UsageError when its libraries are not installed or the
    module exports no platform of this kind."""
    from transports.im.platform import Platform

    if not known(kind):
        raise NotFoundError(
            f"There is no platform {kind[:40]!r}.", hint=f"Known: {', '.join(KINDS)}.", code="unknown_kind"
        )
    about = KINDS.get(kind)
    module = about.module if about is not None else f"vibearound_{kind}"
    try:
        platform = getattr(import_module(module), "PLATFORM", None)
    except ImportError as error:
        if (error.name or "") in (module, module.rpartition(".")[0]):
            raise UsageError(f"The platform {kind} is not part of this installation.", code="not_installed") from error
        extra = f"pip install 'vibearound[{about.extra}]'" if about is not None else "install what it needs"
        raise UsageError(
            f"The platform {kind} needs {error.name or error}, which is not installed.", hint=f"Run: {extra}", code="not_installed"
        ) from error
    if not isinstance(platform, Platform) or platform.kind != kind or (platform.surface is None) == (platform.serve is None):
        raise UsageError(f"The module {module} exports no platform {kind!r}.", hint="It must export PLATFORM, see docs/channels.md.")
    return platform
