"""Writing what is carried as a new session of the target's own store, and showing that it is there as it was meant."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Mapping
from pathlib import Path

from agents_registry.errors import AgentError, RefusedError
from agents_registry.relay.carry import Carried
from agents_registry.sessions import catalog
from agents_registry.sessions.neutral import USER, Conversation
from agents_registry.sessions.port import SessionInfo, SessionWriter, Written

_PAGINATED_SINCE = (0, 166)
"""The first Codex whose window shows paginated histories; older ones take the legacy form only."""


def can_write(target: str) -> bool:
    """Whether sessions of `target` can be written by others."""
    return catalog.writer(target) is not None


def write_session(carried: Carried, target: str, env: Mapping[str, str], *, version: str = "") -> Written:
    """A new session of `target` with all that is carried. `version` is the installed one, where known.

    Raises:
        RefusedError: the target's store cannot be written (code `not_writable`).
        AgentError: it could not be written, or does not read back as it was meant; nothing is left of it then.
    """
    writer = _writer(target, version)
    if writer is None:
        raise RefusedError(f"Sessions of {target} cannot be written.", hint="Use --brief.", code="not_writable")
    root = catalog.need(target).roots(env)[0]
    conversation = carried.as_conversation()
    done = writer.write(conversation, root, session_id=_fresh_id(target), env=env)
    try:
        missing = _missing(conversation, catalog.need(target).read(done.info))
    except OSError as error:
        missing = f"it cannot be read ({error.strerror or error})"
    if missing:
        remove(done.info, root)
        raise AgentError(f"The session written for {target} does not read back as it was meant: {missing}.", hint="Use --brief.", code="not_proven")
    return done


def remove(info: SessionInfo, root: Path) -> None:
    """Take away a session that was just written here and is of no use. Only the one file, and only below `root`."""
    path = info.path
    if path.is_file() and Path(os.path.realpath(path)).is_relative_to(os.path.realpath(root)):
        path.unlink(missing_ok=True)


def _fresh_id(target: str) -> str:
    if target == "codex":
        from agents_registry.sessions.codex_write import new_thread_id

        return new_thread_id(time.time())
    return str(uuid.uuid4())


def _writer(target: str, version: str) -> SessionWriter | None:
    if target == "codex" and version:
        from agents_registry.sessions.codex_write import CodexWriter

        numbers = tuple(int(part) for part in version.split("-")[0].split(".")[:2] if part.isdigit())
        return CodexWriter(paginated=numbers >= _PAGINATED_SINCE, cli_version=version)
    return catalog.writer(target)


def _missing(meant: Conversation, there: Conversation) -> str:
    """What of the human's and the agent's texts is not there, "" when all is."""
    for role, who in ((USER, "request"), ("agent", "answer")):
        wanted = [turn.text.strip() for turn in meant.turns if turn.role == role and turn.text.strip()]
        have = "\n".join(turn.text for turn in there.turns if turn.role == role)
        lost = [text for text in wanted if text not in have]
        if lost:
            return f"{len(lost)} of {len(wanted)} {who}s are missing"
    return ""
