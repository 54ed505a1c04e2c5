"""What a tool call does, whatever its agent calls it: one small vocabulary over all agents.

The native name and input of a call are always kept beside the kind; a name that no table knows is `OTHER`, never an
error. Sources of the names: each agent's own tool list as found in its transcripts and documentation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any


class Tool(StrEnum):
    """The kinds of tool calls."""

    READ = "read"
    WRITE = "write"
    EDIT = "edit"
    SHELL = "shell"
    SEARCH = "search"
    FETCH = "fetch"
    TODO = "todo"
    ASK = "ask"
    TASK = "task"
    MCP = "mcp"
    OTHER = "other"


_COMMON: dict[Tool, str] = {
    Tool.READ: "read read_file readfile read_many_files view fs_read view_image list_directory ls list list_dir listdir view_file "
    "read_media_file readmediafile notebookread read_mcp_resource",
    Tool.WRITE: "write write_file writefile create create_file fs_write write_to_file",
    Tool.EDIT: "edit multiedit multi_edit str_replace str_replace_editor strreplacefile strreplace replace edit_file apply_patch applypatch "
    "notebookedit notebook_edit search_replace delete delete_file patch replace_file_content",
    Tool.SHELL: "bash shell exec_command local_shell local_shell_call shell_command container.exec run_shell_command run_command "
    "execute_bash execute_command bashoutput killshell kill_shell write_stdin unified_exec terminal run_terminal_cmd powershell exec "
    "execute wait_command command_status",
    Tool.SEARCH: "grep glob search search_file_content grep_search file_search find codebase_search semsearch rg list_files ripgrep "
    "toolsearch tool_search tool_search_call find_by_name",
    Tool.FETCH: "webfetch web_fetch fetch fetchurl websearch web_search google_web_search web_search_call searchweb search_web "
    "read_url_content browser fetch_url",
    Tool.TODO: "todowrite todoread todo_write todo todos update_plan write_todos settodolist set_todo_list todo_list update_todos "
    "taskcreate taskupdate tasklist taskget exitplanmode exit_plan_mode enterplanmode updatetodos save_memory",
    Tool.ASK: "askuserquestion ask_user_question request_user_input question ask ask_followup_question ask_user askquestion",
    Tool.TASK: "task agent spawn_agent subagent delegate use_subagent sendmessage send_input wait_agent close_agent createsubagent taskstop "
    "taskoutput resume_agent",
    Tool.MCP: "use_mcp_tool callmcptool call_mcp_tool",
}
_KIND_OF_NAME = {name: kind for kind, names in _COMMON.items() for name in names.split()}

_OF_AGENT: dict[str, dict[str, Tool]] = {
    # Where one agent means something else by a common name.
    "gemini": {"replace": Tool.EDIT, "list_directory": Tool.READ},
    "codex": {"exec": Tool.SHELL, "view_image": Tool.READ},
    "amp": {"finder": Tool.SEARCH, "oracle": Tool.TASK},
    "kiro": {"fs_read": Tool.READ, "fs_write": Tool.WRITE, "use_aws": Tool.OTHER},
}


def classify(agent: str, name: str) -> Tool:
    """The kind of the tool that `agent` calls `name`."""
    lowered = name.lower()
    special = _OF_AGENT.get(agent, {}).get(lowered)
    if special is not None:
        return special
    if lowered.startswith(("mcp__", "mcp_")):
        return Tool.MCP
    return _KIND_OF_NAME.get(lowered, Tool.OTHER)


_PATH_KEYS = (
    "file_path",
    "filePath",
    "path",
    "absolute_path",
    "notebook_path",
    "filename",
    "target_file",
    "TargetFile",
    "AbsolutePath",
)
_PATCH_LINE = re.compile(r"^\*\*\* (?:(Add|Update|Delete) File|Move to): (.+)$", re.MULTILINE)


def touched_paths(kind: Tool, arguments: Mapping[str, Any]) -> list[str]:
    """Paths a read, write or edit call names, as spelled there; for patches, every file of the patch."""
    if kind not in (Tool.READ, Tool.WRITE, Tool.EDIT):
        return []
    found = [str(arguments[key]) for key in _PATH_KEYS if isinstance(arguments.get(key), str) and arguments[key]]
    found = found[:1]
    paths = arguments.get("paths")
    if isinstance(paths, list):
        found += [path for path in paths if isinstance(path, str)]
    if kind is Tool.EDIT:
        for key in ("input", "patch", "patchText", "text"):
            text = arguments.get(key)
            if isinstance(text, str):
                found += [path for _, path in _PATCH_LINE.findall(text)]
    return list(dict.fromkeys(found))


def command_of(arguments: Mapping[str, Any]) -> str:
    """The shell command of a shell call as one text, "" where it names none. `sh -c X` in list form becomes X."""
    for key in ("command", "cmd", "CommandLine", "script"):
        value = arguments.get(key)
        if isinstance(value, str) and value:
            return value
        if isinstance(value, list) and value:
            words = [str(word) for word in value]
            if len(words) == 3 and words[1] in ("-lc", "-c"):
                return words[2]
            return " ".join(words)
    return ""


def todo_items(arguments: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """(text, status) of a todo call that carries the whole list; status is one of pending, in_progress, completed or the agent's own word."""
    for key in ("todos", "plan", "items"):
        entries = arguments.get(key)
        if not isinstance(entries, list):
            continue
        for entry in entries:
            if not isinstance(entry, dict):
                continue
            text = entry.get("content") or entry.get("step") or entry.get("title") or entry.get("description") or entry.get("text")
            if isinstance(text, str) and text:
                yield text, str(entry.get("status", "pending"))
