"""What actors ask of the journal and of the reader process."""

from __future__ import annotations

from dataclasses import field
from typing import Any

from transports.bus.codec import message


@message("record")
class Record:
    """Address `journal`: named operations, applied in one transaction, then events posted and `Recorded` answered.

    `ops`: [[name, param, ...], ...] (see actors.journal.operations). `events`: [[thread, turn, kind, body, target,
    origin], ...]; each is posted, once durable, to `route/<r>` for each r in its `fanout` entry (same index).
    """

    ops: list[Any]
    events: list[Any] = field(default_factory=list)
    fanout: list[Any] = field(default_factory=list)
    token: str = ""


@message("recorded")
class Recorded:
    """`results`: one entry per operation (most are None). `seqs`: the global numbers of the events."""

    token: str
    results: list[Any]
    seqs: list[int] = field(default_factory=list)


@message("load")
class Load:
    """Address `history`: a named read. Answered with Ok {rows} or what the name says (actors.journal.queries)."""

    query: str
    params: list[Any] = field(default_factory=list)


@message("posted")
class Posted:
    """Journal -> route: a durable event that this route shows."""

    seq: int
    thread: str
    turn: str
    kind: str
    body: dict[str, Any]
    target: str = ""
    origin: str = ""
    at: float = 0.0


@message("read")
class Read:
    """Address `reader`. `op`: resolve, list, check_cwd, make_default, writer, tail, added, identify, search, relay,
    relay_given, relay_drift.

    Answered with Ok (see actors.reader_ops) or Failed; a request that takes longer than `deadline_s` fails with busy.
    """

    op: str
    args: dict[str, Any] = field(default_factory=dict)
    deadline_s: float = 10.0


@message("remove_files")
class RemoveFiles:
    """Address `spawner`: files under `<data>/files` whose turns are no longer kept; other paths are left alone."""

    paths: list[Any]
