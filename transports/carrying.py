"""How a conversation is carried to another agent, as the settings say; for the command line and the reader alike."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agents_registry.relay.carry import Options


def carry_options(
    target: str, data_dir: Path, environ: Mapping[str, str], *, budget: int | None = None, recent: int | None = None, **more: Any
) -> Options:
    """The settings' words, rounds and budget (tokens), where the caller names none; `more` are further fields of Options.

    Raises:
        UsageError: the settings file does not hold.
    """
    from agents_registry.relay.budget import window
    from agents_registry.relay.carry import Options
    from transports.settings import load

    wanted = load(data_dir, environ).relay
    return Options(
        budget=budget or min(wanted.budget_tokens, int(window(target) * wanted.window_share)),
        recent=wanted.recent_turns if recent is None else recent,
        decision_words={"en": wanted.decision_words_en, "zh": wanted.decision_words_zh},
        **more,
    )
