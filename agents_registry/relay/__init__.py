"""Relay: a conversation of one agent goes on with another.

`carry` decides what goes (a brief of the earlier part, the last rounds word by word, within a budget), `write_session`
writes it as a new session of the target's own store, `Carried.as_text` is the same as one message.
"""

from agents_registry.relay.carry import Carried, Options, Report, carry
from agents_registry.relay.drift import Change, FileState, compare, look
from agents_registry.relay.earlier import new_since, seen
from agents_registry.relay.native import can_write, write_session
from agents_registry.relay.redact import Redacted, Redactor
from agents_registry.relay.relay_map import End, Link, RelayMap

__all__ = [
    "Carried", "Change", "End", "FileState", "Link", "Options", "Redacted", "Redactor", "RelayMap", "Report",
    "can_write", "carry", "compare", "look", "new_since", "seen", "write_session",
]  # fmt: skip
