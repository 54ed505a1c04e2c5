"""Roo Code's store: that of Cline, from which it comes, in a place of its own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from agents_registry.sessions.cline import ClineStore
from agents_registry.sessions.filestore import FileStore

_WORDS = ("roo-code", "roo-cline")


class RooStore(ClineStore):
    """See the module and `ClineStore`."""

    agent: str = "roo-code"
    extension: ClassVar[str] = "rooveterinaryinc.roo-cline"

    def own_roots(self, env: Mapping[str, str]) -> list[Path]:
        return []

    def recognises(self, path: Path) -> bool:
        """The form is Cline's; what tells them apart is the place of the file."""
        ours = any(word in part.lower() for part in path.parts for word in _WORDS)
        return path.suffix == ".json" and ours and FileStore.recognises(self, path)


STORE = RooStore()
