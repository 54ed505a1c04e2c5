"""Process root of one agent host: `python -S -P actors/host.py --spec-fd N`.

The agent is spawned first, with next to nothing loaded (host_start), so that it starts while the rest is loaded. There is
no lifeline to the supervisor: a host outlives its crash and is adopted by the next one, or ends with its lease.
"""

from __future__ import annotations

import os
import sys

_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100,PTH120 - pathlib is not loaded yet
if _ROOT not in sys.path:
    sys.path.append(_ROOT)

from actors.host_start import NotStarted, Started, become_subreaper, read, start, unpack  # noqa: E402 - needs the path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from actors.agent import HostCore
    from actors.host_join import JoinFeed
    from actors.host_process import AgentProcess
    from actors.host_spec import HostSpec
    from agents_registry.errors import VibeAroundError


def main(argv: list[str] | None = None) -> int:
    """Exit code: 0 = all said or spooled, 2 = no usable spec, 1 = unexpected."""
    words = sys.argv[1:] if argv is None else argv
    if len(words) != 2 or words[0] != "--spec-fd" or not words[1].isdigit():
        sys.stderr.write("usage: python actors/host.py --spec-fd N\nA host is started by the supervisor.\n")
        return 2
    try:
        command, env, cwd, rest = unpack(read(int(words[1])))
    except (ValueError, OSError) as error:
        sys.stderr.write(f"host: the spec cannot be used: {error}\n")
        return 2
    become_subreaper()
    outcome: Started | NotStarted
    try:
        outcome = start(command, env, cwd)
    except NotStarted as failure:
        outcome = failure
    return _load(rest, outcome)


def _load(rest: bytes, outcome: Started | NotStarted) -> int:
    """Everything after the spawn."""
    from actors.host_process import AgentProcess, why_not_started
    from actors.host_spec import from_json
    from agents_registry.errors import VibeAroundError

    try:
        spec = from_json(rest)
    except VibeAroundError as error:
        sys.stderr.write(f"host: {error}\n")
        return 2  # the agent, if it runs, dies with this process
    sys.path.extend(place for place in spec.python_path if place not in sys.path)
    if isinstance(outcome, NotStarted):
        return serve(spec, None, why_not_started(outcome, spec))
    return serve(spec, AgentProcess(outcome), None)


def serve(spec: HostSpec, process: AgentProcess | None, failure: VibeAroundError | None) -> int:
    """Run the host until it ends."""
    import signal
    import time
    from pathlib import Path

    from actors.agent import HostCore
    from actors.children import process_start_time
    from actors.host_agent import HostedAgent
    from actors.host_files import HostFiles
    from actors.host_link_bus import BusLink
    from actors.host_loop import HostLoop

    clock = time.monotonic
    loop = HostLoop(clock)
    agent = HostedAgent(spec, process, loop)
    link = BusLink(spec, loop)
    data = Path(spec.data_dir)
    core = HostCore(
        spec,
        agent,
        link.send,
        HostFiles(data / "files", f"{spec.thread}-{spec.instance}-{spec.epoch}", limit=spec.limits.ref_bytes),
        clock=clock,
        new_id=lambda: os.urandom(5).hex(),
        host=(os.getpid(), process_start_time(os.getpid()) or 0),
        pids=(process.pid, process.pgid, process.start_time) if process is not None else (0, 0, 0),
    )
    if failure is not None:
        core.never_started("spawn", failure)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: loop.post(core.end))
    agent.attach(core)
    feed = _joined(spec, lambda what, text: loop.post(core.foreign.heard, what, text)) if spec.joined else None
    link.start(core)
    code = 0
    try:
        loop.run(core)
    except Exception as error:  # noqa: BLE001 - a defect of ours must cost neither what was said nor leave an agent
        import traceback

        traceback.print_exception(error)
        code = 1
        if process is not None:
            process.stop(spec.limits.stop_s, end_detached=spec.end_detached)
    if feed is not None:
        feed.close()
    if core.must_spool:
        _spool(spec, core)
    link.close()
    return code


def _joined(spec: HostSpec, heard: Callable[[str, str], None]) -> JoinFeed | None:
    """Without the pipe the terminal's own text is not shown; the thread itself works."""
    from actors.host_join import JoinFeed

    try:
        return JoinFeed(spec.env, heard)
    except (OSError, KeyError) as error:
        sys.stderr.write(f"host {spec.thread}: what the terminal does cannot be heard: {error}\n")
        return None


def _spool(spec: HostSpec, core: HostCore) -> None:
    from pathlib import Path

    from actors.host_spool import write_spool

    try:
        write_spool(
            Path(spec.data_dir), spec.thread, spec.instance, spec.epoch, core.session, core.turns, core.outbox.rest()
        )
    except OSError as error:
        sys.stderr.write(f"host {spec.thread}: {len(core.outbox.rest())} events could not be spooled: {error}\n")


if __name__ == "__main__":
    code = main()
    sys.stderr.flush()
    os._exit(code)  # threads that wait for a silent agent must not keep the process
