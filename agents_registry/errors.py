"""The one root error of the project, and its kinds.

Every error that a user can meet says what happened (`message`), to what, and what to do next (`hint`), and carries
the exit code of the command line's contract: 1 unexpected, 2 usage, 3 supervisor not running, 4 not found,
5 refused, 6 code invalid or expired, 7 agent could not start or resume, 8 busy. `code` is a short stable word that
scripts and other processes may compare; it travels over the bus with the rest (`to_wire`, `from_wire`).
"""

from __future__ import annotations

from typing import Any, ClassVar


class VibeAroundError(Exception):
    """Root of all errors that are told to a person."""

    exit_code: ClassVar[int] = 1
    default_code: ClassVar[str] = "unexpected"

    def __init__(self, message: str, *, hint: str = "", code: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.code = code or self.default_code

    def __str__(self) -> str:
        return f"{self.message} {self.hint}".strip()

    def to_wire(self) -> list[Any]:
        """[exit code, code, message, hint]; the receiver rebuilds the kind from the exit code."""
        return [self.exit_code, self.code, self.message, self.hint]


class UsageError(VibeAroundError):
    """The words, the settings or a file given by the user are not of the right form."""

    exit_code = 2
    default_code = "usage"


class NotRunningError(VibeAroundError):
    """No supervisor answers."""

    exit_code = 3
    default_code = "not_running"


class NotFoundError(VibeAroundError):
    """A session, thread, directory, agent or file that does not exist (any more)."""

    exit_code = 4
    default_code = "not_found"


class RefusedError(VibeAroundError):
    """The caller may not do this, or not now by rule (roles, lock-out, limits)."""

    exit_code = 5
    default_code = "refused"


class CodeError(VibeAroundError):
    """A handover code that is unknown, expired, or used."""

    exit_code = 6
    default_code = "code_invalid"


class AgentError(VibeAroundError):
    """A coding agent could not start, resume, or answer."""

    exit_code = 7
    default_code = "agent_failed"


class BusyError(VibeAroundError):
    """A queue is full, or somebody else is at work on the same thing."""

    exit_code = 8
    default_code = "busy"


_KINDS: dict[int, type[VibeAroundError]] = {
    kind.exit_code: kind
    for kind in (
        VibeAroundError,
        UsageError,
        NotRunningError,
        NotFoundError,
        RefusedError,
        CodeError,
        AgentError,
        BusyError,
    )
}


def from_wire(fields: list[Any]) -> VibeAroundError:
    """The error that `to_wire` described; an unknown exit code becomes the root kind. Never raises."""
    padded = [*fields, *([""] * (4 - len(fields)))]
    exit_code, code, message, hint = padded[:4]
    kind = _KINDS.get(exit_code if isinstance(exit_code, int) else 1, VibeAroundError)
    return kind(str(message), hint=str(hint), code=str(code))
