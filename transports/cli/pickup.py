"""`va pickup CODE`: the conversation comes to this terminal, and its agent with it."""

from __future__ import annotations

import os
import sys
from typing import Any

import click

from agents_registry.errors import AgentError, CodeError, NotFoundError
from transports.cli.output import emit, emit_json, json_option, remark

_WAIT_S = 180.0
"""Longest wait for the chat's turn to end and its host to be gone; the supervisor's own limits are shorter."""


@click.command("pickup")
@click.argument("code", nargs=-1, required=True)
@click.option("--print", "only_print", is_flag=True, help="Print the command that goes on with it; nothing moves.")
@json_option
def pickup(code: tuple[str, ...], only_print: bool, as_json: bool) -> None:
    """Go on in this terminal with a conversation that was handed over.

    The chat's agent stops first; then the agent's own resume command runs here, in the session's directory.
    """
    from transports import paths
    from transports.bus.vocabulary.handover import PickupTerminal
    from transports.cli.connect import connect

    typed = code_of(" ".join(code))
    pid = os.getpid()
    keep = only_print or as_json
    start = paths.process_start_time(pid) or 0
    with connect() as client:
        if not keep and sys.stderr.isatty():
            remark("Picking up: the chat's agent stops first …")
        data: dict[str, Any] = client.request("attacher", PickupTerminal(typed, pid, start, keep), _WAIT_S).data
    if as_json:
        emit_json(data)
    elif only_print:
        emit(str(data["line"]))
    else:
        _go(data, pid, start)


def code_of(typed: str) -> str:
    """The code in what was typed or pasted. Raises CodeError for what cannot be one: told apart here, it costs no miss."""
    from transports.codes import read_code

    found = read_code(typed)
    if not found.code:
        raise CodeError(found.problem, hint='Say "hand over" to the agent, or /handover in the chat, to get a code.')
    return found.code


def _go(data: dict[str, Any], pid: int, start: int) -> None:
    """Become the agent. This process keeps its pid, which the supervisor watches to know when the terminal is done."""
    cwd = str(data["cwd"])
    try:
        os.chdir(cwd)
    except OSError as error:
        raise NotFoundError(
            f"The conversation's directory {cwd} cannot be entered: {error.strerror}.", code="cwd_gone",
            hint="Create it again or mount it, then hand the conversation over once more.",
        ) from error
    env = _environment(data, pid, start)
    if data.get("note"):
        remark(str(data["note"]))
    argv = [str(word) for word in data["argv"]]
    sys.stdout.flush()
    sys.stderr.flush()
    program = _program(str(data["agent"]), argv[0])
    try:
        os.execve(program, argv, env)
    except OSError as error:
        raise AgentError(
            f"{argv[0]} cannot be started: {error.strerror}.", hint=f"Install it, then run: {data.get('line', ' '.join(argv))}"
        ) from error


def _program(agent: str, word: str) -> str:
    """Where the agent's command is. Raises AgentError with the way to install it."""
    from agents_registry.launch import find_program, install_advice
    from agents_registry.loader import load_registry
    from transports import paths
    from transports.cli.agents import search_environment

    data_dir = paths.data_dir()
    spec = load_registry(data_dir).get(agent)
    found = find_program(spec, word, os.environ, data_dir) or find_program(spec, word, search_environment(os.environ), data_dir)
    if found is None:
        raise AgentError(f"{spec.name} is not installed: {word!r} was not found.", hint=install_advice(spec), code="agent_missing")
    return found


def _environment(data: dict[str, Any], pid: int, start: int) -> dict[str, str]:
    """This environment, the places of the agent's store, who it is; and the record by which the supervisor knows it."""
    import time

    from agents_registry.launch import Identity, clean_environment
    from agents_registry.launch_record import LaunchRecord, new_launch_id, write_launch
    from transports import paths

    launch = new_launch_id()
    profile = str(data.get("profile") or "direct")
    record = LaunchRecord(launch, pid, start, str(data["agent"]), str(data["cwd"]), profile, str(data["session"]), time.time())
    write_launch(paths.data_dir(), record)
    who = Identity(str(data["agent"]), profile, launch, str(data.get("thread") or ""))
    places = {str(name): str(value) for name, value in (data.get("env") or {}).items()}
    return {**clean_environment(os.environ), **places, **who.variables(), "PWD": str(data["cwd"])}
