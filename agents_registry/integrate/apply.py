"""Integrate one agent, or take the integration back: both files are worked out first, then written.

Nothing is written when one of the two cannot be changed safely. A file that another program rewrites meanwhile
(Claude Code does that often) is read again, a bounded number of times.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from agents_registry.errors import RefusedError, UsageError
from agents_registry.integrate import files, record
from agents_registry.integrate.entry import mcp_file, with_entry, without_entry
from agents_registry.integrate.skill import check_ours, skill_file, skill_text
from agents_registry.model import AgentSpec

_ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class Change:
    """What happened to one file. `what` is `mcp` or `skill`; `done` is `added`, `changed`, `unchanged`, `removed` or `absent`."""

    agent: str
    what: str
    file: Path
    done: str


def integrate(
    spec: AgentSpec,
    command: Sequence[str],
    env: Mapping[str, str],
    *,
    project: Path | None = None,
    data_dir: Path | None = None,
) -> list[Change]:
    """Enter our MCP server (started by `command`) and our skill where `spec`'s agent looks.

    Raises:
        UsageError: the agent has no place for either.
        RefusedError: a file there cannot be parsed, is not ours, or cannot be written.
    """
    config, skill = _places(spec, env, project)
    changes: list[Change] = []
    steps: list[Callable[[], Change]] = []
    if config is not None and spec.mcp is not None:
        mcp = spec.mcp
        with_entry(mcp, files.read_text(config) or "", command, config)  # refused before anything is written
        steps.append(
            lambda: _rewrite(spec, "mcp", config, lambda text: with_entry(mcp, text or "", command, config), data_dir)
        )
    if skill is not None:
        check_ours(skill, files.read_text(skill))
        steps.append(lambda: _rewrite(spec, "skill", skill, lambda _text: skill_text(spec), data_dir, exact=False))
    for step in steps:
        changes.append(step())
    return changes


def remove(
    spec: AgentSpec, env: Mapping[str, str], *, project: Path | None = None, data_dir: Path | None = None
) -> list[Change]:
    """Take entry and skill out again; what else stands in the files stays. Raises like `integrate`."""
    config, skill = _places(spec, env, project)
    changes: list[Change] = []
    if config is not None and spec.mcp is not None:
        mcp = spec.mcp
        text = files.read_text(config)
        if text is None or without_entry(mcp, text, config) == text:
            changes.append(Change(spec.id, "mcp", config, "absent"))
        else:
            created = record.was_created(data_dir, config)

            def back(text: str | None) -> str | None:
                if text is None:
                    return None
                exact = record.undone(data_dir, config, text)
                result = exact if exact is not None else without_entry(mcp, text, config)
                return None if created and result.strip() in ("", "{}") else result

            changes.append(_rewrite(spec, "mcp", config, back, None, removing=True))
        with contextlib.suppress(OSError):  # the record only makes the next removal exact
            record.forget(data_dir, config)
    if skill is not None:
        text = files.read_text(skill)
        if text is None:
            changes.append(Change(spec.id, "skill", skill, "absent"))
        else:
            check_ours(skill, text)
            changes.append(_rewrite(spec, "skill", skill, lambda _text: None, None, removing=True))
            if skill.name == "SKILL.md":
                with contextlib.suppress(OSError):  # somebody keeps files of his own there
                    skill.parent.rmdir()
    with contextlib.suppress(OSError):  # as above
        record.remove_directories(data_dir)
    return changes


def _places(spec: AgentSpec, env: Mapping[str, str], project: Path | None) -> tuple[Path | None, Path | None]:
    if project is not None and not project.is_dir():
        raise UsageError(
            f"{project} is not a directory.", hint="Name the project's directory: va integrate --project DIR"
        )
    config, skill = mcp_file(spec, env, project), skill_file(spec, env, project)
    if config is None and skill is None:
        raise UsageError(
            f"{spec.name} has no place for a tool server or a skill.",
            hint="Use the command line program of the same maker; va agents list shows what is here."
            if spec.kind == "desktop"
            else f"Hand over from outside of it: va handover --agent {spec.id} --session ID --cwd DIR",
            code="not_integrable",
        )
    return config, skill


def _rewrite(
    spec: AgentSpec,
    what: str,
    path: Path,
    change: Callable[[str | None], str | None],
    data_dir: Path | None,
    *,
    removing: bool = False,
    exact: bool = True,
) -> Change:
    """Replace `path` by what `change` makes of its text; None = the file goes. With `data_dir` new directories are
    recorded, with `exact` the change too."""
    for _attempt in range(_ATTEMPTS):
        before = files.read_text(path)
        after = change(before)
        if after == before:
            return Change(spec.id, what, path, "unchanged" if after is not None else "absent")
        try:
            if after is None:
                files.real(path).unlink()
                return Change(spec.id, what, path, "removed")
            directory = files.real(path).parent
            record.remember_directories(data_dir, [one for one in (directory, *directory.parents) if not one.exists()])
            directory.mkdir(parents=True, exist_ok=True)
            if files.read_text(path) != before:
                continue  # somebody wrote since: work it out again from what stands there now
            if exact and data_dir is not None:
                record.remember(data_dir, path, before, after)
            files.replace_file(path, after.encode("utf-8"), mode=0o600 if what == "mcp" else 0o644)
        except OSError as error:
            raise RefusedError(
                f"{error.filename or path} cannot be written: {error.strerror or error}.",
                hint="Give yourself the right to write there, then run the command again.",
            ) from error
        return Change(spec.id, what, path, "removed" if removing else "added" if before is None else "changed")
    raise RefusedError(
        f"{path} is being rewritten by another program all the time.", hint="Close that program and try again."
    )
