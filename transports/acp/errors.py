"""What can go wrong between us and an agent, each as its own kind of `AgentError`."""

from __future__ import annotations

from typing import Any

from agents_registry.errors import AgentError

METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL = -32603
AUTH_REQUIRED = -32000
NOT_FOUND = -32002


class AgentGone(AgentError):
    """The agent's process ended, or closed its output, while somebody still waited for it.

    `returncode` is None when it could not be learned (the output was closed by a process that lives on); it is
    negative for the number of the signal that ended the process, as `subprocess` has it.
    """

    default_code = "agent_gone"

    def __init__(self, returncode: int | None, stderr_tail: str = "", *, during: str = "") -> None:
        if returncode is None:
            how = "closed its output"
        elif returncode < 0:
            how = f"was ended by signal {-returncode}"
        else:
            how = f"ended with exit code {returncode}"
        last = stderr_tail.strip().rsplit("\n", 1)[-1][:300]
        super().__init__(
            f"The agent {how}{f' during {during}' if during else ''}.",
            hint=f"Its last words were: {last}" if last else "It wrote no reason to its error output.",
        )
        self.returncode = returncode
        self.stderr_tail = stderr_tail


class AgentRefused(AgentError):
    """The agent answered a request with a JSON-RPC error."""

    default_code = "agent_refused"

    def __init__(self, method: str, code: int, message: str, data: Any = None) -> None:
        details = data.get("details") if isinstance(data, dict) else data if isinstance(data, str) else ""
        text = message if not details or str(details) in message else f"{message}: {details}"
        super().__init__(f"The agent refused {method}: {text[:2000]} ({code}).")
        self.method = method
        self.rpc_code = code
        self.rpc_message = text
        self.data = data


class AgentSilent(AgentError):
    """A request had no answer within its limit. The agent may be alive; its state is unknown."""

    default_code = "agent_silent"

    def __init__(self, method: str, limit_s: float) -> None:
        super().__init__(
            f"The agent did not answer {method} within {limit_s:g} s.",
            hint="Try again; if it stays silent, start the agent in a terminal and look at what it asks for.",
        )
        self.method = method


class AgentMute(AgentError):
    """The agent does not read its input: more than the bound waits to be written to it."""

    default_code = "agent_mute"
