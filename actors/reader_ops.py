"""What the reader process does: everything that touches agents' stores, working directories and /proc.

Each operation takes plain arguments and returns plain data (`Read` and `Ok` on the bus). It may block: it runs in a
process of its own, with a deadline that its supervisor keeps.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from actors import reader_relay
from agents_registry.errors import NotFoundError, UsageError
from agents_registry.evidence import (
    ancestors,
    call_meta_session,
    claude_live_session,
    environment_session,
    process_environment,
)
from agents_registry.identify import Evidence, decide
from agents_registry.loader import Registry
from agents_registry.model import AgentSpec
from agents_registry.sessions import catalog
from agents_registry.sessions.places import same_place
from agents_registry.sessions.port import SessionInfo

MAX_SPLIT = 64 << 20
"""Bytes of a transcript whose two ends are told apart; it is read whole where two people wrote."""
Operation = Callable[[Registry, Mapping[str, str], dict[str, Any]], dict[str, Any]]


def run(registry: Registry, environ: Mapping[str, str], op: str, args: dict[str, Any]) -> dict[str, Any]:
    """Raises VibeAroundError kinds; `environ` is the login environment, over which a request's own `env` counts. `args` hold
    the `data_dir` too, which the reader adds to what was asked."""
    known = OPERATIONS.get(op)
    if known is None:
        raise UsageError(f"the reader knows no operation {op!r}.", code="bad_message")
    return known(registry, environ, args)


def _environment(environ: Mapping[str, str], args: dict[str, Any]) -> dict[str, str]:
    return {**environ, **{str(k): str(v) for k, v in (args.get("env") or {}).items()}}


def _real(path: str) -> str:
    return os.path.realpath(path) if path and Path(path).is_dir() else ""


def _match(info: SessionInfo) -> dict[str, Any]:
    real = _real(info.cwd)
    return {
        "id": info.id, "cwd": info.cwd, "real": real, "cwd_exists": bool(real), "title": info.title or info.first_prompt[:80],
        "store_root": str(info.store_root), "aliases": list(info.aliases), "path": str(info.path), "updated_at": info.updated_at,
        "live": info.live,
    }


def check_cwd(_: Registry, __: Mapping[str, str], args: dict[str, Any]) -> dict[str, Any]:
    """{exists, real}"""
    real = _real(str(Path(args["cwd"]).expanduser()))
    return {"exists": bool(real), "real": real}


def make_default(_: Registry, __: Mapping[str, str], args: dict[str, Any]) -> dict[str, Any]:
    """Create one of our own default workspaces; {real}"""
    path = Path(args["cwd"])
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise NotFoundError(f"the default workspace {path} cannot be made: {error.strerror}.", hint="Set workspaces.default.") from error
    return {"real": os.path.realpath(path)}


def resolve(registry: Registry, environ: Mapping[str, str], args: dict[str, Any]) -> dict[str, Any]:
    """{matches}: sessions that `wanted` may mean, in `store_root` only when it is given. `writer`: a single one also says
    who writes it now, as `writer` does, which saves the asker a second request."""
    spec = registry.get(str(args["agent"]))
    env = _environment(environ, args)
    found = list(catalog.resolve(env, spec.id, str(args["wanted"])))
    root = str(args.get("store_root") or "")
    if root:
        found = [info for info in found if str(info.store_root) == root] or found
    matches = [_match(info) for info in found]
    cwd = str(args.get("cwd") or "")
    if len(matches) > 1 and cwd:
        matches = [m for m in matches if same_place(m["cwd"], cwd)] or matches
    for match in matches:
        match["cwd_same"] = bool(cwd) and same_place(match["cwd"], cwd)
    if args.get("writer") and len(matches) == 1:
        chosen = next(info for info in found if info.id == matches[0]["id"] and str(info.store_root) == matches[0]["store_root"])
        matches[0]["writer"] = _writing(spec, chosen)
    return {"matches": matches}


def list_sessions(registry: Registry, environ: Mapping[str, str], args: dict[str, Any]) -> dict[str, Any]:
    """{sessions} of one agent in one directory, newest first."""
    spec = registry.get(str(args["agent"]))
    cwd = str(args.get("cwd") or "") or None
    infos = catalog.list_sessions(_environment(environ, args), agent=spec.id, cwd=cwd, limit=int(args.get("limit") or 10))
    return {"sessions": [_match(info) for info in infos]}


def writer(registry: Registry, environ: Mapping[str, str], args: dict[str, Any]) -> dict[str, Any]:
    """{running, locked, live}: whether a turn is under way in the session, whether another process alone may write it, and
    who has it open: {open, pids, window, daemon, joinable} (see sessions.writers)."""
    spec = registry.get(str(args["agent"]))
    found = catalog.resolve(_environment(environ, args), spec.id, str(args["session"]["id"]))
    info = next((i for i in found if str(i.store_root) == args["session"]["store_root"]), None)
    if info is None:
        raise NotFoundError(f"{spec.name} has no session {args['session']['id']} any more.", code="no_session")
    return _writing(spec, info)


def _writing(spec: AgentSpec, info: SessionInfo) -> dict[str, Any]:
    from agents_registry.sessions.turns import turn_running
    from agents_registry.sessions.writers import live_writer

    running = turn_running(info)
    live = live_writer(info) if info.live else None
    joinable = False
    if live is not None and live.daemon:
        from transports.codex.daemon import can_join

        joinable = can_join(live.daemon, spec.sessions.daemon_tested)
    told = {
        "open": info.live, "pids": list(live.pids) if live else [], "window": bool(live and live.window),
        "daemon": live.daemon if live else "", "joinable": joinable,
    }
    return {"running": bool(running), "locked": bool(info.live and spec.sessions.one_writer), "live": told}


def tail(registry: Registry, environ: Mapping[str, str], args: dict[str, Any]) -> dict[str, Any]:
    """{leaf, size, mtime_ns} of a session's end; with `ours` (pids) also {busy}: pid of somebody else who runs a turn now."""
    info = catalog.resolve_one(_environment(environ, args), registry.get(str(args["agent"])).id, str(args["session"]))
    found = catalog.need(info.agent).tail(info)
    return {"leaf": found.leaf, "size": found.size, "mtime_ns": found.mtime_ns, "busy": _busy(info, args)}


def added(registry: Registry, environ: Mapping[str, str], args: dict[str, Any]) -> dict[str, Any]:
    """{texts}: what people wrote into a session since a time, newest last, at most five, shortened; `busy` as in tail."""
    info = catalog.resolve_one(_environment(environ, args), registry.get(str(args["agent"])).id, str(args["session"]))
    since = float(args["since"])
    if info.path.stat().st_mtime <= since:
        return {"texts": [], "busy": _busy(info, args)}
    turns = catalog.need(info.agent).read(info).turns
    texts = [" ".join(t.text.split())[:200] for t in turns if t.role == "user" and t.at is not None and t.at > since and t.text.strip()]
    return {"texts": texts[-5:], "busy": _busy(info, args)}


def _busy(info: SessionInfo, args: dict[str, Any]) -> int:
    from agents_registry.sessions.writers import busy_elsewhere

    return busy_elsewhere(info, [int(p) for p in args["ours"]]) if args.get("ours") else 0


def split(registry: Registry, environ: Mapping[str, str], args: dict[str, Any]) -> dict[str, Any]:
    """{ours, theirs}: sessions of the two ends of a fork that happened since a time, "" = none did; `prompt` is on ours."""
    info = catalog.resolve_one(_environment(environ, args), registry.get(str(args["agent"])).id, str(args["session"]))
    if info.agent != "claude" or info.path.stat().st_size > MAX_SPLIT:
        return {"ours": "", "theirs": ""}
    from agents_registry.sessions.claude_ends import split_ends

    ends = split_ends(info, float(args["since"]), str(args["prompt"]))
    return {"ours": ends.ours if ends else "", "theirs": ends.theirs if ends else ""}


def identify(registry: Registry, environ: Mapping[str, str], args: dict[str, Any]) -> dict[str, Any]:
    """Whose session is it? The decision, checked against the store: {id, cwd, store_root, title, note, env, issuer}.

    `pid` is the calling process (the MCP shim, `va handover`, or 0); its ancestors' environments place the store.
    """
    spec = registry.get(str(args["agent"]))
    pid, cwd = int(args.get("pid") or 0), str(args.get("cwd") or "")
    above = ancestors(pid) if pid else []
    names = (*(spec.store.env if spec.store else ()), *spec.session_env)
    seen = _near_environment(above, names)
    store_env = {k: v for k, v in {**seen, **(args.get("env") or {})}.items() if spec.store and k in spec.store.env}
    env = {**environ, **store_env}
    evidence = [Evidence(str(kind), str(sid)) for kind, sid in args.get("evidence") or [] if kind != "meta"]
    meta = next((value for kind, value in args.get("evidence") or [] if kind == "meta"), None)
    from_meta = call_meta_session(spec.id, meta if isinstance(meta, dict) else None)
    if from_meta is not None:
        evidence.append(from_meta)
    if spec.id == "claude" and above:
        root = Path(env["CLAUDE_CONFIG_DIR"]) if env.get("CLAUDE_CONFIG_DIR") else Path(env.get("HOME", "~")).expanduser() / ".claude"
        live = claude_live_session(root, above)
        if live is not None:
            evidence.append(live)
    word = str(args.get("session") or "")
    if word:
        confirmed = bool(catalog.resolve(env, spec.id, word))
        evidence.append(Evidence("caller_word", word, confirmed=confirmed))
    # A stale variable must not win over a later session of the same directory, so both are looked at together.
    here = catalog.list_sessions(env, agent=spec.id, cwd=cwd or None, limit=3) if cwd else []
    told = environment_session(spec.session_env, {**seen, **(args.get("env") or {})}, superseded=False)
    if told is not None:
        superseded = bool(here) and here[0].id != told.session_id
        evidence.append(Evidence(told.kind, told.session_id, confirmed=not superseded, detail=told.detail))
    if here:
        evidence.append(Evidence("newest_of_cwd", here[0].id, candidates=len(here)))
    decision = decide(evidence, spec.identity, agent=spec.name)
    info = catalog.resolve_one(env, spec.id, decision.session_id, cwd or None)
    match = _match(info)
    if not match["cwd_exists"]:
        raise NotFoundError(
            f"The directory of the session {info.id} is gone: {info.cwd or 'unknown'}.",
            hint="A session goes on only where it ran; bring the directory back first.", code="no_directory",
        )
    note = decision.note
    if cwd and not same_place(cwd, info.cwd):
        note = f"{note} The call named {cwd}; the session belongs to {info.cwd}.".strip()
    issuer: dict[str, Any] = next(({"pid": p, "start_time": s} for p, s in above[1:]), {})
    if issuer:
        issuer["above"] = [p for p, _ in above[1:]]
    return {**match, "note": note, "env": store_env, "issuer": issuer, "source": decision.source}


def _near_environment(above: list[tuple[int, int]], names: tuple[str, ...]) -> dict[str, str]:
    """The variables as the nearest process above has them."""
    found: dict[str, str] = {}
    for pid, _ in above[:6]:
        for name, value in process_environment(pid, names).items():
            found.setdefault(name, value)
    return found


OPERATIONS: dict[str, Operation] = {
    "check_cwd": check_cwd,
    "make_default": make_default,
    "resolve": resolve,
    "list": list_sessions,
    "writer": writer,
    "tail": tail,
    "added": added,
    "split": split,
    "identify": identify,
    "search": reader_relay.search,
    "relay": reader_relay.relay,
    "relay_given": reader_relay.relay_given,
    "relay_drift": reader_relay.relay_drift,
}
