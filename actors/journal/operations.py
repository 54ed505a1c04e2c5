"""All operations of the journal, by name."""

from __future__ import annotations

from actors.journal import (  # noqa: F401 - each registers its own
    operations_forget,
    operations_hosts,
    operations_people,
    operations_routes,
    operations_threads,
    operations_turns,
)
from actors.journal.operation import LOG, apply, dumps

__all__ = ["LOG", "apply", "dumps"]
