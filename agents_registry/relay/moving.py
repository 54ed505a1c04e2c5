"""One relay from begin to end: read the source, find out what the receiver knows already, carry, write, prove, remember."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from agents_registry.errors import AgentError, NotFoundError, RefusedError
from agents_registry.relay.carry import Carried, Options, carry
from agents_registry.relay.drift import compare
from agents_registry.relay.earlier import Seen, new_since, seen
from agents_registry.relay.native import can_write, remove, write_session
from agents_registry.relay.relay_map import End, Link, RelayMap
from agents_registry.sessions import catalog
from agents_registry.sessions.neutral import USER
from agents_registry.sessions.port import SessionInfo

if TYPE_CHECKING:
    from agents_registry.sessions.neutral import Conversation

Way = Literal["native", "brief", "resume"]
"""`native`: a new session in the target's own store. `brief`: one text for a new session. `resume`: one text, only of
what is new, for the session that the map knows."""
Prover = Callable[[str, str, str], str]
"""(agent, session id, directory) → "" when the agent has loaded the session, else why not. Implemented where agents can
be run; it may raise `AgentError` when it cannot be tried at all (the adapter is not installed)."""


@dataclass(slots=True)
class Prepared:
    """What would be carried, and into what. `link` is set when the receiver knows the earlier part."""

    source: SessionInfo
    conversation: Conversation
    target: str
    carried: Carried
    link: Link | None = None

    @property
    def cwd(self) -> str:
        return self.carried.cwd

    def way(self, wanted: str = "") -> Way:
        """How it is delivered. `wanted` is `native`, `brief`, or "" for what is best.

        Raises:
            RefusedError: native is wanted and the target's store cannot be written (code `not_writable`).
        """
        if self.link is not None:
            return "resume"
        if wanted == "native" and not can_write(self.target):
            raise RefusedError(
                f"Sessions of {self.target} cannot be written by others.", hint="Use --brief: the same as one text.", code="not_writable"
            )
        return "brief" if wanted == "brief" or not can_write(self.target) else "native"


@dataclass(slots=True)
class Moved:
    """How it was delivered: `session` is the receiver's (None with `brief`), `text` what is to be said to it ("" with
    `native`), `notes` what the user should know."""

    way: Way
    session: SessionInfo | None
    text: str
    notes: list[str] = field(default_factory=list)


def prepare(
    source: SessionInfo, target: str, options: Options, env: Mapping[str, str], links: RelayMap | None = None, *, new: bool = False
) -> Prepared:
    """Read the source and decide what is carried. With `links`, a session of `target` that knows the earlier part is gone
    on with, unless `new`.

    Raises:
        NotFoundError: the directory of the session is gone (code `cwd_gone`) and `options.cwd` names no other.
        RefusedError: there is nothing to carry, nothing new, or too much for `full`.
    """
    conversation = catalog.need(source.agent).read(source)
    if not conversation.turns and conversation.compaction is None:
        raise RefusedError(f"The session {source.id} of {source.agent} holds no conversation.", hint="Name another one.", code="empty")
    cwd = options.cwd or conversation.last_cwd or conversation.cwd or source.cwd
    if not cwd or not Path(cwd).is_dir():
        what = f"The directory of session {source.id}, {cwd}, is gone." if cwd else f"The session {source.id} names no directory."
        raise NotFoundError(what, hint="Give another one with --cwd, or bring it back; nothing is created in its place.", code="cwd_gone")
    options = replace(options, cwd=str(Path(cwd).absolute()))
    link = None if new or links is None or target == source.agent else known_link(links, source, target, env)
    if link is None:
        return Prepared(source, conversation, target, carry(conversation, target, options))
    fresh = new_since(conversation, link.mine.seen)
    if not fresh.turns:
        raise RefusedError(
            f"Nothing is new in {source.agent}:{source.id} since the last relay; {target} knows all of it ({link.other.id}).",
            hint=f"Go on there, or add --new for a new session of {target}.",
            code="nothing_new",
        )
    fresh = replace(fresh, title="")  # the receiver has it, often as its own
    carried = carry(fresh, target, options, drift=compare(link.files), again=True)
    return Prepared(source, conversation, target, carried, link)


def deliver(
    prepared: Prepared,
    wanted: str,
    env: Mapping[str, str],
    links: RelayMap | None = None,
    *,
    version: str = "",
    prove: Prover | None = None,
) -> Moved:
    """Deliver it: write the session, or make the text. What was written and cannot be loaded is removed, and the text is
    given instead, with the reason in the notes.

    Raises:
        RefusedError: see `Prepared.way`.
    """
    way, carried, target = prepared.way(wanted), prepared.carried, prepared.target
    mine = _end(prepared.source, prepared.conversation)
    if way == "resume":
        assert prepared.link is not None
        info = catalog.resolve_one(env, target, prepared.link.other.id)
        if links is not None:
            links.record(mine, prepared.link.other, prepared.cwd, carried.report.files)
        return Moved(way, info, carried.as_text())
    if way == "brief":
        return Moved(way, None, carried.as_text())
    notes: list[str] = []
    try:
        done = write_session(carried, target, env, version=version)
    except AgentError as error:
        return Moved("brief", None, carried.as_text(), [f"No session was written: {error.message} What is carried follows as one text."])
    there = catalog.need(target).read(done.info)
    if prove is not None:
        try:
            why = prove(target, done.info.id, prepared.cwd)
        except AgentError as error:
            why = ""
            notes.append(f"Whether {target} loads the session was not tried: {error.message}")
        if why:
            remove(done.info, done.info.store_root)
            return Moved("brief", None, carried.as_text(), [f"{target} does not load the session that was written, so it was removed: {why}"])
    carried.report.lost = done.lost
    if links is not None:
        links.record(mine, _end(done.info, there), prepared.cwd, carried.report.files)
    return Moved(way, done.info, "", notes)


def given(prepared: Prepared, text: str, there: SessionInfo, links: RelayMap) -> int:
    """After `text` was said in the session `there`: how many of its characters the agent's own store holds, in order from
    the first, white space apart. When that is all of it, the map knows that the two sessions belong together."""
    conversation = catalog.need(there.agent).read(there)
    stored = _dense("".join(turn.text for turn in conversation.turns if turn.role == USER))
    wanted = _dense(text)
    low, high = 0, len(wanted)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if wanted[:middle] in stored else (low, middle - 1)
    if low == len(wanted):
        mine = _end(prepared.source, prepared.conversation)
        links.record(mine, _end(there, conversation), prepared.cwd, prepared.carried.report.files)
    return low


def _dense(text: str) -> str:
    return "".join(text.split())


def known_link(links: RelayMap, source: SessionInfo, target: str, env: Mapping[str, str]) -> Link | None:
    """The link to a session of `target` that still exists; links to gone ones are forgotten."""
    while (link := links.find(source.agent, source.id, _root(source), target)) is not None:
        found = catalog.resolve(env, target, link.other.id)
        if any(info.id == link.other.id and _root(info) == link.other.root for info in found):
            return link
        links.forget(link)
    return None


def _end(info: SessionInfo, conversation: Conversation) -> End:
    far: Seen = seen(conversation)
    return End(info.agent, info.id, _root(info), far)


def _root(info: SessionInfo) -> str:
    return os.path.realpath(info.store_root)
