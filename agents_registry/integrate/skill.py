"""The skill `vibearound`: how an agent learns to hand its conversation over when the user asks for it in plain words."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from agents_registry.errors import RefusedError
from agents_registry.integrate.entry import NAME
from agents_registry.model import AgentSpec, place

TEXTS = Path(__file__).resolve().parent.parent / "skills"
MARK = "<!-- managed by `va integrate`: your changes here are overwritten -->"
"""How a file of ours is known; one without it is never overwritten nor removed."""


def skill_file(spec: AgentSpec, env: Mapping[str, str], project: Path | None = None) -> Path | None:
    """Where the agent looks for it; None when the agent knows no skills."""
    skills = spec.skills
    if skills is None:
        return None
    layout = skills.layout
    if project is not None:
        directory: Path | None = project / skills.project if skills.project else None
        layout = skills.project_layout or layout
    else:
        directory = place(skills.user, env)
    if directory is None:
        return None
    return directory / NAME / "SKILL.md" if layout == "folder" else directory / f"{NAME}.{layout}"


def skill_text(spec: AgentSpec) -> str:
    """The text for this agent. Flat rule files (Kiro's steering, Cursor's rules) have the same head."""
    if spec.skills is None:
        return ""
    text = (TEXTS / spec.skills.text).read_text(encoding="utf-8")
    return text.replace("{agent}", spec.id).replace("{mark}", MARK)


def check_ours(path: Path, text: str | None) -> None:
    """Raises RefusedError when `path` holds somebody else's file."""
    if text is not None and MARK not in text:
        raise RefusedError(
            f"{path} exists and is not one of ours.",
            hint="Move it away or rename that skill, then run va integrate again. Nothing was changed.",
            code="foreign_file",
        )
