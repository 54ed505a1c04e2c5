"""What the reader does for `/relay` and `/session search`: reading whole sessions, the brief, the writing and its proof."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from agents_registry.errors import RefusedError
from agents_registry.loader import Registry
from agents_registry.model import AgentSpec
from agents_registry.sessions import catalog
from agents_registry.sessions.port import SessionInfo

STEP_S = 30.0
"""Of each step of the proof: start, sign-in, load."""


def relay(registry: Registry, environ: Mapping[str, str], args: dict[str, Any]) -> dict[str, Any]:
    """Carry the session {agent, session, cwd} to the agent `to`.

    {advice} when a fresh conversation is cleaner and `force` is not given: nothing was done. Else {way, session,
    store_root, cwd, text, notes, tokens}. `session` and `store_root` are "" with way `brief`; `text` is what is to
    be said to the agent, "" when its session holds everything already.
    """
    from agents_registry.relay.moving import deliver, known_link, prepare
    from agents_registry.relay.relay_map import RelayMap
    from transports.carrying import carry_options

    spec = registry.get(str(args["to"]))
    source = _source(registry, environ, args)
    data_dir = Path(args["data_dir"])
    options = carry_options(spec.id, data_dir, os.environ, force=bool(args.get("force")), next_step=str(args.get("next_step") or ""))
    with RelayMap(data_dir / "sessions.db") as links:
        try:
            prepared = prepare(source, spec.id, options, environ, links)
        except RefusedError as error:
            link = known_link(links, source, spec.id, environ) if error.code == "nothing_new" else None
            if link is None:
                raise
            there = catalog.resolve_one(environ, spec.id, link.other.id)
            return _told("resume", there, there.cwd, "", [f"Nothing is new: {spec.name} knows all of it."])
        report = prepared.carried.report
        if report.advice and not options.force:
            return {"advice": report.advice}
        native = prepared.way() == "native"
        version = _version(spec, environ, args) if native else ""
        # What is said in a turn counts as given when the turn was taken: see `relay_given`.
        known = links if native else None
        moved = deliver(prepared, "", environ, known, version=version, prove=_prover(spec, environ, args))
    notes = [*moved.notes]
    if report.redacted:
        notes.append("Redacted: " + ", ".join(f"{one.kind} ({one.place})" for one in report.redacted) + ".")
    if report.dropped:
        notes.append("Left out: " + "; ".join(f"{name}: {what}" for name, what in report.dropped.items()) + ".")
    if report.skipped:
        notes.append(f"{report.skipped} damaged records of the session were left out.")
    notes += [f"{change.what} since the last relay: {change.path}" for change in report.drift]
    return {**_told(moved.way, moved.session, prepared.cwd, moved.text, notes), "tokens": report.tokens}


def relay_given(registry: Registry, environ: Mapping[str, str], args: dict[str, Any]) -> dict[str, Any]:
    """{kept, whole}: how many characters of `text`, said in the session `there` of the agent `to`, its own store holds.
    When that is all, the map says that {agent, session} was carried there."""
    from agents_registry.relay.moving import given, prepare
    from agents_registry.relay.relay_map import RelayMap
    from transports.carrying import carry_options

    spec = registry.get(str(args["to"]))
    data_dir, text = Path(args["data_dir"]), str(args["text"])
    with RelayMap(data_dir / "sessions.db") as links:
        prepared = prepare(_source(registry, environ, args), spec.id, carry_options(spec.id, data_dir, os.environ, force=True), environ, new=True)
        kept = given(prepared, text, catalog.resolve_one(environ, spec.id, str(args["there"])), links)
    return {"kept": kept, "whole": len("".join(text.split()))}


def relay_drift(registry: Registry, environ: Mapping[str, str], args: dict[str, Any]) -> dict[str, Any]:
    """{changes: [[path, what]]}: the files of the brief that changed since {agent, session} was carried to the agent `to`."""
    from agents_registry.relay.drift import compare
    from agents_registry.relay.moving import known_link
    from agents_registry.relay.relay_map import RelayMap

    with RelayMap(Path(args["data_dir"]) / "sessions.db") as links:
        link = known_link(links, _source(registry, environ, args), registry.get(str(args["to"])).id, environ)
    return {"changes": [[change.path, change.what] for change in compare(link.files)] if link is not None else []}


def search(registry: Registry, environ: Mapping[str, str], args: dict[str, Any]) -> dict[str, Any]:
    """{hits}: sessions of all agents that hold all of `words`, newest first, each with a snippet; {failed}: unreadable ones."""
    from agents_registry.sessions.index import SessionIndex
    from agents_registry.sessions.search import Filters, find

    agent = registry.get(str(args["agent"])).id if args.get("agent") else None
    with SessionIndex(Path(args["data_dir"]) / "sessions.db") as index:
        failed = index.refresh(environ, agent=agent).failed
        hits = find(index, str(args["words"]), Filters(agent, str(args.get("cwd") or "") or None), limit=int(args.get("limit") or 10))
    rows = [
        {"agent": h.agent, "id": h.id, "cwd": h.cwd, "title": h.title, "updated_at": h.updated_at, "snippet": h.snippet} for h in hits
    ]
    return {"hits": rows, "failed": failed}


def _source(registry: Registry, environ: Mapping[str, str], args: dict[str, Any]) -> SessionInfo:
    info = catalog.resolve_one(environ, registry.get(str(args["agent"])).id, str(args["session"]))
    return replace(info, cwd=info.cwd or str(args.get("cwd") or ""))


def _told(way: str, info: SessionInfo | None, cwd: str, text: str, notes: list[str]) -> dict[str, Any]:
    session, root = (info.id, str(info.store_root)) if info is not None else ("", "")
    return {"way": way, "session": session, "store_root": root, "cwd": cwd, "text": text, "notes": notes}


def _version(spec: AgentSpec, environ: Mapping[str, str], args: dict[str, Any]) -> str:
    from agents_registry.detect import detect

    return detect(spec, environ, Path(args["data_dir"])).version if spec.id == "codex" else ""


def _prover(spec: AgentSpec, environ: Mapping[str, str], args: dict[str, Any]) -> Any:
    def prove(agent: str, session: str, cwd: str) -> str:
        from transports.cli.relay_proof import prove as run

        del agent  # it is that of `spec`
        return run(spec, session, cwd, environ, Path(args["data_dir"]), STEP_S)

    return prove
