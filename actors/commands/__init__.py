"""Chat commands as pure functions: `parse` (the grammar), `table` (when and who), `text` (the words of the replies)."""

from __future__ import annotations

from actors.commands.parse import Command, Prompt, Unknown, parse
from actors.commands.table import Rule, allowed, rule
from transports.codes import CodeText, read_code

__all__ = ["CodeText", "Command", "Prompt", "Rule", "Unknown", "allowed", "parse", "read_code", "rule"]
